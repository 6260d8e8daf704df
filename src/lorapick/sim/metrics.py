"""The metrics that reports and scenario files speak of, each with its definition and its unit.

In: `Measures`. Out: one number, or None when there is nothing to divide by. Not here: layout.
"""

from collections.abc import Callable
from typing import NamedTuple

from lorapick.model.units import Seconds
from lorapick.sim.measures import Measures


class Metric(NamedTuple):
    """One figure of a report."""

    name: str
    label: str
    unit: str
    """`ms`, `s`, `%` (the value is a ratio), `/s`, `/s/pod`, or empty for a count."""
    of: Callable[[Measures], float | None]
    means: str
    """Its definition, for documentation."""
    rare: bool = False
    """Left out of tables in which nobody has any."""


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _ms(seconds: Seconds | None) -> float | None:
    return seconds * 1e3 if seconds is not None else None


def _busy(measures: Measures) -> Seconds:
    return measures.gpu.total - measures.gpu.idle - measures.gpu.down


_ALL = (
    Metric("served_rate", "served", "/s", lambda m: _ratio(m.served, m.length), "requests served per second"),
    Metric("p50_ms", "latency p50", "ms", lambda m: _ms(m.latency.p50), "arrival to last token, served requests"),
    Metric("p95_ms", "latency p95", "ms", lambda m: _ms(m.latency.p95), "arrival to last token, served requests"),
    Metric("p99_ms", "latency p99", "ms", lambda m: _ms(m.latency.p99), "arrival to last token, served requests"),
    Metric("mean_ms", "latency mean", "ms", lambda m: _ms(m.latency.mean), "arrival to last token, served requests"),
    Metric("ttft_p50_ms", "TTFT p50", "ms", lambda m: _ms(m.ttft.p50), "arrival to first token"),
    Metric("ttft_p95_ms", "TTFT p95", "ms", lambda m: _ms(m.ttft.p95), "arrival to first token"),
    Metric("ttft_p99_ms", "TTFT p99", "ms", lambda m: _ms(m.ttft.p99), "arrival to first token"),
    Metric("tpot_p50_ms", "TPOT p50", "ms", lambda m: _ms(m.tpot.p50), "time per output token after the first"),
    Metric("tpot_p95_ms", "TPOT p95", "ms", lambda m: _ms(m.tpot.p95), "time per output token after the first"),
    Metric(
        "swap_share",
        "swap share",
        "%",
        lambda m: _ratio(m.waited, m.arrivals),
        "requests that waited for a load / arrivals",
    ),
    Metric(
        "cold_starts",
        "cold starts/1,000",
        "",
        lambda m: _ratio(1000 * m.cold, m.arrivals),
        "requests that waited for a load, at their pod or at the picker, of 1,000 that came",
    ),
    Metric(
        "first_ttft_ms",
        "first TTFT",
        "ms",
        lambda m: _ms(m.first_ttft.mean),
        "mean TTFT of requests for an adapter that nobody had asked for in the hour before",
        rare=True,
    ),
    Metric(
        "first_ttft_p95_ms", "first TTFT p95", "ms", lambda m: _ms(m.first_ttft.p95), "its 95th percentile", rare=True
    ),
    Metric("swaps", "swaps", "", lambda m: m.swaps, "loads begun while a request waited for them"),
    Metric(
        "swaps_per_min", "swaps/min", "/min", lambda m: _ratio(60.0 * m.swaps, m.length), "swaps per minute, all pods"
    ),
    Metric(
        "swap_rate",
        "swap rate",
        "/s/pod",
        lambda m: _ratio(m.swaps, m.length * m.pods),
        "swaps per second and pod, mean",
    ),
    Metric(
        "peak_swap_rate", "peak swap rate", "/s/pod", lambda m: m.peak_swap_rate, "highest of one pod over one window"
    ),
    Metric("loads", "loads", "", lambda m: m.loads, "adapters brought into a slot, whoever caused it"),
    Metric(
        "loads_avoided",
        "loads avoided",
        "",
        lambda m: m.followed,
        "requests that followed a load under way instead of causing one",
    ),
    Metric("turns", "turns", "", lambda m: m.turns, "slots cleared for adapters that had waited for too long"),
    Metric("alerts", "alerts", "", lambda m: m.alerts, "alerts of the picker that stood at some time"),
    Metric(
        "held_share",
        "held",
        "%",
        lambda m: _ratio(m.held, m.arrivals),
        "requests that waited at the picker / arrivals",
    ),
    Metric(
        "held_p95_ms",
        "held p95",
        "ms",
        lambda m: _ms(m.held_for.p95),
        "how long they waited there, until they were sent or refused",
    ),
    Metric(
        "hit_ratio",
        "hits",
        "%",
        lambda m: _ratio(m.hits, m.hits + m.misses),
        "adapter was on the GPU when the request ran",
    ),
    Metric(
        "goodput",
        "goodput",
        "/s",
        lambda m: None if m.good is None else _ratio(m.good, m.length),
        "requests served per second within what users were promised (`slo`, else `latency_limit`)",
        rare=True,
    ),
    Metric(
        "split_share",
        "disaggregated",
        "%",
        lambda m: _ratio(m.handed.get("begun", 0), m.arrivals),
        "requests that one pod was to prefill for another / arrivals",
        rare=True,
    ),
    Metric(
        "prefill_hit_ratio",
        "prefill hits",
        "%",
        lambda m: _ratio(m.prefill_hits, m.prefill_hits + m.prefill_misses),
        "of those: adapter was on the GPU of the pod that prefilled when the prefill began",
        rare=True,
    ),
    Metric(
        "transfer_p95_ms",
        "transfer p95",
        "ms",
        lambda m: _ms(m.transfer.p95),
        "KV from one pod to the other",
        rare=True,
    ),
    Metric(
        "prefills_lost",
        "prefills lost",
        "",
        lambda m: m.handed.get("alone", 0),
        "of those: the prefill failed, and the pod that decodes did it all",
        rare=True,
    ),
    Metric(
        "decodes_moved",
        "decodes moved",
        "",
        lambda m: m.handed.get("moved", 0) + m.handed.get("at_prefill", 0),
        "of those: the pod that was to decode died during the prefill, and another one did",
        rare=True,
    ),
    Metric(
        "residency_s",
        "mean residency",
        "s",
        lambda m: _ratio(m.slot_seconds, m.loads),
        "slot-seconds in use / loads; open residencies included",
    ),
    Metric(
        "requests_per_residency",
        "requests/residency",
        "",
        lambda m: _ratio(m.hits + m.misses, m.loads),
        "requests that ran / loads",
    ),
    Metric(
        "useful_share",
        "useful share",
        "%",
        lambda m: _ratio(m.gpu.prefill + m.gpu.decode, _busy(m)),
        "prefill and decode / busy time",
    ),
    Metric(
        "busy_share",
        "GPU busy",
        "%",
        lambda m: _ratio(_busy(m), m.gpu.total - m.gpu.down),
        "what a GPU utilisation counter shows",
    ),
    Metric(
        "inference_share",
        "GPU inference",
        "%",
        lambda m: _ratio(m.gpu.prefill + m.gpu.decode, m.gpu.total),
        "prefill and decode / all time",
    ),
    Metric(
        "lost_share",
        "not served",
        "%",
        lambda m: _ratio(m.failed + m.rejected + m.abandoned, m.arrivals),
        "failed, rejected and abandoned / arrivals",
    ),
    Metric(
        "loads_commanded",
        "loads commanded",
        "",
        lambda m: sum(m.commanded.values()),
        "loads that the picker told pods to begin",
        rare=True,
    ),
    Metric("touches", "touches", "", lambda m: m.touches, "requests of one token by the picker", rare=True),
    Metric("unloads", "unloads", "", lambda m: m.unloads, "adapters that the picker had unloaded"),
    Metric("preemptions", "preemptions", "", lambda m: m.preemptions, "requests sent back because KV memory had ended"),
    Metric(
        "tight_share",
        "memory short",
        "%",
        lambda m: _ratio(m.tight, m.looks),
        "looks at pods that found memory pressure at `pressure.hard` or above",
    ),
    Metric(
        "output_rate",
        "output tokens",
        "/s",
        lambda m: _ratio(m.output_tokens, m.length),
        "output tokens of served requests per second",
    ),
)
METRICS: dict[str, Metric] = {metric.name: metric for metric in _ALL}
"""By name, in the order of reports."""


def shown(value: float | None, unit: str, *, beside: float | None = None) -> str:
    """A value as people read it; a dash when there is none. `beside`: in the unit in which that value is shown."""
    if value is None:
        return "–"
    if unit == "%":
        return f"{100 * value:.1f} %"
    if unit == "ms" and (value if beside is None else beside) >= 10_000:
        value, unit = value / 1e3, "s"
    number = f"{value:,.0f}" if abs(value) >= 100 or (unit == "" and value == int(value)) else f"{value:.3g}"
    return f"{number} {unit}".rstrip()
