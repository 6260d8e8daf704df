"""Pods get back the names that they were told to unload."""

import pytest
from msgspec.structs import replace

from lorapick.core.admission.unloading import LONGEST, PAUSE
from lorapick.model import events
from lorapick.model.effects import Load, Note, Unload
from lorapick.model.pods import Engine, LoadedAdapter, SilentWhy
from lorapick.model.settings import PlacementSettings, Settings
from lorapick.testing.playbook import Playbook, plain_pod

TIGHT = {"memory_pressure": 0.92}
EASY = {"memory_pressure": 0.5}
OURS = events.By.CONTROLLER


def sglang(name):
    return replace(plain_pod(name), engine=Engine.SGLANG)


def short_of(*names, pods="xy"):
    """Pod `x` has had `a`, `b` and `c`, and was told to unload these."""
    quiet = Settings(placement=PlacementSettings(enabled=False))
    book = Playbook(pods=[sglang(name) for name in pods], adapters=["a", "b", "c"], settings=quiet)
    for name in "abc":
        book.wait(0.1)
        book.use(name, "x")
    for name in names:
        book.report("x", **TIGHT)
        assert [effect.adapter for effect in book.effects if isinstance(effect, Unload)] == [name]
        book.apply(events.Unloaded, pod="x", adapter=name)
    for name in pods[1:]:
        book.report(name)
    return book


def asked(book):
    return [(each.pod, *each.adapters, each.why) for each in book.effects if isinstance(each, Load)]


def given(book, name, pod="x"):
    return book.apply(events.LoadSucceeded, pod=pod, adapter=name, by=OURS)


def test_a_name_comes_back_when_the_pressure_is_gone_and_it_is_said():
    book = short_of("a")
    assert book.tier("x", "a") == "unregistered"
    book.report("x", **EASY)
    assert asked(book) == [("x", "a", "pressure_over")]
    note = next(each for each in book.effects if isinstance(each, Note) and each.kind == "give_back")
    assert note.facts == {"pod": "x", "adapter": "a", "why": "pressure_over"}
    free = book.free("x")
    given(book, "a")
    assert (book.tier("x", "a"), book.free("x")) == ("cpu", free), "no slot is taken for it"
    book.report("x", **EASY)
    assert asked(book) == []
    assert book.fleet.state.tally.given_back == 1
    book.arrive("a", subset=("x:8000",))
    assert book.fleet.state.flights["r1"].pod == "x"


@pytest.mark.parametrize(("pressure", "loads"), [(0.89, 0), (0.84, 0), (0.829, 1)])
def test_not_before_the_lowest_tier_is_left(pressure, loads):
    book = short_of("a")
    book.report("x", memory_pressure=pressure)
    assert len(asked(book)) == loads


def test_a_report_from_before_the_unload_says_nothing():
    book = short_of("a")
    book.report("x", since=book.now - 0.1, **EASY)
    assert asked(book) == []


def test_one_at_a_time_most_wanted_first():
    book = short_of("a", "b")
    for _ in range(3):
        book.use("b", "y")
    book.report("x", **EASY)
    assert asked(book) == [("x", "b", "pressure_over")]
    book.report("x", **EASY)
    assert asked(book) == []
    book.report("x", **TIGHT)
    assert not any(isinstance(effect, Unload) for effect in book.effects), "one command at a time"
    book.wait(0.5)
    given(book, "b")
    book.report("x", since=0.4, **EASY)
    assert asked(book) == []
    book.report("x", **EASY)
    assert asked(book) == [("x", "a", "pressure_over")]


def test_a_failure_is_followed_by_a_pause_and_another_try():
    book = short_of("a")
    book.report("x", **EASY)
    assert book.apply(events.LoadFailed, pod="x", adapter="a", by=OURS, why="HTTP 500") == [
        "note load_failed pod=x adapter=a why=HTTP 500"
    ]
    assert book.tier("x", "a") == "unregistered" and book.fleet.state.tally.quarantines == 0
    book.report("x", **EASY)
    assert asked(book) == []
    book.wait(PAUSE)
    book.report("x", **EASY)
    assert len(asked(book)) == 1
    book.wait(LONGEST)
    book.report("x", **EASY)
    assert len(asked(book)) == 1, "nothing was heard of that one"


