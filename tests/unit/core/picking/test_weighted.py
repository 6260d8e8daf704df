"""The article's weighted score, through real events [R2.2, R2.3]."""

import pytest

from lorapick.core.picking.weighted import Weighted
from lorapick.model import events
from lorapick.model.adapters import PinSpec
from lorapick.model.pods import GpuSource
from lorapick.model.reasons import Reason
from lorapick.model.settings import Affinity, PickingSettings, PlacementSettings, Settings, Weights
from lorapick.model.tiers import Tier
from lorapick.testing.playbook import Playbook, plain_pod

OTHERS = ("a", "b", "c", "d")


@pytest.fixture
def example():
    """Pod-02 serves the adapter and has 3 of the 5 prefix blocks; Pod-05 has four other adapters in four slots."""
    book = Playbook(pods=["pod-02", "pod-05"], adapters=["legal", *OTHERS])
    book.arrive("legal", id="before", blocks=(1, 2, 3), subset=("pod-02",))
    book.start("before")
    for adapter in OTHERS:
        book.use(adapter, "pod-05")
    book.report("pod-02", waiting=3, running=5, gpu_utilization=0.45, gpu_source=GpuSource.POD)
    book.report("pod-05", waiting=0, running=0, gpu_utilization=0.12, gpu_source=GpuSource.POD)
    return book


def test_worked_example_of_the_article(example):
    assert example.arrive("legal", blocks=(1, 2, 3, 4, 5)) == ["r1 -> pod-02 (gpu_serving) else pod-05"]
    won, lost = example.verdict("r1", "pod-02"), example.verdict("r1", "pod-05")
    assert won.score == pytest.approx(0.79625, abs=1e-12)
    assert (won.terms.adapter, won.terms.kv, won.terms.queue, won.terms.gpu) == (1.0, 0.6, 0.625, pytest.approx(0.55))
    assert lost.score == pytest.approx(0.282, abs=1e-12)
    assert (lost.terms.adapter, lost.terms.kv, lost.terms.queue, lost.terms.gpu) == (0.0, 0.0, 1.0, 0.88)
    assert lost.reason is Reason.OUTSCORED
    assert example.effects[0].pick.score == won.score


def test_worked_example_with_a_free_slot_on_pod_05(example):
    example.apply(events.Evicted, pod="pod-05", adapter="a", tier=Tier.CPU)
    example.arrive("legal", blocks=(1, 2, 3, 4, 5))
    assert example.verdict("r1", "pod-05").score == pytest.approx(0.432, abs=1e-12)


def serving(book):
    book.arrive("legal", id="held-open")
    book.start("held-open")


def idle(book):
    book.use("legal", "pod")


def loading(book):
    book.arrive("legal", id="on-its-way")


def on_cpu(book):
    book.use("legal", "pod")
    book.use("a", "pod")


def must_evict(book):
    book.use("a", "pod")


def absent(book):
    assert book.free("pod") == 1


@pytest.mark.parametrize(
    ("prepare", "tier", "affinity"),
    [
        (serving, Tier.GPU_SERVING, 1.0),
        (idle, Tier.GPU_IDLE, 0.8),
        (loading, Tier.LOADING, 0.9),
        (on_cpu, Tier.CPU, 0.4),
        (absent, Tier.DISK, 0.3),
        (must_evict, Tier.DISK, 0.0),
    ],
)
@pytest.mark.parametrize("pinned", [False, True])
def test_affinity_of_each_tier(prepare, tier, affinity, pinned):
    book = Playbook(
        pods=[plain_pod("pod", max_loras=1)],
        adapters=["legal", "a"],
        settings=Settings(placement=PlacementSettings(enabled=False)),
    )
    if pinned:
        book.apply(events.PinSet, adapter="legal", pin=PinSpec(pods=("pod",)))
    prepare(book)
    assert book.tier("pod", "legal") == tier.word
    book.arrive("legal", id="asked")
    verdict = book.verdict("asked", "pod")
    assert verdict.tier is tier
    assert verdict.pinned is pinned
    assert verdict.terms.adapter == pytest.approx(affinity + (0.05 if pinned else 0.0))


def test_base_model_needs_no_adapter():
    book = Playbook(pods=["pod"])
    assert book.arrive("base") == ["r1 -> pod (base)"]
    assert book.verdict("r1", "pod").terms.adapter == 1.0
    assert book.verdict("r1", "pod").tier is None


def test_a_loaded_pod_with_a_long_queue_still_beats_an_idle_empty_one():
    """A known weakness of fixed weights [R2.7], which a `cost` policy is to answer; here as the article has it."""
    book = Playbook(pods=["holder", "idle"], adapters=["legal", *OTHERS])
    book.use("legal", "holder")
    for adapter in OTHERS:
        book.use(adapter, "idle")
    book.report("holder", waiting=7, running=64, gpu_utilization=1.0)
    assert book.arrive("legal") == ["r1 -> holder (gpu_idle) else idle"]


def test_weights_and_affinities_are_settings():
    picking = PickingSettings(weights=Weights(adapter=0.0, kv=0.0, queue=0.0, gpu=1.0), affinity=Affinity(gpu_idle=0.1))
    book = Playbook(pods=["holder", "idle"], adapters=["legal"], settings=Settings(picking=picking))
    book.use("legal", "holder")
    book.report("holder", gpu_utilization=0.9)
    book.report("idle", gpu_utilization=0.2)
    assert book.arrive("legal") == ["r1 -> idle (disk) else holder"]
    assert book.verdict("r1", "holder").terms.adapter == pytest.approx(0.1)
    assert Weighted(picking).weights() == {"adapter": 0.0, "kv": 0.0, "queue": 0.0, "gpu": 1.0}
