"""Requests go where their adapter is, base requests anywhere, unknown names nowhere."""

import asyncio
import subprocess
import sys

import openai
import pytest

from clients import Ask, client, new_id, send, send_all
from judge import Held
from vllm_kit import ADAPTERS, BASE, Front, Server


def ran_on(servers: list[Server], request: str) -> list[str]:
    """Servers whose worker ran this request."""
    return [server.name for server in servers if request in Held.of(server.record()).runs]


def test_an_adapters_requests_go_to_one_server_and_run_there(fleet: Front, servers: list[Server]) -> None:
    for adapter in ADAPTERS[:2]:
        asks = [Ask(id=new_id("routing"), model=adapter, prompt="def main(", max_tokens=4) for _ in range(8)]
        answers = asyncio.run(send_all(fleet.endpoint, asks, at_once=1))
        (pod,) = {answer.pod for answer in answers}
        for answer in answers:
            assert ran_on(servers, answer.ask.id) == [pod]


def test_base_requests_go_anywhere(fleet: Front, servers: list[Server]) -> None:
    asks = [Ask(id=new_id("base"), model=BASE, prompt=f"number {n}", max_tokens=48) for n in range(40)]
    answers = asyncio.run(send_all(fleet.endpoint, asks, at_once=8))
    assert {answer.pod for answer in answers} == {server.name for server in servers}


def test_an_unknown_model_is_a_404(fleet: Front) -> None:
    async def ask() -> None:
        async with client(fleet.endpoint) as to:
            await send(to, Ask(id=new_id("unknown"), model="nobody", prompt="Hello"))

    with pytest.raises(openai.NotFoundError) as caught:
        asyncio.run(ask())
    assert caught.value.response.headers["x-lorapick-reason"] == "adapter_unknown"


def test_the_picker_says_why(fleet: Front) -> None:
    ask = Ask(id=new_id("explain"), model="ad1", prompt="Hello", max_tokens=2)
    (answer,) = asyncio.run(send_all(fleet.endpoint, [ask], at_once=1))
    command = (sys.executable, "-m", "lorapick.cli.main", "explain", ask.id, "--admin", fleet.admin)
    told = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
    assert f"ad1 went to {answer.pod}" in told
    assert "gpu" in told


def test_models_of_both_servers_are_listed_once(fleet: Front) -> None:
    async def names() -> list[str]:
        async with client(fleet.endpoint) as to:
            return sorted([model.id async for model in to.models.list()])

    assert asyncio.run(names()) == [*ADAPTERS, BASE]
