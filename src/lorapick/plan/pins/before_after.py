"""Swaps before and after: what was played and what was predicted, as figures and tables.

In: cases with measures and predictions. Out: figures, tables, assumptions. Not here: playing (see `simulating`).
"""

from collections.abc import Sequence
from typing import NamedTuple

from lorapick.model.units import Ratio
from lorapick.plan.logs.values import LogSummary
from lorapick.plan.pins.predicting import length_of
from lorapick.plan.pins.simulating import LEAD, WARM_UP, Case
from lorapick.plan.pins.values import PinOptions
from lorapick.plan.prediction.values import Costs, Prediction
from lorapick.plan.work import GIVEN, Figure, Table, plain, shown
from lorapick.sim.hardware import PRESETS
from lorapick.sim.measures import Measures
from lorapick.sim.metrics import METRICS

CASES = ("today", "lorapick, no pins", "lorapick, pins")
"""Names of the cases, in order."""
_PLAYED = ("swap_rate", "hit_ratio", "residency_s", "p95_ms", "lost_share")
_HEAD = ("", "policy", "swaps/s/pod", "hits", "mean residency")
_SAMPLE, _PERIOD = "sample", "whole period"
_PREDICTION = "prediction: characteristic time of LRU, see `lorapick check`"


class Outcome(NamedTuple):
    """What the cases lead to."""

    cases: tuple[Case, ...]
    measured: tuple[Measures, ...]
    """Of the sample; empty: there is none."""
    predicted: tuple[Prediction, ...]
    """Of the whole period."""


def swap_rate(measures: Measures) -> float:
    """Swaps per second and pod."""
    return METRICS["swap_rate"].of(measures) or 0.0


def removed(before: float, after: float) -> Ratio | None:
    """Share of swaps that is gone, below 0 when there are more; None: there were none."""
    return 1 - after / before if before > 0 else None


def figures_of(outcome: Outcome) -> tuple[Figure, ...]:
    """Swaps of every case, and which share the policy and the pins remove."""
    played = [swap_rate(each) for each in outcome.measured]
    words = [f"{each.swaps:,} swaps / ({each.length:,.0f} s × {each.pods} pods)" for each in outcome.measured]
    rates = [each.swap_rate for each in outcome.predicted]
    told = [
        f"loads of {each.active:,} adapters on {each.slots:,} slots at {each.requests:.3g} requests/s, LRU"
        for each in outcome.predicted
    ]
    return (
        *_rates(played, words, where=_SAMPLE, source="simulation of the sample"),
        *_rates(rates, told, where=_PERIOD, source=_PREDICTION),
    )


def _rates(rates: Sequence[float], formulas: Sequence[str], *, where: str, source: str) -> tuple[Figure, ...]:
    if not rates:
        return ()
    each = (
        Figure(f"{where}: swaps, {name}", rate, "/s/pod", formula, source)
        for name, rate, formula in zip(CASES, rates, formulas, strict=True)
    )
    before, routed, pinned = rates
    return (
        *each,
        _removed(f"{where}: swaps that the policy removes", before=before, after=routed),
        _removed(f"{where}: swaps that pins remove beyond that", before=routed, after=pinned),
    )


def _removed(name: str, *, before: float, after: float) -> Figure:
    formula = f"1 - {after:.4g} / {before:.4g}" if before > 0 else "no swaps: nothing to remove"
    return Figure(name, removed(before, after), "share", formula, "the figures above")


def tables_of(outcome: Outcome) -> tuple[Table, ...]:
    """All measures of every case."""
    played = tuple(
        (case.name, _policy(case), *_row(each)) for case, each in zip(outcome.cases, outcome.measured, strict=False)
    )
    reckoned = tuple(
        (
            case.name,
            _policy(case),
            rate_shown(each.swap_rate),
            shown(each.hit_ratio, "share"),
            shown(each.residency, "s"),
            shown(each.p95, "s"),
        )
        for case, each in zip(outcome.cases, outcome.predicted, strict=True)
    )
    exact = tuple(
        (case.name, _policy(case), *_values(each)) for case, each in zip(outcome.cases, outcome.measured, strict=False)
    )
    periods = tuple(
        (case.name, _policy(case), each.swap_rate, each.hit_ratio, each.residency, each.p95)
        for case, each in zip(outcome.cases, outcome.predicted, strict=True)
    )
    means = "; ".join(f"{METRICS[name].label}: {METRICS[name].means}" for name in _PLAYED)
    head = (*_HEAD, "P95, played", "not served")
    sample = Table(f"{_SAMPLE} of the busiest time, simulated", head, played, means, "simulation of the sample", exact)
    period = Table(
        f"{_PERIOD}, predicted at its mean rate",
        (*_HEAD, "P95, mean rate"),
        reckoned,
        "loads / s / pod; requests that find their adapter; slots / loads per s; base latency and swaps",
        _PREDICTION,
        periods,
    )
    return (sample, period) if played else (period,)


def _policy(case: Case) -> str:
    return case.policy if not case.pins else f"{case.policy}, {len(case.pins)} pinned"


def _values(measures: Measures) -> tuple[float | None, ...]:
    """In base units, in the order of the head."""
    found = {name: METRICS[name].of(measures) for name in _PLAYED}
    p95 = found["p95_ms"]
    seconds = None if p95 is None else p95 / 1e3
    return (found["swap_rate"] or 0.0, found["hit_ratio"], found["residency_s"], seconds, found["lost_share"])


def _row(measures: Measures) -> tuple[str, ...]:
    rate, *others = _values(measures)
    units = ("share", "s", "s", "share")
    return (rate_shown(rate or 0.0), *(shown(value, unit) for value, unit in zip(others, units, strict=True)))


def rate_shown(rate: float) -> str:
    """Swaps per second and pod, to three digits."""
    return plain(float(f"{rate:.3g}"))


def assumed_of(summary: LogSummary, options: PinOptions) -> tuple[Figure, ...]:
    """What simulation and prediction start from, and what their columns mean."""
    sample, hardware = summary.sample, PRESETS[options.hardware]
    lengths = GIVEN if (options.prompt, options.output) != _LENGTHS else "means of Azure's conversations of 2023"
    missing = sum(each.prompt_tokens is None or each.output_tokens is None for each in sample.arrivals)
    return (
        Figure("sample", len(sample.arrivals), "", f"requests of {sample.length:,.0f} s", "the logs' busiest hour"),
        Figure(
            "not counted", WARM_UP, "share", f"of the sample; {LEAD:g} s before it pins are loaded", "slots begin empty"
        ),
        Figure("prompt", options.prompt, "tokens", f"where logs tell none ({missing:,} of the sample)", lengths),
        Figure("output", options.output, "tokens", "where logs tell none", lengths),
        Figure("hardware", hardware.name, "", f"{hardware.step.a * 1e3:.2f} ms a step", hardware.sources[0]),
        Figure("swap, predicted", Costs().swap, "s", "keeps requests waiting", "article: 200 to 500 ms for every swap"),
        Figure("period", length_of(summary), "s", "first request to last", "the logs"),
        Figure("seed", options.seed, "", "of ties; the same for all cases", "default or given"),
        *(
            Figure(f"column {METRICS[name].label}", METRICS[name].unit, "", METRICS[name].means, "simulation")
            for name in _PLAYED
        ),
    )


_LENGTHS = (PinOptions().prompt, PinOptions().output)
