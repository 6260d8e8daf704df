"""The `traceparent` header of W3C Trace Context, both ways.

In: what a client sent, or ids. Out: who asks and whether it is traced; the header for whoever is asked next.
Not here: what is sampled (see `live.tracing`).
"""

import re
from typing import NamedTuple

HEADER = "traceparent"
_FORM = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.ASCII)
_SAMPLED = 1
_LONGEST = 512


class Parent(NamedTuple):
    """The span that caused a request."""

    trace_id: int
    span_id: int
    sampled: bool
    """Whether the caller records it."""


def read(header: str | None) -> Parent | None:
    """The caller's span; None when there is none, or the header is no good: then the trace begins here.

    Versions after 00 may have more parts, which are not looked at; ff is no version.
    """
    if header is None or len(header) > _LONGEST:
        return None
    match = _FORM.fullmatch(header.strip(" \t"))
    if match is None:
        return None
    version, trace_id, span_id, flags, more = match.groups()
    if version == "ff" or (version == "00" and more is not None):
        return None
    parent = Parent(int(trace_id, 16), int(span_id, 16), bool(int(flags, 16) & _SAMPLED))
    return parent if parent.trace_id and parent.span_id else None


def write(trace_id: int, span_id: int) -> str:
    """The header of a span that is recorded."""
    return f"00-{trace_id:032x}-{span_id:016x}-01"
