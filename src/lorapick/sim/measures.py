"""What was measured in a stretch of a run, as a value.

In: counts and seconds. Out: frozen values that JSON can hold. Not here: ratios and rates made of them (see
`sim.metrics`), counting (see `sim.tally`).
"""

import msgspec

from lorapick.model.units import Seconds
from lorapick.sim.histogram import Histogram


class Distribution(msgspec.Struct, frozen=True, kw_only=True):
    """Of some seconds; percentiles with at most 1 % relative error. None: no values."""

    count: int
    mean: Seconds | None
    p50: Seconds | None
    p95: Seconds | None
    p99: Seconds | None
    most: Seconds | None


NOTHING = Distribution(count=0, mean=None, p50=None, p95=None, p99=None, most=None)
"""Of no values."""


class GpuTime(msgspec.Struct, frozen=True, kw_only=True):
    """Where the pods' time went, in pod-seconds; adds up to pods x clock."""

    prefill: Seconds = 0.0
    decode: Seconds = 0.0
    drain: Seconds = 0.0
    """Idle room of batches that ran down because a load waited."""
    deallocation: Seconds = 0.0
    transfer: Seconds = 0.0
    initialisation: Seconds = 0.0
    warm_up: Seconds = 0.0
    merge: Seconds = 0.0
    """Folding adapters into the base weights, and taking them out (pods that serve merged)."""
    idle: Seconds = 0.0
    down: Seconds = 0.0
    """No process was there."""

    @property
    def total(self) -> Seconds:
        """All of it."""
        return sum(self.parts())

    def parts(self) -> tuple[Seconds, ...]:
        """In the order of the fields."""
        return msgspec.structs.astuple(self)

    def less(self, other: "GpuTime") -> "GpuTime":
        """What was added since `other`."""
        return GpuTime(
            **dict(zip(FIELDS, (a - b for a, b in zip(self.parts(), other.parts(), strict=True)), strict=True))
        )

    def plus(self, other: "GpuTime") -> "GpuTime":
        """Both together."""
        return GpuTime(
            **dict(zip(FIELDS, (a + b for a, b in zip(self.parts(), other.parts(), strict=True)), strict=True))
        )


FIELDS = GpuTime.__struct_fields__
"""Names of the parts, in order."""


class Measures(msgspec.Struct, frozen=True, kw_only=True):
    """One stretch: what arrived in it and what became of that, loads begun in it, GPU time spent in it."""

    start: Seconds
    end: Seconds
    pods: int
    arrivals: int
    served: int
    failed: int
    rejected: int
    abandoned: int
    in_flight: int
    hits: int
    """Requests whose adapter was on the GPU when they ran; those for the base model are neither."""
    misses: int
    waited: int
    """Requests that waited for a load at their pod."""
    cold: int = 0
    """Those, and the ones that waited for it at the picker."""
    held: int
    """Requests that waited at the picker, for a load or for a place."""
    followed: int
    """Requests that followed a load under way, where each would else have caused one."""
    turns: int
    """Slots that were cleared for an adapter whose requests had waited for too long."""
    alerts: int
    """Alerts of the picker that stood at some time."""
    swaps: int
    """Loads begun while a request waited for them."""
    loads: int
    peak_swap_rate: float
    """Highest swaps per second of one pod over one window."""
    output_tokens: int
    slot_seconds: Seconds
    """Integral over time of slots in use."""
    unloads: int = 0
    """Adapters that the picker had unloaded, because memory was short or they were no longer wanted."""
    commanded: dict[str, int] = {}
    """Loads that the picker told pods to begin, by what for (`pin`, `schedule`, ...)."""
    touches: int = 0
    """Requests of one token by the picker, which keep an adapter where it is."""
    preemptions: int = 0
    """Requests that pods sent back to their queues because KV memory had ended."""
    looks: int = 0
    """Looks at pods: one of each at the edges of windows."""
    tight: int = 0
    """Of those, the ones that found memory at the picker's bound for the tier `hard` or above."""
    good: int | None = None
    """Served within what users were promised; None: nothing was promised."""
    handed: dict[str, int] = {}
    """What became of requests that one pod was to prefill for another, by `sim.observer.Handed`."""
    prefill_hits: int = 0
    """Of those, the ones whose adapter was on the GPU of the pod that prefilled; `hits` are of the other one."""
    prefill_misses: int = 0
    transfer: Distribution = NOTHING
    """Of the KV of a request from one pod to the other."""
    tpot: Distribution = NOTHING
    """Time per output token after the first."""
    latency: Distribution
    ttft: Distribution
    first_ttft: Distribution = NOTHING
    """Of requests for an adapter that nobody had asked for in the hour before: the first ones of a day."""
    held_for: Distribution
    """How long those that waited at the picker did so."""
    gpu: GpuTime

    @property
    def length(self) -> Seconds:
        """Of the stretch."""
        return self.end - self.start


def distribution(histogram: Histogram) -> Distribution:
    """The usual percentiles."""
    return Distribution(
        count=histogram.count,
        mean=histogram.mean,
        p50=histogram.quantile(0.50),
        p95=histogram.quantile(0.95),
        p99=histogram.quantile(0.99),
        most=histogram.largest if histogram.count else None,
    )
