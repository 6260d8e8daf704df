"""An engine's own list against what was believed."""

from lorapick.core.residency.cells import Cell
from lorapick.core.residency.reports import Listed
from lorapick.core.residency.shadow import Shadow
from lorapick.model.pods import LoadedAdapter
from lorapick.model.tiers import Tier


def test_an_adapter_listed_for_both_levels_is_on_the_gpu():
    listed = Listed([LoadedAdapter(name="a", on_gpu=True), LoadedAdapter(name="a", on_gpu=False, pinned=True)])
    assert listed.place("a", before=Tier.DISK) is Tier.GPU_IDLE
    assert (listed.names, [*listed.pinned]) == (("a",), ["a"])


def test_who_is_not_listed_is_on_disk():
    assert Listed([]).place("a", before=Tier.GPU_IDLE) is Tier.DISK


def test_a_list_without_levels_leaves_the_gpu_to_the_shadow():
    listed = Listed([LoadedAdapter(name="a", on_gpu=None), LoadedAdapter(name="b", on_gpu=None)])
    assert listed.place("a", before=Tier.GPU_IDLE) is Tier.GPU_IDLE
    assert listed.place("b", before=Tier.DISK) is Tier.CPU
    assert [listed.only_implied(name, before=Tier.GPU_IDLE) for name in ("a", "c")] == [True, False]
    shadow = Shadow(gpu_slots=2, cpu_slots=4)
    for name in ("a", "c"):
        shadow.use(name, lambda _: False)
    listed.take_over(shadow, {name: Cell(0.0) for name in ("a", "b", "c")}, kept=())
    assert ([*shadow.gpu], [*shadow.cpu]) == (["a"], ["a", "b"])


def test_what_is_newer_than_the_list_stays():
    shadow = Shadow(gpu_slots=2, cpu_slots=4)
    shadow.use("a", lambda _: False)
    Listed([LoadedAdapter(name="b", on_gpu=True)]).take_over(shadow, {"a": Cell(0.0)}, kept=("a",))
    assert [*shadow.gpu] == ["a", "b"]
