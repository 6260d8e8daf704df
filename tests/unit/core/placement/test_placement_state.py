"""What placement remembers, and forgets."""

from placement_kit import ask, fleet, loaded, pin, placement, unask

from lorapick.core.placement.state import MOST_REFUSALS, Placement, Refusal
from lorapick.model.placement import Why
from lorapick.model.settings import PlacementSettings, Settings


def test_refusals_are_news_when_they_are_others_and_are_bounded():
    state = Placement(Settings())
    assert state.refused(0, "x", refusal=Refusal("away", Why.PIN, 1.0))
    assert not state.refused(0, "x", refusal=Refusal("away", Why.PIN, 2.0))
    assert state.refusals[0, "x"].since == 1.0, "since when it is refused for that"
    assert state.refused(0, "x", refusal=Refusal("pressure", Why.PIN, 3.0))
    for number in range(MOST_REFUSALS + 5):
        state.refused(number, "y", refusal=Refusal("away", Why.PIN, 4.0))
    assert len(state.refusals) == MOST_REFUSALS and (0, "x") not in state.refusals


def test_the_next_tick_comes_as_soon_as_anything_wants_it():
    state = Placement(Settings())
    state.hurry(5.0)
    state.hurry(7.0)
    assert state.next_tick == 5.0


def test_what_a_pod_did_together_is_looked_at_together():
    state = Placement(Settings())
    state.last_tick = 5.0
    state.hurry_a_little(5.01)
    assert 5.01 < state.next_tick <= 5.2
    state.hurry_a_little(4.0)
    assert state.next_tick <= 5.2


def test_settings_change_and_what_is_remembered_stays():
    state = Placement(Settings())
    state.groups.called("x", "session", now=0.0)
    counted = state.groups.transitions
    state.configure(Settings(placement=PlacementSettings(forecast="last_hour", replicas="auto")))
    assert (state.forecast is not None and state.by_load and state.groups.transitions is counted) or counted is None


def test_nothing_of_a_pod_that_is_gone_is_kept():
    book = fleet("a", "b")
    pin(book, "x", pods=("a",))
    loaded(book, "a", "x")
    ask(book, "y", "a")
    unask(book, "z", "a")
    book.gone("a")
    found = placement(book)
    by_row = (found.keeps, found.claims, found.wanted, found.warming, found.leaving, found.guarded, found.unknown)
    assert not any(0 in table for table in (*by_row, found.commands.under_way, found.commands.touches))
    for table in (found.refusals, found.missing_since, found.unloads, found.unwanted, found.moving):
        assert not any(pair[0] == 0 for pair in table)


def test_the_time_of_day_is_unknown_until_somebody_tells():
    state = Placement(Settings())
    assert state.wall(3.0) is None
    state.wall_offset = 100.0
    assert state.wall(3.0) == 103.0
