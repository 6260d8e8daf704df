"""The gateway's side of an ext_proc conversation, and a picker that says what a test tells it.

In: plain values. Out: `ProcessingRequest` messages as Envoy 1.40 sends them, and picker answers. Not here: asserts.
"""

import asyncio
from collections.abc import Iterable, Sequence

from envoy.config.core.v3.base_pb2 import HeaderMap, HeaderValue, Metadata
from envoy.extensions.filters.http.ext_proc.v3.processing_mode_pb2 import ProcessingMode
from envoy.service.ext_proc.v3.external_processor_pb2 import (
    HttpBody,
    HttpHeaders,
    HttpTrailers,
    ProcessingRequest,
    ProtocolConfiguration,
)
from google.protobuf.struct_pb2 import ListValue, Struct, Value

from lorapick.model.answers import ModelCard, Usage
from lorapick.model.effects import Dispatch, Reject
from lorapick.model.picks import Pick
from lorapick.model.reasons import Reason, status_of
from lorapick.model.requests import Outcome, Request, Target
from lorapick.model.units import RequestId, Seconds

BUFFERED: int = ProcessingMode.BUFFERED
FULL_DUPLEX: int = ProcessingMode.FULL_DUPLEX_STREAMED
STREAMED: int = ProcessingMode.STREAMED
NO_BODY: int = ProcessingMode.NONE


def _header_map(headers: Iterable[tuple[str, str]]) -> HttpHeaders:
    return HeaderMap(headers=[HeaderValue(key=key, raw_value=value.encode()) for key, value in headers])


def request_headers(
    path: str = "/v1/completions",
    headers: Iterable[tuple[str, str]] = (("x-request-id", "r1"),),
    *,
    method: str = "POST",
    last: bool = False,
    modes: tuple[int, int] | None = None,
) -> ProcessingRequest:
    """The first message; `modes` are the request's and the response's body mode, as Envoy names them."""
    pseudo = [(":method", method), (":path", path), (":scheme", "http"), (":authority", "127.0.0.1:8080")]
    message = ProcessingRequest(
        request_headers=HttpHeaders(headers=_header_map([*pseudo, *headers]), end_of_stream=last)
    )
    if modes is not None:
        config = ProtocolConfiguration(request_body_mode=modes[0], response_body_mode=modes[1])
        message.protocol_config.CopyFrom(config)
    return message


def request_body(body: bytes, *, last: bool = True) -> ProcessingRequest:
    """A piece of the request's body."""
    return ProcessingRequest(request_body=HttpBody(body=body, end_of_stream=last))


def request_trailers() -> ProcessingRequest:
    """The request's trailers."""
    return ProcessingRequest(request_trailers=HttpTrailers())


def response_headers(
    status: int = 200, headers: Iterable[tuple[str, str]] = (), *, last: bool = False
) -> ProcessingRequest:
    """The response's headers."""
    mapped = _header_map([(":status", str(status)), *headers])
    return ProcessingRequest(response_headers=HttpHeaders(headers=mapped, end_of_stream=last))


def response_body(body: bytes, *, last: bool = False) -> ProcessingRequest:
    """A piece of the response's body."""
    return ProcessingRequest(response_body=HttpBody(body=body, end_of_stream=last))


def response_trailers() -> ProcessingRequest:
    """The response's trailers."""
    return ProcessingRequest(response_trailers=HttpTrailers())


def with_subset(message: ProcessingRequest, entries: Sequence[object]) -> ProcessingRequest:
    """The message with a subset hint of the gateway; entries that are no text become numbers."""
    values = [Value(string_value=e) if isinstance(e, str) else Value(number_value=1) for e in entries]
    hint = Struct(fields={"x-gateway-destination-endpoint-subset": Value(list_value=ListValue(values=values))})
    message.metadata_context.CopyFrom(Metadata(filter_metadata={"envoy.lb.subset_hint": hint}))
    return message


def with_served(message: ProcessingRequest, address: str, *, attribute: bool = True) -> ProcessingRequest:
    """The message with the upstream that really served, as an attribute or as metadata."""
    if attribute:
        fields = Struct(fields={"upstream.address": Value(string_value=address)})
        message.attributes["envoy.filters.http.ext_proc"].CopyFrom(fields)
    else:
        served = Struct(fields={"x-gateway-destination-endpoint-served": Value(string_value=address)})
        message.metadata_context.CopyFrom(Metadata(filter_metadata={"envoy.lb": served}))
    return message


