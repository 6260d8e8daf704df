"""Everything that can happen, in the past tense. State changes only when one of these is applied.

Each event carries `t` (seconds on the driver's monotonic clock) and `id` (a per-run counter of the driver).
The event log is one JSON object per line, tagged by `type` (see docs/interfaces.md).
"""

from enum import StrEnum

import msgspec

from lorapick.model.adapters import Adapter, Alias, PinSpec
from lorapick.model.peers import ModeWord
from lorapick.model.placement import AdapterFacts, DemandBin, Side
from lorapick.model.pods import Pod, PodReport, SilentWhy
from lorapick.model.reasons import Reason
from lorapick.model.requests import Outcome, Request
from lorapick.model.settings import Settings
from lorapick.model.tiers import Tier
from lorapick.model.units import AdapterName, BlockId, Bytes, PodName, Ratio, RequestId, Seconds, Tokens


class By(StrEnum):
    """Who caused a load or an eviction."""

    CONTROLLER = "controller"
    ENGINE = "engine"
    INFERRED = "inferred"


class Event(msgspec.Struct, frozen=True, kw_only=True, tag=True, gc=False):
    """Base of all events."""

    t: Seconds
    id: int


class PodAppeared(Event, frozen=True, kw_only=True):
    """Discovery found a pod."""

    pod: Pod


class PodChanged(Event, frozen=True, kw_only=True):
    """Discovery says something new of a known pod; same name."""

    pod: Pod


class PodDraining(Event, frozen=True, kw_only=True):
    """The pod takes no new requests and ends those it has."""

    pod: PodName


class PodGone(Event, frozen=True, kw_only=True):
    """Discovery no longer lists the pod."""

    pod: PodName


class PodReported(Event, frozen=True, kw_only=True):
    """One scrape succeeded."""

    pod: PodName
    report: PodReport
    since: Seconds | None = None
    """When the scrape was sent; dispatches after it may not be in the report. None: at `t`."""
    every: Seconds | None = None
    """The scraper's interval now, if it is not as configured; a report is good for three, or for `stale_after`."""


class PodSilent(Event, frozen=True, kw_only=True):
    """One scrape failed."""

    pod: PodName
    why: SilentWhy
    detail: str = ""


class RequestArrived(Event, frozen=True, kw_only=True):
    """A request wants a pod. Answered by exactly one of Dispatch, Hold (then Dispatch or Reject later), Reject."""

    request: Request


class RequestRefused(Event, frozen=True, kw_only=True):
    """A transport refused a request before anyone was asked for a pod (a bad body, say): arrived and rejected."""

    reason: Reason
    status: int


class RequestDispatched(Event, frozen=True, kw_only=True):
    """Confirms who serves the request; another pod than picked means a fallback served."""

    request_id: RequestId
    pod: PodName


class ResponseStarted(Event, frozen=True, kw_only=True):
    """Response headers came from the pod."""

    request_id: RequestId
    status: int


class BodyStarted(Event, frozen=True, kw_only=True):
    """The first bytes of an answer's body came; told only where bodies are looked at (`server.observe: bodies`)."""

    request_id: RequestId


class PrefillEnded(Event, frozen=True, kw_only=True):
    """A disaggregated request is at the pod that decodes now, its KV with it unless the prefill failed."""

    request_id: RequestId
    ok: bool = True
    """False: it failed, and the pod that decodes does the prefill itself."""
    why: str | None = None
    """What the pod that decodes says of a failure, as a word (docs/sidecar.md), cut short. None: nothing."""


class RequestEnded(Event, frozen=True, kw_only=True):
    """The request left, in whatever way. Token counts are None unless bodies are observed."""

    request_id: RequestId
    outcome: Outcome
    status: int | None = None
    prompt_tokens: Tokens | None = None
    cached_tokens: Tokens | None = None
    output_tokens: Tokens | None = None


class LoadStarted(Event, frozen=True, kw_only=True):
    """A pod began to bring adapters into GPU slots."""

    pod: PodName
    adapters: tuple[AdapterName, ...]
    by: By
    tier_from: Tier | None = None


class LoadSucceeded(Event, frozen=True, kw_only=True):
    """A load ended well."""

    pod: PodName
    adapter: AdapterName
    by: By
    seconds: Seconds | None = None
    size: Bytes | None = None


class LoadFailed(Event, frozen=True, kw_only=True):
    """A load ended badly."""

    pod: PodName
    adapter: AdapterName
    by: By
    why: str
    lasting: bool = False
    """Asking again will come to the same until somebody changes something: no such path, a rank above the limit."""


class Evicted(Event, frozen=True, kw_only=True):
    """The engine said that an adapter left a level; `tier` is where it is now."""

    pod: PodName
    adapter: AdapterName
    tier: Tier
    by: By = By.ENGINE


class Unloaded(Event, frozen=True, kw_only=True):
    """An unload that we asked for was agreed to. On vLLM this frees nothing."""

    pod: PodName
    adapter: AdapterName


class UnloadFailed(Event, frozen=True, kw_only=True):
    """An unload that we asked for did not happen, as far as we know; the adapter is where it was."""

    pod: PodName
    adapter: AdapterName
    why: str


class Registered(Event, frozen=True, kw_only=True):
    """A pod knows a name that we told it. On vLLM the adapter has come into a slot too, unless it was known before."""

    pod: PodName
    adapter: AdapterName
    known_before: bool = False


class RegisterFailed(Event, frozen=True, kw_only=True):
    """A pod did not take a name; `lasting` as of a `LoadFailed`."""

    pod: PodName
    adapter: AdapterName
    why: str
    lasting: bool = False


class Touched(Event, frozen=True, kw_only=True):
    """A pod answered our request of one token, so the adapter is the one it used last."""

    pod: PodName
    adapter: AdapterName


