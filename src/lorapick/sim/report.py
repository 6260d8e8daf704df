"""The report of one run, as a value.

In: what was measured. Out: `RunReport`; the same run gives the same bytes of JSON. Not here: layout, comparisons.
"""

import msgspec

from lorapick.model.pods import Role
from lorapick.model.units import AdapterName, PodName, Ratio, Seconds
from lorapick.sim.measures import Distribution, GpuTime, Measures
from lorapick.sim.sampling import Timeline


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """One value per window. Latencies of requests that arrived in it; None where there were none."""

    window: Seconds
    t: tuple[Seconds, ...]
    arrivals: tuple[int, ...]
    p50_ms: tuple[float | None, ...]
    p95_ms: tuple[float | None, ...]
    p99_ms: tuple[float | None, ...]
    hit_ratio: tuple[float | None, ...]
    swap_rate: tuple[tuple[float, ...], ...]
    """Per pod, per window: swaps per second."""
    gpu: dict[str, tuple[Ratio, ...]]
    """Share of the pods' time by what it was spent on, per window."""


class PodRow(msgspec.Struct, frozen=True, kw_only=True):
    """One pod over the whole run."""

    pod: PodName
    role: Role = Role.BOTH
    dispatches: int
    """To answer; what it prefilled for others is not among them."""
    swaps: int
    loads: int
    hits: int = 0
    """Of requests that it answered or prefilled for others, those whose adapter was on the GPU when they ran."""
    misses: int = 0
    gpu: GpuTime


class SideRow(msgspec.Struct, frozen=True, kw_only=True):
    """The pods of one role together, over the whole run."""

    role: Role
    pods: int
    swaps: int
    loads: int
    hits: int
    misses: int
    gpu: GpuTime

    @property
    def hit_ratio(self) -> Ratio | None:
        """Of what began to run there; None: nothing for an adapter did."""
        ran = self.hits + self.misses
        return self.hits / ran if ran else None

    @property
    def busy(self) -> Ratio:
        """Share of the time in which something ran or loaded."""
        gpu = self.gpu
        return (gpu.total - gpu.idle - gpu.down) / gpu.total if gpu.total else 0.0

    def share(self, part: str) -> Ratio:
        """Share of the time that went into one part of it."""
        seconds: Seconds = getattr(self.gpu, part)
        return seconds / self.gpu.total if self.gpu.total else 0.0


class PartRow(msgspec.Struct, frozen=True, kw_only=True):
    """Requests for some adapters, over the whole run."""

    part: str
    adapters: int
    arrivals: int
    served: int
    cold: int
    """Requests that waited for a load, at their pod or at the picker."""
    ttft: Distribution
    latency: Distribution


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """What the loads of the run are measured by (see `sim.bounds.yardstick`)."""

    service_order: int
    """The fewest loads that any routing and replacement needs for the order in which requests began service."""
    arrival_order: int
    """The same for the order in which they came; holding requests may beat it."""


class RunReport(msgspec.Struct, frozen=True, kw_only=True):
    """One scenario, one policy, one seed."""

    scenario: str
    policy: str
    seed: int
    length: Seconds
    whole: Measures
    """The run without its warm-up."""
    periods: dict[str, Measures]
    pods: tuple[PodRow, ...]
    sides: tuple[SideRow, ...] = ()
    """By role; empty where all pods do both."""
    parts: tuple[PartRow, ...] = ()
    swaps_from: dict[str, int]
    """Swaps by the tier that the adapter came from."""
    load_seconds: dict[str, Seconds]
    """Seconds by phase of all loads; `drain` is the length of drain windows, in which what runs goes on."""
    failed_loads: int
    holds: int
    alerts: dict[str, int]
    """How often each alert of the picker stood at some time after the warm-up."""
    residency: Distribution
    """Of finished residencies only, so biased towards short ones; the unbiased mean is `residency_s` of `whole`."""
    hit_to_evict: Distribution
    """From an adapter's last hit on a pod to its eviction there."""
    bounds: Bounds | None
    """None: the run was not asked for them, or its pods have no slots."""
    series: Series
    timeline: Timeline
    adapters: int
    """Distinct adapters that can be asked for."""
    loads_begun_by_picker: int
    """By requests that it sent, and by command."""
    pins_missing: Seconds | None = None
    """The longest that a pin was not in a slot where it should be, that at the begin included; None: nothing was
    pinned."""
    events: int
    """Calls that the virtual clock made."""


def encoded(report: RunReport) -> bytes:
    """The report as JSON."""
    return msgspec.json.encode(report)


def names_of(report: RunReport) -> tuple[AdapterName, ...]:
    """Adapters seen in slots."""
    return report.timeline.adapters
