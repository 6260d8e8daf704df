"""`ProcessingResponse` messages: the only place that builds protobuf.

In: plain values. Out: messages, never changed after they are built, so that equal ones are shared (constants and
small caches: building one costs more than the rest of an answer). Not here: when which message is due.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from envoy.config.core.v3.base_pb2 import HeaderValue, HeaderValueOption
from envoy.service.ext_proc.v3.external_processor_pb2 import (
    BodyMutation,
    BodyResponse,
    CommonResponse,
    HeaderMutation,
    HeadersResponse,
    ImmediateResponse,
    ProcessingResponse,
    StreamedBodyResponse,
    TrailersResponse,
)
from envoy.type.v3.http_status_pb2 import HttpStatus
from google.protobuf.struct_pb2 import Struct, Value

from lorapick.wire.extproc.headers import CONTENT_LENGTH, DESTINATION, METADATA, OWN_PREFIX, RANK
from lorapick.wire.kv_transfer import PREFILLED_BY, PREFILLER

REQUEST_HEADERS_CONTINUE = ProcessingResponse(request_headers=HeadersResponse())
REQUEST_BODY_CONTINUE = ProcessingResponse(request_body=BodyResponse())
REQUEST_TRAILERS_CONTINUE = ProcessingResponse(request_trailers=TrailersResponse())
RESPONSE_HEADERS_CONTINUE = ProcessingResponse(response_headers=HeadersResponse())
RESPONSE_BODY_CONTINUE = ProcessingResponse(response_body=BodyResponse())
RESPONSE_TRAILERS_CONTINUE = ProcessingResponse(response_trailers=TrailersResponse())

POD = OWN_PREFIX + "pod"
"""Response header: the pod that served."""
WENT_THROUGH = "x-went-into-resp-headers"
"""Response header that llm-d's endpoint picker sets; its conformance tests look for it."""


class Destination(NamedTuple):
    """Where a request goes."""

    pods: str
    """`ip:port`, fallbacks after commas; empty: none is named, and the gateway chooses."""
    prefiller: str | None = None
    """Address of the pod that the first of them has it prefilled by; None: it does that itself."""

    rank: str | None = None
    """Address of the rank that a sidecar at the first of them sends it on to; None: there is no such sidecar."""

    def headers(self) -> tuple[tuple[str, str], ...]:
        """As headers; metadata has the same names and values."""
        if not self.pods:
            return ()
        found = [(DESTINATION, self.pods)]
        found += [] if self.prefiller is None else [(PREFILLER, self.prefiller)]
        found += [] if self.rank is None else [(RANK, self.rank)]
        return tuple(found)


def _set_headers(headers: Iterable[tuple[str, str]]) -> list[HeaderValueOption]:
    return [
        HeaderValueOption(
            header=HeaderValue(key=key, raw_value=value.encode()),
            append_action=HeaderValueOption.OVERWRITE_IF_EXISTS_OR_ADD,
        )
        for key, value in headers
    ]


NOBODY = Destination("")
"""The gateway chooses."""


def _destination_metadata(destination: Destination) -> Struct | None:
    if not destination.pods:
        return None
    inner = Struct(fields={name: Value(string_value=value) for name, value in destination.headers()})
    return Struct(fields={METADATA: Value(struct_value=inner)})


def _common(
    destination: Destination, *, headers: tuple[tuple[str, str], ...], strip: tuple[str, ...], body: bytes | None
) -> CommonResponse:
    return CommonResponse(
        # A header that is among both was a client's: Envoy removes first, so that only ours is left.
        header_mutation=HeaderMutation(
            set_headers=_set_headers((*destination.headers(), *headers)), remove_headers=strip
        ),
        body_mutation=None if body is None else BodyMutation(body=body),
        clear_route_cache=True,
    )


@lru_cache(maxsize=1024)
def _routed_headers(destination: Destination) -> ProcessingResponse:
    return _build_routed_headers(destination, (), ())


def _build_routed_headers(
    destination: Destination, headers: tuple[tuple[str, str], ...], strip: tuple[str, ...]
) -> ProcessingResponse:
    return ProcessingResponse(
        request_headers=HeadersResponse(response=_common(destination, headers=headers, strip=strip, body=None)),
        dynamic_metadata=_destination_metadata(destination),
    )


