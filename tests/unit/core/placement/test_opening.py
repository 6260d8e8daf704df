"""Pods that leave: they serve what nobody else has until somebody has it, and not only tries to."""

from lorapick.model import events
from lorapick.model.effects import Load, Note
from lorapick.model.settings import PlacementSettings, Settings
from lorapick.testing.playbook import Playbook

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
