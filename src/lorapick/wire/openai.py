"""OpenAI-shaped request bodies: what routing needs of them, and the exchange of the model's name.

In: one complete JSON body. Out: a `RequestBody`, or `BodyError` with words for the client.
Prompts stay views into the body until `pieces()` reads them; the document as a whole is never built.
Not here: HTTP headers and paths, answers (see `answers.py`), and the judgement whether the fields
are right for the engine: what routing does not need may be wrong, the engine says so itself.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from lorapick.model.units import Tokens

MAX_MODEL_CHARACTERS = 512
"""Longer names are refused before anything searches for names close to them."""
_MAX_DEPTH = 5
"""Nesting that is read as text: a list of messages, a message, its list of parts, a part, and what that holds. Deeper
values count as raw JSON, so that a body of brackets costs no more than a few passes over it."""


class BodyError(ValueError):
    """The body cannot be routed; the text is for the client."""


class _Head(msgspec.Struct):
    """Fields that routing reads. Types are loose: only `model` is ours to judge."""

    model: Any = msgspec.UNSET
    stream: Any = None
    max_completion_tokens: Any = None
    max_tokens: Any = None
    max_output_tokens: Any = None
    user: Any = None
    # In the order in which chat templates put them into the prompt.
    tools: msgspec.Raw = msgspec.Raw()
    system: msgspec.Raw = msgspec.Raw()
    instructions: msgspec.Raw = msgspec.Raw()
    messages: msgspec.Raw = msgspec.Raw()
    prompt: msgspec.Raw = msgspec.Raw()
    input: msgspec.Raw = msgspec.Raw()


class _Plain(msgspec.Struct):
    """A message whose content is one text."""

    role: str
    content: str


class _Item(msgspec.Struct):
    """A message, or a part of one."""

    role: Any = None
    content: msgspec.Raw = msgspec.Raw()
    text: Any = None


_IN_TOKENS = b"0123456789,[] \t\r\n"

_head = msgspec.json.Decoder(_Head)
_plain_chat_list = msgspec.json.Decoder(list[_Plain])
_item = msgspec.json.Decoder(_Item)
_string = msgspec.json.Decoder(str)
_list = msgspec.json.Decoder(list[msgspec.Raw])


class RequestBody(msgspec.Struct, frozen=True, kw_only=True):
    """What routing reads of a body. None: the client did not say."""

    model: str | None
    stream: bool
    max_tokens: Tokens | None
    user: str | None
    prompt_tokens: Tokens | None
    """Known only when the prompt came as token ids."""
    tools: msgspec.Raw
    texts: tuple[msgspec.Raw, ...]
    """The prompt's JSON values, views into the body."""

    def pieces(self) -> Iterator[bytes]:
        """The prompt as UTF-8 text, in order, in pieces. Token ids and what is not text come as their JSON."""
        if self.tools:
            yield bytes(self.tools)
        for raw in self.texts:
            yield from _plain_chat(raw) or _pieces(raw, 0)


def read_body(body: bytes) -> RequestBody:
    """Read a complete JSON body.

    A key given twice counts as its last value, as in Python, Go and JavaScript parsers (and so in vLLM).

    Raises:
        BodyError: empty, not UTF-8, not a JSON object, or a `model` that is no usable name.
    """
    head = _decode(body)
    texts = tuple(filter(None, (head.system, head.instructions, head.messages, head.prompt, head.input)))
    return RequestBody(
        model=_model_of(head),
        stream=head.stream is True,
        max_tokens=_first_count(head.max_completion_tokens, head.max_tokens, head.max_output_tokens),
        user=head.user if isinstance(head.user, str) and head.user else None,
        prompt_tokens=_count_tokens(texts[0]) if len(texts) == 1 else None,
        tools=head.tools,
        texts=texts,
    )


def _decode(body: bytes) -> _Head:
    if not body:
        raise BodyError("the body is empty; send a JSON object")
    try:
        if not body.isascii():
            body.decode()  # the JSON reader does not look inside the strings that it skips
        return _head.decode(body)
    except UnicodeDecodeError as error:
        raise BodyError(f"the body is not UTF-8: {error.reason} at byte {error.start}") from None
    except msgspec.ValidationError as error:
        raise BodyError(f"the body is JSON, but no request: {error}") from None
    except msgspec.DecodeError as error:
        raise BodyError(f"the body is not JSON: {error}") from None
    except RecursionError:
        raise BodyError("the body is nested too deeply to be read") from None


def _model_of(head: _Head) -> str | None:
    model = head.model
    if model is msgspec.UNSET:
        return None
    if not isinstance(model, str):
        raise BodyError(f"`model` must be a string, not {_json_type(model)}")
    if not model:
        raise BodyError("`model` is an empty string; name an adapter or a base model")
    if len(model) > MAX_MODEL_CHARACTERS:
        raise BodyError(f"`model` has {len(model)} characters; at most {MAX_MODEL_CHARACTERS} are allowed")
    return model


