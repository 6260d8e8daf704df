"""Policies side by side, over several seeds.

In: reports of the same scenario, one per (policy, seed). Out: for each metric the mean over seeds with its 95 %
confidence interval, and the difference to the first policy, paired by seed. Not here: running, layout.
"""

import math
from collections.abc import Sequence

import msgspec

from lorapick.sim.metrics import METRICS, Metric
from lorapick.sim.report import RunReport

_T_95 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
"""Two-sided 95 % quantiles of Student's t for 1 to 30 degrees of freedom."""


_NOTHING = 1e-9
"""Share of a mean below which a half width comes from rounding."""


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """A mean over seeds."""

    mean: float | None
    """None: some seed has no value."""
    half_width: float | None
    """Of the 95 % confidence interval; None: fewer than two seeds."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One metric of one policy in one period."""

    metric: str
    policy: str
    period: str | None
    """None: the whole run."""
    value: Estimate
    difference: Estimate | None
    """To the first policy, paired by seed; None for that policy itself."""


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """All metrics of all policies."""

    scenario: str
    policies: tuple[str, ...]
    seeds: tuple[int, ...]
    rows: tuple[Row, ...]

    def of(self, metric: str, policy: str, *, period: str | None = None) -> Estimate:
        """One cell."""
        for row in self.rows:
            if (row.metric, row.policy, row.period) == (metric, policy, period):
                return row.value
        raise KeyError((metric, policy, period))


def t_95(degrees: int) -> float:
    """Two-sided 95 % quantile of Student's t; beyond the table within 0.2 % (first terms of its expansion)."""
    if degrees <= len(_T_95):
        return _T_95[degrees - 1]
    z = 1.959964
    return z + (z**3 + z) / (4 * degrees)


def estimate(values: Sequence[float | None]) -> Estimate:
    """Mean and interval."""
    known = [value for value in values if value is not None]
    if not known or len(known) < len(values):
        return Estimate(mean=None, half_width=None)
    count = len(known)
    mean = math.fsum(known) / count
    if count < 2:
        return Estimate(mean=mean, half_width=None)
    variance = math.fsum((value - mean) ** 2 for value in known) / (count - 1)
    half_width = t_95(count - 1) * math.sqrt(variance / count)
    # Percentiles of one bin are the same number for all seeds; what rounding leaves of that is no width.
    return Estimate(mean=mean, half_width=half_width if half_width > _NOTHING * abs(mean) else 0.0)


def compare(reports: Sequence[RunReport]) -> Comparison:
    """Compare; reports come in the order of policies and seeds, every policy with the same seeds."""
    policies = tuple(dict.fromkeys(report.policy for report in reports))
    seeds = tuple(dict.fromkeys(report.seed for report in reports))
    by = {(report.policy, report.seed): report for report in reports}
    periods: list[str | None] = [None, *reports[0].periods]
    rows = [
        _row(metric, policy, period=period, first=policies[0], by=by, seeds=seeds)
        for period in periods
        for metric in METRICS.values()
        for policy in policies
    ]
    return Comparison(scenario=reports[0].scenario, policies=policies, seeds=seeds, rows=tuple(rows))


def _row(
    metric: Metric,
    policy: str,
    *,
    period: str | None,
    first: str,
    by: dict[tuple[str, int], RunReport],
    seeds: tuple[int, ...],
) -> Row:
    values = [value_of(metric, by[policy, seed], period=period) for seed in seeds]
    difference = None
    if policy != first:
        base = [value_of(metric, by[first, seed], period=period) for seed in seeds]
        pairs = zip(values, base, strict=True)
        difference = estimate([None if a is None or b is None else a - b for a, b in pairs])
    return Row(metric=metric.name, policy=policy, period=period, value=estimate(values), difference=difference)


def value_of(metric: Metric, report: RunReport, *, period: str | None) -> float | None:
    """A metric of one report."""
    return metric.of(report.whole if period is None else report.periods[period])
