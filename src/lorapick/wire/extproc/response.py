"""The way back: one response's part of the conversation.

In: response headers, body and trailers of the gateway. Out: the messages that answer them; the status, the address
that served, the usage. Not here: what the end of the response means for the request (`session.py`).
"""

from collections.abc import Iterable
from enum import Enum
from typing import Any

from envoy.service.ext_proc.v3.external_processor_pb2 import HttpBody, ProcessingRequest, ProcessingResponse

from lorapick.model.answers import Usage
from lorapick.model.profiles import AttributeReport
from lorapick.wire.answers import ModelRestorer, UsageReader, usage_reader
from lorapick.wire.extproc import messages
from lorapick.wire.extproc.chunking import chunks
from lorapick.wire.extproc.headers import METADATA, SERVED
from lorapick.wire.extproc.reporting import reporter
from lorapick.wire.kv_transfer import LOCAL_PREFILL, PREFILLED_BY, read_reason

_ATTRIBUTES = "envoy.filters.http.ext_proc"
_UPSTREAM = "upstream.address"
_STATUS = frozenset({":status"})
_READ = frozenset({":status", "content-type", "content-encoding"})
_PREFILLS = frozenset({PREFILLED_BY, LOCAL_PREFILL})


class BodyMode(Enum):
    """How the gateway wants response bodies answered."""

    FULL_DUPLEX = "full_duplex"
    """Every byte is sent back, in any number of messages."""
    ONE_FOR_ONE = "one_for_one"
    """One answer for each message: as it was, or exchanged (STREAMED, BUFFERED)."""
    NONE = "none"
    """Bodies do not come."""


class Renaming:
    """Names of the model on both sides, when they differ."""

    __slots__ = ("asked", "served")

    def __init__(self, *, asked: str, served: str) -> None:
        self.asked = asked
        self.served = served


class Response:
    """One response on its way to the client."""

    def __init__(self, mode: BodyMode, renaming: Renaming | None, *, reports: tuple[AttributeReport, ...] = ()) -> None:
        """Begin; `renaming` is None when the pod was asked under the client's name. `reports` come with its end."""
        self.status: int | None = None
        """HTTP status; None: the gateway sent no response headers."""
        self._mode = mode
        self._renaming = renaming
        self._reports = reports
        self._restorer: ModelRestorer | None = None
        self._reader: UsageReader | None = None
        self._begun = False
        self.prefilled: bool | None = None
        """Of a request that another pod was to prefill: whether it did. None: the answer does not say."""
        self.why_not_prefilled: str | None = None
        """What the answer says of why not; None: nothing."""

    @property
    def usage(self) -> Usage | None:
        """Token counts read so far; None: none."""
        return self._reader.usage if self._reader else None

    def headers(
        self,
        message: ProcessingRequest,
        pod: str | None,
        *,
        prefiller: str | None = None,
        more: tuple[tuple[str, str], ...] = (),
    ) -> ProcessingResponse:
        """Read the response headers; both pods are named to the client. `prefiller` is None when none was to.

        `more` are headers for the client besides.
        """
        found = self._read(message.response_headers.headers.headers, more=_PREFILLS if prefiller else frozenset())
        status = found.get(":status", "")
        self.status = int(status) if len(status) == 3 and status.isascii() and status.isdecimal() else None
        if found.get("content-encoding", "identity") == "identity":
            self._reader = usage_reader(found.get("content-type", "").lower())
            if self._renaming is not None and self._reader is not None:
                self._restorer = ModelRestorer(served=self._renaming.served, asked=self._renaming.asked)
        if prefiller is not None and not _PREFILLS.isdisjoint(found):
            self.prefilled = LOCAL_PREFILL not in found
            self.why_not_prefilled = read_reason(found.get(LOCAL_PREFILL, ""))
        return messages.response_headers(
            pod,
            length_changes=self._restorer is not None,
            prefiller=prefiller if self.prefilled else None,
            more=more,
        )

    def _read(self, headers: Iterable[Any], *, more: frozenset[str]) -> dict[str, str]:
        found: dict[str, str] = {}
        wanted = (_STATUS if self._mode is BodyMode.NONE else _READ) | more
        for header in headers:
            if header.key in wanted:
                found[header.key] = header.raw_value.decode("latin-1") or header.value
                if len(found) == len(wanted):
                    break
        return found

    def begins(self, body: HttpBody) -> bool:
        """Whether this message has the first bytes of a good answer's body: true once at most."""
        if self._begun or not body.body or self.status is None or self.status >= 400:
            return False
        self._begun = True
        return True

    def body(self, body: HttpBody) -> list[ProcessingResponse]:
        """Answer one body message."""
        piece, last = body.body, body.end_of_stream
        if self._reader is not None:
            self._reader.feed(piece, last=last)
        out = self._restorer.feed(piece, last=last) if self._restorer is not None else piece
        if self._mode is BodyMode.FULL_DUPLEX:
            sent = self._streamed(out, last=last)
        else:
            sent = [messages.RESPONSE_BODY_CONTINUE if out == piece else messages.replaced_response_body(out)]
        return self._reported(sent) if last else sent

    def trailers(self) -> list[ProcessingResponse]:
        """Answer the trailers; bytes held back for a name go first."""
        rest = self._restorer.feed(b"", last=True) if self._restorer is not None else b""
        if self._reader is not None:
            self._reader.feed(b"", last=True)
        held = self._streamed(rest, last=False) if rest and self._mode is BodyMode.FULL_DUPLEX else []
        return self._reported([*held, messages.RESPONSE_TRAILERS_CONTINUE])

    def _reported(self, sent: list[ProcessingResponse]) -> list[ProcessingResponse]:
        """The last messages of an answer, the last of them with what is reported of it."""
        metadata = reporter(self._reports).metadata(self.usage) if self._reports else None
        return sent if metadata is None else [*sent[:-1], messages.with_metadata(sent[-1], metadata)]

    @staticmethod
    def _streamed(out: bytes, *, last: bool) -> list[ProcessingResponse]:
        pieces = chunks(out)
        end = len(pieces) - 1
        return [
            messages.response_chunk(piece, last=last and index == end)
            for index, piece in enumerate(pieces)
            if piece or last or len(pieces) > 1
        ]


def served_address(message: ProcessingRequest) -> str | None:
    """Address of the upstream that really served, as far as the gateway tells; None: it does not.

    `upstream.address` needs `response_attributes` in the filter's configuration; the metadata key is set by gateways
    of the Gateway API Inference Extension.
    """
    attributes: Any = message.attributes
    if _ATTRIBUTES in attributes:
        address: str = attributes[_ATTRIBUTES].fields[_UPSTREAM].string_value
        if address:
            return address
    metadata: Any = message.metadata_context.filter_metadata
    if METADATA in metadata and SERVED in metadata[METADATA].fields:
        return str(metadata[METADATA].fields[SERVED].string_value) or None
    return None
