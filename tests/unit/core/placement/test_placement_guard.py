"""Loads that nobody's request causes: accepted, or refused with a word that says why."""

import pytest
from placement_kit import ask, fleet, loaded, pin, refused, row, tick, told, unask

from lorapick.core.placement import guard
from lorapick.core.placement.targets import Target
from lorapick.model import events
from lorapick.model.adapters import Adapter
from lorapick.model.placement import Why
from lorapick.model.pods import Engine, LoadedAdapter, SilentWhy
from lorapick.model.settings import BudgetSettings, PlacementSettings, Settings
from lorapick.testing.playbook import plain_pod


def word(book, pod, adapter, why=Why.OPERATOR):
    state = book.fleet.state
    return guard.refuse(state, Target(row(book, pod), adapter, why), now=book.now)


def test_what_is_there_or_on_its_way_is_not_loaded_again():
    book = fleet("a")
    assert word(book, "a", "x") is None
    ask(book, "x", "a")
    assert word(book, "a", "x") == "there"
    assert word(book, "a", "y") == "pod_busy"


@pytest.mark.parametrize(
    ("what", "reason"),
    [
        (lambda book: book.drain("a"), "draining"),
        (lambda book: book.silent("a", SilentWhy.REFUSED), "away"),
        (lambda book: book.wait(60.0), "away"),
        (lambda book: book.report("a", memory_pressure=0.93), "pressure"),
        (lambda book: book.apply(events.AdapterChecked, adapter="x", problem="not the same file"), "unfit"),
        (lambda book: book.report("a", registered=("y",)), "unregistered"),
    ],
)
def test_a_pod_or_an_adapter_that_is_not_fit_for_it(what, reason):
    book = fleet("a")
    what(book)
    assert word(book, "a", "x") == reason


def test_a_pod_that_has_not_reported_is_not_told_anything():
    book = fleet()
    book.appear("a")
    assert ask(book, "x", "a") == [] and refused(book) == ["away"]
    book.report("a")
    assert told(book) == [("Load", "a", "x")]


def test_ranks_bases_and_engines():
    book = fleet(
        plain_pod("small", max_lora_rank=8),
        plain_pod("other", base_model="another"),
        plain_pod("lorax", engine=Engine.LORAX),
        adapters=[Adapter(name="x", declared=True, rank=16), "y"],
    )
    assert (word(book, "small", "x"), word(book, "other", "y"), word(book, "lorax", "y")) == (
        "unfit", "unfit", "no_load_api",
    )  # fmt: skip


def test_engines_that_load_by_requests_alone():
    book = fleet(
        plain_pod("trtllm", engine=Engine.TRTLLM),
        plain_pod("triton", engine=Engine.TRITON),
        adapters=[Adapter(name="x", declared=True, source="/x"), Adapter(name="y", declared=True)],
    )
    assert (word(book, "trtllm", "x"), word(book, "trtllm", "y")) == (None, "unfit")
    book.report("triton", registered=("y",))
    # Triton has the names of its start: a source helps nobody.
    assert (word(book, "triton", "y"), word(book, "triton", "x")) == (None, "unregistered")
    assert ask(book, "x", "trtllm") == [("Load", "trtllm", "x")]


def test_no_more_pods_load_at_once_than_may_but_for_those_that_serve_nobody():
    book = fleet("a", "b", "c", "d")
    book.use("x", "a")
    book.arrive("x", id="here")  # on a, which is busy from now on
    ask(book, "y", "b")
    assert word(book, "a", "z") == "too_many_pods_load"
    assert word(book, "c", "z") is None


def test_a_pods_loads_in_a_minute():
    book = fleet("a", settings=Settings(budgets=BudgetSettings(loads_per_pod_per_minute=2)))
    for name in ("x", "y"):
        ask(book, name, "a")
        loaded(book, "a", name)
    assert word(book, "a", "z") == "pod_budget"
    tick(book, 61.0)
    assert word(book, "a", "z") is None


def test_what_nobody_insists_on_keeps_to_the_churn_budget():
    book = fleet("a", "b", settings=Settings(placement=PlacementSettings(moves_per_minute=0)))
    assert word(book, "a", "x", Why.DEMAND) == "churn_budget"
    assert word(book, "a", "x", Why.SCHEDULE) is None


def test_what_was_brought_and_has_gone_does_not_come_back_at_once_unless_asked_for():
    book = fleet("a")
    ask(book, "x", "a")
    loaded(book, "a", "x")
    unask(book, "x", "a")
    book.apply(events.Unloaded, pod="a", adapter="x")
    book.report("a", registered=("x", "y", "z"))
    book.apply(events.Evicted, pod="a", adapter="x", tier=0)
    assert word(book, "a", "x", Why.FORECAST) == "flapping"
    assert word(book, "a", "x", Why.TRIGGER) is None


def full(*, demand=False):
    """One pod of two slots, with x used last, and y before."""
    book = fleet(plain_pod("a", max_loras=2), "b")
    for name in ("y", "x"):
        ask(book, name, "a")
        loaded(book, "a", name)
    tick(book)
    if demand:
        for _ in range(5):
            book.use("y", "a")
            book.use("x", "a")
    return book


def test_pins_are_not_thrown_out_nor_what_is_wanted_as_much():
    book = full()
    pin(book, "y", pods=("a",))
    assert word(book, "a", "z", Why.OPERATOR) == "evicts_kept"
    book = full()
    book.fleet.state.placement.wanted[0] = {"y": Why.SCHEDULE}
    assert word(book, "a", "z", Why.TRIGGER) == word(book, "a", "z", Why.SCHEDULE) == "evicts_kept"
    assert word(book, "a", "z", Why.OPERATOR) is None


def test_the_last_copy_of_what_is_asked_for_goes_only_when_an_operator_leaves_no_other():
    book = full(demand=True)
    assert word(book, "a", "z", Why.TRIGGER) == "evicts_last_copy"
    assert word(book, "a", "z", Why.OPERATOR) is None, "both are last copies"
    ask(book, "x", "b")
    loaded(book, "b", "x")
    tick(book)
    assert word(book, "a", "z", Why.OPERATOR) == "evicts_last_copy", "x may go first"
    ask(book, "y", "b")
    loaded(book, "b", "y")
    assert word(book, "a", "z", Why.TRIGGER) is None


def test_where_all_is_in_use_nothing_is_loaded():
    book = full()
    for name in ("x", "y"):
        book.arrive(name, id=name, subset=("a:8000",))
    assert word(book, "a", "z") == "all_busy"


def test_a_pod_that_shows_more_than_it_has_slots_gets_no_more_into_use():
    """What goes there makes room for nobody: the slots that it has are in use without it."""
    book = full()
    for name in ("x", "y"):
        book.arrive(name, id=name, subset=("a:8000",))
    shown = tuple(LoadedAdapter(name=name, on_gpu=True) for name in ("x", "y", "idle"))
    book.report("a", loaded=shown)
    assert word(book, "a", "z") == "all_busy"
