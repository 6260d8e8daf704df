"""OpenAI-shaped answers on their way back: token usage, and the name the client asked for.

In: pieces of a response body, cut anywhere. Out: a `Usage`; the same body with the model's name restored.
Memory is bounded whatever the pod sends. Not here: HTTP, compression (compressed bodies must not be given to these).
"""

import re
from typing import Protocol

import msgspec

from lorapick.model.answers import Usage
from lorapick.model.units import Bytes

MAX_JSON: Bytes = 1024 * 1024
"""Of a longer JSON answer only its end is kept, where engines write `usage`."""
_TAIL: Bytes = 16 * 1024
MAX_LINE: Bytes = 256 * 1024
"""A longer line of an event stream is not read."""


class _Details(msgspec.Struct):
    cached_tokens: int | None = None


class _Counts(msgspec.Struct):
    """`usage` of completions and chat, of the Responses API, and of the Messages API."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _Details | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_details: _Details | None = None
    cache_read_input_tokens: int | None = None


class _Holder(msgspec.Struct):
    usage: _Counts | None = None


class _Document(msgspec.Struct):
    usage: _Counts | None = None
    response: _Holder | None = None
    """Responses API, in `response.completed`."""
    message: _Holder | None = None
    """Messages API, in `message_start`."""


_document = msgspec.json.Decoder(_Document)
_counts = msgspec.json.Decoder(_Counts)
_USAGE = re.compile(rb'"usage"\s*:\s*(\{(?:[^{}]|\{[^{}]*\})*\})')


def _first(*values: int | None) -> int | None:
    return next((value for value in values if value is not None), None)


def _usage_of(counts: _Counts, before: Usage | None) -> Usage:
    """Counts as a `Usage`; what this one does not say stays as an earlier one said it."""
    details = counts.prompt_tokens_details or counts.input_tokens_details
    before = before or Usage()
    return Usage(
        prompt_tokens=_first(counts.prompt_tokens, counts.input_tokens, before.prompt_tokens),
        cached_tokens=_first(
            details.cached_tokens if details else None, counts.cache_read_input_tokens, before.cached_tokens
        ),
        output_tokens=_first(counts.completion_tokens, counts.output_tokens, before.output_tokens),
    )


def _read_document(text: bytes, before: Usage | None) -> Usage | None:
    try:
        document = _document.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return before  # not ours to judge: the client gets what the pod sent
    for holder in (document, document.response, document.message):
        if holder is not None and holder.usage is not None:
            return _usage_of(holder.usage, before)
    return before


class UsageReader(Protocol):
    """Takes the pieces of one answer."""

    usage: Usage | None
    """Counts read so far; None: none."""

    def feed(self, piece: bytes, *, last: bool) -> None:
        """Take the next piece."""
        ...


class JsonUsage:
    """Usage of an answer that is one JSON document."""

    def __init__(self) -> None:
        self.usage: Usage | None = None
        self._text = bytearray()
        self._cut = False

    def feed(self, piece: bytes, *, last: bool) -> None:
        """Take the next piece; counts are known after the last."""
        self._text += piece
        if len(self._text) > (_TAIL if self._cut else MAX_JSON):
            del self._text[:-_TAIL]
            self._cut = True
        if last:
            self.usage = self._of_tail() if self._cut else _read_document(bytes(self._text), None)

    def _of_tail(self) -> Usage | None:
        found = _USAGE.findall(self._text)
        try:
            return _usage_of(_counts.decode(found[-1]), None) if found else None
        except msgspec.DecodeError:
            return None


class EventUsage:
    """Usage of a server-sent event stream; each event that has counts adds to those before."""

    def __init__(self) -> None:
        self.usage: Usage | None = None
        self._line = b""
        self._skipping = False

    def feed(self, piece: bytes, *, last: bool) -> None:
        """Take the next piece; a line may be cut anywhere."""
        *whole, rest = (self._line + piece).split(b"\n")
        if self._skipping and whole:
            whole, self._skipping = whole[1:], False
        for line in whole:
            self._read(line)
        if last and not self._skipping:
            self._read(rest)
        self._skipping = self._skipping or len(rest) > MAX_LINE
        self._line = b"" if self._skipping else rest

    def _read(self, line: bytes) -> None:
        # Most events carry no counts: the search is far cheaper than the parse.
        if line.startswith(b"data:") and b'"usage"' in line:
            self.usage = _read_document(line[5:].strip(), self.usage)


def usage_reader(content_type: str) -> UsageReader | None:
    """The reader for a content type; None: nothing to read."""
    if content_type.startswith("text/event-stream"):
        return EventUsage()
    return JsonUsage() if content_type.startswith("application/json") else None


_KEY = b'"model"'
_BLANKS = b" \t\r\n"
_MAX_BLANKS = 16


class ModelRestorer:
    """Puts the client's name of the model back into an answer of a pod that was asked under another.

    Each `"model": "SERVED"` becomes `"model": "ASKED"`, at any depth, also when it is cut over pieces. Text inside
    strings is safe: there the quotes are escaped. Bytes that may begin a match wait for the next piece.
    """

    def __init__(self, *, served: str, asked: str) -> None:
        self._served = msgspec.json.encode(served)
        self._asked = msgspec.json.encode(asked)
        blanks = rb"[ \t\r\n]{0,%d}" % _MAX_BLANKS
        self._pattern = re.compile(b"(" + _KEY + blanks + b":" + blanks + b")" + re.escape(self._served))
        self._longest = len(_KEY) + 1 + 2 * _MAX_BLANKS + len(self._served)
        self._held = b""

    def feed(self, piece: bytes, *, last: bool) -> bytes:
        """Take the next piece; returns what can go on, which may be empty."""
        text = self._held + piece
        done: list[bytes] = []
        copied = 0
        for match in self._pattern.finditer(text):
            done += (text[copied : match.end(1)], self._asked)
            copied = match.end()
        keep = len(text) if last else self._may_begin(text, copied)
        done.append(text[copied:keep])
        self._held = text[keep:]
        return b"".join(done)

    def _may_begin(self, text: bytes, after: int) -> int:
        """Where the earliest unfinished match may begin; the text's length when none can."""
        start = text.find(b'"', max(after, len(text) - self._longest))
        while start != -1:
            if self._is_beginning(text[start:]):
                return start
            start = text.find(b'"', start + 1)
        return len(text)

    def _is_beginning(self, tail: bytes) -> bool:
        if len(tail) <= len(_KEY):
            return _KEY.startswith(tail)
        if not tail.startswith(_KEY):
            return False
        rest = tail[len(_KEY) :].lstrip(_BLANKS)
        if not rest:
            return True
        return rest[:1] == b":" and self._served.startswith(rest[1:].lstrip(_BLANKS))
