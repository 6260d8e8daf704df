"""Documents of the admin API whose JSON differs from the model's values, both ways.

In: model values. Out: structs that msgspec turns into JSON as the admin API shows it, and back (for `explain`).
Not here: HTTP (see `live.admin`), or documents that are already plain (see `live.publish`).

The model's `Tier` is a number, because it is a column's code; people get its word.
"""

from enum import StrEnum

import msgspec

from lorapick.model.disaggregation import SplitCosts
from lorapick.model.picks import Belief, Came, Explanation, PodVerdict, PrefillVerdict, Terms, Waited
from lorapick.model.placement import Side
from lorapick.model.pods import GpuSource
from lorapick.model.reasons import Reason
from lorapick.model.signals import SignalPoint
from lorapick.model.tiers import Evidence, Source
from lorapick.model.units import AdapterName, PodName, RequestId, Seconds, Tokens

TERMS = ("adapter", "kv", "queue", "gpu")
"""The terms of [R2.2] in the order in which people see them."""


class ApiReason(StrEnum):
    """Why the admin API refused a call, beside `model.reasons.Reason`."""

    NOT_FOUND = "not_found"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    PARAMETER_INVALID = "parameter_invalid"
    ADAPTER_UNKNOWN = "adapter_unknown"
    """The same word as in `model.reasons.Reason`, on purpose."""
    POD_UNKNOWN = "pod_unknown"
    DECISION_UNKNOWN = "decision_unknown"
    DECISION_NOT_KEPT = "decision_not_kept"
    NOT_IMPLEMENTED = "not_implemented"
    HOST_REFUSED = "host_refused"
    ORIGIN_REFUSED = "origin_refused"
    TOO_MANY_STREAMS = "too_many_streams"
    BODY_INVALID = "body_invalid"
    BODY_TOO_LARGE = "body_too_large"
    """These two are the same words as in `model.reasons.Reason`, on purpose."""
    NOT_JSON = "not_json"
    """The body says to be something else."""
    TOKEN_REQUIRED = "token_required"  # noqa: S105 - a word, no secret
    CHANGES_REFUSED = "changes_refused"
    """Nobody may change anything through this address."""
    ALIAS_UNKNOWN = "alias_unknown"
    ALIAS_REFUSED = "alias_refused"
    UNFIT = "unfit"
    """No pod that is meant can serve the adapter."""
    PINNED = "pinned"
    PIN_REFUSED = "pin_refused"
    NOT_THERE = "not_there"
    """A move from where the adapter is not."""
    NAME_TAKEN = "name_taken"
    IN_USE = "in_use"
    """An alias leads there."""
    PLACEMENT_OFF = "placement_off"
    PLAN_BUSY = "plan_busy"
    UNKNOWN_EVENT = "unknown_event"
    """This and the next two are those of `core.placement.triggers`."""
    MISSING_ATTRIBUTE = "missing_attribute"
    BAD_NAME = "bad_name"
    INTERNAL = "internal"


class FieldProblem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that is wrong with a body."""

    field: str = ""
    """Path such as `pin.replicas`; empty: the body as a whole."""
    value: str = ""
    """What stands there, shortened."""
    message: str
    remedy: str = ""


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An RFC 9457 problem document."""

    type: str
    title: str
    status: int
    detail: str
    reason: ApiReason
    nearest: tuple[str, ...] = ()
    """Known names that look like the one that was not found."""
    errors: tuple[FieldProblem, ...] = ()
    """Of a body, all that is wrong with it."""


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """One cell of the residency table; `tier` is the tier's word."""

    pod: PodName
    adapter: AdapterName
    tier: str
    since: Seconds
    source: Source
    in_flight: int = 0
    pinned: bool = False
    last_evidence: Seconds | None = None
    """When the pod, or an answer of it, last spoke of the adapter; None: never."""
    evidence: Evidence | None = None
    """What spoke of it then."""
    age_s: Seconds | None = None
    """How long the tier has been this one."""
    evidence_age_s: Seconds | None = None
    side: Side | None = None
    """`prefill` or `decode` in a fleet that splits requests; None: there is one side."""


