import random

import pytest
from forecast_kit import add, always, daily, history, wall

from lorapick.core.forecast.blend import Blend
from lorapick.core.forecast.history import BIN, PER_DAY, History
from lorapick.core.forecast.looks import LOOKS
from lorapick.model.placement import DemandBin


def played(found, bins, *, begin=0, **counts):
    """The blend, asked at each bin's edge, as a picker asks it."""
    blend = Blend(found)
    for number in range(begin, begin + bins):
        add(found, [number], **counts)
        blend.rates(wall(number + 1))
    return blend


def test_nothing_is_known_without_a_history():
    blend = Blend(History())
    assert blend.rates(wall(0)) == {}
    assert blend.chances(wall(0)) == {}
    assert blend.rate("a", wall(0)) is None
    assert blend.weights("a") is None


def test_steady_demand_is_forecast_to_go_on():
    blend = Blend(history(3 * PER_DAY, a=always(3)))
    assert blend.rate("a", wall(3 * PER_DAY)) == pytest.approx(3 / BIN)
    assert blend.chances(wall(3 * PER_DAY)) == pytest.approx({"a": 1.0})
    assert blend.rates(wall(3 * PER_DAY), most=1) == pytest.approx({"a": 1 / BIN})


def test_weights_sum_to_one_and_nobody_is_believed_in_nothing():
    weights = played(History(), 60, a=always(1), b=lambda number: number % 3).weights("b")
    assert list(weights) == list(LOOKS)
    assert sum(weights.values()) == pytest.approx(1)
    assert min(weights.values()) > 0.01


def test_the_daily_is_believed_where_demand_repeats_and_the_latest_where_it_does_not():
    """One is asked for in one hour of each day; the other begins and ends whenever it likes."""
    rng = random.Random(3)
    on = [rng.random() < 0.5 for _ in range(200)]
    blend = played(
        History(), 6 * PER_DAY, daily=daily(2, begin=100), moody=lambda number: 2 * on[number // 30], base=always(1)
    )
    by_clock, by_mood = blend.weights("daily"), blend.weights("moody")
    assert by_clock["same_time"] + by_clock["change"] > 0.5
    assert by_mood["recent"] + by_mood["hour"] > 0.5


def test_who_comes_every_day_is_expected_before_its_hour_where_the_last_hour_expects_nothing():
    blend = played(History(), 4 * PER_DAY + 99, a=daily(2, begin=100), base=always(1))
    assert blend.chances(wall(4 * PER_DAY + 100))["a"] > 0.3
    assert blend.chances(wall(4 * PER_DAY + 50))["a"] < 0.05


def test_after_a_restart_the_last_day_teaches_what_it_had_taught():
    counts = {"a": daily(2, begin=100), "base": always(1)}
    through = played(History(), 4 * PER_DAY, **counts)
    after = Blend(history(4 * PER_DAY, **counts))
    assert after.rates(wall(4 * PER_DAY)).keys() == {"a", "base"}
    best = max(through.weights("a"), key=through.weights("a").get)
    assert after.weights("a")[best] > 1 / len(LOOKS)


def test_the_same_demand_is_forecast_the_same():
    counts = {"a": lambda number: number * 7919 % 5, "b": lambda number: number * 104729 % 3}
    one, other = (played(History(), 400, **counts) for _ in range(2))
    assert one.rates(wall(400), most=1.5) == other.rates(wall(400), most=1.5)


def test_a_column_that_another_adapter_took_over_has_learnt_nothing():
    found = History(most_adapters=1)
    blend = played(found, 30, old=lambda number: number % 2)
    found.recall([DemandBin(start=wall(31), adapter="new", count=10_000)])
    assert list(found.adapters) == ["new"]
    assert blend.weights("old") is None
    assert len(set(blend.weights("new").values())) == 1
    assert blend.rate("new", wall(32)) > 0


def test_a_clock_that_goes_back_or_far_ahead_is_no_error():
    found = History()
    blend = played(found, 50, a=always(1))
    for number in (10, 2_000 * PER_DAY, 51, 0):
        assert set(blend.rates(wall(number))) <= {"a"}
    assert blend.rate("a", wall(50)) == pytest.approx(1 / BIN)
