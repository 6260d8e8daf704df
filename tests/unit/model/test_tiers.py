"""Tiers: order of readiness and words."""

from lorapick.model.tiers import Tier


def test_the_order_is_that_of_readiness():
    assert [*Tier] == sorted(Tier)
    words = ["unregistered", "disk", "cpu", "loading", "gpu_idle", "gpu_serving"]
    assert [tier.word for tier in Tier] == words == [tier.name.lower() for tier in Tier]


def test_on_the_gpu_are_those_that_can_be_used_at_once():
    assert [tier for tier in Tier if tier.on_gpu] == [Tier.GPU_IDLE, Tier.GPU_SERVING]
