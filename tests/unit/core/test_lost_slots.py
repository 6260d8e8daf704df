"""Reserved slots that were lost, those that nobody can be sure of, and how many there are."""

import pytest
from msgspec.structs import replace

from lorapick.core.lost_slots import RESERVED_LOST
from lorapick.core.placement import giving
from lorapick.core.placement.targets import Target
from lorapick.model import events
from lorapick.model.disaggregation import DisaggregationSettings
from lorapick.model.events import TouchFailed
from lorapick.model.placement import Why
from lorapick.model.pods import Engine, LoadedAdapter, PodReport, Role
from lorapick.model.settings import Settings
from lorapick.testing.playbook import Playbook, plain_pod

LONG = {"prompt_tokens": 2000, "stream": True}
SHORT = {"prompt_tokens": 20, "stream": True}

WHY = {True: {}, False: {"why": "no answer"}}


def book_of(**limits):
    pods = [plain_pod("p1", role=Role.PREFILL), plain_pod("d2", role=Role.DECODE, **limits)]
    return Playbook(
        pods=pods, adapters=("legal", "code", "sql"), settings=Settings(disaggregation=DisaggregationSettings())
    )


def reports(book, **fields):
    return book.apply(events.PodReported, pod="d2", report=PodReport(waiting=0, running=0, **fields))


def home(book):
    state = book.fleet.state
    return state.residency.home(state.columns.row_of["d2"])


def serve(book, *names):
    for name in names:
        book.use(name, "d2")
        book.wait(1.0)


def lost(book):
    return dict(book.fleet.state.tally.reserved_lost)


def test_a_pod_that_no_longer_lists_what_is_reserved_is_said_to_have_lost_it():
    book = book_of(max_loras=2)
    serve(book, "legal", "code")
    book.arrive("legal", **LONG)
    assert lost(book) == {}
    book.wait(1.0)
    told = reports(book, loaded=(LoadedAdapter(name="code", on_gpu=True),))
    assert f"note {RESERVED_LOST} pod=d2 adapter=legal known=reported" in told
    assert lost(book) == {"reported": 1}
    assert reports(book, loaded=()) == [] or lost(book) == {"reported": 1}


def test_what_is_not_reserved_is_not_lost():
    book = book_of(max_loras=2)
    serve(book, "legal", "code")
    book.wait(1.0)
    reports(book, loaded=())
    assert lost(book) == {}


def test_fewer_slots_than_was_said_leave_those_that_were_used_last():
    book = book_of(max_loras=3)
    serve(book, "legal", "code", "sql")
    book.arrive("legal", **LONG)
    told = reports(book, max_loras=2)
    assert f"note {RESERVED_LOST} pod=d2 adapter=legal known=inferred" in told
    assert [*home(book).shadow.gpu] == ["code", "sql"]
    assert lost(book) == {"inferred": 1}


def test_the_engines_own_number_of_slots_beats_that_of_discovery_until_its_process_is_another():
    book = book_of(max_loras=2)
    reports(book, max_loras=2)
    pod = book.fleet.state.columns.pods[book.fleet.state.columns.row_of["d2"]]
    more = replace(pod, limits=replace(pod.limits, max_loras=4))
    book.change(more)
    assert home(book).shadow.gpu_slots == 2
    book.change(replace(more, address="10.0.0.9:8000"))
    assert home(book).shadow.gpu_slots == 4


@pytest.mark.parametrize("ran", [False, True])
def test_a_touch_that_failed_leaves_its_slot_taken_until_the_pod_lists_what_it_has(ran):
    book = book_of(max_loras=2)
    serve(book, "code", "sql")
    book.arrive("legal", **LONG)
    assert home(book).shadow.gpu == {"sql": None, "legal": None}
    book.apply(TouchFailed, pod="d2", adapter="legal", why="no answer")
    assert book.tier("d2", "legal") == "disk"
    assert home(book).shadow.free == 0
    book.fleet.check()
    book.wait(1.0)
    there = ("sql", "legal") if ran else ("code", "sql")
    reports(book, loaded=tuple(LoadedAdapter(name=name, on_gpu=True) for name in there))
    assert sorted(home(book).shadow.gpu) == sorted(there) and not home(book).shadow.doubtful
    book.fleet.check()


