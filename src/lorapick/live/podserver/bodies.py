"""Request bodies: bytes to typed values, refused as vLLM refuses them.

In: content type and bytes. Out: msgspec structs that know only the fields an emulated pod heeds.
Not here: which model is meant, whether the prompt fits, or what the answer looks like (see `dialects`).

vLLM ignores unknown fields, so these do too: any sampling parameter may be sent.
"""

import re
from typing import Any, TypeVar

import msgspec

from lorapick.live.podserver.prompts import Prompt
from lorapick.live.podserver.refusals import RefusalError, bad_request, invalid_body, missing_field
from lorapick.model.units import Tokens

T = TypeVar("T")
_MISSING = re.compile(r"required field `(?P<field>\w+)`")
_PLACE = re.compile(r"^(?P<what>.*?)(?: - at `\$(?P<path>[^`]*)`)?$")
_PART = re.compile(r"\w+")
_BYTE = re.compile(r"byte (\d+)")

PromptField = str | list[str | int | list[int]]


class TextPart(msgspec.Struct):
    """One part of a message's content; only text counts."""

    type: str = "text"
    text: str = ""


class Message(msgspec.Struct):
    """One message of a conversation."""

    role: str = "user"
    content: str | list[TextPart | str] | None = None


class StreamOptions(msgspec.Struct):
    """Options of a streamed answer."""

    include_usage: bool | None = False
    continuous_usage_stats: bool | None = False


class NamedBody(msgspec.Struct, kw_only=True):
    """Fields by which engines are told who is to answer."""

    model: str | None = None
    lora_path: Any = None
    """SGLang's."""
    lora_request: Any = None
    """TensorRT-LLM's."""


class Body(NamedBody, kw_only=True):
    """What all generating bodies have in common."""

    stream: bool | None = False
    stream_options: StreamOptions | None = None
    n: int | None = 1
    kv_transfer_params: dict[str, object] | None = None
    """See `wire.kv_transfer`."""


class CompletionBody(Body, kw_only=True):
    """POST /v1/completions."""

    prompt: PromptField | None = None
    max_tokens: int | None = None


class ChatBody(Body, kw_only=True):
    """POST /v1/chat/completions."""

    messages: list[Message]
    max_tokens: int | None = None
    max_completion_tokens: int | None = None


class ResponsesBody(Body, kw_only=True):
    """POST /v1/responses."""

    input: str | list[Message]
    instructions: str | None = None
    max_output_tokens: int | None = None


class MessagesBody(Body, kw_only=True):
    """POST /v1/messages."""

    messages: list[Message]
    max_tokens: int
    system: str | list[TextPart | str] | None = None


class EmbeddingBody(NamedBody, kw_only=True):
    """POST /v1/embeddings."""

    input: PromptField | None = None
    messages: list[Message] = []
    encoding_format: str = "float"
    dimensions: int | None = None


class RerankBody(NamedBody, kw_only=True):
    """POST /rerank and /v1/rerank."""

    query: str
    documents: list[str]
    top_n: int = 0


class ScoreBody(NamedBody, kw_only=True):
    """POST /score and /v1/score."""

    text_1: str | list[str] | None = None
    text_2: str | list[str] | None = None
    queries: str | list[str] | None = None
    documents: str | list[str] | None = None


class TokenizeBody(NamedBody, kw_only=True):
    """POST /tokenize."""

    prompt: str | None = None
    messages: list[Message] = []


class LoadBody(msgspec.Struct):
    """POST /v1/load_lora_adapter."""

    lora_name: str
    lora_path: str
    load_inplace: bool = False
    pinned: bool = False
    """SGLang's."""


class UnloadBody(msgspec.Struct):
    """POST /v1/unload_lora_adapter."""

    lora_name: str
    lora_int_id: int | None = None


