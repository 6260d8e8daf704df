"""The way in: one HTTP request as its messages bring it, until it is whole.

In: request headers and body pieces. Out: a `Request` for the picker, or the word that says why there is none.
Not here: the order of messages and answers to them (`session.py`).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, Self

import msgspec
import xxhash
from envoy.extensions.filters.http.ext_proc.v3.processing_mode_pb2 import ProcessingMode
from envoy.service.ext_proc.v3.external_processor_pb2 import ProcessingRequest, ProcessingResponse

from lorapick.model.answers import ModelCard
from lorapick.model.profiles import HttpNames
from lorapick.model.reasons import Reason
from lorapick.model.requests import Request
from lorapick.model.settings import Settings
from lorapick.model.units import Bytes, RequestId, Seconds
from lorapick.wire.extproc import messages
from lorapick.wire.extproc.chunking import chunks
from lorapick.wire.extproc.headers import NO_NAMES, REQUEST_ID, Intake, read_headers, read_subset
from lorapick.wire.extproc.messages import Destination
from lorapick.wire.extproc.response import BodyMode, Renaming
from lorapick.wire.extproc.routes import Route, route_of
from lorapick.wire.kv_transfer import ENCODERS
from lorapick.wire.openai import MAX_MODEL_CHARACTERS, BodyError, RequestBody, read_body, with_fields, with_model
from lorapick.wire.prefix import prefix_blocks
from lorapick.wire.traceparent import HEADER


class Directory(Protocol):
    """What a session may ask of the picker without deciding anything; `live.ports.Picker` has all of it."""

    def models(self) -> Sequence[ModelCard]:
        """Models and adapters that some ready pod serves."""
        ...

    def near_names(self, name: str) -> Sequence[str]:
        """At most three of the models' names that look like this one."""
        ...

    def any_endpoint(self) -> str | None:
        """Address of some ready pod; None: none is ready."""
        ...


class SessionOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What sessions need of the configuration."""

    full_duplex: bool = False
    """Request body mode when the gateway does not say: FULL_DUPLEX_STREAMED, else BUFFERED."""
    max_body: Bytes = 10 * 1024 * 1024
    priorities: dict[str, int] = {}
    """Objective name to priority; absent names have 0."""
    pass_encoders: bool = False
    """Leave the header that names encoders as it came."""
    names: HttpNames = NO_NAMES
    """Headers that profiles of an `EndpointPickerConfig` name."""
    namespace: str = "default"
    """Of the pods, in tokens for clients."""
    created: int = 0
    """Unix time that `GET /v1/models` gives as the models' birth."""

    @classmethod
    def of(cls, settings: Settings, *, created: int = 0) -> Self:
        """The part of the configuration that sessions need."""
        profiles, cluster = settings.picking.profiles, settings.discovery.kubernetes
        return cls(
            full_duplex=settings.server.body == "full_duplex_streamed",
            max_body=settings.server.max_body,
            priorities={objective.name: objective.priority for objective in settings.objectives},
            pass_encoders=settings.disaggregation.pass_encoders,
            names=profiles.names if profiles is not None else NO_NAMES,
            namespace=(cluster.namespace if cluster is not None else None) or "default",
            created=created,
        )


class Refusal(msgspec.Struct, frozen=True):
    """The session answers the client itself."""

    status: int
    reason: Reason
    message: str
    retry_after: Seconds | None = None


class Unrouted(msgspec.Struct, frozen=True):
    """The request names no model: any ready pod may serve it."""

    why: str


_RESPONSE_MODES = {
    ProcessingMode.NONE: BodyMode.NONE,
    ProcessingMode.FULL_DUPLEX_STREAMED: BodyMode.FULL_DUPLEX,
}
_LONGEST_KEY = 128
"""Characters of a session key that are kept as they are; longer ones are hashed."""
_LONG_REWRITE = Refusal(
    400,
    Reason.BODY_INVALID,
    f"x-llm-d-model-name-rewrite (or x-gateway-model-name-rewrite) has more than {MAX_MODEL_CHARACTERS} characters; "
    "that is the limit of a model's name",
)
_NO_INTAKE = read_headers(())


