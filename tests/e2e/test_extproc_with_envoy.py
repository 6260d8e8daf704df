"""Our ext_proc server behind a real Envoy: what clients, pods and the picker see."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator

import pytest
from envoy_kit import Bench, becomes_true, bench

from lorapick.live.envoy import process
from lorapick.live.envoy.config import EnvoySettings, bootstrap
from lorapick.live.extproc_server import ExtProcServer
from lorapick.model.profiles import AttributeReport, HttpNames, Profiles
from lorapick.model.reasons import Reason
from lorapick.model.requests import Outcome
from lorapick.model.settings import PickingSettings, ServerSettings, Settings
from lorapick.testing import extproc as gateway
from lorapick.testing.profiles import profile

pytestmark = pytest.mark.e2e

MODES = pytest.mark.parametrize("body", ["buffered", "full_duplex_streamed"])
OBSERVE = pytest.mark.parametrize("observe", ["headers", "bodies"])


@contextlib.asynccontextmanager
async def stack(
    picker: gateway.ScriptedPicker, *, body: str, observe: str = "headers", profiles: Profiles | None = None
) -> AsyncIterator[tuple[Bench, ExtProcServer]]:
    async with bench() as this:
        settings = Settings(
            server=ServerSettings(body=body, observe=observe, max_body=1_000_000, drain_timeout=1.0),
            picking=PickingSettings(profiles=profiles),
        )
        server = ExtProcServer(picker, settings, address=this.picker_address())
        await server.start()
        try:
            await this.start_envoy(body=body, observe=observe, max_body=1_000_000)
            picker.endpoint = this.pods[0].address
            yield this, server
        finally:
            await this.envoy.stop()
            await server.stop()


async def ended(picker: gateway.ScriptedPicker) -> tuple[object, ...]:
    for _ in range(500):
        if picker.heard and picker.heard[-1][0] == "ended":
            return picker.heard[-1]
        await asyncio.sleep(0.01)
    raise AssertionError(picker.heard)


@MODES
@OBSERVE
async def test_the_picked_pod_serves_and_gets_the_clients_bytes(body: str, observe: str) -> None:
    picker = gateway.ScriptedPicker()
    async with stack(picker, body=body, observe=observe) as (this, server):
        for pod in (*this.pods, *this.pods):
            for size in (10, 200_000):
                picker.answer = gateway.dispatch(pod.address)
                data = b'{"model":"ad0","prompt":"%s"}' % (b"x" * size)
                status, answer, headers = await this.post(data=data)
                assert (status, answer["port"], answer["bytes"]) == (200, pod.port, len(data))
                assert headers["x-lorapick-pod"] == f"pod-{pod.port}"
                assert (await ended(picker))[2:4] == (Outcome.SERVED, 200)
                assert picker.heard[1:3] == [
                    ("dispatched", "r1", pod.address),
                    ("started", "r1", 200),
                ]
                told = [call[0] for call in picker.heard].count("body_started")
                assert told == (1 if observe == "bodies" else 0)
                picker.heard.clear()
        assert (server.counts.protocol_errors, server.counts.stream_errors) == (0, 0)


@MODES
@pytest.mark.parametrize("model", ["a-much-longer-name@7", "b"])
async def test_another_model_reaches_the_pod(body: str, model: str) -> None:
    picker = gateway.ScriptedPicker()
    async with stack(picker, body=body) as (this, _):
        picker.answer = gateway.dispatch(this.pods[1].address, model=model)
        data = b'{"model": "ad0", "prompt": "Hello"}'
        status, answer, _ = await this.post(data=data)
        assert status == 200
        assert (answer["port"], answer["bytes"]) == (this.pods[1].port, len(data) - len("ad0") + len(model))


@MODES
async def test_a_fallback_serves_when_the_pick_is_dead(body: str) -> None:
    picker = gateway.ScriptedPicker()
    async with stack(picker, body=body) as (this, _):
        dead, alive = this.pods[0].address, this.pods[1].address
        await this.pods[0].stop()
        picker.answer = gateway.dispatch(dead, alive, pods=["dead", "alive"])
        status, answer, headers = await this.post()
        assert (status, answer["port"], headers["x-lorapick-pod"]) == (200, this.pods[1].port, "alive")
        await ended(picker)
        assert ("dispatched", "r1", alive) in picker.heard


@MODES
async def test_what_bad_input_gets(body: str) -> None:
    picker = gateway.ScriptedPicker()
    async with stack(picker, body=body) as (this, server):
        cases = [(b"{", 400, "body_invalid"), (b"{}", 400, "body_invalid"), (b"", 400, "body_invalid")]
        for data, expected, reason in (*cases, (b"x" * 1_000_001, 413, "body_too_large")):
            status, answer, headers = await this.post(data=data)
            assert (status, headers["x-lorapick-reason"]) == (expected, reason)
            assert headers["content-type"] == "application/json"
            assert answer["error"]["code"] == expected
        picker.answer = gateway.reject(Reason.QUEUE_FULL, "all full", retry_after=3)
        status, answer, headers = await this.post()
        assert (status, headers["retry-after"], headers["x-lorapick-reason"]) == (429, "3", "queue_full")
        assert answer["error"]["message"] == "all full"
        assert server.counts.refused == {"body_invalid": 3, "body_too_large": 1}
        assert [call[0] for call in picker.heard] == ["refused"] * 4 + ["decide"]


@MODES
async def test_requests_without_a_body(body: str) -> None:
    picker = gateway.ScriptedPicker()
    async with stack(picker, body=body) as (this, _):
        async with this.session.get(this.url + "/v1/models") as response:
            assert [card["id"] for card in (await response.json())["data"]] == ["base", "ad0"]
        async with this.session.get(this.url + "/version") as response:
            assert (await response.json())["port"] == this.pods[0].port


@MODES
async def test_headers_that_clients_may_not_set(body: str) -> None:
    picker = gateway.ScriptedPicker()
    async with stack(picker, body=body) as (this, _):
        picker.answer = gateway.dispatch(this.pods[1].address)
        forged = {
            "x-gateway-destination-endpoint": this.pods[0].address,
            "x-gateway-destination-endpoint-subset": "1.2.3.4",
            "x-prefiller-host-port": "1.2.3.4:5",
            "x-lorapick-pod": "mine",
            "x-kept": "yes",
        }
        _, answer, _ = await this.post(headers=forged)
        assert answer["port"] == this.pods[1].port
        seen = {key.lower(): value for key, value in answer["headers"].items()}
        assert seen["x-kept"] == "yes"
        assert seen["x-gateway-destination-endpoint"] == this.pods[1].address
        assert not {"x-gateway-destination-endpoint-subset", "x-prefiller-host-port", "x-lorapick-pod"} & {*seen}


@MODES
@OBSERVE
async def test_ends(body: str, observe: str) -> None:
    picker = gateway.ScriptedPicker()
    async with stack(picker, body=body, observe=observe) as (this, _):
        picker.answer = gateway.dispatch(this.pods[0].address)
        await this.post(headers={"answer-status": "404"})
        assert (await ended(picker))[2:4] == (Outcome.FAILED, 404)
        picker.heard.clear()
        data = json.dumps({"model": "ad0"})
        async with this.session.post(this.url + "/stream", data=data) as response:
            await response.content.readany()  # and leave in the midst of it
        assert (await ended(picker))[2:4] == (Outcome.SERVED, 200)
        picker.heard.clear()
        for pod in this.pods:
            await pod.stop()
        status, _, headers = await this.post()
        assert (status, headers["x-lorapick-reason"]) == (503, "no_pod")
        assert (await ended(picker))[2:4] == (Outcome.FAILED, 503)


@MODES
async def test_a_client_that_leaves_during_a_hold(body: str) -> None:
    picker = gateway.ScriptedPicker()
    picker.gate.clear()
    async with stack(picker, body=body) as (this, _):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await this.post()
        for _ in range(500):
            if len(picker.heard) == 2:
                break
            await asyncio.sleep(0.01)
        assert [call[0] for call in picker.heard] == ["decide", "cancelled"]


@MODES
async def test_a_session_gets_its_token_and_comes_back_with_it(body: str) -> None:
    picker = gateway.ScriptedPicker()
    profiles = Profiles(decode=profile("session-affinity-scorer"), names=HttpNames(token="x-session-token"))
    async with stack(picker, body=body, profiles=profiles) as (this, _):
        picker.answer = gateway.dispatch(this.pods[0].address, pods=["a-rank-0"])
        data = b'{"model":"ad0","prompt":"x"}'
        _, _, headers = await this.post(data=data)
        assert headers["x-session-token"] == "ZGVmYXVsdC9hLXJhbmstMA=="
        await this.post(data=data, headers={"x-session-token": headers["x-session-token"]})
        asked = [call[1] for call in picker.heard if call[0] == "decide"]
        assert [request.session_pod for request in asked] == [None, "a-rank-0"]


@MODES
async def test_envoy_hears_what_an_answers_usage_comes_to(body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def logging_it(settings: EnvoySettings) -> dict[str, object]:
        config = bootstrap(settings)
        (listener,) = config["static_resources"]["listeners"]
        manager = listener["filter_chains"][0]["filters"][0]["typed_config"]
        fields = manager["access_log"][0]["typed_config"]["log_format"]["json_format"]
        fields["cost"] = "%DYNAMIC_METADATA(envoy.lb:x-cost)%"
        return config

    monkeypatch.setattr(process, "bootstrap", logging_it)
    report = AttributeReport(name="x-cost", expression="has(usage.total_tokens) ? usage.total_tokens : 7.0")
    profiles = Profiles(decode=profile("queue-scorer"), names=HttpNames(reports=(report,)))
    picker = gateway.ScriptedPicker()
    async with stack(picker, body=body, observe="bodies", profiles=profiles) as (this, _):
        picker.answer = gateway.dispatch(this.pods[0].address)
        assert (await this.post())[0] == 200
        await ended(picker)
        log = this.directory / "access.log"

        async def costs() -> list[float]:
            return [json.loads(line)["cost"] for line in log.read_text().splitlines()] if log.exists() else []

        assert await becomes_true(costs, within=15.0)
        assert await costs() == [7.0]