def routed_headers(
    destination: Destination, *, headers: tuple[tuple[str, str], ...] = (), strip: tuple[str, ...] = ()
) -> ProcessingResponse:
    """Answer to request headers that sends the request to `destination`.

    The headers and the metadata carry the same values; which of the two count is the gateway's configuration.
    """
    if headers or strip:
        return _build_routed_headers(destination, headers, strip)
    return _routed_headers(destination)


@lru_cache(maxsize=1024)
def _routed_body(destination: Destination) -> ProcessingResponse:
    return _build_routed_body(destination, (), (), None)


def _build_routed_body(
    destination: Destination, headers: tuple[tuple[str, str], ...], strip: tuple[str, ...], body: bytes | None
) -> ProcessingResponse:
    return ProcessingResponse(
        request_body=BodyResponse(response=_common(destination, headers=headers, strip=strip, body=body)),
        dynamic_metadata=_destination_metadata(destination),
    )


def routed_body(
    destination: Destination,
    *,
    headers: tuple[tuple[str, str], ...] = (),
    strip: tuple[str, ...] = (),
    body: bytes | None = None,
) -> ProcessingResponse:
    """Answer to a buffered request body: as `routed_headers`, and another body when one is given."""
    if headers or strip or body is not None:
        return _build_routed_body(destination, headers, strip, body)
    return _routed_body(destination)


def length_header(body: bytes) -> tuple[str, str]:
    """`content-length` of an exchanged body: Envoy refuses a buffered body whose length differs from the header."""
    return CONTENT_LENGTH, str(len(body))


def request_chunk(chunk: bytes, *, last: bool) -> ProcessingResponse:
    """One piece of a full-duplex request body."""
    return ProcessingResponse(request_body=_streamed(chunk, last))


def response_chunk(chunk: bytes, *, last: bool) -> ProcessingResponse:
    """One piece of a full-duplex response body."""
    return ProcessingResponse(response_body=_streamed(chunk, last))


def _streamed(chunk: bytes, last: bool) -> BodyResponse:
    streamed = StreamedBodyResponse(body=chunk, end_of_stream=last)
    return BodyResponse(response=CommonResponse(body_mutation=BodyMutation(streamed_response=streamed)))


def replaced_response_body(body: bytes) -> ProcessingResponse:
    """Another body, or piece of one, in the modes that answer each message with one (STREAMED, BUFFERED)."""
    mutation = BodyMutation(body=body) if body else BodyMutation(clear_body=True)
    return ProcessingResponse(response_body=BodyResponse(response=CommonResponse(body_mutation=mutation)))


def with_metadata(message: ProcessingResponse, metadata: Struct) -> ProcessingResponse:
    """The same message, and dynamic metadata for the gateway beside it; that one, which may be shared, stays."""
    told = ProcessingResponse()
    told.CopyFrom(message)
    told.dynamic_metadata.CopyFrom(metadata)
    return told


@lru_cache(maxsize=1024)
def response_headers(
    pod: str | None, *, length_changes: bool, prefiller: str | None = None, more: tuple[tuple[str, str], ...] = ()
) -> ProcessingResponse:
    """Answer to response headers: who served, and who prefilled, which had an address there; `more` are further ones.

    Without `content-length` when the body's length may change.
    """
    headers = [(WENT_THROUGH, "true")] + ([(POD, pod)] if pod else [])
    headers += [(PREFILLED_BY, prefiller)] if prefiller else []
    headers += more
    mutation = HeaderMutation(
        set_headers=_set_headers(headers), remove_headers=[CONTENT_LENGTH] if length_changes else []
    )
    return ProcessingResponse(response_headers=HeadersResponse(response=CommonResponse(header_mutation=mutation)))


def immediate(status: int, body: bytes, headers: Iterable[tuple[str, str]]) -> ProcessingResponse:
    """An answer to the client in place of a pod's. Status codes that Envoy's enum lacks pass as numbers."""
    return ProcessingResponse(
        immediate_response=ImmediateResponse(
            status=HttpStatus(code=status),  # an open enum of HTTP codes
            headers=HeaderMutation(set_headers=_set_headers(headers)),
            body=body,
        )
    )
