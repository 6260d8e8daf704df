"""Rows of the ledger: what became of each request, each load and each stay in a slot, and what operators did.

Times are on the driver's clock while rows are made, and Unix time in the file (`live.ledger`). None: unknown, or not
yet. All of it is of the picker's beliefs and its own traffic.
"""

from enum import StrEnum

import msgspec

from lorapick.model.arms import Arm
from lorapick.model.reasons import Reason
from lorapick.model.requests import Outcome
from lorapick.model.units import AdapterName, PodName, RequestId, Seconds, Tokens


class LoadBy(StrEnum):
    """Whose doing a load was."""

    REQUEST = "request"
    """A request was sent there without its adapter being there."""
    CONTROLLER = "controller"
    """The picker asked for it: a pin, an order, a placement."""
    ENGINE = "engine"
    """The pod says so; nobody here knows why."""


class LoadEnd(StrEnum):
    """How a load ended."""

    DONE = "done"
    FAILED = "failed"
    DROPPED = "dropped"
    """Nobody waited for it any more before it had begun."""
    UNKNOWN = "unknown"
    """The picker ended first."""


class LeftWhy(StrEnum):
    """Why an adapter left its slot."""

    CAPACITY = "capacity"
    """Another adapter got the slot."""
    UNLOAD = "unload"
    RESTART = "restart"
    """The pod's process ended."""
    GONE = "gone"
    """The pod left the fleet."""
    FAILED = "failed"
    """Its load failed, so it never was there."""
    DROPPED = "dropped"
    """Its load was no longer needed before it had begun."""
    UNKNOWN = "unknown"
    """The picker ended first."""

    @property
    def evicted(self) -> bool:
        """Whether something was there and left while the pod lived on."""
        return self in (LeftWhy.CAPACITY, LeftWhy.UNLOAD)


class RequestRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One request that left. `queue + load_wait + drain + served` is its latency, `ended - arrived`."""

    id: RequestId | None
    """None: a transport refused it before it had one."""
    arrived: Seconds
    ended: Seconds
    model: str | None
    """As the client asked."""
    adapter: AdapterName | None = None
    """None: the base model, or none is known."""
    pod: PodName | None = None
    """None: it was never sent to one."""
    outcome: Outcome
    status: int | None = None
    reason: Reason | None = None
    """Why it was refused."""
    tier: str | None = None
    """Word of the adapter's tier on the pod, as believed at the dispatch."""
    hit: bool | None = None
    """Whether its adapter was there, as it turned out. None: base model, or no good answer."""
    dispatched: Seconds | None = None
    queue: Seconds = 0.0
    """At the picker, for a place."""
    load_wait: Seconds = 0.0
    """For its adapter to be loaded, at the picker and at the pod."""
    load_wait_held: Seconds = 0.0
    """Of `load_wait`, at the picker."""
    drain: Seconds = 0.0
    """At the pod while it loaded other adapters: drained and stalled for others."""
    served: Seconds = 0.0
    """The rest: at the pod, without loads; its network and its own queue are in it."""
    prefill: Seconds | None = None
    """Of `served`, until the first bytes of a streamed answer. None: nobody saw them (`server.observe`)."""
    decode: Seconds | None = None
    """Of `served`, the rest."""
    load: int | None = None
    """Number of the load that it waited for; the one at the picker, if it waited there."""
    drain_load: int | None = None
    """Number of the load of another adapter that cost it the most."""
    drain_most: Seconds | None = None
    """What that cost."""
    prompt_tokens: Tokens | None = None
    cached_tokens: Tokens | None = None
    output_tokens: Tokens | None = None
    prefilled_by: PodName | None = None
    """Pod that was to prefill for `pod`, which has not said that it did it after all. None: `pod` did everything."""
    arm: Arm | None = None
    """Of a trial: whether it was routed by picks or as before. None: an older version wrote the row."""
    would_pod: PodName | None = None
    """Of the observed arm, the pod that it would have been sent to."""
    would_be: str | None = None
    """Of the observed arm, word of the tier there, `base`; or why it would have had no pod."""


class LoadRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One load of an adapter into a slot; told when it begins, and again when it is over."""

    id: int
    """Number within one run of the picker."""
    pod: PodName
    adapter: AdapterName
    begun: Seconds | None
    """None: it was only seen when it was over."""
    over: Seconds | None = None
    tier: str
    """Word of the tier that it came from."""
    caused_by: LoadBy
    request: RequestId | None = None
    """The request that caused it."""
    why: str | None = None
    """The controller's reason."""
    result: LoadEnd | None = None
    after_stay: int | None = None
    """Number of the stay whose end made it necessary; None: none is known, such as for an adapter's first load."""


class ResidencyRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One stay of an adapter in a slot, from the begin of its load; told at its begin, and again at its end."""

    id: int
    """Number within one run of the picker."""
    pod: PodName
    adapter: AdapterName
    since: Seconds
    until: Seconds | None = None
    load: int | None = None
    """Number of the load that brought it; None: it was there when the picker first looked."""
    last_request: Seconds | None = None
    """When a request for it was last sent there, during the stay."""
    requests: int = 0
    why: LeftWhy | None = None
    evicted_by: AdapterName | None = None
    """Who got the slot."""
    evicted_by_load: int | None = None
    """Number of the load that did."""


class MarkKind(StrEnum):
    """What was done, or began or ended, that explains the rest."""

    PIN = "pin"
    UNPIN = "unpin"
    LOAD = "load"
    UNLOAD = "unload"
    MOVE = "move"
    RETIRE = "retire"
    ALERT = "alert"
    ALERT_OVER = "alert_over"


class MarkRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An operator's word, or an alert."""

    t: Seconds
    kind: MarkKind
    subject: str
    """The adapter, or the alert."""
    facts: dict[str, str | float] = {}


class OccupancyRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Slots in use, counted as adapters come and leave: what stays must add up to. One every ten seconds."""

    t: Seconds
    used: int
    """Now."""
    slot_seconds: Seconds
    """Slots in use x time since the picker began to watch."""


LedgerRow = RequestRow | LoadRow | ResidencyRow | MarkRow | OccupancyRow
