"""Adapters' answers never mix: each is compared with what one server said to its adapter directly.

Base requests are asked apart from adapters: vLLM's CPU kernels (0.32, vllm#48421) add the adapter of the last slot to
base requests of the same step. A control without lorapick measures that.
"""

import asyncio
import random
from collections.abc import Sequence

from clients import Answer, Ask, new_id, send_all
from vllm_kit import ADAPTERS, BASE, Front, Server

PROMPTS = ("def main(", "import os, sys", "class Reader:", "raise ValueError(")
TOKENS = 12
REQUESTS, AT_ONCE = 400, 12
Texts = dict[tuple[str, str, bool], str]


def known(server: Server) -> Texts:
    """Text by model, prompt and whether it is a chat, asked one at a time."""
    asks = [
        Ask(id=new_id("known"), model=model, prompt=prompt, max_tokens=TOKENS, chat=chat)
        for model in (BASE, *ADAPTERS)
        for prompt in PROMPTS
        for chat in (False, True)
    ]
    answers = asyncio.run(send_all(f"{server.url}/v1", asks, at_once=1))
    return {(answer.ask.model, answer.ask.prompt, answer.ask.chat): answer.text for answer in answers}


def asked(endpoint: str, texts: Texts, models: Sequence[str], *, count: int, at_once: int = AT_ONCE) -> list[Answer]:
    """Answers to random requests for these models, half of them streamed."""
    draw = random.Random(4)
    kinds = [kind for kind in texts if kind[0] in models]
    asks = [
        Ask(id=new_id("answers"), model=model, prompt=prompt, chat=chat, max_tokens=TOKENS, stream=draw.random() < 0.5)
        for model, prompt, chat in draw.choices(kinds, k=count)
    ]
    return asyncio.run(send_all(endpoint, asks, at_once=at_once))


def wrong(answers: list[Answer], texts: Texts) -> list[Answer]:
    """Those that are not their own model's text."""
    return [answer for answer in answers if answer.text != texts[answer.ask.model, answer.ask.prompt, answer.ask.chat]]


def test_no_answer_is_another_adapters(fleet: Front, servers: list[Server], report: dict[str, list[str]]) -> None:
    texts = known(servers[0])
    for prompt in PROMPTS:
        for chat in (False, True):
            apart = {texts[model, prompt, chat] for model in (BASE, *ADAPTERS)}
            assert len(apart) == len(ADAPTERS) + 1, "two adapters say the same; the check would prove nothing"
    adapters = asked(fleet.endpoint, texts, ADAPTERS, count=REQUESTS)
    base = asked(fleet.endpoint, texts, (BASE,), count=60)
    control = asked(f"{servers[0].url}/v1", texts, (BASE, "ad0"), count=100, at_once=8)
    of_base = [answer for answer in wrong(control, texts) if answer.ask.model == BASE]
    asked_base = sum(answer.ask.model == BASE for answer in control)
    report["Answers"] = [
        "| requests, half of them streamed, half chats | at once | own text | other text |",
        "|---|---|---|---|",
        (
            f"| six adapters, through lorapick | {AT_ONCE} | {len(adapters) - len(wrong(adapters, texts))} |"
            f" {len(wrong(adapters, texts))} |"
        ),
        (
            f"| base model alone, through lorapick | {AT_ONCE} | {len(base) - len(wrong(base, texts))} |"
            f" {len(wrong(base, texts))} |"
        ),
        f"| control without lorapick: `base` beside `ad0`, `base` | 8 | {asked_base - len(of_base)} | {len(of_base)} |",
    ]
    assert {answer.pod for answer in adapters} == {server.name for server in servers}
    assert not wrong(adapters, texts)
    assert not wrong(base, texts)
