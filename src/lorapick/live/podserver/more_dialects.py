"""Two younger generating APIs in simple, shape-correct form: OpenAI's Responses and Anthropic's Messages.

In and out as in `dialects`. Not here: tools, reasoning, images, stored responses.
"""

from collections.abc import Iterator
from typing import ClassVar

import msgspec

from lorapick.live.podserver.answers import Answer
from lorapick.live.podserver.bodies import Message, MessagesBody, ResponsesBody, check_limit, conversation
from lorapick.live.podserver.prompts import Prompt
from lorapick.live.podserver.refusals import Json
from lorapick.model.units import Tokens


def _event(name: str, document: Json) -> bytes:
    return b"event: " + name.encode() + b"\ndata: " + msgspec.json.encode(document) + b"\n\n"


class Responses:
    """POST /v1/responses."""

    prefix: ClassVar[str] = "resp_"

    def read(self, body: ResponsesBody) -> tuple[Prompt, Tokens | None]:
        """Instructions come first, as a system message."""
        said = [Message(content=body.input)] if isinstance(body.input, str) else body.input
        opening = [Message(role="system", content=body.instructions)] if body.instructions else []
        limit = check_limit(body.max_output_tokens, "max_output_tokens")
        return conversation([*opening, *said]), limit

    def whole(self, answer: Answer) -> Json:
        """A `response` with one message."""
        ended = answer.finish_reason
        response = self._response(answer, "completed" if ended == "stop" else "incomplete")
        return {**response, "kv_transfer_params": answer.kv_transfer_params} if answer.kv_transfer_params else response

    def first(self, answer: Answer) -> Iterator[bytes]:
        """The response and its one message open."""
        response = self._response(answer, "in_progress")
        yield self._numbered("response.created", 0, {"response": response})
        yield self._numbered("response.in_progress", 1, {"response": response})
        item = self._message(answer, "in_progress") | {"content": []}
        yield self._numbered("response.output_item.added", 2, {"output_index": 0, "item": item})
        opened = {**self._place(answer), "part": self._part("")}
        yield self._numbered("response.content_part.added", 3, opened)

    def delta(self, answer: Answer, text: str, finish_reason: str | None) -> Iterator[bytes]:
        """One text event."""
        del finish_reason
        said = {**self._place(answer), "delta": text, "logprobs": []}
        yield self._numbered("response.output_text.delta", 3 + answer.output_tokens, said)

    def last(self, answer: Answer, *, include_usage: bool) -> Iterator[bytes]:
        """Everything closes; usage is always in it."""
        del include_usage
        place, number = self._place(answer), 4 + answer.output_tokens
        ended = self.whole(answer)
        yield self._numbered("response.output_text.done", number, {**place, "text": answer.text, "logprobs": []})
        yield self._numbered("response.content_part.done", number + 1, {**place, "part": self._part(answer.text)})
        item = self._message(answer, "completed")
        yield self._numbered("response.output_item.done", number + 2, {"output_index": 0, "item": item})
        name = "response.completed" if ended["status"] == "completed" else "response.incomplete"
        yield self._numbered(name, number + 3, {"response": ended})

    def broken(self, error: Json) -> Iterator[bytes]:
        """One error event."""
        yield _event("error", {"type": "error", **error})

    def _numbered(self, name: str, number: int, document: Json) -> bytes:
        return _event(name, {"type": name, "sequence_number": number, **document})

    def _place(self, answer: Answer) -> dict[str, object]:
        return {"item_id": f"msg_{answer.id.removeprefix(self.prefix)}", "output_index": 0, "content_index": 0}

    def _part(self, text: str) -> Json:
        return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}

    def _message(self, answer: Answer, status: str) -> dict[str, object]:
        content = [self._part(answer.text)]
        item_id = self._place(answer)["item_id"]
        return {"id": item_id, "type": "message", "role": "assistant", "status": status, "content": content}

    def _response(self, answer: Answer, status: str) -> Json:
        running = status == "in_progress"
        usage = {
            "input_tokens": answer.prompt_tokens,
            "input_tokens_details": {"cached_tokens": answer.cached_tokens},
            "output_tokens": answer.output_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": answer.prompt_tokens + answer.output_tokens,
        }
        return {
            "id": answer.id,
            "object": "response",
            "created_at": answer.created,
            "model": answer.model,
            "status": status,
            "error": None,
            "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
            "instructions": None,
            "metadata": {"system_fingerprint": answer.fingerprint or ""},
            "output": [] if running else [self._message(answer, "completed")],
            "parallel_tool_calls": True,
            "temperature": 1.0,
            "tool_choice": "auto",
            "tools": [],
            "top_p": 1.0,
            "usage": None if running else usage,
        }


_STOP_REASONS = {"length": "max_tokens", "stop": "end_turn"}


class Messages:
    """POST /v1/messages."""

    prefix: ClassVar[str] = "chatcmpl-"

    def read(self, body: MessagesBody) -> tuple[Prompt, Tokens | None]:
        """The system prompt is a field of its own."""
        opening = [Message(role="system", content=body.system)] if body.system else []
        return conversation([*opening, *body.messages]), check_limit(body.max_tokens, "max_tokens")

    def whole(self, answer: Answer) -> Json:
        """A `message` with one text block."""
        return self._message(answer, [{"type": "text", "text": answer.text}], _STOP_REASONS[answer.finish_reason])

    def first(self, answer: Answer) -> Iterator[bytes]:
        """The message and its one block open."""
        yield _event("message_start", {"type": "message_start", "message": self._message(answer, [], None)})
        block = {"type": "text", "text": ""}
        yield _event("content_block_start", {"type": "content_block_start", "index": 0, "content_block": block})

    def delta(self, answer: Answer, text: str, finish_reason: str | None) -> Iterator[bytes]:
        """One text event."""
        del answer, finish_reason
        delta = {"type": "text_delta", "text": text}
        yield _event("content_block_delta", {"type": "content_block_delta", "index": 0, "delta": delta})

    def last(self, answer: Answer, *, include_usage: bool) -> Iterator[bytes]:
        """Everything closes; usage is always in it."""
        del include_usage
        yield _event("content_block_stop", {"type": "content_block_stop", "index": 0})
        delta = {"stop_reason": _STOP_REASONS[answer.finish_reason], "stop_sequence": None}
        yield _event("message_delta", {"type": "message_delta", "delta": delta, "usage": self._usage(answer)})
        yield _event("message_stop", {"type": "message_stop"})

    def broken(self, error: Json) -> Iterator[bytes]:
        """One error event."""
        yield _event("error", {"type": "error", **error})

    def _usage(self, answer: Answer) -> Json:
        return {
            "input_tokens": answer.prompt_tokens,
            "output_tokens": answer.output_tokens,
            "cache_read_input_tokens": answer.cached_tokens,
        }

    def _message(self, answer: Answer, content: list[Json], stop_reason: str | None) -> Json:
        return {
            "id": answer.id,
            "type": "message",
            "role": "assistant",
            "content": content,
            "model": answer.model,
            "stop_reason": stop_reason,
            "stop_sequence": None,
            "usage": self._usage(answer),
        }
