"""What the picker believed at each decision, against what vLLM's worker held, by the worker's own record."""

import asyncio
import random
import statistics

import pytest
import zmq

from clients import Ask, client, new_id, send, send_all
from judge import Held, Share, Verdict, judge, mistakes, shares, table
from lorapick.wire.kv_events import decode
from vllm_kit import ADAPTERS, BASE, Front, Server, front

WORDS = ("def", "return", "import", "class", "self", "None", "raise", "yield", "lambda", "while", "path", "value")
PAUSE = 0.2
"""Seconds at most between an answer and the next request of that client."""
OPEN = {
    "admission": {"slot_budget": False, "max_wait": "0s"},
    "budgets": {"loads_at_once": 99, "pods_loading_share": 1},
}
"""Nobody holds requests back, so that servers meet more adapters than they have slots."""


def traffic(count: int, *, seed: int) -> list[Ask]:
    """Six adapters alike and a tenth for the base model, in random order, of random length, half of them streamed."""
    draw = random.Random(seed)
    asks = []
    for _ in range(count):
        model = BASE if draw.random() < 0.1 else draw.choice(ADAPTERS)
        prompt = " ".join(draw.choices(WORDS, k=draw.randint(2, 80)))
        stream, tokens = draw.random() < 0.5, draw.randint(2, 16)
        asks.append(Ask(id=new_id("belief"), model=model, prompt=prompt, max_tokens=tokens, stream=stream))
    return asks


def subscribe(servers: list[Server]) -> tuple[zmq.Context[zmq.Socket[bytes]], dict[str, zmq.Socket[bytes]]]:
    """Listen to the servers' KV events beside the picker."""
    context = zmq.Context()
    sockets = {}
    for server in servers:
        sockets[server.name] = socket = context.socket(zmq.SUB)
        socket.setsockopt(zmq.LINGER, 0)
        socket.set_hwm(0)
        socket.connect(server.kv_events)
        socket.subscribe(b"")
    return context, sockets


def published(sockets: dict[str, zmq.Socket[bytes]]) -> dict[str, list[str]]:
    """Adapters that each server named, once per message."""
    named: dict[str, list[str]] = {}
    for name, socket in sockets.items():
        named[name] = []
        while socket.poll(200):
            named[name] += decode(socket.recv_multipart()).adapters
        socket.close()
    return named


def played(servers: list[Server], running: Front, asks: list[Ask], *, at_once: int) -> list[Verdict]:
    """Play, and judge every decision of this picker."""
    answers = asyncio.run(send_all(running.endpoint, asks, at_once=at_once, pause=PAUSE))
    assert len(answers) == len(asks)
    held = {server.name: Held.of(server.record()) for server in servers}
    return judge(running.decisions(), held)


def test_belief_with_default_admission(servers: list[Server], report: dict[str, list[str]]) -> None:
    context, sockets = subscribe(servers)
    with front(servers, "belief-default") as running:
        verdicts = played(servers, running, traffic(400, seed=1), at_once=6)
        sent = {(row["pod"], row["adapter"]) for row in running.decisions()}
    named = published(sockets)
    context.term()
    true = [(name, adapter) in sent for name, adapters in named.items() for adapter in adapters]
    report["Belief, default admission"] = [
        "400 requests, 6 clients, pauses up to 0.2 s; a picker that has just started, before servers that are warm.",
        "",
        *table(verdicts),
        "",
        *mistakes(verdicts),
        (
            f"- KV messages that named an adapter (another subscriber beside the picker): {len(true)},"
            f" of adapters that the picker had sent there: {sum(true)}"
        ),
    ]
    assert all(true) and len(true) > 50
    _, run = shares(verdicts)
    assert run.value >= 0.95


def test_belief_when_nobody_holds_requests_back(servers: list[Server], report: dict[str, list[str]]) -> None:
    with front(servers, "belief-open", **OPEN) as running:
        verdicts = played(servers, running, traffic(300, seed=2), at_once=8)
    report["Belief, no slot budget"] = [
        "300 requests, 8 clients with pauses up to 0.2 s, `slot_budget: false`, loads unlimited: servers defer.",
        "",
        *table(verdicts),
        "",
        *mistakes(verdicts),
    ]
    _, run = shares(verdicts)
    assert run.value >= 0.85


@pytest.mark.parametrize(("tier", "count"), [("gpu", 1), ("cpu", 4), ("disk", 6)])
def test_first_token_times(servers: list[Server], report: dict[str, list[str]], tier: str, count: int) -> None:
    """Rotating over so many adapters, each is found on the GPU, in host memory, or on disk."""
    server = servers[0]
    adapters = ADAPTERS[:count]

    async def rotate() -> list[float]:
        times = []
        async with client(f"{server.url}/v1") as to:
            for number in range(12 * len(ADAPTERS)):
                adapter = adapters[number % count]
                ask = Ask(id=new_id(f"first{tier}"), model=adapter, prompt="def main(", max_tokens=2, stream=True)
                times.append((await send(to, ask)).first_token)
        return times[2 * len(ADAPTERS) :]

    times = asyncio.run(rotate())
    runs = Held.of(server.record()).runs
    met = [found for request, (_, found) in runs.items() if request.startswith(f"first{tier}-")][2 * len(ADAPTERS) :]
    assert Share(met.count(tier), len(met)).value == 1.0
    rows = report.setdefault(
        "First token by tier, one server, no lorapick",
        ["| tier (by the worker's record) | p50 ms | p90 ms | n |", "|---|---|---|---|"],
    )
    deciles = statistics.quantiles([1000 * t for t in times], n=10)
    rows.append(f"| {tier} | {deciles[4]:.1f} | {deciles[8]:.1f} | {len(times)} |")
