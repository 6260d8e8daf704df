"""The door: one handler for each event, time that goes on, nothing owed is lost."""

import inspect

import pytest

from lorapick.core.fleet import HANDLERS, Fleet
from lorapick.model import events
from lorapick.model.settings import Settings
from lorapick.testing.playbook import Playbook, plain_pod


def test_every_event_has_exactly_one_handler():
    kinds = {
        kind
        for _, kind in inspect.getmembers(events, inspect.isclass)
        if issubclass(kind, events.Event) and kind is not events.Event
    }
    assert {*HANDLERS} == kinds == {*events.AnyEvent.__args__}


def test_handlers_read_events_by_name_and_time_by_keyword():
    for kind, handler in HANDLERS.items():
        parameters = [*inspect.signature(handler).parameters.values()]
        assert [parameter.name for parameter in parameters] == ["state", "event", "now"], kind
        assert parameters[2].kind is inspect.Parameter.KEYWORD_ONLY, kind


def test_time_does_not_go_back():
    fleet = Fleet(Settings())
    fleet.apply(events.Ticked(t=5.0, id=1), 5.0)
    with pytest.raises(ValueError, match=r"time went back from 5.0 to 4.0 at event 2"):
        fleet.apply(events.Ticked(t=4.0, id=2), 4.0)
    assert fleet.apply(events.Ticked(t=5.0, id=3), 5.0) == []


def test_each_event_is_one_version():
    book = Playbook(pods=["a"])
    before = book.fleet.state.columns.version
    book.arrive("base")
    assert book.effects[0].pick.version == before
    assert book.fleet.state.columns.version == before + 1


def test_effects_name_the_event_that_caused_them():
    book = Playbook(pods=["a"], adapters=["legal"])
    book.arrive("legal")
    assert book.effects[0].cause == book.events[-1].id
    book.wait(1.0)
    assert [effect.cause for effect in book.effects] == [book.events[-1].id]


def test_what_time_brought_is_not_lost_with_an_event_that_is_refused():
    """A load expires as a request with an id in flight comes; the answers it frees come with the next event."""
    book = Playbook(pods=[plain_pod("a", max_num_seqs=1, max_queue=1)], adapters=["legal"])
    book.arrive("legal")
    book.arrive("legal")
    book.arrive("legal")
    book.report("a", waiting=1)
    book.now = 0.8
    with pytest.raises(ValueError, match="in flight already"):
        book.arrive("legal", id="r1")
    assert book.apply(events.Ticked) == [
        "note load_ended pod=a adapter=legal from=disk",
        "r3 -> a (gpu_serving)",
    ]


def test_the_fleet_asks_to_be_woken_only_when_somebody_waits():
    book = Playbook(pods=[plain_pod("a", max_num_seqs=1, max_queue=1)], adapters=["legal"])
    assert book.fleet.next_wakeup() is None
    book.arrive("legal")
    book.arrive("legal")
    assert book.fleet.next_wakeup() is None, "nobody is held: the load ends whenever the next event comes"
    book.arrive("legal")
    assert book.fleet.next_wakeup() == 0.7
    book.wait(0.7)
    assert book.fleet.next_wakeup() == 1.4
    book.end("r1")
    assert book.fleet.next_wakeup() is None