def test_what_is_reserved_is_not_unloaded_until_the_request_has_come_and_gone():
    book = book_of(max_loras=2)
    serve(book, "legal", "code")
    book.arrive("legal", **LONG)
    (request,) = book.fleet.state.flights
    told = book.apply(events.UnloadAsked, adapter="legal", pods=("d2",))
    told += book.wait(2.0)
    assert "Unload" not in told
    book.prefilled(request)
    book.start(request)
    told = book.end(request)
    told += book.wait(2.0)
    assert "Unload" in told


def test_memory_pressure_unloads_who_has_no_reservation():
    pods = [
        plain_pod("p1", role=Role.PREFILL),
        *(replace(plain_pod(name, role=Role.DECODE, max_loras=2), engine=Engine.SGLANG) for name in ("d2", "d3")),
    ]
    book = Playbook(pods=pods, adapters=("legal", "code"), settings=Settings(disaggregation=DisaggregationSettings()))
    for _ in range(3):
        book.use("code", "d2")
    serve(book, "legal", "code", "code")
    book.arrive("legal", **LONG)
    assert [*home(book).reserved] == ["legal"]
    book.wait(0.1)
    told = book.report("d2", memory_pressure=0.92)
    assert not [line for line in told if line.startswith("note unload") and "legal" in line], told
    assert [line for line in told if line.startswith("note unload") and "code" in line], told


@pytest.mark.parametrize("answered", [False, True])
def test_no_load_counts_on_a_touch_that_was_not_answered_well(answered):
    book = book_of(max_loras=2)
    serve(book, "code", "legal")
    state = book.fleet.state
    row = state.columns.row_of["d2"]
    giving.touch(state, Target(row, "code", Why.OPERATOR), now=state.now, cause=0)
    book.arrive("legal", **LONG)
    assert home(book).shadow.may_go(home(book).busy) == ["code", "legal"]
    assert home(book).endangered() == "legal"
    book.apply(events.Touched if answered else TouchFailed, pod="d2", adapter="code", **WHY[answered])
    assert home(book).endangered() == "legal"  # the touch may have made it the next to go, or not


def running(book, *names):
    """A request each on d2, begun one after the other; their ids."""
    begun = []
    for name in names:
        book.arrive(name, **SHORT)
        begun.append(next(reversed(book.fleet.state.flights)))
        book.start(begun[-1])
        book.wait(1.0)
    return begun


@pytest.mark.parametrize(("apart", "endangered"), [(0.01, "legal"), (0.3, None)])
def test_of_two_that_end_at_about_the_same_time_either_may_be_the_next_to_go(apart, endangered):
    book = book_of(max_loras=2)
    code, legal = running(book, "code", "legal")
    book.arrive("legal", **LONG)
    book.end(code)
    book.wait(apart)
    book.end(legal)
    assert [*home(book).shadow.gpu] == ["code", "legal"]
    assert home(book).endangered() == endangered


def test_a_touch_that_was_asked_for_afterwards_settles_who_goes_first():
    book = book_of(max_loras=2)
    for request in running(book, "code", "legal"):
        book.end(request)
        book.wait(0.01)
    told = book.arrive("legal", **LONG)
    assert [line for line in told if line.startswith("Touch")], told
    book.wait(0.01)
    book.apply(events.Touched, pod="d2", adapter="legal")
    assert home(book).endangered() is None


def test_what_runs_may_have_ended_before_the_end_that_was_just_heard_of():
    book = book_of(max_loras=2)
    code, _ = running(book, "code", "legal")
    book.arrive("legal", **LONG)
    book.end(code)
    assert home(book).endangered() == "legal"
    book.wait(1.0)
    reports(book)
    assert home(book).endangered() is None, "its end would have been heard of by now"
