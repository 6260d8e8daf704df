"""Request headers: what routing reads of them, and which of them clients may not set.

In: the headers of one `request_headers` message and its metadata. Out: an `Intake`; a subset hint.
Header names are compared as they come: Envoy lower-cases them. Where a header has two names, the newer
(`x-llm-d-*`) wins over the older (`x-gateway-*`).
"""

from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any

import msgspec

from lorapick.model.profiles import HttpNames
from lorapick.wire.kv_transfer import ENCODERS, PREFILLER

DESTINATION = "x-gateway-destination-endpoint"
SERVED = "x-gateway-destination-endpoint-served"
SUBSET = "x-gateway-destination-endpoint-subset"
METADATA = "envoy.lb"
SUBSET_METADATA = "envoy.lb.subset_hint"
REQUEST_ID = "x-request-id"
CONTENT_LENGTH = "content-length"
OWN_PREFIX = "x-lorapick-"
COOKIE = "cookie:"
"""Before the name of a cookie among `HttpNames.session`."""

RANK = "x-data-parallel-host-port"
"""Names the rank to llm-d's sidecar, which stands before all ranks of a pod."""

NOT_FROM_CLIENTS = frozenset({SERVED, SUBSET, PREFILLER, ENCODERS, RANK})
"""Routing headers of the gateway's side of the picker; removed, with all of `x-lorapick-*`, when a client sent them.
The destination header is not among them: it is overwritten. A client that named the prefiller could have a pod ask any
address for it; this picker chooses no encoders, so theirs go too unless `disaggregation.pass_encoders` lets them."""


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
    first_token_in: float | None
    """Seconds from arrival in which the client wants its first token (`x-llm-d-slo-ttft-ms`)."""
    traceparent: str | None
    strip: tuple[str, ...]
    """Headers present that clients may not set."""
    session_pod: str | None = None
    """Who served the session last, by the client's token."""
    kept: dict[str, str] = {}
    """Those that the configuration asks for, by name."""


NO_NAMES = HttpNames()


def read_headers(headers: Iterable[Any], names: HttpNames = NO_NAMES) -> Intake:
    """Read `HeaderValue` messages, with those that `names` asks for. Of a header given twice the last counts."""
    found: dict[str, bytes] = {header.key: header.raw_value for header in headers}
    if found and not any(found.values()):  # older gateways fill `value` in place of `raw_value`
        found = {header.key: header.value.encode() for header in headers}
    get = found.get
    intake = Intake(
        method=_text(get(":method")) or "",
        path=_text(get(":path")) or "",
        content_length=_whole_number(get(CONTENT_LENGTH)),
        request_id=_text(get(REQUEST_ID)),
        session=_text(get("x-session-token") or get("x-session-id")),
        fairness_id=_text(get("x-llm-d-inference-fairness-id") or get("x-gateway-inference-fairness-id")),
        objective=_text(get("x-llm-d-inference-objective") or get("x-gateway-inference-objective")),
        rewrite=_text(get("x-llm-d-model-name-rewrite") or get("x-gateway-model-name-rewrite")),
        patience=_seconds(get("x-request-deadline-ms")),
        first_token_in=_seconds(get("x-llm-d-slo-ttft-ms") or get("x-slo-ttft-ms")),
        traceparent=_text(get("traceparent")),
        strip=_forged(found),
    )
    return intake if names is NO_NAMES else _more(intake, found, names=names)


def _more(intake: Intake, found: Mapping[str, bytes], *, names: HttpNames) -> Intake:
    """With what profiles ask for besides. A token names a pod, which is no id of a session: many may have the same."""
    get = found.get
    session = next((text for name in names.session if (text := _named(found, name)) is not None), intake.session)
    pod = None if names.token is None else pod_of_token(_text(get(names.token)) or "")
    if pod is not None and names.token is not None and session == _text(get(names.token)):
        session = _text(get("x-session-id"))
    fairness = intake.fairness_id or next((text for name in names.fairness if (text := _text(get(name)))), None)
    kept = {name: text for name in names.keep if (text := _text(get(name))) is not None}
    return msgspec.structs.replace(intake, session=session, session_pod=pod, fairness_id=fairness, kept=kept)


def _named(found: Mapping[str, bytes], name: str) -> str | None:
    """Value of a header, or of a cookie where the name says `cookie:`."""
    if not name.startswith(COOKIE):
        return _text(found.get(name))
    cookies = (_text(found.get("cookie")) or "").split(";")
    pairs = (cookie.strip().partition("=") for cookie in cookies)
    return next((value for key, _, value in pairs if key == name.removeprefix(COOKIE) and value), None)


def token_of(pod: str, *, namespace: str) -> str:
    """Token of a pod, as llm-d writes it: `NAMESPACE/NAME` in base64."""
    return b64encode(f"{namespace}/{pod}".encode()).decode()


def pod_of_token(token: str) -> str | None:
    """Name of a token's pod; None: it is no such token."""
    try:
        namespace, slash, name = b64decode(token, validate=True).decode().partition("/")
    except ValueError:
        return None
    return name if namespace and slash and name else None


def _text(raw: bytes | None) -> str | None:
    return raw.decode("utf-8", "replace") if raw else None


def _forged(found: dict[str, bytes]) -> tuple[str, ...]:
    # One search over all the names: nearly always there is nothing, and this runs for every request.
    if NOT_FROM_CLIENTS.isdisjoint(found) and "\n" + OWN_PREFIX not in "\n" + "\n".join(found):
        return ()
    return tuple(name for name in found if name in NOT_FROM_CLIENTS or name.startswith(OWN_PREFIX))


def _whole_number(raw: bytes | None) -> int | None:
    return int(raw) if raw and raw.isdigit() and len(raw) < 20 else None


def _seconds(milliseconds: bytes | None) -> float | None:
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
