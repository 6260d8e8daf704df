"""The generating APIs: how each reads its prompt and how it words an answer, whole or in server-sent events.

In: typed bodies (`bodies`), an `Answer`. Out: a prompt and a limit; JSON documents and SSE bytes with vLLM's fields.
Not here: running the request (see `generate`), errors' texts (see `refusals`).

vLLM 0.32 writes streamed chunks without the fields it did not set, and whole answers with all fields, null included.
"""

from collections.abc import Iterator
from typing import ClassVar, Generic, Protocol, TypeVar

import msgspec

from lorapick.live.podserver.answers import Answer
from lorapick.live.podserver.bodies import (
    Body,
    ChatBody,
    CompletionBody,
    check_limit,
    conversation,
    one_prompt,
)
from lorapick.live.podserver.prompts import Prompt
from lorapick.live.podserver.refusals import Json
from lorapick.model.units import Tokens

B_contra = TypeVar("B_contra", bound=Body, contravariant=True)
DONE = b"data: [DONE]\n\n"


class Dialect(Protocol, Generic[B_contra]):
    """One API."""

    prefix: ClassVar[str]
    """Of answer ids."""

    def read(self, body: B_contra) -> tuple[Prompt, Tokens | None]:
        """The prompt and the most output tokens that the client wants; None: it did not say."""
        ...

    def whole(self, answer: Answer) -> Json:
        """The body of an answer that is not streamed."""
        ...

    def first(self, answer: Answer) -> Iterator[bytes]:
        """Events before the first token's, sent with it."""
        ...

    def delta(self, answer: Answer, text: str, finish_reason: str | None) -> Iterator[bytes]:
        """Events for new tokens; `finish_reason` is None until the last ones."""
        ...

    def last(self, answer: Answer, *, include_usage: bool) -> Iterator[bytes]:
        """Events after the last token's."""
        ...

    def broken(self, error: Json) -> Iterator[bytes]:
        """Events when the engine gives up after the headers are out."""
        ...


def sse(document: Json) -> bytes:
    """One event of an OpenAI stream."""
    return b"data: " + msgspec.json.encode(document) + b"\n\n"


def usage_of(answer: Answer) -> Json:
    """Token counts, `prompt_tokens_details` included (vLLM: --enable-prompt-tokens-details)."""
    return {
        "prompt_tokens": answer.prompt_tokens,
        "total_tokens": answer.prompt_tokens + answer.output_tokens,
        "completion_tokens": answer.output_tokens,
        "prompt_tokens_details": {"cached_tokens": answer.cached_tokens},
    }


class OpenAIStream:
    """What completions and chat completions have in common."""

    whole_object: ClassVar[str]
    chunk_object: ClassVar[str]

    def _chunk(self, answer: Answer, choices: list[Json]) -> dict[str, object]:
        head = {"id": answer.id, "object": self.chunk_object, "created": answer.created, "model": answer.model}
        return {**head, "choices": choices}

    def _whole(self, answer: Answer, choice: Json) -> dict[str, object]:
        return {
            "id": answer.id,
            "object": self.whole_object,
            "created": answer.created,
            "model": answer.model,
            "choices": [choice],
            "service_tier": None,
            "system_fingerprint": answer.fingerprint,
            "usage": usage_of(answer),
        }

    def last(self, answer: Answer, *, include_usage: bool) -> Iterator[bytes]:
        """The usage chunk, when asked for, and the end mark."""
        if include_usage:
            tail = {"usage": usage_of(answer), "system_fingerprint": answer.fingerprint}
            yield sse(self._chunk(answer, []) | tail)
        yield DONE

    def broken(self, error: Json) -> Iterator[bytes]:
        """The error as a chunk, and the end mark."""
        yield sse(error)
        yield DONE


class Completions(OpenAIStream):
    """POST /v1/completions."""

    prefix: ClassVar[str] = "cmpl-"
    whole_object: ClassVar[str] = "text_completion"
    chunk_object: ClassVar[str] = "text_completion"

    def read(self, body: CompletionBody) -> tuple[Prompt, Tokens | None]:
        """Without a limit vLLM generates 16 tokens."""
        limit = check_limit(body.max_tokens, "max_tokens")
        return one_prompt(body.prompt), 16 if limit is None else limit

    def whole(self, answer: Answer) -> Json:
        """A `text_completion`."""
        choice = {
            "index": 0,
            "text": answer.text,
            "logprobs": None,
            "finish_reason": answer.finish_reason,
            "stop_reason": None,
            "token_ids": None,
            "prompt_logprobs": None,
            "prompt_token_ids": None,
        }
        return self._whole(answer, choice) | {"kv_transfer_params": answer.kv_transfer_params}

    def first(self, answer: Answer) -> Iterator[bytes]:
        """Nothing comes before the first token."""
        del answer
        yield from ()

    def delta(self, answer: Answer, text: str, finish_reason: str | None) -> Iterator[bytes]:
        """One chunk."""
        choice = {"index": 0, "text": text, "logprobs": None, "finish_reason": finish_reason, "stop_reason": None}
        chunk = self._chunk(answer, [choice])
        if finish_reason is not None:
            chunk["system_fingerprint"] = answer.fingerprint
        yield sse(chunk)


class Chat(OpenAIStream):
    """POST /v1/chat/completions."""

    prefix: ClassVar[str] = "chatcmpl-"
    whole_object: ClassVar[str] = "chat.completion"
    chunk_object: ClassVar[str] = "chat.completion.chunk"

    def read(self, body: ChatBody) -> tuple[Prompt, Tokens | None]:
        """The newer name of the limit wins."""
        newer = check_limit(body.max_completion_tokens, "max_completion_tokens")
        older = check_limit(body.max_tokens, "max_tokens")
        return conversation(body.messages), newer if newer is not None else older

    def whole(self, answer: Answer) -> Json:
        """A `chat.completion`."""
        message = {
            "role": "assistant",
            "content": answer.text,
            "refusal": None,
            "annotations": None,
            "audio": None,
            "function_call": None,
            "reasoning": None,
        }
        choice = {
            "index": 0,
            "message": message,
            "logprobs": None,
            "finish_reason": answer.finish_reason,
            "stop_reason": None,
            "token_ids": None,
        }
        tail = {"prompt_logprobs": None, "prompt_token_ids": None}
        return self._whole(answer, choice) | tail | {"kv_transfer_params": answer.kv_transfer_params}

    def first(self, answer: Answer) -> Iterator[bytes]:
        """The role, with no text yet."""
        delta = {"role": "assistant", "content": ""}
        yield sse(self._chunk(answer, [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}]))

    def delta(self, answer: Answer, text: str, finish_reason: str | None) -> Iterator[bytes]:
        """One chunk."""
        choice: dict[str, object] = {
            "index": 0,
            "delta": {"content": text},
            "logprobs": None,
            "finish_reason": finish_reason,
        }
        if finish_reason is not None:
            choice["stop_reason"] = None
        chunk = self._chunk(answer, [choice])
        if finish_reason is not None:
            chunk["system_fingerprint"] = answer.fingerprint
        yield sse(chunk)
