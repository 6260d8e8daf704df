"""Settings: affinities and defaults as the documentation has them."""

import pytest

from lorapick.model.arms import Mode
from lorapick.model.settings import Affinity, Settings, Weights
from lorapick.model.tiers import Tier


@pytest.mark.parametrize(
    ("tier", "free_slot", "affinity"),
    [
        (Tier.GPU_SERVING, False, 1.0),
        (Tier.GPU_IDLE, False, 0.8),
        (Tier.LOADING, False, 0.9),
        (Tier.CPU, True, 0.4),
        (Tier.DISK, True, 0.3),
        (Tier.DISK, False, 0.0),
        (Tier.UNREGISTERED, False, 0.0),
    ],
)
def test_affinity_by_tier(tier, free_slot, affinity):
    assert Affinity().of(tier, free_slot=free_slot) == affinity
    assert Affinity().of(tier, free_slot=free_slot, pinned=True) == pytest.approx(affinity + 0.05)


def test_the_articles_weights_add_up_to_one():
    weights = Weights()
    assert (weights.adapter, weights.kv, weights.queue, weights.gpu) == (0.50, 0.20, 0.15, 0.15)


def test_everything_has_a_default():
    settings = Settings()
    assert (settings.pressure.soft, settings.pressure.hard, settings.pressure.critical) == (0.85, 0.90, 0.95)
    assert (settings.admission.max_queued, settings.admission.max_wait) == (1000, 30.0)
    assert (settings.picking.policy, settings.mode) == ("weighted", Mode())
