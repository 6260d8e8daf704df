"""Six adapters for four slots: lorapick's admission beside round robin, in turns, in one run. Judges no time."""

import asyncio
import random
import statistics
import threading
import time

from clients import Ask, new_id, send_all
from judge import Held
from vllm_kit import ADAPTERS, Server, front

ARMS = {
    "weighted, default admission": {},
    "round robin": {"picking": {"policy": "round-robin"}},
}
ROUNDS, REQUESTS, AT_ONCE, TOKENS = 3, 96, 16, 24


class Deferred:
    """Requests that the servers hold back for want of a slot, looked at four times a second."""

    def __init__(self, servers: list[Server]) -> None:
        self.seen: list[float] = []
        self._servers = servers
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def _look(self) -> None:
        while not self._stop.wait(0.25):
            series = 'vllm:num_requests_waiting_by_reason{engine="0",model_name="base",reason="deferred"}'
            self.seen.append(sum(server.metric(series) for server in self._servers))

    def __enter__(self) -> "Deferred":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


def load(seed: int) -> list[Ask]:
    draw = random.Random(seed)
    return [
        Ask(id=new_id("thrash"), model=draw.choice(ADAPTERS), prompt="def main(", max_tokens=TOKENS, stream=True)
        for _ in range(REQUESTS)
    ]


def play(servers: list[Server], arm: str, number: int) -> dict[str, float]:
    """One round: requests per second, first token and whole answer in ms, loads, deferred requests."""
    with front(servers, f"thrash-{number}", **ARMS[arm]) as running:
        asyncio.run(send_all(running.endpoint, load(seed=99)[:16], at_once=AT_ONCE))
        began = time.monotonic()
        with Deferred(servers) as deferred:
            answers = asyncio.run(send_all(running.endpoint, load(seed=number // len(ARMS)), at_once=AT_ONCE))
        ended = time.monotonic()
    first, whole = (
        [1000 * value for value in times] for times in zip(*((a.first_token, a.seconds) for a in answers), strict=False)
    )
    return {
        "requests/s": len(answers) / (ended - began),
        "first token p50, ms": statistics.median(first),
        "first token p95, ms": statistics.quantiles(first, n=20)[-1],
        "whole answer p50, ms": statistics.median(whole),
        "whole answer p95, ms": statistics.quantiles(whole, n=20)[-1],
        "adapters brought into slots": sum(Held.of(server.record()).loads(began, ended) for server in servers),
        "deferred, mean of samples": statistics.fmean(deferred.seen or [0.0]),
        "deferred, most": max(deferred.seen, default=0.0),
    }


def test_admission_beside_round_robin(servers: list[Server], report: dict[str, list[str]]) -> None:
    results: dict[str, list[dict[str, float]]] = {arm: [] for arm in ARMS}
    number = 0
    for turn in range(ROUNDS):
        for arm in list(ARMS) if turn % 2 == 0 else list(reversed(ARMS)):
            results[arm].append(play(servers, arm, number))
            number += 1
    rows = []
    for name in results[next(iter(ARMS))][0]:
        figures = [[found[name] for found in results[arm]] for arm in ARMS]
        rows.append(f"| {name} | {' | '.join(spread(values) for values in figures)} |")
    report["Six adapters, four slots"] = [
        (
            f"{REQUESTS} streamed requests of {TOKENS} tokens, {AT_ONCE} at once; {ROUNDS} rounds in turns: median"
            " (least to most)."
        ),
        "",
        f"| | {' | '.join(ARMS)} |",
        f"|---|{'---|' * len(ARMS)}",
        *rows,
    ]


def spread(values: list[float]) -> str:
    return f"{statistics.median(values):.4g} ({min(values):.4g}–{max(values):.4g})"