class VerdictDocument(msgspec.Struct, frozen=True, kw_only=True):
    """One pod's part in a decision."""

    pod: PodName
    won: bool
    reason: Reason | None = None
    score: float | None = None
    terms: Terms | None = None
    contributions: dict[str, float | None] = {}
    """Term -> weight x value; None when the value is unknown and the rest of the score does not tell it."""
    scorers: dict[str, float] = {}
    """Of a scheduling profile: scorer -> value in [0, 1]; contributions have these names then."""
    tier: str | None = None
    source: Source | None = None
    queue_depth: float | None = None
    max_queue: int
    gpu_source: GpuSource = GpuSource.UNKNOWN
    pinned: bool = False
    silent: bool = False
    """The pod does not answer: of `circuit_open`, which says otherwise that the adapter failed to load."""
    since: Seconds | None = None
    """When the tier became this one; None: nobody ever spoke of the adapter there."""
    age_s: Seconds | None = None
    """For how long it had been this one when the decision was taken."""
    last_evidence: Seconds | None = None
    evidence: Evidence | None = None
    """What had last spoken of the adapter there by then."""
    evidence_age_s: Seconds | None = None
    """How long before the decision that was."""


class PrefillVerdictDocument(msgspec.Struct, frozen=True, kw_only=True):
    """What one pod would have cost as the one that prefills, in seconds; None throughout where it was no candidate."""

    pod: PodName
    chosen: bool = False
    reason: Reason | None = None
    """What kept it from the prefill; None: it was chosen, or nobody was to prefill."""
    paused: bool = False
    """Left alone for a while, since prefills failed there."""
    silent: bool = False
    """The pod does not answer."""
    only: bool = False
    """It only prefills."""
    tier: str | None = None
    queue_s: Seconds | None = None
    load_s: Seconds | None = None
    prompt_s: Seconds | None = None
    transfer_s: Seconds | None = None
    besides_s: Seconds | None = None
    counted_s: Seconds | None = None
    """All of these."""
    score: float | None = None
    """By policy, where pods were chosen each by itself."""


class ExplanationDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A decision with every pod's part in it, winner first."""

    request_id: RequestId
    t: Seconds
    model: str
    adapter: AdapterName | None = None
    policy: str
    weights: dict[str, float] = {}
    outcome: str
    reason: Reason | None = None
    verdicts: tuple[VerdictDocument, ...] = ()
    fallbacks: tuple[PodName, ...] = ()
    degraded: bool = False
    follows: PodName | None = None
    chosen_by: str | None = None
    told: str | None = None
    waited_s: Seconds | None = None
    course: tuple[Waited, ...] = ()
    """What it waited for at the picker, in order."""
    course_left_out: int = 0
    prefill: PodName | None = None
    """Pod that prefills for the winner; None: it does everything."""
    prefill_tier: str | None = None
    """Of the adapter there."""
    pair: SplitCosts | None = None
    """Expected seconds that were compared, of both pods and of the winner alone; None: no pair was asked for."""
    prefill_side: tuple[PrefillVerdictDocument, ...] = ()
    """Pods that may prefill: the chosen one, then by what they would have cost, then by name."""
    uncached_tokens: float | None = None
    """Of the prompt, that the winner had not cached, as estimated; None: unknown, or this fleet splits no requests."""
    least_uncached_tokens: Tokens | None = None
    """From how many on another pod prefills; None: something else decides."""
    unsplit: str | None = None
    """Why no other pod prefills: `few_tokens`, `unknown_length`, `dearer`, `nobody_prefills`; None: one does."""
    came: tuple[Came, ...] = ()
    """What came of the dispatch since, in order: of its prefill, and where it went on to."""
    words: tuple[str, ...] = ()
    """The same in plain sentences (see `wire.words`)."""


