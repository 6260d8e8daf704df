"""What shows thrash as thrash: values that metrics, alerts, the page, the terminal and the doctor read.

All are of the picker's beliefs and its own traffic. None: unknown, or nothing happened from which to know. Rates are
per second, over `RATE_WINDOW` unless a name says otherwise.
"""

from typing import NamedTuple

import msgspec

from lorapick.model.placement import Side
from lorapick.model.tiers import Tier
from lorapick.model.units import AdapterName, PodName, Ratio, Seconds, Tokens

RATE_WINDOW: Seconds = 60.0
"""Of rates, hit ratios, latency, errors, useful time."""
RESIDENCY_WINDOW: Seconds = 600.0
"""Of residencies and what is made of them."""
POINT_EVERY: Seconds = 5.0
"""Time between two points of the history."""
MOST_POINTS = 720
"""Points of the history that are kept: an hour."""


class Change(NamedTuple):
    """An adapter came to another tier on a pod, as far as we believe. What happened within one event, in order."""

    t: Seconds
    pod: PodName
    adapter: AdapterName
    before: Tier
    """DISK, CPU, LOADING or GPU_IDLE: whether it serves follows from use."""
    after: Tier
    since: Seconds
    """When it had come to `before`."""
    came_from: Tier
    """Where its last load came from; of a load that begins, this load."""
    waited_for: bool = False
    """Of a load that begins: whether a request waits for it."""
    restart: bool = False
    """The pod's process ended, or the pod is gone."""


class PodSignals(msgspec.Struct, frozen=True, kw_only=True):
    """One pod over the last minute."""

    pod: PodName
    swaps_per_second: float
    """Loads begun while a request waited for them."""
    loads_per_second: float
    """All loads."""
    evictions_per_second: float
    """Adapters that left a slot, over the residency window."""
    mean_residency: Seconds | None = None
    """Slots in use / evictions per second: what conservation allows. None: nothing left a slot."""
    residency_p50: Seconds | None = None
    """Of residencies that ended in the residency window."""
    residency_p95: Seconds | None = None
    hit_ratio: Ratio | None = None
    """Realised hits / requests for adapters that were sent there."""
    believed_hit_ratio: Ratio | None = None
    """Requests sent there to an adapter believed on the GPU / the same."""
    hit_to_evict_p50: Seconds | None = None
    """From an adapter's last request there to its eviction, in the residency window."""
    swap_queue: int = 0
    """Requests that wait for an adapter to be loaded there, at the pod or at the picker."""
    loads_in_flight: int = 0
    useful_share: Ratio | None = None
    """Time of inference / time that the pod was busy with our requests, estimated. None: it was idle."""
    slots: int = 0
    slots_used: int = 0
    queue_critical: bool = False
    """Whether as many requests wait at the pod as may."""


class AdapterSignals(msgspec.Struct, frozen=True, kw_only=True):
    """One adapter over the whole fleet, over the residency window."""

    adapter: AdapterName
    requests_per_second: float
    share: Ratio
    """Of all requests."""
    hit_ratio: Ratio | None = None
    loads: int = 0
    evictions: int = 0
    mean_residency: Seconds | None = None
    """Of those that ended."""
    latency_p95: Seconds | None = None
    first_seen: Seconds | None = None
    """Its first request since the picker started, on the driver's clock. None: it was known before."""


class SideSignals(msgspec.Struct, frozen=True, kw_only=True):
    """One side of a fleet that has pods of several roles; pods that do both count on either."""

    side: Side
    pods: int
    """That answer."""
    active_adapters: int
    """That were decoded there within the last 10 minutes, or were to be prefilled there."""
    slots: int
    """Of pods that answer."""
    active_per_slot: float | None = None
    """None: no pod of this side answers."""
    swaps_per_second: float = 0.0
    """Per pod, in the mean."""


class FleetSignals(msgspec.Struct, frozen=True, kw_only=True):
    """All pods together over the last minute."""

    requests_per_second: float
    swaps_per_second: float
    """Per pod, in the mean."""
    hit_ratio: Ratio | None = None
    believed_hit_ratio: Ratio | None = None
    mean_residency: Seconds | None = None
    residency_p50: Seconds | None = None
    residency_p95: Seconds | None = None
    latency_p50: Seconds | None = None
    """Of served requests, from arrival at the picker to the end of the answer."""
    latency_p95: Seconds | None = None
    ttft_p95: Seconds | None = None
    """From arrival to the first bytes of the answer's body. None: nobody looks at bodies (`server.observe`)."""
    error_ratio: Ratio | None = None
    """Failed and rejected / ended. None: nothing ended."""
    useful_share: Ratio | None = None
    active_adapters: int = 0
    """With a request in the last 10 minutes."""
    distinct_adapters: int = 0
    """With a request in the last hour."""
    new_adapters: int = 0
    """Whose first request came within the last hour, and not within the picker's own first hour."""
    new_traffic_share: Ratio | None = None
    """Of the requests of the last minute, those for these."""
    slots: int = 0
    """Of pods that answer, as those in use."""
    slots_used: int = 0
    active_per_slot: float | None = None
    """Where pods have several roles: of the side that has least room."""
    sides: tuple[SideSignals, ...] = ()
    """Those that decode and those that prefill; none where all pods do both."""
    splits: dict[str, int] = {}
    """Dispatches of the last 10 minutes: `split`, or why another pod did not prefill (`few_tokens`, `unknown_length`,
    `dearer`, `nobody_prefills`). Empty: this fleet splits nothing."""
    swap_queue: int = 0
    critical_queues: int = 0
    """Pods on which as many requests wait as may."""
    waiting: int = 0
    """Requests that wait at the picker."""
    output_tokens: Tokens | None = None

    @property
    def tightest(self) -> SideSignals | None:
        """The side that has least room for its adapters; None: there are no sides, or none has a pod that answers."""
        known = [side for side in self.sides if side.active_per_slot is not None]
        return max(known, key=lambda side: side.active_per_slot or 0.0, default=None)


class Signals(msgspec.Struct, frozen=True, kw_only=True):
    """Everything at one instant, on the driver's clock."""

    now: Seconds
    fleet: FleetSignals
    pods: tuple[PodSignals, ...] = ()
    """In the fleet's own order."""
    adapters: tuple[AdapterSignals, ...] = ()
    """Asked for or evicted in the residency window, by name."""


class SignalPoint(msgspec.Struct, frozen=True, kw_only=True):
    """One point of the lines over time: the last `RATE_WINDOW` as of `t`."""

    t: Seconds
    swaps_per_second: float
    requests_per_second: float
    hit_ratio: Ratio | None = None
    latency_p95: Seconds | None = None
    useful_share: Ratio | None = None
    active_per_slot: float | None = None
    mean_residency: Seconds | None = None
