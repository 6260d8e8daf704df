"""Decisions and their explanations as values."""

import msgspec

from lorapick.model.disaggregation import SplitCosts
from lorapick.model.pods import GpuSource
from lorapick.model.reasons import Reason
from lorapick.model.tiers import Evidence, Source, Tier
from lorapick.model.units import AdapterName, PodName, Ratio, RequestId, Seconds


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """The four weighted terms of [R2.2], before weights, for one pod. NaN never leaves the core: unknown is None."""

    adapter: float
    kv: Ratio
    queue: Ratio
    gpu: Ratio | None


class Pick(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One decision. `pod` is None when every pod was vetoed; then `reason` says what the request gets."""

    request_id: RequestId
    adapter: AdapterName | None
    """None: the base model."""
    pod: PodName | None
    score: float | None
    tier: Tier | None
    """Tier of the adapter on the winner as believed at the decision; None for the base model."""
    fallbacks: tuple[PodName, ...] = ()
    reason: Reason | None = None
    follows: PodName | None = None
    """The pod whose load this request follows: it waits for it, or was sent after it whatever others scored."""
    policy: str = "weighted"
    version: int = 0
    """State version the decision was taken on."""
    degraded: bool = False
    """Taken among pods with stale reports, because there was no other, or after a scoring error."""
    prefill: PodName | None = None
    """Pod that prefills for `pod`; None: not disaggregated."""
    prefill_tier: Tier | None = None
    """Tier of the adapter there, as believed at the decision."""
    pair: SplitCosts | None = None
    """What the pair was chosen by; None: nobody asked for a pair."""


class PodVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """One pod's part in a decision, rebuilt on demand."""

    pod: PodName
    won: bool
    reason: Reason | None
    """What cost it the request; None for the winner."""
    score: float | None
    """None when a filter removed it before scoring."""
    terms: Terms | None
    tier: Tier | None
    source: Source | None
    queue_depth: float | None
    max_queue: int
    gpu_source: GpuSource
    pinned: bool = False
    since: Seconds | None = None
    """When the tier became this one; None: nobody ever spoke of the adapter there."""
    last_evidence: Seconds | None = None
    """When the pod, or an answer of it, had last spoken of the adapter by then; None: never."""
    evidence: Evidence | None = None
    """What spoke of it then."""


class Waited(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One decision to let a request wait at the picker."""

    t: Seconds
    reason: Reason
    """`held_for_load` or `held_for_slot`."""
    follows: PodName | None = None
    """The pod whose load it waited for; None: it waited for a place."""
    because: Reason | None = None
    """Of a wait for a place, what kept the request from a pod that might soon have room."""
    until: Seconds | None = None
    """When it would have been decided for good."""


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """A decision with every pod's part in it, winner first, then by score, then by name."""

    request_id: RequestId
    t: Seconds
    model: str
    adapter: AdapterName | None
    policy: str
    weights: dict[str, float]
    outcome: str
    """`dispatched`, `held` or `rejected`."""
    reason: Reason | None
    verdicts: tuple[PodVerdict, ...]
    fallbacks: tuple[PodName, ...] = ()
    degraded: bool = False
    follows: PodName | None = None
    """The pod whose load the request waits for or was sent after; None: it follows none."""
    chosen_by: str | None = None
    """What decided: `score`, `draw` (among equal scores), `session` (the last pod of its session, among equal
    holders), `load` (it follows one). None: nobody won."""
    told: str | None = None
    """What a refused client was told; None: it was not refused."""
    waited: Seconds | None = None
    """For how long it had waited at the picker by then; None: it had not."""
    course: tuple[Waited, ...] = ()
    """What it waited for, in order, this decision included when it is one to wait."""
    course_left_out: int = 0
    """Waits in the middle of the course that are not kept."""
    prefill: PodName | None = None
    """Pod that prefills for the winner; None: it does everything."""
    prefill_tier: Tier | None = None
    pair: SplitCosts | None = None
    """Seconds that were compared; None: nobody asked for a pair."""


class Belief(msgspec.Struct, frozen=True, kw_only=True):
    """One cell of the residency table, for people and the admin API."""

    pod: PodName
    adapter: AdapterName
    tier: Tier
    since: Seconds
    source: Source
    in_flight: int = 0
    pinned: bool = False
    last_evidence: Seconds | None = None
    """When the pod, or an answer of it, last spoke of this adapter; None: never."""
    evidence: Evidence | None = None
    """What spoke of it then."""