def dispatch(
    *addresses: str,
    request_id: RequestId = "r1",
    model: str | None = None,
    pods: Sequence[str] = (),
    prefill: str | None = None,
) -> Dispatch:
    """The picker's yes: the first address, the rest as fallbacks; pods are named `pod-PORT` unless told.

    `prefill` is the address of the pod `prefills`.
    """
    names = pods or [f"pod-{address.rpartition(':')[2]}" for address in addresses]
    targets = tuple(Target(pod=name, address=address) for name, address in zip(names, addresses, strict=True))
    pick = Pick(request_id=request_id, adapter="ad0", pod=targets[0].pod, score=1.0, tier=None)
    return Dispatch(
        cause=1,
        request_id=request_id,
        target=targets[0],
        fallbacks=targets[1:],
        pick=pick,
        model=model,
        prefill=None if prefill is None else Target(pod="prefills", address=prefill),
    )


def reject(
    reason: Reason, message: str = "no", *, request_id: RequestId = "r1", retry_after: Seconds | None = None
) -> Reject:
    """The picker's no."""
    return Reject(
        cause=1,
        request_id=request_id,
        status=status_of(reason),
        reason=reason,
        message=message,
        retry_after=retry_after,
    )


class ScriptedPicker:
    """A `live.ports.Picker` in memory: answers as told, remembers what it was told."""

    def __init__(self, answer: Dispatch | Reject | Exception | None = None) -> None:
        self.answer = answer if answer is not None else dispatch("10.0.0.1:8000")
        """What `decide` gives (or raises)."""
        self.gate = asyncio.Event()
        """`decide` waits for it."""
        self.gate.set()
        self.cards: list[ModelCard] = [ModelCard(id="base"), ModelCard(id="ad0", parent="base", root="/adapters/ad0")]
        self.endpoint: str | None = "10.0.0.9:8000"
        self.heard: list[tuple[object, ...]] = []
        """Calls in order: ("decide", request), ("dispatched", id, address), ("ended", id, outcome, status, usage)..."""

    def ask(self, request: Request) -> "Dispatch | Reject | asyncio.Future[Dispatch | Reject]":
        """Give the answer at once when the gate is open, else its future."""
        if self.gate.is_set():
            self.heard.append(("decide", request))
            if isinstance(self.answer, Exception):
                raise self.answer
            return self.answer
        return asyncio.ensure_future(self._later(request))

    async def _later(self, request: Request) -> Dispatch | Reject:
        """Give the answer, once the gate is open."""
        self.heard.append(("decide", request))
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.heard.append(("cancelled", request.id))
            raise
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def dispatched(self, request_id: RequestId, address: str) -> None:
        """Remember."""
        self.heard.append(("dispatched", request_id, address))

    def prefill_ended(self, request_id: RequestId, *, ok: bool, why: str | None = None) -> None:
        """Remember."""
        self.heard.append(("prefilled", request_id, ok, *([] if why is None else [why])))

    def response_started(self, request_id: RequestId, status: int) -> None:
        """Remember."""
        self.heard.append(("started", request_id, status))

    def body_started(self, request_id: RequestId) -> None:
        """Remember."""
        self.heard.append(("body_started", request_id))

    def ended(self, request_id: RequestId, outcome: Outcome, status: int | None, usage: Usage | None) -> None:
        """Remember."""
        self.heard.append(("ended", request_id, outcome, status, usage))

    def refused(self, reason: Reason, status: int) -> None:
        """Remember."""
        self.heard.append(("refused", reason, status))

    def models(self) -> Sequence[ModelCard]:
        """The cards."""
        return self.cards

    def near_names(self, name: str) -> Sequence[str]:
        """Names that begin with the same letter."""
        return [card.id for card in self.cards if card.id[:1] == name[:1]]

    def any_endpoint(self) -> str | None:
        """The endpoint."""
        return self.endpoint

    def now(self) -> Seconds:
        """A clock that stands at 1000 s."""
        return 1000.0
