"""Loads and stays, followed from changes."""

import pytest
from ledger_kit import Books

from lorapick.core.ledger import slots
from lorapick.model import events
from lorapick.model.events import By
from lorapick.model.ledger import OccupancyRow
from lorapick.model.pods import LoadedAdapter
from lorapick.model.tiers import Tier


def test_a_stay_begins_with_its_load_and_ends_when_another_gets_the_slot() -> None:
    book = Books()
    book.arrive("x")
    book.wait(0.5)
    book.end("r1", status=200)
    book.wait(10.0)
    book.arrive("y")
    load, second = book.loads()
    stay, follower = book.stays()
    assert (load.adapter, load.begun, load.over, load.result, load.tier) == ("x", 0.0, 0.5, "done", "disk")
    assert (load.caused_by, load.request) == ("request", "r1")
    assert (stay.since, stay.until, stay.load, stay.requests, stay.last_request) == (0.0, 10.5, load.id, 1, 0.0)
    assert (stay.why, stay.evicted_by, stay.evicted_by_load) == ("capacity", "y", second.id)
    assert (follower.adapter, follower.until, follower.load) == ("y", None, second.id)


def test_a_reload_is_laid_to_the_eviction_that_made_it_necessary() -> None:
    book = Books()
    for name in ("x", "y", "x"):
        book.use(name, "a")
        book.wait(1.0)
    first, second, again = book.loads()
    assert (first.after_stay, second.after_stay) == (None, None)
    assert again.after_stay == book.stays()[0].id


def test_elsewhere_only_a_recent_eviction_counts() -> None:
    for pause, known in ((5.0, True), (700.0, False)):
        book = Books(pods=("a", "b"))
        book.use("x", "a")
        book.use("y", "a")
        book.wait(pause)
        book.report("a")
        book.report("b")
        book.use("x", "b")
        assert (book.loads()[-1].after_stay is not None) is known


def test_what_a_pod_had_before_is_no_load() -> None:
    book = Books(adapters=("x", "y"))
    other = Books(pods=())
    other.appear("fresh")
    other.report("fresh", loaded=(LoadedAdapter(name="x", on_gpu=True),))
    assert other.loads() == []
    (stay,) = other.stays()
    assert (stay.adapter, stay.load, stay.until) == ("x", None, None)
    book.report("a", loaded=(LoadedAdapter(name="x", on_gpu=True),))
    (load,) = book.loads()
    assert (load.begun, load.caused_by, load.result) == (None, "engine", "done")


def test_a_restart_ends_loads_and_stays() -> None:
    book = Books(slots=2)
    book.report("a", process_start=1.0)
    book.use("x", "a")
    book.arrive("y")
    book.wait(0.1)
    book.report("a", process_start=2.0)
    assert [(stay.adapter, stay.why) for stay in book.stays()[:2]] == [("x", "restart"), ("y", "restart")]
    assert book.loads()[1].result == "failed"


def test_a_pod_that_goes_takes_its_stays_along() -> None:
    book = Books()
    book.use("x", "a")
    book.gone("a")
    (stay,) = book.stays()
    assert (stay.why, stay.until is not None) == ("gone", True)


def test_an_unload_frees_where_the_engine_says_so() -> None:
    book = Books()
    book.use("x", "a")
    book.apply(events.Evicted, pod="a", adapter="x", tier=Tier.DISK)
    (stay,) = book.stays()
    assert (stay.why, stay.evicted_by) == ("capacity", None)


def test_slots_in_use_are_counted() -> None:
    book = Books(slots=2)
    book.use("x", "a")
    book.wait(30.0)
    book.use("y", "a")
    book.wait(30.0)
    count = book.all(OccupancyRow)[-1]
    assert (count.used, count.slot_seconds) == (2, pytest.approx(30.0 + 2 * (count.t - 30.0)))


def test_commands_are_the_controllers() -> None:
    book = Books()
    book.apply(events.LoadStarted, pod="a", adapters=("x",), by=By.CONTROLLER)
    book.apply(events.LoadFailed, pod="a", adapter="x", by=By.CONTROLLER, why="no room")
    (load,) = book.loads()
    assert (load.caused_by, load.result) == ("controller", "failed")
    assert book.stays()[0].why == "failed"


def test_a_pod_that_comes_back_brings_what_it_has() -> None:
    book = Books()
    book.use("x", "a")
    book.gone("a")
    book.appear("a")
    book.report("a", loaded=(LoadedAdapter(name="x", on_gpu=True),))
    assert [load.adapter for load in book.loads()] == ["x"]
    assert [(stay.load is None, stay.until is None) for stay in book.stays()] == [(False, False), (True, True)]


def test_of_pods_that_left_only_some_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slots, "KEPT_PODS", 2)
    book = Books(pods=[f"pod-{number}" for number in range(5)])
    for number in range(5):
        book.gone(f"pod-{number}")
    remembered = [name for name in (f"pod-{n}" for n in range(5)) if name in book.books._slots._pods]
    assert remembered == ["pod-3", "pod-4"]
