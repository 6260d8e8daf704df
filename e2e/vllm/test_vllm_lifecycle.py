"""Adapters loaded and unloaded through vLLM's own API while everything runs, and one server that is started anew."""

import asyncio
import threading
import time
from typing import Any

import openai

from clients import Answer, Ask, client, new_id, send, send_all
from judge import Held
from vllm_kit import ADAPTERS, Front, Server, front, post, until

LATE = "late"
"""A name that no server has at first; its weights are ad5's."""


def cells(running: Front, **where: str) -> dict[str, dict[str, Any]]:
    """Beliefs about one pod by adapter, or about one adapter by pod."""
    query = "&".join(f"{name}={value}" for name, value in where.items())
    key = "adapter" if "pod" in where else "pod"
    return {cell[key]: cell for cell in running.ask(f"/v1/residency?limit=100&{query}")["cells"]}


def asked(running: Front, model: str, count: int, *, tokens: int = 4) -> list[Answer]:
    asks = [Ask(id=new_id("lifecycle"), model=model, prompt="def main(", max_tokens=tokens) for _ in range(count)]
    return asyncio.run(send_all(running.endpoint, asks, at_once=2))


def refused(running: Front, model: str) -> str:
    """The reason why requests for a name are refused; empty: they are not."""

    async def ask() -> str:
        async with client(running.endpoint) as to:
            try:
                await send(to, Ask(id=new_id("lifecycle"), model=model, prompt="def main(", max_tokens=1))
            except openai.NotFoundError as error:
                return str(error.response.headers.get("x-lorapick-reason", "the server's own 404"))
        return ""

    return asyncio.run(ask())


def test_an_adapter_loaded_at_run_time_serves_there_until_it_is_unloaded(
    fleet: Front, servers: list[Server], report: dict[str, list[str]]
) -> None:
    there = servers[1]
    assert refused(fleet, LATE) == "adapter_unknown"
    began = time.monotonic()
    assert post(f"{there.url}/v1/load_lora_adapter", {"lora_name": LATE, "lora_path": there.path_of("ad5")})[0] == 200
    until("the picker sends requests for it", lambda: not refused(fleet, LATE), within=30)
    seen = time.monotonic() - began
    answers = asked(fleet, LATE, 10)
    assert {answer.pod for answer in answers} == {there.name}
    assert {answer.text for answer in answers} == {answer.text for answer in asked(fleet, "ad5", 1)}
    assert LATE in set(Held.of(there.record()).by_adapter)

    began = time.monotonic()
    assert post(f"{there.url}/v1/unload_lora_adapter", {"lora_name": LATE})[0] == 200
    until("the picker refuses it", lambda: refused(fleet, LATE) == "adapter_unknown", within=30)
    report["Load and unload through vLLM's API"] = [
        f"- loaded on one server: routable after {seen:.1f} s (`models_every: 1s`), ten of ten requests served there",
        f"- unloaded: 404 `adapter_unknown` after {time.monotonic() - began:.1f} s",
    ]


def test_a_server_that_starts_anew(servers: list[Server], report: dict[str, list[str]]) -> None:
    with front(servers, "restart") as running:
        for adapter in ADAPTERS:
            asked(running, adapter, 2)
        gone, other = servers
        until("something is on it", lambda: on_gpu(running, gone), within=20)
        assert state(running, gone)["restarts"] == 0
        picker = running.ask("/v1/fleet")["started_at"]
        codes: list[int] = []
        stop = threading.Event()
        background = threading.Thread(target=asyncio.run, args=(keep_asking(running, codes, stop),))
        background.start()
        try:
            time.sleep(1.0)
            gone.end(grace=0.0)
            time.sleep(4.0)
            served = Held.of(other.record()).runs
            before = len(served)
            gone.begin()
            gone.wait()
        finally:
            stop.set()
            background.join()
        until("it is ready again", lambda: state(running, gone)["ready"], within=30)
        until("its restart is noticed", lambda: noticed(running, gone, picker), within=30)
        after = cells(running, pod=gone.name)
        failed = [code for code in codes if code != 200]
        report["One server killed and started anew"] = [
            (
                f"- {len(codes)} requests, one by one, over its death and its start: {len(failed)} failed"
                f" {sorted(set(failed)) or ''}; the other ran {len(Held.of(other.record()).runs) - before} of them"
            ),
            f"- start to /health, beside a server in use: {gone.started_in:.0f} s",
            f"- believed of it right after: {sorted({cell['tier'] for cell in after.values()}) or 'none above disk'}",
        ]
        assert len(failed) <= 2, codes
        answers = asyncio.run(send_all(running.endpoint, spread(), at_once=8))
        assert gone.name in {answer.pod for answer in answers}


def spread() -> list[Ask]:
    """Requests for all adapters, so many at once that both servers are needed."""
    return [Ask(id=new_id("lifecycle"), model=adapter, prompt="def main(", max_tokens=16) for adapter in ADAPTERS * 6]


def on_gpu(running: Front, server: Server) -> list[str]:
    """Adapters that the picker believes in its slots."""
    return [name for name, cell in cells(running, pod=server.name).items() if cell["tier"].startswith("gpu")]


def noticed(running: Front, server: Server, picker: float) -> bool:
    """Whether the picker counts a restart, or knows nothing from before: a busy machine may cost a picker its life."""
    return state(running, server)["restarts"] == 1 or running.ask("/v1/fleet")["started_at"] != picker


def state(running: Front, server: Server) -> dict[str, Any]:
    """What the picker says of a pod."""
    found: dict[str, Any] = next(pod for pod in running.ask("/v1/fleet")["pods"] if pod["name"] == server.name)
    return found


async def keep_asking(running: Front, codes: list[int], stop: threading.Event) -> None:
    """One request after another over all adapters, until told to stop; the status of each."""
    async with client(running.endpoint) as to:
        number = 0
        while not stop.is_set():
            model = ADAPTERS[number % len(ADAPTERS)]
            number += 1
            try:
                await send(to, Ask(id=new_id("restart"), model=model, prompt="def main(", max_tokens=2))
                codes.append(200)
            except openai.APIStatusError as error:
                codes.append(error.status_code)
            await asyncio.sleep(0.05)
