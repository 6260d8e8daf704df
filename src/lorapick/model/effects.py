"""Everything a decision can ask for, in the imperative.

Drivers perform these; what takes time comes back as an event.
"""

import msgspec

from lorapick.model.picks import Pick
from lorapick.model.placement import DemandBin, PlacementProblem, Side
from lorapick.model.reasons import Reason
from lorapick.model.requests import Target, Wording
from lorapick.model.units import AdapterName, PodName, RequestId, Seconds


class Effect(msgspec.Struct, frozen=True, kw_only=True, tag=True, gc=False):
    """Base of all effects; `cause` is the id of the event that led to it.

    Values cannot refer to themselves, so the garbage collector need not look at them (`gc=False`, here and elsewhere).
    """

    cause: int


class Dispatch(Effect, frozen=True, kw_only=True):
    """Send the request to `target`; on connect failure to the fallbacks in order.

    Of a disaggregated request `target` is the pod that decodes: its sidecar asks `prefill` first.
    """

    request_id: RequestId
    target: Target
    fallbacks: tuple[Target, ...]
    pick: Pick
    model: str | None = None
    """The name to ask the pod for, when it differs from what the client wrote (alias); None: unchanged."""
    prefill: Target | None = None
    """Pod that prefills; None: not disaggregated."""
    wording: Wording | None = None
    """How these pods are asked for the adapter; None: by name. Told by drivers, who know paths; the core knows none."""
    would: Pick | None = None
    """Of a request that is only observed, what would have been decided; None: this is decided. After a `PassOn` it
    says where the gateway has sent the request."""


class PassOn(Effect, frozen=True, kw_only=True):
    """Send the request on and name no pod: it is only observed, and the gateway chooses as before."""

    request_id: RequestId
    pick: Pick
    """What would have been decided."""
    model: str | None = None
    """The name to ask the pod for, when it differs from what the client wrote (alias); None: unchanged."""


class Hold(Effect, frozen=True, kw_only=True):
    """Keep the request; a later Dispatch or Reject of the same id ends it, at the latest at `until`."""

    request_id: RequestId
    until: Seconds
    reason: Reason
    pick: Pick


class Reject(Effect, frozen=True, kw_only=True):
    """Answer the client ourselves."""

    request_id: RequestId
    status: int
    reason: Reason
    message: str
    retry_after: Seconds | None = None
    pick: Pick | None = None


Answer = Dispatch | PassOn | Reject
"""What ends the wait of a request that arrived: exactly one of these."""


class Load(Effect, frozen=True, kw_only=True):
    """Bring adapters into GPU slots of a pod. From the guard only."""

    pod: PodName
    adapters: tuple[AdapterName, ...]
    why: str


class Unload(Effect, frozen=True, kw_only=True):
    """Withdraw an adapter from a pod. From the guard only."""

    pod: PodName
    adapter: AdapterName
    why: str


class Register(Effect, frozen=True, kw_only=True):
    """Make an adapter's name known to a pod. From the guard only."""

    pod: PodName
    adapter: AdapterName


class Touch(Effect, frozen=True, kw_only=True):
    """Use an adapter with one token, so that the engine's LRU keeps it. From the guard only."""

    pod: PodName
    adapter: AdapterName


class Solve(Effect, frozen=True, kw_only=True):
    """Ask the solver; its answer comes back as a PlacementComputed of the problem's version."""

    problem: PlacementProblem


class KeepDemand(Effect, frozen=True, kw_only=True):
    """A bin of time is over: keep what was asked for in it."""

    bins: tuple[DemandBin, ...]


class ClaimLoad(Effect, frozen=True, kw_only=True):
    """Ask the store that pickers share whether we may load an adapter that no pod of a side has; see `LoadClaimed`.

    Asked again with the same number it only says another pod, and is not answered by anybody else's claim.
    """

    claim: int
    """Counts up; the answer repeats it."""
    adapter: AdapterName
    side: Side
    pod: PodName
    """Where it will be loaded."""


class ReleaseClaim(Effect, frozen=True, kw_only=True):
    """The load is over, or came to nothing: others may claim it."""

    adapter: AdapterName
    side: Side


class Raise(Effect, frozen=True, kw_only=True):
    """An alert begins."""

    alert: str
    facts: dict[str, str | float]


class Clear(Effect, frozen=True, kw_only=True):
    """An alert ends."""

    alert: str
    facts: dict[str, str | float]


LOAD_FAILED = "load_failed"
"""Kind of the notes of loads that failed, however that is known."""
LOAD_REFUSED = "load_refused"
"""Kind of the notes that the guard refuses a load, when that or its reason is news."""
PREFILL_FAILED = "prefill_failed"
"""Kind of the notes that a prefill on another pod did not come to a good end."""
RESERVATION_MOVED = "reservation_moved"
"""Kind of the notes that a slot is reserved on a fallback, or is not, since the pod that was to decode is lost."""
PRESSURE_CHANGED = "pressure"
"""Kind of the notes that a pod's pressure tier is another one."""


class Note(Effect, frozen=True, kw_only=True):
    """What a log line would have said; drivers print it."""

    kind: str
    facts: dict[str, str | float]
    quiet: bool = False
    """One of many alike: it is there to be counted, and not to be printed. The next that is printed says how many
    were not (`untold`)."""


AnyEffect = (
    Dispatch | PassOn | Hold | Reject | Load | Unload | Register | Touch | Solve | KeepDemand | ClaimLoad | ReleaseClaim
    | Raise | Clear | Note
)  # fmt: skip