def read_body(kind: type[T], content_type: str, data: bytes) -> T:
    """Decode a JSON body.

    Raises:
        RefusalError: 400 with vLLM's text, for another content type, malformed JSON, or fields of the wrong type.
    """
    if content_type.split(";", 1)[0].strip().lower() != "application/json":
        message = "1 validation error:\n  Unsupported Media Type: Only 'application/json' is allowed"
        raise RefusalError(400, "Bad Request", message)
    try:
        given = msgspec.json.decode(data)
    except msgspec.DecodeError as error:
        at = _BYTE.search(str(error))
        place = ("body", int(at[1]) if at else len(data))
        raise invalid_body("json_invalid", place, f"JSON decode error: {error}", {}) from None
    except RecursionError:
        raise invalid_body("json_invalid", ("body", 0), "JSON decode error: nested too deeply", {}) from None
    try:
        return msgspec.convert(given, kind)
    except msgspec.ValidationError as error:
        raise _wrong_field(str(error), given) from None


def _wrong_field(message: str, given: object) -> RefusalError:
    missing = _MISSING.search(message)
    if missing:
        return missing_field(missing["field"], given)
    parts = _PLACE.match(message)
    assert parts is not None, message
    place = tuple(_PART.findall(parts["path"] or ""))
    return invalid_body("value_error", ("body", *place), parts["what"], given)


def one_prompt(field: PromptField | None) -> Prompt:
    """The prompt of a completion: text, token ids, or a list with one of these.

    Raises:
        RefusalError: nothing in it, a mixture, or more than one prompt (vLLM takes several, the emulated pod one).
    """
    if not field:
        raise bad_request("Either prompt or prompt_embeds must be provided and non-empty.", param="prompt")
    if isinstance(field, list) and not isinstance(field[0], int):
        if len(field) > 1:
            raise bad_request(f"{len(field)} prompts in one request; the emulated pod takes one", param="prompt")
        only = field[0]
        return Prompt.of_text(only) if isinstance(only, str) else Prompt.of_ids(only)
    return prompts_of(field)[0]


def prompts_of(field: PromptField | None) -> list[Prompt]:
    """Each prompt of a field that may hold several.

    Raises:
        RefusalError: token ids and texts are mixed.
    """
    if isinstance(field, str):
        return [Prompt.of_text(field)]
    items = field or []
    ids = [item for item in items if isinstance(item, int)]
    if ids and len(ids) == len(items):
        return [Prompt.of_ids(ids)]
    if ids:
        raise bad_request("token ids and texts are mixed in one list; send one kind", param="prompt")
    texts = [item for item in items if not isinstance(item, int)]
    return [Prompt.of_text(item) if isinstance(item, str) else Prompt.of_ids(item) for item in texts]


def conversation(messages: list[Message]) -> Prompt:
    """The prompt that a plain chat template makes of a conversation.

    Raises:
        RefusalError: there is no message.
    """
    if not messages:
        raise bad_request("messages must hold at least one message", param="messages")
    turns = (f"<|{message.role}|>\n{text_of(message.content)}\n" for message in messages)
    return Prompt.of_text("".join(turns) + "<|assistant|>\n")


def text_of(content: str | list[TextPart | str] | None) -> str:
    """The text of a message's content; other parts (images, audio) do not count."""
    if content is None or isinstance(content, str):
        return content or ""
    return "".join(part if isinstance(part, str) else part.text for part in content)


def check_limit(limit: Tokens | None, name: str) -> Tokens | None:
    """A token limit that a client sent.

    Raises:
        RefusalError: it is below 1.
    """
    if limit is not None and limit < 1:
        raise bad_request(f"{name} must be at least 1, got {limit}.", param=name)
    return limit


def check_stream(body: Body) -> None:
    """Refuse what vLLM refuses of a body's streaming fields, and more than one answer.

    Raises:
        RefusalError: `stream_options` without `stream`, or `n` other than 1.
    """
    if body.stream_options is not None and not body.stream:
        raise bad_request("Stream options can only be defined when `stream=True`.", param="stream_options")
    if body.n not in (None, 1):
        raise bad_request(f"n is {body.n}; the emulated pod gives one answer per request", param="n")
