"""Routes that answer with one step of the engine: embeddings, reranking, scores; and tokenizing, which needs none.

In: HTTP requests. Out: documents with vLLM's fields and numbers that depend on adapter and text only.
Not here: real embeddings, real tokens.

Each embedding, reranking or scoring request occupies the pod model like a request for one output token.
"""

import base64
import struct
import time
from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response

from lorapick.live.podserver.bodies import (
    EmbeddingBody,
    RerankBody,
    ScoreBody,
    TokenizeBody,
    conversation,
    prompts_of,
    read_body,
)
from lorapick.live.podserver.generate import Generator
from lorapick.live.podserver.json_response import MsgspecResponse
from lorapick.live.podserver.meanings import Meant
from lorapick.live.podserver.prompts import Prompt, Voice
from lorapick.live.podserver.refusals import Json, bad_request
from lorapick.model.units import AdapterName, Tokens

DEFAULT_DIMENSIONS = 16
MOST_DIMENSIONS = 16_384
MOST_ITEMS = 2048
MOST_NUMBERS = 500_000
"""Numbers of all vectors of one answer; a million take the pod a second."""


class Pooling:
    """The one-step routes of one pod."""

    def __init__(self, generator: Generator) -> None:
        self._generator = generator

    async def embeddings(self, request: Request) -> Response:
        """POST /v1/embeddings."""
        body = read_body(EmbeddingBody, request.headers.get("content-type", ""), await request.body())
        prompts = [conversation(body.messages)] if body.messages else prompts_of(body.input)
        _require(prompts, "input")
        meant = await self._generator.meant(body)
        adapter = meant.adapter
        dimensions = _dimensions(body.dimensions, len(prompts))
        packed = body.encoding_format == "base64"
        vectors = [_vector(adapter, prompt, dimensions=dimensions, packed=packed) for prompt in prompts]
        rows = [{"index": at, "object": "embedding", "embedding": vector} for at, vector in enumerate(vectors)]
        document = {"object": "list", "data": rows}
        return await self._respond(request, prompts, prefix="embd-", meant=meant, document=document)

    async def rerank(self, request: Request) -> Response:
        """POST /rerank, /v1/rerank, /v2/rerank."""
        body = read_body(RerankBody, request.headers.get("content-type", ""), await request.body())
        _require(body.documents, "documents")
        meant = await self._generator.meant(body)
        adapter = meant.adapter
        prompts = [Prompt.of_text(f"{body.query}\n{text}") for text in body.documents]
        scores = [_score(adapter, prompt) for prompt in prompts]
        order = sorted(range(len(scores)), key=lambda index: -scores[index])
        results = [
            {"index": index, "document": {"text": body.documents[index]}, "relevance_score": scores[index]}
            for index in order[: body.top_n or None]
        ]
        document = {"results": results}
        return await self._respond(request, prompts, prefix="rerank-", meant=meant, document=document)

    async def score(self, request: Request) -> Response:
        """POST /score, /v1/score: each left text with each right one, or pairwise when there are as many."""
        body = read_body(ScoreBody, request.headers.get("content-type", ""), await request.body())
        left = _texts(body.text_1 if body.text_1 is not None else body.queries)
        right = _texts(body.text_2 if body.text_2 is not None else body.documents)
        _require(left, "text_1")
        _require(right, "text_2")
        if len(left) not in (1, len(right)):
            raise bad_request(f"{len(left)} left texts do not go with {len(right)} right ones; send 1 or as many")
        meant = await self._generator.meant(body)
        adapter = meant.adapter
        lefts = left * len(right) if len(left) == 1 else left
        prompts = [Prompt.of_text(f"{a}\n{b}") for a, b in zip(lefts, right, strict=True)]
        rows = [
            {"index": index, "object": "score", "score": _score(adapter, prompt)}
            for index, prompt in enumerate(prompts)
        ]
        document = {"object": "list", "data": rows}
        return await self._respond(request, prompts, prefix="score-", meant=meant, document=document)

    async def tokenize(self, request: Request) -> Response:
        """POST /tokenize. In vLLM the front end does this alone, so the engine is not asked here either."""
        body = read_body(TokenizeBody, request.headers.get("content-type", ""), await request.body())
        adapter = (await self._generator.meant(body)).adapter
        prompt = conversation(body.messages) if body.prompt is None else Prompt.of_text(body.prompt)
        step = prompt.width
        ids = [int.from_bytes(prompt.data[at : at + step], "little") for at in range(0, len(prompt.data), step)]
        limit = self._generator.options.config.max_model_len
        document = {"count": len(ids), "max_model_len": limit, "tokens": ids, "token_strs": None}
        return MsgspecResponse(document, headers=self._generator.headers(adapter))

    async def _respond(
        self, request: Request, prompts: Sequence[Prompt], *, prefix: str, meant: Meant, document: Json
    ) -> Response:
        """Occupy the engine for one step with all prompts together, then answer."""
        generator = self._generator
        whole = Prompt(b"".join(prompt.data for prompt in prompts), prompts[0].width)
        ticket = generator.submit(meant.adapter, whole, output=1, finish_reason="stop")
        await generator.finish(request, ticket)
        head = {
            "id": generator.answer_id(prefix, request),
            "created": int(time.time()),
            "model": meant.shown,
        }
        usage = _usage(sum(prompt.tokens for prompt in prompts))
        return MsgspecResponse(
            {**head, **document, "usage": usage}, headers=generator.headers(meant.adapter, ticket.tier)
        )


def _usage(tokens: Tokens) -> Json:
    return {"prompt_tokens": tokens, "total_tokens": tokens, "completion_tokens": 0, "prompt_tokens_details": None}


def _vector(adapter: AdapterName | None, prompt: Prompt, *, dimensions: int, packed: bool) -> list[float] | str:
    numbers = Voice(adapter, prompt).numbers(dimensions)
    if not packed:
        return numbers
    return base64.b64encode(struct.pack(f"<{dimensions}f", *numbers)).decode()


def _score(adapter: AdapterName | None, prompt: Prompt) -> float:
    return (Voice(adapter, prompt).numbers(1)[0] + 1.0) / 2.0


def _texts(field: str | list[str] | None) -> list[str]:
    return [field] if isinstance(field, str) else field or []


def _dimensions(asked: int | None, prompts: int) -> int:
    """Length of each vector. Numbers are made on the pod's one thread, so that there may not be too many of them."""
    dimensions = DEFAULT_DIMENSIONS if asked is None else asked
    if not 1 <= dimensions <= MOST_DIMENSIONS:
        raise bad_request(f"dimensions is {dimensions}; it must be 1 to {MOST_DIMENSIONS}", param="dimensions")
    if dimensions * prompts > MOST_NUMBERS:
        message = f"{prompts} inputs of {dimensions} dimensions are more than {MOST_NUMBERS} numbers; send fewer inputs"
        raise bad_request(message, param="dimensions")
    return dimensions


def _require(items: Sequence[object], name: str) -> None:
    if len(items) > MOST_ITEMS:
        raise bad_request(f"{name} has {len(items)} items; the emulated pod takes {MOST_ITEMS}", param=name)
    if not items:
        raise bad_request(f"{name} must be provided and non-empty.", param=name)
