"""Pods by role."""

from lorapick.model.pods import Role
from lorapick.sim.measures import GpuTime
from lorapick.sim.report import PodRow
from lorapick.sim.sides import sides_of


def row(name, role, **counts):
    gpu = GpuTime(prefill=counts.pop("prefill", 0.0), decode=2.0, idle=6.0, down=1.0)
    return PodRow(pod=name, role=role, dispatches=1, swaps=2, loads=3, gpu=gpu, **counts)


def test_pods_of_one_role_stand_together():
    rows = [
        row("a", Role.DECODE, hits=3, misses=1),
        row("b", Role.PREFILL, prefill=1.0),
        row("c", Role.DECODE, hits=5, misses=3),
    ]
    prefill, decode = sorted(sides_of(rows), key=lambda each: each.pods)
    assert (decode.role, decode.pods, decode.swaps, decode.loads, decode.hits, decode.misses) == (
        Role.DECODE, 2, 4, 6, 8, 4,
    )  # fmt: skip
    assert decode.hit_ratio == 8 / 12
    assert decode.busy == 4 / 18
    assert (prefill.hit_ratio, prefill.busy, prefill.share("prefill")) == (None, 0.3, 0.1)


def test_where_all_do_both_there_are_no_sides():
    assert sides_of([row("a", Role.BOTH), row("b", Role.BOTH)]) == ()
    assert sides_of([]) == ()