class History(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of /v1/history."""

    every: Seconds
    """Time between two points."""
    points: tuple[SignalPoint, ...]
    """Oldest first."""


def cell(belief: Belief, *, now: Seconds) -> Cell:
    """The belief with its tier as a word, and with its ages at `now`."""
    spoken = belief.last_evidence
    return Cell(
        pod=belief.pod,
        adapter=belief.adapter,
        tier=belief.tier.word,
        since=belief.since,
        source=belief.source,
        in_flight=belief.in_flight,
        pinned=belief.pinned,
        last_evidence=spoken,
        evidence=belief.evidence,
        age_s=_age(belief.since, now),
        evidence_age_s=None if spoken is None else _age(spoken, now),
        side=belief.side,
    )


def _age(since: Seconds, now: Seconds) -> Seconds:
    return round(max(0.0, now - since), 3)


def contributions(terms: Terms | None, weights: dict[str, float], *, score: float | None) -> dict[str, float | None]:
    """Weight x value by term, for the terms that have a weight.

    A single unknown value is what the score holds beyond the known ones: that is how the scorer counted it.
    """
    if terms is None:
        return {}
    parts: dict[str, float | None] = {}
    for term in TERMS:
        if term in weights:
            value = getattr(terms, term)
            parts[term] = None if value is None else weights[term] * value
    unknown = [term for term, part in parts.items() if part is None]
    if len(unknown) == 1 and score is not None:
        parts[unknown[0]] = score - sum(part for part in parts.values() if part is not None)
    return parts


def verdict_document(verdict: PodVerdict, weights: dict[str, float], *, now: Seconds) -> VerdictDocument:
    """One verdict of a decision at `now`, with its contributions added up for the reader, and ages."""
    since, spoken = verdict.since, verdict.last_evidence
    return VerdictDocument(
        pod=verdict.pod,
        won=verdict.won,
        reason=verdict.reason,
        score=verdict.score,
        terms=verdict.terms,
        contributions={name: weights.get(name, 1.0) * value for name, value in verdict.scorers.items()}
        or contributions(verdict.terms, weights, score=verdict.score),
        scorers=verdict.scorers,
        tier=None if verdict.tier is None else verdict.tier.word,
        source=verdict.source,
        queue_depth=verdict.queue_depth,
        max_queue=verdict.max_queue,
        gpu_source=verdict.gpu_source,
        pinned=verdict.pinned,
        silent=verdict.silent,
        since=since,
        age_s=None if since is None else _age(since, now),
        last_evidence=spoken,
        evidence=verdict.evidence,
        evidence_age_s=None if spoken is None else _age(spoken, now),
    )


def explanation_document(explanation: Explanation) -> ExplanationDocument:
    """The explanation as the admin API shows it, but for its words."""
    return ExplanationDocument(
        request_id=explanation.request_id,
        t=explanation.t,
        model=explanation.model,
        adapter=explanation.adapter,
        policy=explanation.policy,
        weights=explanation.weights,
        outcome=explanation.outcome,
        reason=explanation.reason,
        verdicts=tuple(
            verdict_document(verdict, explanation.weights, now=explanation.t) for verdict in explanation.verdicts
        ),
        fallbacks=explanation.fallbacks,
        degraded=explanation.degraded,
        follows=explanation.follows,
        told=explanation.told,
        waited_s=explanation.waited,
        chosen_by=explanation.chosen_by,
        course=explanation.course,
        course_left_out=explanation.course_left_out,
        prefill=explanation.prefill,
        prefill_tier=None if explanation.prefill_tier is None else explanation.prefill_tier.word,
        pair=explanation.pair,
        prefill_side=tuple(_prefill_document(verdict) for verdict in explanation.prefill_side),
        uncached_tokens=explanation.uncached_tokens,
        least_uncached_tokens=explanation.least_uncached_tokens,
        unsplit=explanation.unsplit,
        came=explanation.came,
    )


def _prefill_document(verdict: PrefillVerdict) -> PrefillVerdictDocument:
    return PrefillVerdictDocument(
        pod=verdict.pod,
        chosen=verdict.chosen,
        reason=verdict.reason,
        paused=verdict.paused,
        silent=verdict.silent,
        only=verdict.only,
        tier=None if verdict.tier is None else verdict.tier.word,
        queue_s=verdict.queue,
        load_s=verdict.load,
        prompt_s=verdict.prompt,
        transfer_s=verdict.transfer,
        besides_s=verdict.besides,
        counted_s=verdict.counted,
        score=verdict.score,
    )
