"""The parts of the state that are more than a container."""

from lorapick.core import state as module
from lorapick.testing.playbook import Playbook, plain_pod


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


def test_who_stops_waiting_leaves_no_trace():
    book = Playbook(pods=[plain_pod("a", max_num_seqs=1, max_queue=1, max_loras=1)], adapters=["legal", "code"])
    book.arrive("legal")
    book.arrive("legal")
    assert book.arrive("legal") == ["r3 waits for a until 1.4"]
    assert book.arrive("code") == ["r4 waits for a place until 30"]
    state = book.fleet.state
    home = state.residency.home(0)
    assert state.turns.begin("code", [home], demand=state.prices.demand, now=0.0) is home
    assert state.waiting == 2
    for request_id in ("r3", "r4", "nobody"):
        state.stop_waiting(request_id)
    assert (state.waiting, len(state.turns)) == (0, 0)


def test_a_slot_stays_promised_while_somebody_wants_it():
    book = Playbook(pods=[plain_pod("a", max_loras=1)], adapters=["legal", "code"])
    for model in ("legal", "code", "code"):
        book.arrive(model)
    state = book.fleet.state
    state.turns.begin("code", [state.residency.home(0)], demand=state.prices.demand, now=0.0)
    state.stop_waiting("r2")
    assert state.turns.turns() == [(0, "code")]
    state.end_turn("code")
    state.end_turn("code")
    assert state.turns.turns() == []
