"""Requests to vLLM or to lorapick before it, with the real `openai` client.

In: an endpoint. Out: answers with their times. Not here: what they should be.
"""

import asyncio
import itertools
import random
import time
from collections.abc import Iterable
from dataclasses import dataclass

import openai

_numbers = itertools.count()


@dataclass(frozen=True, kw_only=True)
class Ask:
    """One request; greedy."""

    id: str
    model: str
    prompt: str
    max_tokens: int = 16
    stream: bool = False
    chat: bool = False


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What came back."""

    ask: Ask
    text: str
    pod: str | None
    first_token: float
    """Seconds; for an answer that is not streamed, until all of it was there."""
    seconds: float


def new_id(label: str) -> str:
    """An id that `judge.request_id` finds again in vLLM's."""
    return f"{label}-{next(_numbers):05d}"


def client(endpoint: str) -> openai.AsyncOpenAI:
    """A client that never tries twice."""
    return openai.AsyncOpenAI(base_url=endpoint, api_key="none", max_retries=0, timeout=60.0)


async def send(to: openai.AsyncOpenAI, ask: Ask) -> Answer:
    """Send one request; raises openai's errors."""
    began = time.perf_counter()
    common = {
        "model": ask.model,
        "max_tokens": ask.max_tokens,
        "temperature": 0.0,
        "stream": ask.stream,
        "extra_headers": {"x-request-id": ask.id},
    }
    if ask.chat:
        messages = [{"role": "user", "content": ask.prompt}]
        raw = await to.chat.completions.with_raw_response.create(messages=messages, **common)
    else:
        raw = await to.completions.with_raw_response.create(prompt=ask.prompt, **common)
    answer = raw.parse()
    pieces, first = [], None
    if ask.stream:
        async for chunk in answer:
            piece = (chunk.choices[0].delta.content if ask.chat else chunk.choices[0].text) if chunk.choices else None
            if piece:
                first = first or time.perf_counter() - began
                pieces.append(piece)
    else:
        choice = answer.choices[0]
        pieces.append((choice.message.content if ask.chat else choice.text) or "")
    took = time.perf_counter() - began
    pod = raw.headers.get("x-lorapick-pod")
    return Answer(ask=ask, text="".join(pieces), pod=pod, first_token=first or took, seconds=took)


async def send_all(endpoint: str, asks: Iterable[Ask], *, at_once: int, pause: float = 0.0) -> list[Answer]:
    """Send them in this order, so many at once, each client with random pauses of up to `pause` seconds."""
    draw = random.Random(0)
    waiting = iter(asks)
    answers: list[Answer] = []

    async with client(endpoint) as to:

        async def work() -> None:
            for ask in waiting:
                answers.append(await send(to, ask))
                await asyncio.sleep(draw.random() * pause)

        await asyncio.gather(*(work() for _ in range(at_once)))
    return answers
