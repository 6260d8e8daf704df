"""Fault switches: what they take, and what a held request goes through."""

import asyncio

import msgspec
import pytest

from lorapick.live.podserver.faults import Faults, FaultSwitch, FaultyRoutes


async def echo(scope, receive, send) -> None:
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message["body"], message["more_body"]
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


class Exchange:
    """One request in memory: what the client sends, and what came back."""

    def __init__(self, switch: FaultSwitch, path: str) -> None:
        self._sent: asyncio.Queue = asyncio.Queue()
        self.came: list[dict] = []
        scope = {"type": "http", "path": path, "method": "POST", "headers": []}
        self.task = asyncio.create_task(FaultyRoutes(echo, switch)(scope, self._sent.get, self._keep))

    async def _keep(self, message: dict) -> None:
        self.came.append(message)

    def send(self, body: bytes, *, more: bool) -> None:
        self._sent.put_nowait({"type": "http.request", "body": body, "more_body": more})

    def leave(self) -> None:
        self._sent.put_nowait({"type": "http.disconnect"})


async def test_a_held_request_keeps_its_body_in_order() -> None:
    switch = FaultSwitch(Faults(requests="hang"))
    exchange = Exchange(switch, "/v1/completions")
    exchange.send(b"one ", more=True)
    await asyncio.sleep(0.01)
    exchange.send(b"two", more=False)
    await asyncio.sleep(0.01)
    assert not exchange.came
    switch.set(Faults())
    await exchange.task
    assert exchange.came[-1]["body"] == b"one two"


async def test_a_client_that_leaves_ends_its_wait() -> None:
    exchange = Exchange(FaultSwitch(Faults(metrics="hang")), "/metrics")
    exchange.leave()
    await exchange.task
    assert exchange.came == []


async def test_a_changed_fault_that_still_hangs_goes_on_hanging() -> None:
    switch = FaultSwitch(Faults(metrics="hang"))
    exchange = Exchange(switch, "/metrics")
    await asyncio.sleep(0.01)
    switch.set(Faults(metrics="hang", health="error"))
    await asyncio.sleep(0.01)
    assert not exchange.task.done()
    switch.set(Faults(metrics="error"))
    await exchange.task
    assert exchange.came[0]["status"] == 503


async def test_each_path_suffers_its_own_fault_and_the_emulator_none() -> None:
    switch = FaultSwitch(Faults(metrics="error", requests="error", health="error"))
    statuses = {}
    for path in ("/metrics", "/v1/models", "/health", "/ping", "/emulator/faults"):
        exchange = Exchange(switch, path)
        exchange.send(b"", more=False)
        await exchange.task
        statuses[path] = exchange.came[0]["status"]
    assert statuses == {"/metrics": 503, "/v1/models": 500, "/health": 503, "/ping": 503, "/emulator/faults": 200}


def test_a_change_names_only_what_it_changes() -> None:
    faults = Faults(metrics="hang", metrics_lag=5.0)
    assert faults.merged(b'{"requests": "error"}') == Faults(metrics="hang", metrics_lag=5.0, requests="error")
    assert faults.merged(b"{}") == faults


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (b'{"metrics": "purple"}', "purple"),
        (b'{"colour": 1}', "colour"),
        (b'{"metrics_lag": -1}', "metrics_lag is -1.0 s; it must be 0 or more"),
        (b"[]", "object"),
        (b"{", "truncated"),
    ],
)
def test_other_changes_are_refused_with_the_value(change: bytes, part: str) -> None:
    with pytest.raises(msgspec.DecodeError, match=part):
        Faults().merged(change)
