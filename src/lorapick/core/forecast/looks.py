"""Looks at demand history: what the bins of before say about one bin, each in its own way.

In: a history, the number of a bin. Out: requests in that bin by column, one array per look, from earlier bins only.
Not here: which look to believe (see `core.forecast.blend`).
"""

import numpy as np

from lorapick.core.forecast.history import PER_DAY, PER_HOUR, PER_WEEK, Floats, History

RECENT_BINS = 4.0
HOUR_BINS = 8.0
"""Bins after which one counts 1/e of what it did, for the two looks at what came just now."""
_REACH = 48
"""Bins of before that these two see."""
_DAYS = 7
_WEEKS = 5
_DAY_FADES = 0.8
"""What a day counts for beside the day after it."""
_WIDE, _NARROW, _WEEK_WIDE = 6, 2, 3
"""Bins to each side of the same time that are taken together."""
_BACK = PER_HOUR + _NARROW
"""Bins before the same time that a change is measured over."""
LOOKS = ("recent", "hour", "same_time", "change", "day", "same_week")


def knows(history: History, number: int) -> bool:
    """Whether any bin before this one is known."""
    return history.first is not None and history.first < number


def looks(history: History, number: int, *, most: float) -> list[Floats]:
    """All of `LOOKS`; of each earlier bin and adapter, `most` requests are counted at most.

    recent, hour: what came just now, fading; day: the last 24 hours; same_time: the same time of earlier days, with
    half an hour to each side; change: what came just now, and what the same time of earlier days had more (or less)
    than the hour before it; same_week: the same time of earlier weeks. One without history says what `hour` says.
    """
    recent, hour = just_now(history, number, most=most)
    days = same_times(history, number, most=most)
    same_time, growth = (hour, 0.0 * hour) if days is None else days
    week = same_week(history, number, most=most)
    return [
        recent,
        hour,
        same_time,
        np.maximum(hour + growth, 0.0),
        last_bins(history, number, bins=PER_DAY, most=most),
        same_time if week is None else week[0],
    ]


def last_bins(history: History, number: int, *, bins: int, most: float) -> Floats:
    """Mean of so many bins before this one, as far as they are known."""
    first = max(number - bins, history.first or 0)
    return history.sums(first, number, most=most) / max(1, number - first)


def just_now(history: History, number: int, *, most: float) -> tuple[Floats, Floats]:
    """Means of the last bins, those of `RECENT_BINS` and of `HOUR_BINS`."""
    first = max(number - _REACH, history.first or 0)
    rows = history.rows(first, number, most=most)
    return _weighted(rows, _RECENT), _weighted(rows, _HOUR)


def same_times(history: History, number: int, *, most: float) -> tuple[Floats, Floats] | None:
    """The same time of earlier days; how much more that was than the hour before it. None: no earlier day is known."""
    fades: list[float] = []
    wide, growth = np.zeros(history.columns), np.zeros(history.columns)
    for day in range(1, _DAYS + 1):
        middle = number - day * PER_DAY
        if history.first is None or middle - _BACK < history.first:
            break
        fade = _DAY_FADES ** (day - 1)
        fades.append(fade)
        wide += fade * _mean(history, range(middle - _WIDE, middle + _WIDE + 1), most=most)
        growth += fade * _mean(history, range(middle - _NARROW, middle + _NARROW + 1), most=most)
        growth -= fade * _before(history, middle, most=most)
    return (wide / sum(fades), growth / sum(fades)) if fades else None


def same_week(history: History, number: int, *, most: float) -> tuple[Floats, int] | None:
    """The same time of earlier weeks, and of how many. None: none is known."""
    total, weeks = np.zeros(history.columns), 0
    for week in range(1, _WEEKS + 1):
        middle = number - week * PER_WEEK
        if history.first is None or middle - _WEEK_WIDE < history.first:
            break
        total += _mean(history, range(middle - _WEEK_WIDE, middle + _WEEK_WIDE + 1), most=most)
        weeks += 1
    return (total / weeks, weeks) if weeks else None


def _before(history: History, middle: int, *, most: float) -> Floats:
    """The hour before a bin, as smooth as the bin itself is looked at: bins near both ends count less."""
    rows = history.rows(middle - _BACK, middle + _NARROW, most=most)
    return _weighted(rows, _HOUR_BEFORE)


def _mean(history: History, numbers: range, *, most: float) -> Floats:
    return history.sums(numbers.start, numbers.stop, most=most) / len(numbers)


def _weighted(rows: Floats, weights: Floats) -> Floats:
    """Weighted mean of rows, with the weights that belong to the last of them."""
    used = weights[len(weights) - len(rows) :]
    mean: Floats = (rows * used[:, np.newaxis]).sum(axis=0) / used.sum()
    return mean


def _fading(bins: float) -> Floats:
    """Weights of the `_REACH` last bins, the earliest first."""
    return np.array([(1.0 - 1.0 / bins) ** back for back in range(_REACH)][::-1])


def _hour_before() -> Floats:
    """Weights of bins from `_BACK` before one on: the mean, over the hour before it, of those up to `_NARROW` away."""
    weights = np.zeros(_BACK + _NARROW)
    for bin_of_hour in range(PER_HOUR):
        weights[bin_of_hour : bin_of_hour + 2 * _NARROW + 1] += 1.0
    weights /= weights.sum()
    return weights


_RECENT = _fading(RECENT_BINS)
_HOUR = _fading(HOUR_BINS)
_HOUR_BEFORE = _hour_before()
