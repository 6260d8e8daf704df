from math import inf

import pytest
from forecast_kit import FIRST, add, always, daily, history, wall

from lorapick.core.forecast.history import BIN, PER_DAY, PER_WEEK, History
from lorapick.core.forecast.models import Forecast, LastHour, Perfect, Seasonal

MODELS = [LastHour, Seasonal, Perfect]


def a_rate(model, number):
    return model.rate("a", wall(number)) * BIN


@pytest.mark.parametrize("model", MODELS)
def test_nothing_is_known_without_a_history(model):
    forecast: Forecast = model(History())
    assert forecast.rate("a", wall(0)) is None
    assert forecast.rates(wall(0)) == {}
    assert forecast.chances(wall(0)) == {}


@pytest.mark.parametrize("model", MODELS)
def test_an_adapter_that_was_never_asked_for_is_unknown_and_one_that_is_silent_is_not(model):
    forecast = model(history(3 * PER_DAY, a=always(1), idle=lambda number: number == 0))
    assert forecast.rate("never", wall(3 * PER_DAY - 1)) is None
    assert forecast.rate("idle", wall(3 * PER_DAY - 1)) is not None


@pytest.mark.parametrize("model", MODELS)
def test_rates_are_per_second_and_chances_of_any_request(model):
    forecast = model(history(2 * PER_WEEK, a=always(30)))
    start = wall(2 * PER_WEEK - 1)
    assert forecast.rates(start) == pytest.approx({"a": 0.1})
    assert forecast.rate("a", start) == pytest.approx(0.1)
    assert forecast.chances(start) == pytest.approx({"a": 1.0})


def test_the_last_hour_is_the_twelve_bins_before():
    forecast = LastHour(history(24, a=lambda number: 24 if number < 12 else 12 if number == 20 else 0))
    assert a_rate(forecast, 12) == 24
    assert a_rate(forecast, 24) == 1
    assert forecast.chances(wall(24))["a"] == pytest.approx(1 / 12)


def test_yardsticks_count_all_requests_unless_told_otherwise():
    bursty = history(12, a=lambda number: 120 if number == 3 else 0, b=always(1))
    assert LastHour(bursty).rates(wall(12), most=1) == LastHour(bursty).rates(wall(12))
    assert LastHour(bursty, every=False).rates(wall(12), most=1)["a"] * BIN == pytest.approx(1 / 12)
    assert Seasonal(bursty).rates(wall(12), most=1) == Seasonal(bursty).rates(wall(12))


def test_the_season_of_the_first_day_is_the_day_so_far():
    assert a_rate(Seasonal(history(100, a=lambda number: 2 * (number % 2), b=always(1))), 100) == pytest.approx(1)


def test_the_season_of_the_first_week_is_that_of_earlier_days():
    forecast = Seasonal(history(3 * PER_DAY, a=daily(10, begin=120)))
    assert a_rate(forecast, 3 * PER_DAY + 126) == pytest.approx(120 / 13)
    assert a_rate(forecast, 3 * PER_DAY + 60) == 0


def test_with_more_weeks_the_hour_of_the_week_outweighs_the_days():
    """Asked for on one day of the week only."""
    found = history(PER_WEEK, a=lambda number: 10 if number % PER_WEEK < PER_DAY else 0)
    forecast = Seasonal(found)
    assert a_rate(forecast, PER_WEEK + 100) == pytest.approx(5, rel=0.3)
    add(found, range(PER_WEEK, 4 * PER_WEEK), a=lambda number: 10 if number % PER_WEEK < PER_DAY else 0)
    assert a_rate(forecast, 4 * PER_WEEK + 100) > 8
    assert a_rate(forecast, 4 * PER_WEEK + PER_DAY + 100) < 1


def test_the_perfect_forecast_knows_the_bin_itself():
    forecast = Perfect(history(10, a=lambda number: number, b=always(1)))
    assert [a_rate(forecast, number) for number in range(1, 10)] == pytest.approx(list(range(1, 10)))
    assert forecast.rates(wall(9), most=2)["a"] * BIN == 2
    assert forecast.chances(wall(9)) == {"a": 1.0, "b": 1.0}
    assert Perfect(history(10, a=lambda number: number, b=always(1)), every=True).rates(wall(9), most=2)["a"] * BIN == 9


def test_a_forecast_does_not_depend_on_when_it_is_asked_for():
    found = history(20, a=lambda number: number + 1)
    before = LastHour(found).rates(wall(15), most=inf)
    add(found, range(20, 40), a=always(7))
    assert LastHour(found).rates(wall(15)) == before
    assert found.first == FIRST
