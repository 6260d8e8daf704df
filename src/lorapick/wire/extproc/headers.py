"""Request headers: what routing reads of them, and which of them clients may not set.

In: the headers of one `request_headers` message and its metadata. Out: an `Intake`; a subset hint.
Header names are compared as they come: Envoy lower-cases them. Where a header has two names, the newer
(`x-llm-d-*`) wins over the older (`x-gateway-*`).
"""

from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any

import msgspec

DESTINATION = "x-gateway-destination-endpoint"
SERVED = "x-gateway-destination-endpoint-served"
SUBSET = "x-gateway-destination-endpoint-subset"
METADATA = "envoy.lb"
SUBSET_METADATA = "envoy.lb.subset_hint"
REQUEST_ID = "x-request-id"
CONTENT_LENGTH = "content-length"
OWN_PREFIX = "x-lorapick-"

NOT_FROM_CLIENTS = frozenset(
    {SERVED, SUBSET, "x-prefiller-host-port", "x-encoder-hosts-ports", "x-data-parallel-host-port"}
)
"""Routing headers of the gateway's side of the picker; removed, with all of `x-lorapick-*`, when a client sent them.
The destination header is not among them: it is overwritten."""

_READ = {
    ":method": "method",
    ":path": "path",
    "content-length": "content_length",
    "traceparent": "traceparent",
    "x-gateway-inference-fairness-id": "fairness_old",
    "x-gateway-inference-objective": "objective_old",
    "x-gateway-model-name-rewrite": "rewrite_old",
    "x-llm-d-inference-fairness-id": "fairness",
    "x-llm-d-inference-objective": "objective",
    "x-llm-d-model-name-rewrite": "rewrite",
    "x-request-deadline-ms": "deadline",
    "x-request-id": "request_id",
    "x-session-id": "session_old",
    "x-session-token": "session",
}


class Intake(msgspec.Struct, frozen=True, kw_only=True):
    """What routing reads of the request headers. None: not sent, or empty."""

    method: str
    path: str
    content_length: int | None
    request_id: str | None
    session: str | None
    fairness_id: str | None
    objective: str | None
    rewrite: str | None
    """Asks for another model than the body names."""
    patience: float | None
    """Seconds from arrival that the client will wait for a pod (`x-request-deadline-ms`)."""
    traceparent: str | None
    strip: tuple[str, ...]
    """Headers present that clients may not set."""


def read_headers(headers: Iterable[Any]) -> Intake:
    """Read `HeaderValue` messages (Envoy sends `raw_value`; `value` is read when that is empty)."""
    found: dict[str, str] = {}
    strip: list[str] = []
    for header in headers:
        key = header.key
        name = _READ.get(key)
        if name is not None:
            found[name] = header.raw_value.decode("utf-8", "replace") or header.value
        elif key.startswith("x-") and (key in NOT_FROM_CLIENTS or key.startswith(OWN_PREFIX)):
            strip.append(key)
    get = found.get
    return Intake(
        method=get("method", ""),
        path=get("path", ""),
        content_length=_whole_number(get("content_length")),
        request_id=get("request_id") or None,
        session=get("session") or get("session_old") or None,
        fairness_id=get("fairness") or get("fairness_old") or None,
        objective=get("objective") or get("objective_old") or None,
        rewrite=get("rewrite") or get("rewrite_old") or None,
        patience=_seconds(get("deadline")),
        traceparent=get("traceparent") or None,
        strip=tuple(strip),
    )


def _whole_number(text: str | None) -> int | None:
    # `isdecimal` alone admits digits of other scripts and numbers too long for `int`.
    return int(text) if text and text.isascii() and text.isdecimal() and len(text) < 20 else None


def _seconds(milliseconds: str | None) -> float | None:
    """Seconds, never negative; None for what is not a number, since a wrong header must not cost an answer."""
    if not milliseconds:
        return None
    try:
        value = float(milliseconds)
    except ValueError:
        return None
    return max(value, 0.0) / 1000 if isfinite(value) else None


def read_subset(filter_metadata: Mapping[str, Any]) -> tuple[str, ...] | None:
    """IPs that the gateway allows; None: it did not say. An empty hint allows none.

    Ports are dropped, since llm-d's endpoint picker matches the hint by IP only; entries that are not text are ignored.
    """
    if SUBSET_METADATA not in filter_metadata:
        return None
    fields = filter_metadata[SUBSET_METADATA].fields
    if SUBSET not in fields:
        return None
    entries = (value.string_value for value in fields[SUBSET].list_value.values)
    return tuple(dict.fromkeys(_ip(entry.strip()) for entry in entries if entry.strip()))


def _ip(address: str) -> str:
    host, colon, port = address.rpartition(":")
    # A bare IPv6 address has colons too; only `[v6]:port` and `v4:port` carry a port.
    return host if colon and port.isdecimal() and (":" not in host or host.endswith("]")) else address
