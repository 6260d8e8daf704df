"""Pods that leave: they serve what nobody else has until somebody has it, and not only tries to."""

from msgspec.structs import replace

from lorapick.model import events
from lorapick.model.adapters import PinSpec
from lorapick.model.effects import Load, Note
from lorapick.model.pods import Engine
from lorapick.model.settings import PlacementSettings, Settings
from lorapick.testing.playbook import Playbook, plain_pod

BY = events.By.CONTROLLER


def leaving():
    """A pod that drains, with the only copy of an adapter that is asked for."""
    book = Playbook(pods=["a", "b"], adapters=["legal"], settings=Settings(placement=PlacementSettings(handover=30.0)))
    for pod in ("a", "b"):
        book.report(pod)
    for _ in range(5):
        book.use("legal", "a")
    book.drain("a")
    return book


def loads(book):
    return [(each.pod, each.why) for each in book.effects if isinstance(each, Load)]


def notes(book):
    return [each.kind for each in book.effects if isinstance(each, Note)]


def tick(book):
    """The first event after a second brings the tick."""
    book.now += 1.0
    book.apply(events.Ticked)
    found = loads(book)
    for pod in ("a", "b"):
        book.report(pod)
    return found


def test_a_hand_over_that_fails_is_tried_again_and_the_pod_serves_meanwhile():
    book = leaving()
    assert loads(book) == [("b", "handover")]
    for _ in range(3):
        book.apply(events.LoadFailed, pod="b", adapter="legal", by=BY, why="HTTP 500")
        assert [*book.fleet.state.placement.leaving] == [0]
        assert tick(book) == [("b", "handover")]
    book.apply(events.LoadSucceeded, pod="b", adapter="legal", by=BY)
    book.now += 0.1
    book.apply(events.Ticked)
    assert "pod_handed_over" in notes(book)
    assert not book.fleet.state.placement.leaving


def test_nobody_waits_longer_than_is_allowed():
    book = leaving()
    for _ in range(31):
        tick(book)
    assert not book.fleet.state.placement.leaving


# -- pods that come


def served(*pods, **settings):
    """A fleet that has served something."""
    book = Playbook(pods=pods, adapters=["legal", "x"], settings=Settings(**settings))
    for pod in [*book.fleet.state.columns.row_of]:
        book.report(pod)
    for _ in range(5):
        book.use("legal", next(iter(book.fleet.state.columns.row_of)))
    return book


def waits(book, pod):
    return book.fleet.state.columns.row_of[pod] in book.fleet.state.placement.warming


def test_a_pod_waits_no_longer_when_placement_is_switched_off():
    book = served("a")
    book.appear("b")
    assert waits(book, "b")
    book.apply(events.ConfigChanged, settings=replace(book.settings, placement=PlacementSettings(enabled=False)))
    assert not waits(book, "b") and not book.fleet.state.columns.gate[1]


def test_a_pod_that_cannot_be_told_to_load_does_not_wait():
    book = served(plain_pod("a", engine=Engine.LORAX))
    book.appear(plain_pod("b", engine=Engine.LORAX))
    assert not waits(book, "b")


def test_a_pod_does_not_wait_for_what_will_never_come():
    book = served("a")
    book.apply(events.PinSet, adapter="x", pin=PinSpec(selector={"zone": "east"}))
    book.appear(plain_pod("b", zone="east"))
    book.report("b", registered=("legal",))
    tick(book)
    book.apply(events.LoadSucceeded, pod="b", adapter="legal", by=BY)
    book.report("b", registered=("legal",))
    tick(book)
    assert not waits(book, "b"), "it does not know x, and nobody can tell it"


def test_a_pod_does_not_wait_when_all_others_are_reserved():
    book = served("a", "b")
    book.apply(events.PinSet, adapter="x", pin=PinSpec(pods=("b",), reserve=True))
    book.apply(events.LoadSucceeded, pod="b", adapter="x", by=BY)
    book.report("a", process_start=1.0)
    book.report("a", process_start=9.0)
    assert book.arrive("legal", id="one")[0].startswith("one -> a")


def test_a_pod_does_not_wait_when_the_last_other_goes():
    book = served("a")
    book.appear("b")
    assert waits(book, "b")
    book.gone("a")
    assert not waits(book, "b")
    assert book.arrive("legal", id="one")[0].startswith("one -> b")
