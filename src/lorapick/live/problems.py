"""Refusals of the admin API as RFC 9457 problem documents, and names that look like a wrong one.

In: status, reason, words. Out: a response. Not here: when something is refused.
"""

import difflib
from collections.abc import Mapping, Sequence

import msgspec
from starlette.responses import Response

from lorapick.wire.api import ApiReason, FieldProblem, Problem

_NEAREST_OF = 2000
"""Most names that a miss is compared with: comparing takes some 20 µs a name, and the picker waits."""
_LONGEST = 256
"""Letters of a wrong name that may yet be a slip of the pen."""


def nearest(name: str, names: Sequence[str]) -> tuple[str, ...]:
    """At most three of `names` that look like `name`, best first."""
    if len(name) > _LONGEST:
        return ()
    return tuple(difflib.get_close_matches(name, names[:_NEAREST_OF], n=3, cutoff=0.5))


def problem(
    status: int,
    reason: ApiReason,
    *,
    detail: str,
    near: tuple[str, ...] = (),
    errors: tuple[FieldProblem, ...] = (),
    headers: Mapping[str, str] | None = None,
) -> Response:
    """An RFC 9457 answer."""
    title = reason.replace("_", " ")
    body = Problem(
        type=f"urn:lorapick:problem:{reason}",
        title=title,
        status=status,
        detail=detail,
        reason=reason,
        nearest=near,
        errors=errors,
    )
    return Response(msgspec.json.encode(body), status, dict(headers or {}), media_type="application/problem+json")
