"""What the ledger says about a window of time: which evictions made it slow, as values.

Times are Unix time. `served` requests are what latencies are of; a request belongs to the window in which it ended.
"""

import msgspec

from lorapick.model.ledger import LeftWhy
from lorapick.model.units import AdapterName, PodName, Ratio, Seconds


class Parts(msgspec.Struct, frozen=True, kw_only=True):
    """What requests spent their time on, in the mean; the first four add up to the mean latency."""

    requests: int
    latency: Seconds
    queue: Seconds
    load_wait: Seconds
    drain: Seconds
    served: Seconds
    prefill: Seconds | None = None
    """Of `served`, of those requests whose first bytes were seen. None: none were."""
    decode: Seconds | None = None


class Latencies(msgspec.Struct, frozen=True, kw_only=True):
    """Requests that ended in some time."""

    since: Seconds
    until: Seconds
    served: int = 0
    failed: int = 0
    rejected: int = 0
    abandoned: int = 0
    p50: Seconds | None = None
    p95: Seconds | None = None
    hit_ratio: Ratio | None = None
    """Realised, of requests for adapters that were served well."""


class EvictionCost(msgspec.Struct, frozen=True, kw_only=True):
    """Evictions of one adapter from one pod by one other, and what bringing it back cost the requests of the window."""

    adapter: AdapterName
    pod: PodName
    by: AdapterName | None
    """Who got the slot. None: nobody, or nobody knows; `why` says more."""
    why: LeftWhy
    evictions: int
    """Whose reloads cost these requests something."""
    reloads: int
    requests: int
    """That it cost something."""
    waited: Seconds
    """By those that waited for it to be loaded again."""
    drained: Seconds
    """By others at the pods that loaded it again."""
    beyond: Seconds
    """Of both, by the requests beyond P95."""

    @property
    def seconds(self) -> Seconds:
        """All of it."""
        return self.waited + self.drained


class OtherLoads(msgspec.Struct, frozen=True, kw_only=True):
    """What loads cost that no known eviction made necessary, such as each adapter's first."""

    loads: int
    waited: Seconds
    drained: Seconds


class Without(msgspec.Struct, frozen=True, kw_only=True):
    """A counterfactual: the same requests, less what reloads after some evictions cost them."""

    evictions: int | None
    """How many of the costliest groups are taken away. None: all loads are, first ones too."""
    p50: Seconds
    p95: Seconds


class Conservation(msgspec.Struct, frozen=True, kw_only=True):
    """Mean residency x swap rate = slots in use: stays in slots, cut at both edges of the window."""

    seconds: Seconds
    """Of the window, those that a picker kept the ledger in."""
    stays: int
    at_start: int
    """Of these, those that had begun before."""
    mean_residency: Seconds | None
    """Of the stays as cut. None: there were none."""
    per_second: float | None
    """Stays / seconds. None: no picker ran."""
    slots_in_use: float | None
    """The product."""
    counted: float | None
    """Slots in use counted every ten seconds, apart from the stays. None: too few counts, or not all are asked for."""


class LedgerReport(msgspec.Struct, frozen=True, kw_only=True):
    """The answer."""

    window: Latencies
    before: Latencies
    """The hour before."""
    adapter: AdapterName | None = None
    """Only requests for this one. None: all."""
    pod: PodName | None = None
    """Only requests that were at this one. None: all."""
    refused: dict[str, int] = {}
    """Requests refused in the window by reason, the most frequent first."""
    adapters: int = 0
    """That were asked for in the window."""
    pickers: tuple[Seconds, ...] = ()
    """When each picker started that kept the ledger in the window, or in some of it."""
    beyond: Parts | None = None
    """Served requests at or beyond P95. None: there were none."""
    rest: Parts | None = None
    """The others."""
    evictions: tuple[EvictionCost, ...] = ()
    """The costliest first."""
    groups: int = 0
    """Of evictions that cost something; `evictions` may have fewer."""
    evictions_seconds: Seconds = 0.0
    """All groups together."""
    other_loads: OtherLoads = OtherLoads(loads=0, waited=0.0, drained=0.0)
    without: tuple[Without, ...] = ()
    conservation: Conservation
    watched_since: Seconds | None = None
    """The earliest that the ledger has. None: it is empty."""
    rows_lost: int = 0
    """Rows that the pickers could not write, over the whole ledger."""
