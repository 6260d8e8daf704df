"""The parts of the state that are more than a container."""

from lorapick.core import state as module
from lorapick.testing.playbook import Playbook


def test_sessions_are_bounded_and_the_least_recent_is_forgotten(monkeypatch):
    monkeypatch.setattr(module, "MAX_SESSIONS", 2)
    book = Playbook(pods=["a"])
    for session in ("one", "two", "one", "three"):
        book.arrive("base", session=session)
    assert [session for _, session in book.fleet.state.sessions] == ["one", "three"]


def test_requests_without_a_session_are_not_remembered():
    book = Playbook(pods=["a"])
    book.arrive("base")
    assert not book.fleet.state.sessions


def test_settings_are_the_beginning_of_everything():
    book = Playbook(adapters=["legal"])
    state = book.fleet.state
    assert [*state.adapters] == ["legal"]
    assert state.residency.names() == ["legal"]
    assert state.policy.name == "weighted"