class Incoming:
    """One request until it is sent on."""

    def __init__(self, options: SessionOptions, now: Seconds, identify: Callable[[str | None], RequestId]) -> None:
        self.id: RequestId = ""
        """Empty until the headers came."""
        self.intake: Intake = _NO_INTAKE
        self.subset: tuple[str, ...] | None = None
        self.full_duplex = options.full_duplex
        self.readable = True
        """False: the gateway sends request bodies in a mode that cannot be routed by (STREAMED, NONE)."""
        self.response_mode = BodyMode.FULL_DUPLEX if options.full_duplex else BodyMode.ONE_FOR_ONE
        self.trailers = False
        """The gateway sent trailers and waits for an answer to them."""
        self.model: str | None = None
        """The name in the body."""
        self.traceparent: str | None = None
        """What it goes on with in place of what the client sent; None: that."""
        self._options = options
        self._now = now
        self._identify = identify
        self._pieces: list[bytes] = []
        self._size = 0
        self._has_body = False
        self._body = b""

    def take_headers(self, message: ProcessingRequest) -> Refusal | None:
        """Read the request headers and the modes of the conversation."""
        if message.HasField("protocol_config"):
            self._take_modes(message.protocol_config.request_body_mode, message.protocol_config.response_body_mode)
        self.intake = read_headers(message.request_headers.headers.headers, self._options.names)
        self.id = self._identify(self.intake.request_id)
        self.take_subset(message)
        if self.intake.rewrite is not None and len(self.intake.rewrite) > MAX_MODEL_CHARACTERS:
            return _LONG_REWRITE
        length = self.intake.content_length
        return self._too_large(length) if length is not None and length > self._options.max_body else None

    def _take_modes(self, request_mode: int, response_mode: int) -> None:
        self.full_duplex = request_mode == ProcessingMode.FULL_DUPLEX_STREAMED
        self.readable = self.full_duplex or request_mode == ProcessingMode.BUFFERED
        self.response_mode = _RESPONSE_MODES.get(response_mode, BodyMode.ONE_FOR_ONE)

    def take_subset(self, message: ProcessingRequest) -> None:
        """Read the gateway's subset hint: it counts as it stands in the last message of the request."""
        if message.HasField("metadata_context"):
            self.subset = read_subset(message.metadata_context.filter_metadata)

    def take_body(self, piece: bytes) -> Refusal | None:
        """Keep a piece of the body, or refuse the request once there are too many."""
        self._has_body = True
        self._size += len(piece)
        if self._size > self._options.max_body:
            self._pieces = []
            return self._too_large(self._size)
        self._pieces.append(piece)
        return None

    def _too_large(self, size: int) -> Refusal:
        limit = self._options.max_body
        message = f"the body has {size} bytes or more; at most {limit} are allowed (server.max_body)"
        return Refusal(413, Reason.BODY_TOO_LARGE, message)

    def complete(self) -> Request | Refusal | Unrouted:
        """Read the whole body."""
        self._body = b"".join(self._pieces)
        self._pieces = []
        by_model = route_of(self.intake.method, self.intake.path) is Route.BY_MODEL
        try:
            body = read_body(self._body)
        except BodyError as error:
            return Refusal(400, Reason.BODY_INVALID, str(error)) if by_model else Unrouted("no_model")
        if body.model is None:
            message = "the body has no `model`; name an adapter or a base model"
            return Refusal(400, Reason.BODY_INVALID, message) if by_model else Unrouted("no_model")
        self.model = body.model
        return self._request(body, self.intake.rewrite or body.model)

    def _request(self, body: RequestBody, model: str) -> Request:
        intake = self.intake
        pieces = [*body.pieces()]
        return Request(
            id=self.id,
            model=model,
            prompt_bytes=sum(map(len, pieces)) if pieces else None,
            body_bytes=self._size,
            prompt_tokens=body.prompt_tokens,
            blocks=prefix_blocks(model, pieces),
            max_tokens=body.max_tokens,
            stream=body.stream,
            priority=self._options.priorities.get(intake.objective, 0) if intake.objective else 0,
            fairness_id=intake.fairness_id,
            session=_key(intake.session or body.user),
            session_pod=intake.session_pod,
            headers=intake.kept,
            deadline=None if intake.patience is None else self._now + intake.patience,
            first_token_by=None if intake.first_token_in is None else self._now + intake.first_token_in,
            subset=self.subset,
            traceparent=intake.traceparent,
        )

    def renaming(self, target: str | None) -> Renaming | None:
        """Both names of the model, when the pod is asked under another than the body has; else None."""
        target = target or self.intake.rewrite
        if self.model is None or target is None or target == self.model:
            return None
        return Renaming(asked=self.model, served=target)

    def forward_headers(self, destination: Destination) -> ProcessingResponse:
        """Send a request on whose body the picker does not see."""
        return messages.routed_headers(destination, headers=self._own_headers(), strip=self._strip())

    def forward(
        self, destination: Destination, renaming: Renaming | None, *, fields: Mapping[str, Any] = {}
    ) -> list[ProcessingResponse]:
        """Send the whole request on, with further fields for the pod; its body is let go."""
        body, self._body = self._body, b""
        headers = self._own_headers()
        changed = renaming is not None or bool(fields)
        if changed:
            body = with_fields(with_model(body, renaming.served) if renaming is not None else body, fields)
            if self.intake.content_length is not None:
                headers += (messages.length_header(body),)
        strip = self._strip()
        out: list[ProcessingResponse]
        if self.full_duplex:
            out = [messages.routed_headers(destination, headers=headers, strip=strip), *self._chunks(body)]
        elif self._has_body:
            exchanged = body if changed else None
            out = [messages.routed_body(destination, headers=headers, strip=strip, body=exchanged)]
        else:
            out = []  # trailers alone: nothing that can still carry a destination
        if self.trailers:
            out.append(messages.REQUEST_TRAILERS_CONTINUE)
        return out

    def _chunks(self, body: bytes) -> list[ProcessingResponse]:
        if self.trailers:  # the trailers end the stream
            return [messages.request_chunk(piece, last=False) for piece in chunks(body) if piece]
        *first, last = chunks(body)
        out = [messages.request_chunk(piece, last=False) for piece in first]
        out.append(messages.request_chunk(last, last=True))
        return out

    def _strip(self) -> tuple[str, ...]:
        strip = self.intake.strip
        if not strip or not self._options.pass_encoders:
            return strip
        return tuple(name for name in strip if name != ENCODERS)

    def _own_headers(self) -> tuple[tuple[str, str], ...]:
        own = () if self.intake.request_id is not None else ((REQUEST_ID, self.id),)
        return own if self.traceparent is None else (*own, (HEADER, self.traceparent))


def _key(session: str | None) -> str | None:
    """A session key of bounded size: the picker remembers many of them."""
    if session is None or len(session) <= _LONGEST_KEY:
        return session
    return xxhash.xxh3_128_hexdigest(session.encode("utf-8", "surrogatepass"))
