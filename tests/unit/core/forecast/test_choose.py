import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorapick.core.forecast.choose import FIRM, FREE, LEAST, Turnover, choose
from lorapick.core.forecast.history import BIN


def chosen(rates, *, slots, chances=None, residents=()):
    return choose(rates, chances or {}, residents=residents, slots=slots)


def test_the_most_asked_for_are_held_best_first():
    choice = chosen({"a": 0.1, "b": 0.3, "c": 0.2}, slots=2)
    assert choice.hold == ("b", "c")
    assert choice.touches == ("c", "b")


def test_ties_go_by_name():
    assert chosen({"b": 0.1, "a": 0.1, "c": 0.1}, slots=2).hold == ("a", "b")


def test_a_resident_gives_way_only_to_one_that_is_clearly_better():
    assert chosen({"here": 0.10, "there": 0.12}, residents=["here"], slots=1).hold == ("here",)
    assert chosen({"here": 0.10, "there": 0.14}, residents=["here"], slots=1).hold == ("there",)


def test_nobody_is_loaded_for_next_to_nothing_but_may_stay_for_it():
    next_to_nothing = 0.9 * LEAST / BIN
    assert chosen({"a": next_to_nothing}, slots=3).hold == ()
    assert chosen({"a": next_to_nothing}, residents=["a"], slots=3).hold == ("a",)
    assert chosen({"a": 0.0}, residents=["a"], slots=3).hold == ()


def test_residents_that_no_forecast_knows_are_not_held():
    assert chosen({}, residents=["a"], slots=3).hold == ()


def test_who_is_all_but_sure_to_be_asked_for_is_firm_and_comes_first():
    rates = {"a": 0.5, "bursty": 0.4, "c": 0.3, "d": 0.2}
    choice = chosen(rates, chances={"a": 1.0, "bursty": 0.2, "c": FIRM}, slots=6)
    assert choice.hold == ("a", "c", "bursty", "d")
    assert choice.firm == 2


def test_some_slots_are_never_firm():
    rates = dict.fromkeys("abcd", 1.0)
    for slots, firm in ((4, 4 - FREE), (2, 0), (1, 0), (0, 0), (-1, 0)):
        choice = chosen(rates, chances=dict.fromkeys(rates, 1.0), slots=slots)
        assert (len(choice.hold), choice.firm) == (max(0, slots), firm)


RATES = st.dictionaries(st.text("abcdef", min_size=1, max_size=2), st.floats(0, 1), max_size=12)


@given(RATES, st.lists(st.text("abcdef", min_size=1, max_size=2), max_size=8), st.integers(0, 10), st.floats(0, 1))
def test_holding_is_within_slots_and_stable(rates, residents, slots, chance):
    chances = dict.fromkeys(rates, chance)
    choice = choose(rates, chances, residents=residents, slots=slots)
    assert len(choice.hold) == len(dict.fromkeys(choice.hold)) <= slots
    assert choice.firm <= max(0, slots - FREE)
    assert all(rates[name] > 0 for name in choice.hold)
    again = choose(rates, chances, residents=choice.hold, slots=slots)
    assert sorted(again.hold) == sorted(choice.hold)


def test_while_slots_suffice_one_request_of_a_bin_matters():
    turnover = Turnover()
    assert turnover.most(8) == 1.0
    turnover.loaded()
    turnover.turn(firm=0)
    assert turnover.most(8) == 1.0


def test_the_faster_slots_turn_over_the_more_requests_of_a_bin_matter():
    turnover = Turnover()
    for _ in range(200):
        for _ in range(24):
            turnover.loaded()
        turnover.turn(firm=0)
    assert turnover.most(8) == pytest.approx(3)
    turnover.turn(firm=6)
    assert turnover.most(8) == pytest.approx(11)
    assert turnover.most(6) == pytest.approx(22)
