"""Results of a comparison of policies: from what clients and pods saw to figures, and to the rows of a table.

In: what clients observed of each request, the pods' own counters before and after. Out: a `DemoReport`.
Not here: sending requests (see `live.traffic`), starting anything (see `cli.demo`), drawing the table.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import msgspec

from lorapick.model.units import Ratio, Seconds
from lorapick.wire.exposition import samples

_COUNTERS = ("swaps", "loads", "hits", "misses")
_USEFUL = ("prefill", "decode")


class PodCounts(msgspec.Struct, frozen=True, kw_only=True):
    """What emulated pods count of themselves, since their start."""

    swaps: int = 0
    """Loads begun while a request waited for them."""
    loads: int = 0
    hits: int = 0
    """Requests whose adapter was on the GPU when they ran."""
    misses: int = 0
    """Requests that waited for a load."""
    useful: Seconds = 0.0
    """Prefill and decode."""
    busy: Seconds = 0.0
    """All but idle."""

    def __add__(self, other: "PodCounts") -> "PodCounts":
        return PodCounts(
            swaps=self.swaps + other.swaps,
            loads=self.loads + other.loads,
            hits=self.hits + other.hits,
            misses=self.misses + other.misses,
            useful=self.useful + other.useful,
            busy=self.busy + other.busy,
        )

    def __sub__(self, earlier: "PodCounts") -> "PodCounts":
        return PodCounts(
            swaps=self.swaps - earlier.swaps,
            loads=self.loads - earlier.loads,
            hits=self.hits - earlier.hits,
            misses=self.misses - earlier.misses,
            useful=self.useful - earlier.useful,
            busy=self.busy - earlier.busy,
        )


def read_pod_counts(page: bytes) -> PodCounts:
    """An emulated pod's counts from its metrics page.

    Raises:
        ExpositionError: the page is malformed.
    """
    counters = {name: value for name, _, value in samples(page, [f"lorapick_pod_{name}_total" for name in _COUNTERS])}
    phases = {labels["phase"]: value for _, labels, value in samples(page, ["lorapick_pod_seconds_total"])}
    return PodCounts(
        **{name: int(counters.get(f"lorapick_pod_{name}_total", 0)) for name in _COUNTERS},
        useful=sum(phases.get(phase, 0.0) for phase in _USEFUL),
        busy=sum(value for phase, value in phases.items() if phase != "idle"),
    )


class Observed(msgspec.Struct, frozen=True, kw_only=True):
    """One request as its client saw it."""

    latency: Seconds
    ttft: Seconds | None = None
    error: str | None = None
    """None: the whole answer came."""


class Percentiles(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds."""

    p50: Seconds
    p95: Seconds
    p99: Seconds


class PolicyResult(msgspec.Struct, frozen=True, kw_only=True):
    """One policy's run. Times are of requests that were answered in full. None: nothing to take it from."""

    policy: str
    requests: int
    answered: int
    errors: dict[str, int]
    """By what the client saw."""
    seconds: Seconds
    """From the first request's due time to the last answer."""
    swaps: int
    swap_rate: float
    """Swaps per second and pod, over the whole run."""
    swap_share: Ratio | None
    """Requests that waited for a load, of those that ran."""
    hit_ratio: Ratio | None
    useful_share: Ratio | None
    """Prefill and decode time, of the time in which pods were busy."""
    ttft: Percentiles | None
    latency: Percentiles | None


class DemoSetup(msgspec.Struct, frozen=True, kw_only=True):
    """What every policy was given."""

    adapters: int
    pods: int
    slots: int
    rate: float
    requests: int
    seed: int
    zipf: float
    mode: str
    scrape_interval: Seconds = 1.0
    """Time between two looks at a pod's metrics page."""


class DemoReport(msgspec.Struct, frozen=True, kw_only=True):
    """The comparison."""

    setup: DemoSetup
    results: tuple[PolicyResult, ...]


def percentiles(values: Iterable[float]) -> Percentiles | None:
    """By nearest rank: each is a value that occurred; None of nothing."""
    ordered = sorted(values)
    if not ordered:
        return None

    def rank(share: float) -> float:
        return ordered[math.ceil(share * len(ordered)) - 1]

    return Percentiles(p50=rank(0.50), p95=rank(0.95), p99=rank(0.99))


def summarise(
    policy: str, observed: Sequence[Observed], counts: PodCounts, *, seconds: Seconds, pods: int
) -> PolicyResult:
    """One policy's figures; `counts` is what all pods together counted during the run."""
    good = [request for request in observed if request.error is None]
    ran = counts.hits + counts.misses
    return PolicyResult(
        policy=policy,
        requests=len(observed),
        answered=len(good),
        errors=dict(Counter(request.error for request in observed if request.error is not None).most_common()),
        seconds=seconds,
        swaps=counts.swaps,
        swap_rate=counts.swaps / (seconds * pods) if seconds > 0 else 0.0,
        swap_share=counts.misses / ran if ran else None,
        hit_ratio=counts.hits / ran if ran else None,
        useful_share=counts.useful / counts.busy if counts.busy > 0 else None,
        ttft=percentiles(request.ttft for request in good if request.ttft is not None),
        latency=percentiles(request.latency for request in good),
    )


Row = tuple[str, Callable[[PolicyResult], str]]

_ROWS: tuple[Row, ...] = (
    ("requests", lambda result: f"{result.requests:,}"),
    ("answered in full", lambda result: f"{result.answered:,}"),
    ("swaps", lambda result: f"{result.swaps:,}"),
    ("swap rate, /s/pod", lambda result: f"{result.swap_rate:.3f}"),
    ("waited for a load", lambda result: _percent(result.swap_share)),
    ("hit ratio", lambda result: _percent(result.hit_ratio)),
    ("useful share of busy time", lambda result: _percent(result.useful_share)),
    ("TTFT P50, ms", lambda result: _ms(result.ttft, "p50")),
    ("TTFT P95, ms", lambda result: _ms(result.ttft, "p95")),
    ("TTFT P99, ms", lambda result: _ms(result.ttft, "p99")),
    ("latency P50, ms", lambda result: _ms(result.latency, "p50")),
    ("latency P95, ms", lambda result: _ms(result.latency, "p95")),
    ("latency P99, ms", lambda result: _ms(result.latency, "p99")),
)


def rows(report: DemoReport) -> list[tuple[str, ...]]:
    """A table: a measure's name, then its figure for each policy. The first row names the policies."""
    table = [("", *(result.policy for result in report.results))]
    table += [(name, *(figure(result) for result in report.results)) for name, figure in _ROWS]
    for error in dict.fromkeys(error for result in report.results for error in result.errors):
        table.append((f"error: {error}", *(f"{result.errors.get(error, 0):,}" for result in report.results)))
    return table


def _percent(share: Ratio | None) -> str:
    return "-" if share is None else f"{share * 100:.1f} %"


def _ms(times: Percentiles | None, which: str) -> str:
    return "-" if times is None else f"{getattr(times, which) * 1000:,.0f}"
