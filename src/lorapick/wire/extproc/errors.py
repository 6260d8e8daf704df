"""Answers that the picker gives itself: errors in OpenAI's shape.

In: a status, a reason, words. Out: the HTTP status, headers and body of an immediate response.
Not here: why a request is refused (`core`, `session.py`).
"""

from math import ceil

import msgspec

from lorapick.model.reasons import Reason
from lorapick.model.units import Seconds

REASON = "x-lorapick-reason"
DROPPED = "x-llm-d-request-dropped-reason"
"""Read by clients and gateways of llm-d; set where its own vocabulary has a word."""

_TYPES = {
    400: "BadRequestError",
    404: "NotFoundError",
    413: "RequestTooLargeError",
    429: "RateLimitError",
    503: "ServiceUnavailableError",
}
"""`type` as vLLM writes it."""

_SATURATED = "rejected-saturated"
_DROPPED_WORDS = {
    Reason.QUEUE_FULL: _SATURATED,
    Reason.SLOTS_FULL: _SATURATED,
    Reason.PRESSURE_SOFT: _SATURATED,
    Reason.PRESSURE_HARD: _SATURATED,
    Reason.PRESSURE_CRITICAL: _SATURATED,
    Reason.LOAD_BUDGET: _SATURATED,
    Reason.SHED: _SATURATED,
    Reason.DEADLINE: "rejected-ttl-expired",
    Reason.NO_POD: "no-endpoints",
}
_PARAMS = {Reason.ADAPTER_UNKNOWN: "model", Reason.ADAPTER_UNREGISTERED: "model"}


def error_body(status: int, message: str, *, param: str | None = None) -> bytes:
    """JSON of one error, in the shape that OpenAI's and vLLM's clients read."""
    kind = _TYPES.get(status, "InternalServerError" if status >= 500 else "BadRequestError")
    return msgspec.json.encode({"error": {"message": message, "type": kind, "param": param, "code": status}})


def param_of(reason: Reason) -> str | None:
    """The request field that a reason is about; None: none in particular."""
    return _PARAMS.get(reason)


def error_headers(reason: Reason, retry_after: Seconds | None) -> tuple[tuple[str, str], ...]:
    """Headers of a refusal. `retry-after` is whole seconds, rounded up, at least 1."""
    headers = [("content-type", "application/json"), (REASON, reason.value)]
    if retry_after is not None:
        headers.append(("retry-after", str(max(1, ceil(retry_after)))))
    if word := _DROPPED_WORDS.get(reason):
        headers.append((DROPPED, word))
    return tuple(headers)
