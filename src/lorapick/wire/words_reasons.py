"""Why a pod did not get a request, and what became of the request: a sentence for each reason.

In: reasons, verdicts. Out: parts of sentences. Not here: the decision as a whole (see `wire.words`).
"""

from collections.abc import Mapping

from lorapick.model.reasons import Reason
from lorapick.wire.api import PrefillVerdictDocument, VerdictDocument

KEPT_OUT: Mapping[Reason, str] = {
    Reason.NOT_READY: "the pod is not ready yet: what it should have is still being loaded",
    Reason.DRAINING: "the pod is draining: it ends what it has and takes nothing new",
    Reason.WRONG_BASE: "another base model runs there",
    Reason.RANK_TOO_LARGE: "the adapter's rank is larger than the pod takes (max_lora_rank)",
    Reason.WRONG_ROLE: "the pod only does prefill",
    Reason.STALE: "nothing has been heard from the pod for too long (scrape.stale_after)",
    Reason.PRESSURE_SOFT: "its memory is getting short, so no adapter is loaded there now",
    Reason.PRESSURE_HARD: "its memory is short, so adapters leave and none is loaded there now",
    Reason.PRESSURE_CRITICAL: "its memory is all but full, so nobody is sent there now",
    Reason.QUEUE_FULL: "as many requests wait there as may (max_queue)",
    Reason.SLOTS_FULL: "every adapter slot is in use or kept, so there is no room for another adapter",
    Reason.CIRCUIT_OPEN: "the pod does not answer, or failed to load this adapter a short while ago",
    Reason.NOT_IN_SUBSET: "the gateway does not allow it for this request",
    Reason.LABEL_MISMATCH: "its labels are not those that the request needs",
    Reason.RESERVED: "the pod is reserved for adapters that are pinned there",
    Reason.FILTERED: "a filter of the scheduling profile left it out",
    Reason.ADAPTER_UNKNOWN: "nobody there knows such a model",
    Reason.ADAPTER_UNREGISTERED: "the pod does not know the adapter and would answer 404",
    Reason.PROBATION: "the adapter is on probation, and such adapters have used up their share of slots",
    Reason.LOAD_BUDGET: "as many adapters are being loaded as may be at once",
    Reason.OUTSCORED: "the score was lower there",
    Reason.LOST_TIE: "the score was as good there, and the tie went to another",
    Reason.HELD_FOR_LOAD: "another pod was loading the adapter already; a second load would only have cost others time",
    Reason.HELD_FOR_SLOT: "waiting for a place where the adapter is was cheaper than loading it there",
    Reason.HELD_FOR_CLAIM: "another picker might have been loading the adapter elsewhere",
    Reason.HELD_BACK: "the pods together are as busy as its priority may make them (admission.ceilings)",
    Reason.SHED: "no pod was tried: too many requests wait already, or the pods are saturated",
    Reason.DEADLINE: "the request's time was up before there was room",
    Reason.NO_POD: "it could not serve the request",
    Reason.BODY_INVALID: "no pod was tried: the request's body cannot be read",
    Reason.BODY_TOO_LARGE: "no pod was tried: the request's body is too large",
    Reason.PATH_REFUSED: "no pod was tried: the path manages a single pod",
}
"""Why a pod did not get the request."""

_OF_ALL: Mapping[Reason, str] = {
    Reason.ADAPTER_UNKNOWN: "no pod and no configuration knows a model of this name",
    Reason.BODY_INVALID: "its body cannot be read",
    Reason.BODY_TOO_LARGE: "its body is larger than server.max_body",
    Reason.PATH_REFUSED: "its path manages a single pod and is not served through a gateway",
    Reason.SHED: "too many requests wait already, or its priority is below 0 and the pods are full or busy",
    Reason.DEADLINE: "its time was up before any pod had room",
    Reason.NO_POD: "no pod can serve it, and waiting would not help",
    Reason.HELD_FOR_LOAD: "the adapter is being loaded already, and one load serves all who wait for it",
    Reason.HELD_FOR_SLOT: "no pod has room for it now, and one soon may",
    Reason.HELD_FOR_CLAIM: "no pod has the adapter, and other pickers of the fleet are asked whether one loads it",
}
"""What became of the request as a whole, where that is another sentence than for one pod."""
_SILENT = "the pod does not answer"
_FAILED_TO_LOAD = "the adapter failed to load a short while ago, there or on several pods"
_PAUSED = "prefills failed there one after the other, so it is left alone for a while"


def of_request(reason: Reason) -> str:
    """Why a request waits or is refused: what kept the pod from it that came nearest to serving it."""
    nearest = f"of all pods the nearest to serving it did not, since {KEPT_OUT[reason]}"
    return _OF_ALL.get(reason, nearest)


def of_pod(verdict: VerdictDocument | PrefillVerdictDocument) -> str:
    """What kept one pod from it; only of verdicts that have a reason."""
    assert verdict.reason is not None
    if verdict.reason is not Reason.CIRCUIT_OPEN:
        return KEPT_OUT[verdict.reason]
    if verdict.silent:
        return _SILENT
    return _PAUSED if isinstance(verdict, PrefillVerdictDocument) and verdict.paused else _FAILED_TO_LOAD