@pytest.mark.parametrize("listed", ["registered", "loaded"])
def test_what_the_pod_lists_by_itself_is_not_given_back(listed):
    book = short_of("a")
    names = tuple("abc")
    entries = tuple(LoadedAdapter(name=name, on_gpu=None) for name in names)
    fields = {"registered": names} if listed == "registered" else {"registered": names, "loaded": entries}
    book.report("x", **TIGHT, **fields)
    assert book.fleet.state.unloads.owed(book.fleet.state.columns.row_of["x"]) == []
    book.report("x", registered=("b", "c"), **EASY)
    assert asked(book) == []


def test_a_name_that_is_only_taken_to_be_there_is_still_owed():
    book = short_of("a")
    entries = tuple(LoadedAdapter(name=name, on_gpu=None) for name in "bc")
    book.report("x", registered=("a", "b", "c"), loaded=entries, **TIGHT)
    assert book.fleet.state.unloads.owed(book.fleet.state.columns.row_of["x"]) == ["a"]


@pytest.mark.parametrize("trouble", ["gone", "drains", "refuses", "silent", "strange"])
def test_a_name_that_nobody_else_serves_comes_back_at_once(trouble):
    book = short_of("a")
    match trouble:
        case "gone":
            book.gone("y")
        case "drains":
            book.drain("y")
        case "refuses":
            book.apply(events.PodSilent, pod="y", why=SilentWhy.REFUSED)
        case "silent":
            book.wait(6.0)
            book.report("x", **TIGHT)
        case "strange":
            book.report("y", registered=("b",))
            book.report("x", **TIGHT)
    assert asked(book) == [("x", "a", "nobody_else")]


def test_one_pod_is_enough_for_it_and_the_one_with_least_pressure_is_asked():
    book = Playbook(pods=[sglang(name) for name in "xyz"], adapters=["a"])
    for name in "xyz":
        book.use("a", name)
    for name in "xy":
        book.report(name, **TIGHT)
        book.apply(events.Unloaded, pod=name, adapter="a")
    book.report("x", memory_pressure=0.96)
    book.report("z")
    book.gone("z")
    assert asked(book) == [("y", "a", "nobody_else")]
    given(book, "a", pod="y")
    book.report("x", memory_pressure=0.96)
    assert asked(book) == []


def test_a_pod_under_pressure_still_counts_as_serving_it():
    book = short_of("a")
    book.report("y", memory_pressure=0.97)
    book.report("x", **TIGHT)
    assert asked(book) == []


def test_a_new_process_and_a_pod_that_is_gone_owe_nothing():
    book = short_of("a")
    book.report("x", process_start=1.0, **TIGHT)
    book.report("x", process_start=9.0, **EASY)
    assert asked(book) == []
    book = short_of("a")
    book.gone("x")
    book.appear(sglang("x"))
    book.report("x", **EASY)
    assert asked(book) == []


def test_a_pod_that_unloads_too_late_is_found_out_by_its_list():
    book = short_of()
    book.report("x", **TIGHT)
    book.apply(events.UnloadFailed, pod="x", adapter="a", why="no answer within 30 s")
    book.report("x", registered=tuple("abc"), memory_pressure=0.91, since=book.now - 1.0)
    book.wait(PAUSE)
    book.report("y")
    book.report("x", registered=("b", "c"), **EASY)
    assert asked(book) == [("x", "a", "pressure_over")]
    book.apply(events.LoadFailed, pod="x", adapter="a", by=OURS, why="?")
    assert book.fleet.state.unloads.owed(book.fleet.state.columns.row_of["x"]) == [], "somebody else withdrew it"


def test_what_the_operator_withdraws_stays_away():
    book = short_of("a")
    book.apply(events.AdapterRetired, adapter="a")
    book.report("x", **EASY)
    assert asked(book) == []


def test_a_draining_pod_gets_nothing_back():
    book = short_of("a")
    book.drain("x")
    book.report("x", **EASY)
    assert asked(book) == []


def test_a_load_by_anybody_else_brings_it_back_too():
    book = short_of("a")
    given(book, "a")
    assert book.tier("x", "a") == "cpu"
    book.report("x", **EASY)
    assert asked(book) == []
