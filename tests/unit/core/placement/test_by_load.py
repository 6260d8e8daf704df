"""The problem that a solver is asked: of the controller, and afresh for who only wants to see it."""

import pytest

from lorapick.core.placement import by_load
from lorapick.model.requests import Outcome
from lorapick.model.settings import PlacementSettings, Settings
from lorapick.testing.playbook import Playbook

BY_LOAD = Settings(placement=PlacementSettings(replicas="auto"))


def asked(settings):
    """Two pods; `x` is asked for twice as often as `y`, `z` never."""
    book = Playbook(pods=["a", "b"], adapters=["x", "y", "z"], settings=settings)
    for pod in ("a", "b"):
        book.report(pod)
    for number in range(12):
        book.now += 0.5
        book.arrive("y" if number % 3 == 0 else "x", id=f"r{number}")
        book.start(f"r{number}")
        book.end(f"r{number}", outcome=Outcome.SERVED)
    return book


@pytest.mark.parametrize("settings", [Settings(), BY_LOAD], ids=["off", "auto"])
def test_afresh_it_is_there_whether_adapters_are_placed_by_load_or_not(settings):
    book = asked(settings)
    found = by_load.problem(book.fleet.state, now=book.now, afresh=True)
    assert [(each.adapter, each.replicas) for each in found.adapters] == [("x", 1), ("y", 1)]
    assert [pod.pod for pod in found.pods] == ["a", "b"]
    assert by_load.problem(book.fleet.state, now=book.now, afresh=True) == found


def test_afresh_nothing_is_remembered():
    book = asked(Settings())
    by_load.problem(book.fleet.state, now=book.now, afresh=True)
    assert len(book.fleet.state.placement.replicas) == 0
    by_load.problem(book.fleet.state, now=book.now)
    assert len(book.fleet.state.placement.replicas) == 2
