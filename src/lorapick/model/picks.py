"""Decisions and their explanations as values."""

from enum import StrEnum

import msgspec

from lorapick.model.disaggregation import SplitCosts
from lorapick.model.placement import Side
from lorapick.model.pods import GpuSource
from lorapick.model.reasons import Reason
from lorapick.model.tiers import Evidence, Source, Tier
from lorapick.model.units import AdapterName, PodName, Ratio, RequestId, Seconds, Tokens


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
    scorers: dict[str, float] = {}
    """Of a scheduling profile: what each scorer gave it, in [0, 1], before weights; by name."""
    tier: Tier | None
    source: Source | None
    queue_depth: float | None
    max_queue: int
    gpu_source: GpuSource
    pinned: bool = False
    silent: bool = False
    """Of `circuit_open`: whether the pod does not answer; else the adapter failed to load, there or on several pods."""
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


class What(StrEnum):
    """What can come of a dispatch after it was decided."""

    PREFILLED = "prefilled"
    """The pod that prefilled did it, and the pod that decodes says so."""
    OVER = "over"
    """The prefill must be over, since an answer came; nobody said how it went."""
    FAILED = "failed"
    """The pod that decodes says that it had to prefill."""
    LOST = "lost"
    """The pod that was prefilling went away, or its process is another one."""
    OVERDUE = "overdue"
    """Nobody said in time that the prefill was over."""
    LEFT = "left"
    """The request ended before its prefill was known to be over."""
    MOVED = "moved"
    """The pod that was to decode is lost: the slot is reserved on this fallback, to which the gateway goes on."""
    NOT_MOVED = "not_moved"
    """The same, and no slot could be reserved anywhere."""
    SERVED_BY = "served_by"
    """The gateway says that this pod serves, and not the one that was picked."""
    WENT = "went"
    """It was only observed, and was sent to this pod as before."""


OF_PREFILL = (What.PREFILLED, What.OVER, What.FAILED, What.LOST, What.OVERDUE, What.LEFT)
"""Of these, what comes of the prefill."""


class Came(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One thing that came of a dispatch."""

    t: Seconds
    what: What
    pod: PodName | None
    """Pod that prefilled, or (`moved`, `served_by`) that decodes now; None: no pod."""
    why: str | None = None
    """As a word, or in words; None: nobody said, or there is nothing to say."""


class PrefillVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """What one pod would have cost as the one that prefills, rebuilt on demand. Pods that only decode have none."""

    pod: PodName
    chosen: bool
    reason: Reason | None
    """What kept it from the prefill; None: it was chosen, or it could have done it and nobody was to."""
    tier: Tier | None
    """Of the adapter there; None for the base model."""
    queue: Seconds | None = None
    """For prompts that were being prefilled there. None, as with all that follow: it was no candidate, or pods were
    not compared by what they cost."""
    load: Seconds | None = None
    """Until the adapter is there."""
    prompt: Seconds | None = None
    """For the tokens of this prompt that it had not cached."""
    transfer: Seconds | None = None
    """Of the KV to the pod that decodes."""
    besides: Seconds | None = None
    """What its load does to others there."""
    score: float | None = None
    """By policy, where each pod was chosen by itself."""
    paused: bool = False
    """Whether it is left alone for a while, since prefills failed there."""
    silent: bool = False
    """As in `PodVerdict`."""
    only: bool = False
    """Whether it only prefills, so that it could not have decoded."""

    @property
    def counted(self) -> Seconds | None:
        """All of it."""
        parts = [self.queue, self.load, self.prompt, self.transfer, self.besides]
        known = [part for part in parts if part is not None]
        return sum(known) if len(known) == len(parts) else None


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """A decision with every pod's part in it, winner first, then by score, then by name."""

    request_id: RequestId
    t: Seconds
    model: str
    adapter: AdapterName | None
    policy: str
    weights: dict[str, float]
    outcome: str
    """`dispatched`, `held` or `rejected`; `observed`: all of it is what would have been."""
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
    prefill_side: tuple[PrefillVerdict, ...] = ()
    """Pods that prefill, the chosen one first, then by what they cost, then by name; none where nobody was asked."""
    uncached_tokens: float | None = None
    """Prompt tokens that the winner had not cached, as estimated; None: the length is unknown, nobody won, or this
    fleet splits no requests."""
    least_uncached_tokens: Tokens | None = None
    """From how many of those on another pod prefills; None: as above, or something else decides."""
    unsplit: str | None = None
    """Why no other pod prefills: `few_tokens`, `unknown_length`, `dearer`, `nobody_prefills`. None: one does, or this
    fleet never splits."""
    came: tuple[Came, ...] = ()
    """What came of it since, in order."""


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
    side: Side | None = None
    """Of a fleet that splits requests, the pod's side; None: there is one side."""