def _json_type(value: Any) -> str:
    names = {bool: "a boolean", int: "a number", float: "a number", list: "an array", dict: "an object"}
    return names.get(type(value), "null")


def _first_count(*values: Any) -> Tokens | None:
    for value in values:
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
    return None


def _count_tokens(raw: msgspec.Raw) -> Tokens | None:
    """Tokens in an array (or array of arrays) of ids; None when it is anything else."""
    if _first(raw) != b"[":
        return None
    value = bytes(raw)
    if value.translate(None, _IN_TOKENS) or not value.strip(b"[] \t\r\n"):
        return None
    return value.count(b",") + 1  # between two ids stands exactly one comma, within an array or between two


def _first(raw: msgspec.Raw) -> bytes:
    return bytes(memoryview(raw)[:1])  # without a copy of the rest: prompts may be megabytes


def _plain_chat(raw: msgspec.Raw) -> list[bytes]:
    """Pieces of the most usual prompt by the shortest way; empty for every other. Same pieces as `_pieces`."""
    if bytes(memoryview(raw)[:2]) != b"[{":
        return []
    try:
        messages = _plain_chat_list.decode(raw)
    except msgspec.ValidationError:
        return []
    return [text.encode("utf-8", "surrogatepass") for message in messages for text in (message.role, message.content)]


def _pieces(raw: msgspec.Raw, depth: int) -> Iterator[bytes]:
    first = _first(raw)
    if first == b'"':
        yield _string.decode(raw).encode("utf-8", "surrogatepass")
    elif first == b"[" and depth < _MAX_DEPTH:
        yield from _array(raw, depth)
    elif first == b"{" and depth < _MAX_DEPTH:
        yield from _object(raw, depth)
    else:
        yield bytes(raw)


def _array(raw: msgspec.Raw, depth: int) -> Iterator[bytes]:
    if _count_tokens(raw) is not None:
        yield bytes(raw).translate(None, b" \t\r\n")
        return
    try:
        elements = _list.decode(raw)
    except RecursionError:
        yield bytes(raw)
        return
    for element in elements:
        yield from _pieces(element, depth + 1)


def _object(raw: msgspec.Raw, depth: int) -> Iterator[bytes]:
    try:
        item = _item.decode(raw)
    except RecursionError:
        yield bytes(raw)
        return
    if isinstance(item.role, str):
        yield item.role.encode("utf-8", "surrogatepass")
    if item.content:
        yield from _pieces(item.content, depth + 1)
    elif isinstance(item.text, str):
        yield item.text.encode("utf-8", "surrogatepass")
    else:
        yield bytes(raw)  # an image, a tool call: its JSON stands for it


_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}\[\]]', re.DOTALL)
_COLON = re.compile(rb"[ \t\r\n]*:[ \t\r\n]*")


def with_model(body: bytes, model: str) -> bytes:
    """The body with `model` as the value of its top-level `model`, every other byte as it was.

    Every top-level `model` is exchanged when there are several, so that no reader of the result, whichever it
    takes, sees the old name. Keys nested deeper stay. `body` must have passed `read_body`.
    """
    value = msgspec.json.encode(model)
    parts: list[bytes] = []
    copied = 0
    for start, end in _model_values(body):
        parts += (body[copied:start], value)
        copied = end
    parts.append(body[copied:])
    return b"".join(parts)


def with_fields(body: bytes, fields: Mapping[str, Any]) -> bytes:
    """The body with further top-level fields at its end, where readers take them before earlier ones of these names.

    `body` must have passed `read_body`, and have a `model`.
    """
    if not fields:
        return body
    # A JSON object that is not empty: behind its last field, before the brace.
    return body.rstrip()[:-1] + b"," + msgspec.json.encode(fields)[1:]


def _model_values(body: bytes) -> Iterator[tuple[int, int]]:
    """Byte spans of the string values of top-level `model` keys."""
    depth = 0
    value_at = -1
    for token in _TOKEN.finditer(body):
        start, end = token.span()
        first = body[start]
        if first in b"{[":
            depth += 1
        elif first in b"}]":
            depth -= 1
        elif start == value_at:
            yield start, end
        elif depth == 1 and (colon := _COLON.match(body, end)) and _is_model(body[start:end]):
            value_at = colon.end()


def _is_model(key: bytes) -> bool:
    # A key may be written with escapes ("mod\u0065l"); parsers see the same key.
    return key == b'"model"' or (b"\\" in key and _string.decode(key) == "model")
