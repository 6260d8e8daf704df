"""One vocabulary for every loser, hold and rejection.

The same word appears in explanations, metric labels, the response header `x-lorapick-reason`, logs and docs.
"""

from enum import StrEnum


class Reason(StrEnum):
    """Why a pod lost, a request waits, or a request was refused."""

    NOT_READY = "not_ready"
    DRAINING = "draining"
    WRONG_BASE = "wrong_base"
    RANK_TOO_LARGE = "rank_too_large"
    WRONG_ROLE = "wrong_role"
    STALE = "stale"
    PRESSURE_SOFT = "pressure_soft"
    PRESSURE_HARD = "pressure_hard"
    PRESSURE_CRITICAL = "pressure_critical"
    QUEUE_FULL = "queue_full"
    SLOTS_FULL = "slots_full"
    CIRCUIT_OPEN = "circuit_open"
    NOT_IN_SUBSET = "not_in_subset"
    LABEL_MISMATCH = "label_mismatch"
    RESERVED = "reserved"
    """The pod is reserved for adapters that are pinned there."""
    FILTERED = "filtered"
    """A filter of the scheduling profile left it out."""
    ADAPTER_UNKNOWN = "adapter_unknown"
    ADAPTER_UNREGISTERED = "adapter_unregistered"
    PROBATION = "probation"
    LOAD_BUDGET = "load_budget"
    OUTSCORED = "outscored"
    LOST_TIE = "lost_tie"
    HELD_FOR_LOAD = "held_for_load"
    HELD_FOR_SLOT = "held_for_slot"
    HELD_FOR_CLAIM = "held_for_claim"
    """Other pickers are asked whether one of them loads the adapter already."""
    HELD_BACK = "held_back"
    """The pods together are as busy as its priority may make them."""
    SHED = "shed"
    DEADLINE = "deadline"
    NO_POD = "no_pod"
    BODY_INVALID = "body_invalid"
    BODY_TOO_LARGE = "body_too_large"
    PATH_REFUSED = "path_refused"
    """The path manages one pod and is not served through a gateway."""


STATUS: dict[Reason, int] = {
    Reason.ADAPTER_UNKNOWN: 404,
    Reason.BODY_INVALID: 400,
    Reason.BODY_TOO_LARGE: 413,
    Reason.PATH_REFUSED: 403,
    Reason.QUEUE_FULL: 429,
    Reason.SLOTS_FULL: 429,
    Reason.PRESSURE_SOFT: 429,
    Reason.PRESSURE_HARD: 429,
    Reason.LOAD_BUDGET: 429,
    Reason.PROBATION: 429,
    Reason.SHED: 429,
    Reason.PRESSURE_CRITICAL: 503,
    Reason.DEADLINE: 503,
    Reason.NO_POD: 503,
}
"""HTTP status of a rejection by its reason (SPEC, "status"). Any other reason ends as NO_POD, 503."""


def status_of(reason: Reason) -> int:
    """HTTP status that a rejection for `reason` gets."""
    return STATUS.get(reason, 503)
