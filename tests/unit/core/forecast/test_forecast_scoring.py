import pytest
from forecast_kit import add, always, wall

from lorapick.core.forecast.history import BIN, PER_DAY, History
from lorapick.core.forecast.models import LastHour
from lorapick.core.forecast.scoring import DAYS, Report, Scorer
from lorapick.model.placement import DemandBin


class Says:
    """A forecast that never changes; of bursts it counts what matters when told so."""

    def __init__(self, name, counts, worth=None):
        self.name = name
        self._counts, self._worth = counts, worth or counts

    def rates(self, start, *, most=None):
        return {adapter: count / BIN for adapter, count in (self._worth if most else self._counts).items()}

    def rate(self, adapter, start):
        return self.rates(start).get(adapter)

    def chances(self, start):
        return {}


def play(scorer, found, numbers, *, slots=1, most=1.0, **counts):
    for number in numbers:
        scorer.turn(wall(number), slots=slots, most=most)
        add(found, [number], **counts)
    scorer.turn(wall(numbers[-1] + 1), slots=slots, most=most)


def by_model(report):
    return {score.model: score for score in report.days}


def test_nothing_is_scored_before_a_bin_is_over():
    found = History()
    scorer = Scorer([LastHour(found)], found)
    assert scorer.report() == Report()
    scorer.turn(wall(0), slots=1)
    scorer.turn(wall(0) + 10, slots=1)
    assert scorer.report() == Report()


def test_the_bin_in_which_a_picker_starts_is_not_scored():
    found = History()
    scorer = Scorer([LastHour(found)], found)
    play(scorer, found, range(3), a=always(1))
    (score,) = scorer.report().days
    assert score.bins == 2
    assert score.day == wall(0)


def test_models_are_compared_on_what_they_would_have_held():
    """a is asked for ten times in each bin, b once; there is one slot."""
    found = History()
    scorer = Scorer([Says("good", {"a": 9.0, "b": 1.0}), Says("bad", {"a": 1.0, "b": 3.0})], found)
    play(scorer, found, range(5), a=always(10), b=always(1))
    good, bad = by_model(scorer.report()).values()
    assert (good.requests, good.bins) == (44, 4)
    assert good.held == pytest.approx(40 / 44)
    assert bad.held == pytest.approx(4 / 44)
    assert good.error == pytest.approx(0.5)
    assert bad.error == pytest.approx((9 + 2) / 2)
    assert good.cold_per_1000 == bad.cold_per_1000 == pytest.approx(1000 * 4 / 44)
    assert good.regret == bad.regret == 0


def test_regret_is_what_the_best_of_the_day_would_have_saved():
    found = History()
    scorer = Scorer([Says("right", {"a": 1.0}), Says("wrong", {"c": 1.0}), Says("mute", {})], found)
    play(scorer, found, range(11), a=always(2))
    scores = by_model(scorer.report())
    assert scores["right"].regret == 0
    assert scores["wrong"].regret == scores["mute"].regret == pytest.approx(500)
    assert scores["mute"].held == 0


def test_models_are_ranked_by_what_matters_and_charged_for_what_they_count():
    found = History()
    scorer = Scorer([Says("blend", {"a": 1.0, "burst": 50.0}, worth={"a": 1.0, "burst": 0.1})], found)
    play(scorer, found, range(2), a=always(1))
    (score,) = scorer.report().days
    assert score.held == 1
    assert score.error == pytest.approx(25)


def test_a_day_without_requests_has_no_shares():
    found = History()
    found.recall([DemandBin(start=wall(-1), adapter="a", count=1)])
    scorer = Scorer([LastHour(found)], found)
    play(scorer, found, range(40))
    (score,) = scorer.report().days
    assert (score.held, score.cold_per_1000, score.regret) == (None, None, None)
    assert score.error is not None
    assert score.requests == 0


def test_the_last_days_are_kept():
    found = History()
    scorer = Scorer([LastHour(found)], found)
    for day in range(DAYS + 5):
        play(scorer, found, range(day * PER_DAY, day * PER_DAY + 3), a=always(1))
    days = [score.day for score in scorer.report().days]
    assert days == [wall(day * PER_DAY) for day in range(5, DAYS + 5)]


def test_a_clock_that_goes_back_is_no_error():
    found = History()
    scorer = Scorer([LastHour(found)], found)
    play(scorer, found, range(5), a=always(1))
    play(scorer, found, range(2, 5), a=always(1))
    (score,) = scorer.report().days
    assert score.bins >= 4
