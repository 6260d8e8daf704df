"""What a calibration is held against, and what it reached.

In: outcomes. Out: figures, aims with the value reached. Not here: words and tables around them (`report`).
"""

from collections.abc import Sequence

import msgspec

from lorapick.model.units import Ratio, Seconds
from lorapick.plan.calibration.runs import Group
from lorapick.plan.calibration.scoring import (
    Knee,
    Outcome,
    Peak,
    RankPair,
    Spread,
    Verdict,
    knees,
    peaks,
    rank_pairs,
    spread_of,
)

TTFT_BANDS: tuple[tuple[Seconds, Seconds], ...] = ((0.0, 1.0), (1.0, 10.0), (10.0, 100.0), (100.0, float("inf")))
"""Measured mean TTFT, from and below; apart, since a wait of minutes says nothing about one of milliseconds."""


class GroupScore(msgspec.Struct, frozen=True, kw_only=True):
    """Errors of a group that the fit had not seen."""

    group: Group
    tpot: Spread
    served: Spread
    """Outside overload."""
    served_overloaded: Spread


class Band(msgspec.Struct, frozen=True, kw_only=True):
    """TTFT errors of the runs whose measured mean lies in a band; `below` None: no end."""

    least: Seconds
    below: Seconds | None
    ttft: Spread


class Aim(msgspec.Struct, frozen=True, kw_only=True):
    """One aim. `reached` and `met` are None if nothing could be compared."""

    words: str
    limit: str
    reached: str | None
    met: bool | None


class Score(msgspec.Struct, frozen=True, kw_only=True):
    """All figures of a calibration."""

    compared: int
    """Runs that were played long enough."""
    tpot: Spread
    served: Spread
    served_overloaded: Spread
    groups: tuple[GroupScore, ...]
    bands: tuple[Band, ...]
    knees: tuple[Knee, ...]
    peaks: tuple[Peak, ...]
    rank_pairs: tuple[RankPair, ...]
    aims: tuple[Aim, ...]


def score(outcomes: Sequence[Outcome]) -> Score:
    """Figures of outcomes."""
    compared = [each for each in outcomes if each.comparable]
    groups = sorted({each.run.group for each in compared})
    total = _group_score(("all", ""), compared)
    found, tops, pairs = knees(outcomes), peaks(outcomes), rank_pairs(outcomes)
    return Score(
        compared=len(compared),
        tpot=total.tpot,
        served=total.served,
        served_overloaded=total.served_overloaded,
        groups=tuple(_group_score(each, [one for one in compared if one.run.group == each]) for each in groups),
        bands=tuple(_band(compared, least=least, below=below) for least, below in TTFT_BANDS),
        knees=found,
        peaks=tops,
        rank_pairs=pairs,
        aims=(_tpot_aim(total.tpot), _served_aim(total.served), *_shape_aims(found, tops, pairs=pairs)),
    )


def _group_score(group: Group, outcomes: Sequence[Outcome]) -> GroupScore:
    return GroupScore(
        group=group,
        tpot=spread_of(each.tpot_error for each in outcomes),
        served=spread_of(each.served_error for each in outcomes if not each.run.overloaded),
        served_overloaded=spread_of(each.served_error for each in outcomes if each.run.overloaded),
    )


def _band(outcomes: Sequence[Outcome], *, least: Seconds, below: Seconds) -> Band:
    errors = [each.ttft_error for each in outcomes if least <= each.run.ttft < below]
    return Band(least=least, below=None if below == float("inf") else below, ttft=spread_of(errors))


def _tpot_aim(tpot: Spread) -> Aim:
    return _share_aim("mean TPOT error", tpot, most=0.10)


def _served_aim(served: Spread) -> Aim:
    return _share_aim("mean error of requests/s served, outside overload", served, most=0.05)


def _share_aim(words: str, found: Spread, *, most: Ratio) -> Aim:
    if found.mean is None or found.worst is None:
        return Aim(words=words, limit=f"≤ {most:.0%}", reached=None, met=None)
    reached = f"{found.mean:.1%} over {found.runs} runs, worst {found.worst:.0%}"
    return Aim(words=words, limit=f"≤ {most:.0%}", reached=reached, met=found.mean <= most)


def _shape_aims(found: Sequence[Knee], tops: Sequence[Peak], *, pairs: Sequence[RankPair]) -> tuple[Aim, ...]:
    closed = [knee for knee in found if knee.closed]
    decided = [peak for peak in tops if peak.verdict is not Verdict.OPEN]
    raised = [pair.ours is not None and pair.ours > 1.0 for pair in pairs]
    return (
        _count_aim(
            "slot knee inside the bracket, where the table has both ends",
            [knee.verdict is Verdict.RIGHT for knee in closed],
        ),
        _count_aim(
            "slot knee where the table has one end only",
            [knee.verdict is Verdict.RIGHT for knee in found if not knee.closed],
        ),
        _count_aim(
            "overload throughput peaking at a middle slot count, where the measured one does",
            [peak.verdict is Verdict.RIGHT for peak in decided],
        ),
        _count_aim("a higher largest rank raising TTFT", raised, least=0.90),
    )


def _count_aim(words: str, right: Sequence[bool], *, least: Ratio = 1.0) -> Aim:
    limit = "all" if least == 1.0 else f"≥ {least:.0%}"
    if not right:
        return Aim(words=words, limit=limit, reached=None, met=None)
    share = sum(right) / len(right)
    return Aim(words=words, limit=limit, reached=f"{sum(right)} of {len(right)}", met=share >= least)