class TouchFailed(Event, frozen=True, kw_only=True):
    """A touch came to nothing, as far as we know."""

    pod: PodName
    adapter: AdapterName
    why: str


class PeerReported(Event, frozen=True, kw_only=True):
    """Marks of another picker of the same fleet (`model.peers`): all that it has now, in place of those before."""

    peer: str
    loads: dict[PodName, tuple[AdapterName, ...]] = {}
    in_flight: dict[PodName, int] = {}
    pins: dict[AdapterName, PinSpec] = {}
    mode: ModeWord | None = None


class LoadClaimed(Event, frozen=True, kw_only=True):
    """The shared store's answer to a `ClaimLoad`: the load is ours (`granted`), or that of `owner`, on its `pod`."""

    claim: int
    adapter: AdapterName
    side: Side
    granted: bool
    owner: str
    pod: PodName


class PeersReached(Event, frozen=True, kw_only=True):
    """The store that pickers share can be reached, or cannot any more, and `why`."""

    up: bool
    why: str = ""


class PlacementComputed(Event, frozen=True, kw_only=True):
    """A solver's answer: which pods should hold each adapter."""

    plan: dict[AdapterName, tuple[PodName, ...]]
    version: int


class KvStored(Event, frozen=True, kw_only=True):
    """A pod stored KV blocks of one adapter (None: the base model)."""

    pod: PodName
    adapter: AdapterName | None
    blocks: tuple[BlockId, ...]


class KvRemoved(Event, frozen=True, kw_only=True):
    """A pod dropped KV blocks."""

    pod: PodName
    blocks: tuple[BlockId, ...]


class KvCleared(Event, frozen=True, kw_only=True):
    """A pod dropped its whole prefix cache."""

    pod: PodName


class TriggerFired(Event, frozen=True, kw_only=True):
    """A named event from outside, such as `document.uploaded` or `tenant.login`."""

    name: str
    attributes: dict[str, str] = {}


class PinSet(Event, frozen=True, kw_only=True):
    """The operator wants an adapter resident."""

    adapter: AdapterName
    pin: PinSpec


class PinCleared(Event, frozen=True, kw_only=True):
    """The operator no longer insists."""

    adapter: AdapterName


class LoadAsked(Event, frozen=True, kw_only=True):
    """The operator wants an adapter loaded: on each of `pods`, or on `replicas` pods, of those that `selector` fits."""

    adapter: AdapterName
    pods: tuple[PodName, ...] = ()
    replicas: int = 1
    selector: dict[str, str] = {}
    lasts: Seconds | None = None
    """For how long it is kept there; None: it is loaded once."""


class UnloadAsked(Event, frozen=True, kw_only=True):
    """The operator wants an adapter away from `pods` (none named: from all)."""

    adapter: AdapterName
    pods: tuple[PodName, ...] = ()


class MoveAsked(Event, frozen=True, kw_only=True):
    """The operator wants an adapter on `target` instead of `source`: loaded there first, then unloaded here."""

    adapter: AdapterName
    source: PodName
    target: PodName


class AliasSet(Event, frozen=True, kw_only=True):
    """An alias leads to these adapters from now on."""

    alias: Alias


class AliasCleared(Event, frozen=True, kw_only=True):
    """There is no such alias any more."""

    name: str


class AdapterChecked(Event, frozen=True, kw_only=True):
    """Somebody looked at an adapter's files. With a problem, nobody loads it until it is gone."""

    adapter: AdapterName
    problem: str | None = None
    facts: AdapterFacts = AdapterFacts()


class DemandRecalled(Event, frozen=True, kw_only=True):
    """Requests of earlier times, as they were kept; of many bins the latest first, before one of ours is over."""

    bins: tuple[DemandBin, ...]


class AdapterDeclared(Event, frozen=True, kw_only=True):
    """The operator named an adapter."""

    adapter: Adapter


class AdapterChanged(Event, frozen=True, kw_only=True):
    """The operator changed what is known of an adapter; same name."""

    adapter: Adapter


class AdapterRetired(Event, frozen=True, kw_only=True):
    """The operator withdrew an adapter."""

    adapter: AdapterName


class ConfigChanged(Event, frozen=True, kw_only=True):
    """New settings are in force."""

    settings: Settings


class LeadershipChanged(Event, frozen=True, kw_only=True):
    """This picker became, or ceased to be, the one of several that tells pods what to load."""

    leads: bool


class Ticked(Event, frozen=True, kw_only=True):
    """The controller's clock. Holds whose time is up end here."""

    wall: Seconds | None = None
    """Unix time; None in simulations that need none."""


class GpuReported(Event, frozen=True, kw_only=True):
    """A DCGM exporter named a pod's GPU utilisation."""

    pod: PodName
    utilization: Ratio


AnyEvent = (
    PodAppeared | PodChanged | PodDraining | PodGone | PodReported | PodSilent | RequestArrived | RequestRefused
    | RequestDispatched | ResponseStarted | BodyStarted | PrefillEnded | RequestEnded | LoadStarted | LoadSucceeded
    | LoadFailed | Evicted | Unloaded | UnloadFailed | Registered | RegisterFailed | Touched | TouchFailed
    | PeerReported | LoadClaimed | PeersReached | PlacementComputed | KvStored | KvRemoved | KvCleared | TriggerFired
    | PinSet | PinCleared | LoadAsked | UnloadAsked | MoveAsked | AliasSet | AliasCleared | AdapterChecked
    | DemandRecalled | AdapterDeclared | AdapterChanged | AdapterRetired | ConfigChanged | LeadershipChanged | Ticked
    | GpuReported
)  # fmt: skip
