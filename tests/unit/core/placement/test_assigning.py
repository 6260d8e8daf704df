"""Which pods a want gets."""

from placement_kit import ask, fleet, loaded, pin

from lorapick.core.placement.assigning import rows_for
from lorapick.core.placement.wants import Want
from lorapick.model import events
from lorapick.model.adapters import Adapter
from lorapick.model.placement import Why
from lorapick.model.pods import Role, SilentWhy
from lorapick.testing.playbook import plain_pod


def given(book, adapter="x", *, wanted=None, before=(), **fields):
    want = Want(adapter=adapter, why=Why.SCHEDULE, name="test", **fields)
    rows = rows_for(book.fleet.state, want, wanted=wanted or {}, before=before)
    return [book.fleet.state.columns.targets[row].pod for row in rows]


def test_whoever_had_a_pod_keeps_it_then_come_those_that_hold_it():
    book = fleet("a", "b", "c")
    ask(book, "x", "b")
    loaded(book, "b", "x")
    assert given(book) == ["b"]
    assert given(book, before=(2,)) == ["c"]
    assert given(book, replicas=2, before=(2,)) == ["c", "b"]
    book.apply(events.Evicted, pod="b", adapter="x", tier=2)
    assert given(book) == ["b"], "it is in host memory there"


def test_ties_are_broken_alike_everywhere_and_not_alike_for_all():
    one, other = fleet("a", "b", "c"), fleet("c", "b", "a")
    found = {name: given(one, name) for name in "xyz"}
    assert found == {name: given(other, name) for name in "xyz"}
    assert len({*map(str, found.values())}) > 1


def test_pods_that_are_wanted_for_less_come_first_and_full_ones_not_at_all():
    book = fleet(plain_pod("a", max_loras=1), plain_pod("b", max_loras=3))
    assert given(book, wanted={1: {"y": Why.PIN, "z": Why.PIN}, 0: {}}) == ["a"] or given(book) == ["b"]
    assert given(book, replicas=2, wanted={0: {"y": Why.PIN}}) == ["b"]
    assert [*given(book, replicas=2, wanted={0: {"x": Why.PIN}})] == ["b", "a"]


def test_only_pods_that_fit():
    book = fleet(
        plain_pod("a", zone="east"), plain_pod("b", role=Role.PREFILL), plain_pod("c", max_lora_rank=8), "d",
        adapters=[Adapter(name="x", declared=True, rank=16), "y"],
    )  # fmt: skip
    assert given(book, selector={"zone": "east"}) == ["a"]
    assert given(book, pods=("b", "c")) == ["b"]  # whoever is named may be of either side
    book.drain("d")
    assert given(book, replicas=4) == ["a"]


def test_a_reserved_pod_is_for_its_pins():
    book = fleet("a", "b")
    pin(book, "x", pods=("a",), reserve=True)
    assert given(book, "y", replicas=2) == ["b"]
    assert sorted(given(book, "x", replicas=2)) == ["a", "b"]


def test_pods_that_do_not_answer_come_last():
    book = fleet("a", "b")
    ask(book, "x", "a")
    loaded(book, "a", "x")
    book.silent("a", SilentWhy.REFUSED)
    assert given(book, before=(0,)) == ["b"]
