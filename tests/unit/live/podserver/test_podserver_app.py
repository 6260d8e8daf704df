"""The emulated pod over real sockets: routes, refusals, clients that leave, faults, and what the metrics page shows."""

import asyncio
import base64
import json
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import TypeVar
from urllib.parse import unquote

import aiohttp
import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families

from lorapick.live.podserver import OptionsError, PodServerOptions, PortInUseError, numbered_adapters, serving
from lorapick.live.podserver.options import adapter_spec
from lorapick.model.pods import Engine, PodLimits
from lorapick.pod.values import PodConfig

T = TypeVar("T")
FAST = 200.0
SLOW = 0.01
"""A swap takes 10 real seconds: it does not end while a test looks at it."""


class Client:
    """A client of one pod."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self.session = session

    async def post(self, path: str, **body: object) -> SimpleNamespace:
        return await self.send("POST", path, json=body)

    async def get(self, path: str) -> SimpleNamespace:
        return await self.send("GET", path)

    async def send(self, method: str, path: str, **kwargs: object) -> SimpleNamespace:
        async with self.session.request(method, path, **kwargs) as response:
            text = await response.text(errors="replace")
        is_json = response.headers.get("content-type", "").startswith("application/json")
        document = json.loads(text) if is_json else None
        return SimpleNamespace(status=response.status, headers=response.headers, text=text, json=document)

    async def stats(self) -> dict:
        return (await self.get("/emulator/state")).json["stats"]

    async def metric(self, name: str, **labels: str) -> list[float]:
        page = (await self.get("/metrics")).text
        samples = [s for family in text_string_to_metric_families(page) for s in family.samples if s.name == name]
        return [sample.value for sample in samples if labels.items() <= sample.labels.items()]

    async def lora_labels(self) -> str | None:
        """The current label set: that of the newest series."""
        page = (await self.get("/metrics")).text
        (family,) = [f for f in text_string_to_metric_families(page) if f.name == "vllm:lora_requests_info"]
        newest = max(family.samples, key=lambda sample: sample.value, default=None)
        return newest and newest.labels["running_lora_adapters"]


@asynccontextmanager
async def pod(**options: object) -> AsyncIterator[Client]:
    chosen: dict[str, object] = {"port": 0, "adapters": numbered_adapters(8), "speed": FAST, "drain_timeout": 1.0}
    async with serving(PodServerOptions(**(chosen | options))) as served:
        async with aiohttp.ClientSession(served.url, timeout=aiohttp.ClientTimeout(total=20)) as session:
            yield Client(session)


async def until(condition: Callable[[], Awaitable[T]]) -> T:
    for _ in range(1000):
        if found := await condition():
            return found
        await asyncio.sleep(0.01)
    raise AssertionError(f"never came true: {condition}")


def limits(**values: int) -> PodConfig:
    return PodConfig(limits=PodLimits(**values))


# ---- what serves what ----


async def test_each_adapter_says_its_own_and_the_same_on_every_pod() -> None:
    said = []
    for _ in range(2):
        async with pod() as client:
            answers = [
                await client.post("/v1/completions", model=model, prompt="def main(", max_tokens=8)
                for model in ("base", "adapter-000", "adapter-001", "adapter-000")
            ]
            said.append([answer.json["choices"][0]["text"] for answer in answers])
    assert said[0] == said[1]
    assert said[0][1] == said[0][3]
    assert len(set(said[0])) == 3


async def test_headers_and_fingerprint_tell_who_served() -> None:
    async with pod(name="pod-7") as client:
        seen = []
        for model in ("adapter-000", "adapter-000", "base"):
            answer = await client.post("/v1/completions", model=model, prompt="x", max_tokens=1)
            headers = [answer.headers.get(f"x-lorapick-{fact}") for fact in ("pod", "adapter", "tier")]
            seen.append((headers, answer.json["system_fingerprint"]))
        assert seen == [
            (["pod-7", "adapter-000", "disk"], "lorapick/pod-7/adapter-000/disk"),
            (["pod-7", "adapter-000", "hit"], "lorapick/pod-7/adapter-000/hit"),
            (["pod-7", None, None], "lorapick/pod-7/-/-"),
        ]


async def test_headers_of_a_stream_leave_before_its_adapter_is_loaded() -> None:
    async with pod(speed=SLOW) as client:
        body = {"model": "adapter-000", "prompt": "x", "max_tokens": 2, "stream": True}
        async with client.session.post("/v1/completions", json=body) as response:
            assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
            assert response.headers["x-lorapick-adapter"] == "adapter-000"
            assert "x-lorapick-tier" not in response.headers
            stats = await client.stats()
            assert (stats["on_gpu"], stats["loading"]) == ([], ["adapter-000"])


async def test_a_repeated_prompt_is_found_in_the_cache_of_its_adapter_only() -> None:
    async with pod() as client:
        cached = []
        for model in ("adapter-000", "adapter-000", "adapter-001"):
            answer = await client.post("/v1/completions", model=model, prompt="word " * 200, max_tokens=1)
            cached.append(answer.json["usage"]["prompt_tokens_details"]["cached_tokens"])
        assert cached[0] == 0 and cached[1] > 200 and cached[2] == 0


async def test_an_answer_without_a_limit_ends_by_itself() -> None:
    async with pod() as client:
        message = [{"role": "user", "content": "hello"}]
        answer = await client.post("/v1/chat/completions", model="base", messages=message)
        assert answer.json["choices"][0]["finish_reason"] == "stop"
        assert 32 <= answer.json["usage"]["completion_tokens"] < 128


async def test_models_lists_what_is_registered_not_what_is_in_memory() -> None:
    async with pod(adapters=numbered_adapters(2), catalogue=(adapter_spec("later"),)) as client:
        await client.post("/v1/load_lora_adapter", lora_name="mine", lora_path="/adapters/later")
        cards = (await client.get("/v1/models")).json["data"]
        assert [(card["id"], card["parent"], card["root"]) for card in cards] == [
            ("base", None, "base"),
            ("adapter-000", "base", "/adapters/adapter-000"),
            ("adapter-001", "base", "/adapters/adapter-001"),
            ("mine", "base", "/adapters/later"),
        ]
        assert [card["max_model_len"] for card in cards] == [8192, None, None, None]
        assert (await client.stats())["on_gpu"] == ["mine"]


# ---- refusals ----

REFUSALS = [
    ("/v1/completions", {"prompt": "x", "max_tokens": 0}, "max_tokens must be at least 1, got 0.", "max_tokens"),
    ("/v1/completions", {}, "Either prompt or prompt_embeds must be provided", "prompt"),
    ("/v1/completions", {"prompt": "x", "n": 3}, "n is 3", "n"),
    ("/v1/completions", {"prompt": "x", "max_tokens": 9000}, "(9000 > 8192 - 1)", "max_tokens"),
    ("/v1/completions", {"prompt": "x" * 40_000}, "has 10000 input tokens", "input_tokens"),
    ("/v1/completions", {"prompt": "x", "stream_options": {}}, "when `stream=True`", "stream_options"),
    ("/v1/chat/completions", {}, "Field required", "body.messages"),
    ("/v1/chat/completions", {"messages": []}, "at least one message", "messages"),
    ("/v1/messages", {"messages": []}, "Field required", "body.max_tokens"),
    ("/v1/embeddings", {}, "input must be provided", "input"),
    ("/rerank", {"query": "x", "documents": []}, "documents must be provided", "documents"),
    ("/score", {"text_1": ["a", "b"], "text_2": ["a", "b", "c"]}, "2 left texts do not go with 3", None),
]


async def test_bad_requests_are_refused_with_the_field() -> None:
    async with pod() as client:
        for path, body, part, param in REFUSALS:
            answer = await client.post(path, **body)
            assert answer.status == 400, (path, body, answer.text)
            assert part in answer.json["error"]["message"], (path, body, answer.text)
            assert answer.json["error"]["param"] == param
            assert answer.json["error"]["code"] == 400


async def test_every_route_answers_404_for_an_unknown_model() -> None:
    bodies = {
        "/v1/completions": {"prompt": "x"},
        "/v1/chat/completions": {"messages": [{"role": "user", "content": "x"}]},
        "/v1/responses": {"input": "x"},
        "/v1/messages": {"messages": [{"role": "user", "content": "x"}], "max_tokens": 1},
        "/v1/embeddings": {"input": "x"},
        "/tokenize": {"prompt": "x"},
        "/rerank": {"query": "x", "documents": ["y"]},
        "/v1/rerank": {"query": "x", "documents": ["y"]},
        "/score": {"text_1": "x", "text_2": "y"},
        "/v1/score": {"text_1": "x", "text_2": "y"},
    }
    async with pod() as client:
        for path, body in bodies.items():
            answer = await client.post(path, model="nope", **body)
            assert answer.status == 404, path
            assert answer.json["error"]["message"] == "The model `nope` does not exist. Valid aliases: base."
            served = await client.post(path, model="adapter-000", **body)
            assert served.status == 200, (path, served.text)
            assert served.headers["x-lorapick-adapter"] == "adapter-000"


async def test_unknown_paths_and_methods_are_answered_as_by_vllm() -> None:
    async with pod() as client:
        nowhere = await client.get("/nowhere")
        assert nowhere.status == 404
        assert nowhere.json == {"error": {"message": "Not Found", "type": "Not Found", "param": None, "code": 404}}
        wrong = await client.get("/v1/completions")
        assert (wrong.status, wrong.headers["allow"]) == (405, "POST")
        assert wrong.json["error"]["message"] == "Method Not Allowed"


async def test_malformed_json_is_400() -> None:
    async with pod() as client:
        answer = await client.send(
            "POST", "/v1/completions", data=b"{oops", headers={"content-type": "application/json"}
        )
        assert answer.status == 400 and "JSON decode error" in answer.text


# ---- loading and unloading ----


async def test_without_runtime_updating_the_adapter_routes_do_not_exist() -> None:
    async with pod(runtime_lora=False) as client:
        for path in ("/v1/load_lora_adapter", "/v1/unload_lora_adapter"):
            assert (await client.post(path, lora_name="a", lora_path="/adapters/adapter-000")).status == 404


async def test_a_load_evicts_the_least_recently_used_adapter_from_the_gpu() -> None:
    async with pod(config=limits(max_loras=2, max_cpu_loras=3)) as client:
        for number in range(3):
            path = f"/adapters/adapter-00{number}"
            loaded = await client.post("/v1/load_lora_adapter", lora_name=f"n{number}", lora_path=path)
            assert loaded.status == 200
        stats = await client.stats()
        assert stats["on_gpu"] == ["n1", "n2"] and stats["on_cpu"] == ["n0", "n1", "n2"]
        assert (await client.post("/v1/unload_lora_adapter", lora_name="n2")).status == 200
        assert (await client.stats())["on_gpu"] == ["n1", "n2"], "unload frees nothing"


async def test_sglang_loads_into_host_memory_and_answers_with_what_it_has() -> None:
    config = limits(max_loras=2, max_cpu_loras=3)
    async with pod(engine=Engine.SGLANG, config=msgspec.structs.replace(config, unload_frees=True)) as client:
        unloaded = await client.post("/unload_lora_adapter", lora_name="adapter-000")
        assert unloaded.status == 200
        body = {"lora_name": "adapter-000", "lora_path": "/adapters/adapter-000"}
        loaded = await client.post("/load_lora_adapter", **body)
        assert loaded.status == 200 and loaded.json["success"] is True
        assert loaded.json["loaded_adapters"]["adapter-000"] == "/adapters/adapter-000"
        stats = await client.stats()
        assert (stats["on_gpu"], stats["on_cpu"]) == ([], ["adapter-000"])
        again = await client.post("/load_lora_adapter", **body)
        assert again.status == 400 and "already loaded" in again.json["error_message"]
        missing = await client.post("/load_lora_adapter", lora_name="new", lora_path="/nowhere")
        assert missing.status == 400 and missing.json["success"] is False and "new" in missing.json["error_message"]
        assert "new" not in missing.json["loaded_adapters"]


async def test_a_peft_folder_is_on_the_disk_too(tmp_path: Path) -> None:
    (tmp_path / "adapter_config.json").write_text('{"peft_type": "LORA", "r": 32}')
    (tmp_path / "adapter_model.safetensors").write_bytes(b"x" * 1000)
    async with pod(report_loaded=True) as client:
        answer = await client.post("/v1/load_lora_adapter", lora_name="real", lora_path=str(tmp_path))
        assert answer.status == 200
        assert await client.metric("vllm:lora_adapter_loaded", adapter_name="real", rank="32", level="gpu") == [1.0]
        (tmp_path / "adapter_config.json").write_text("{")
        broken = await client.post("/v1/load_lora_adapter", lora_name="broken", lora_path=str(tmp_path))
        assert broken.status == 500 and "adapter_config.json" in broken.text


async def test_a_rank_above_the_limit_is_a_500_and_registers_nothing() -> None:
    async with pod(catalogue=(adapter_spec("wide", rank=128),)) as client:
        answer = await client.post("/v1/load_lora_adapter", lora_name="wide", lora_path="/adapters/wide")
        assert answer.status == 500
        assert "LoRA rank 128" in answer.json["error"]["message"]
        assert len((await client.get("/v1/models")).json["data"]) == 9


async def test_a_failing_load_is_a_500_for_the_call_and_for_who_waits() -> None:
    config = PodConfig(load_failure_share=1.0)
    async with pod(config=config, catalogue=(adapter_spec("x"),)) as client:
        answer = await client.post("/v1/load_lora_adapter", lora_name="x", lora_path="/adapters/x")
        assert answer.status == 500 and answer.json["error"]["type"] == "InternalServerError"
        waited = await client.post("/v1/completions", model="adapter-000", prompt="x")
        assert waited.status == 500
        streamed = await client.post("/v1/completions", model="adapter-000", prompt="x", stream=True)
        assert streamed.status == 200, "the headers were out"
        events = streamed.text.split("\n\n")
        assert json.loads(events[0].removeprefix("data: "))["error"]["code"] == 500
        assert events[1] == "data: [DONE]"
        assert await client.metric("vllm:request_success_total", finished_reason="error") == [2.0]


async def test_two_loads_of_one_name_take_turns() -> None:
    async with pod(catalogue=(adapter_spec("x"),)) as client:
        load = {"lora_name": "x", "lora_path": "/adapters/x"}
        answers = await asyncio.gather(*(client.post("/v1/load_lora_adapter", **load) for _ in range(3)))
        assert sorted(answer.status for answer in answers) == [200, 400, 400]
        assert (await client.stats())["loads"] == 1


# ---- clients that leave ----


async def test_a_client_that_leaves_mid_stream_frees_its_place() -> None:
    async with pod(speed=1.0, config=limits(max_num_seqs=1)) as client:
        body = {"model": "base", "prompt": "x", "max_tokens": 8000, "stream": True}
        async with client.session.post("/v1/completions", json=body) as response:
            await response.content.readline()
            assert (await client.stats())["running"] == 1
        await until(lambda: nothing_in_flight(client))
        assert (await client.post("/v1/completions", prompt="x", max_tokens=1)).status == 200
        assert await client.metric("vllm:request_success_total", finished_reason="abort") == [0.0]
        assert await client.metric("vllm:request_success_total", finished_reason="length") == [1.0]


async def test_a_client_that_leaves_while_waiting_frees_its_place() -> None:
    async with pod(speed=0.2) as client:
        waiting = asyncio.create_task(client.post("/v1/completions", model="adapter-000", prompt="x"))
        await until(lambda: something_in_flight(client))
        waiting.cancel()
        await until(lambda: nothing_in_flight(client))


async def nothing_in_flight(client: Client) -> bool:
    stats = await client.stats()
    return not stats["running"] and not stats["waiting"]


async def something_in_flight(client: Client) -> bool:
    return not await nothing_in_flight(client)


# ---- what the metrics page shows ----


async def test_adapters_that_only_queue_are_absent_and_counted_as_deferred() -> None:
    async with pod(speed=1.0, config=limits(max_loras=2)) as client:
        assert await client.lora_labels() is None
        async with streams(client, "adapter-000", "adapter-001") as running:
            for response in running:
                await response.content.readline()
            assert await client.lora_labels() == "adapter-000,adapter-001"
            queued = [asyncio.create_task(hold(client, f"adapter-00{number}")) for number in (2, 3)]
            await until(lambda: waiting(client, 2))
            base = await client.post("/v1/completions", prompt="x", max_tokens=1)
            assert base.status == 200, "requests of the base model pass them"
            assert await client.lora_labels() == "adapter-000,adapter-001"
            assert await client.metric("vllm:num_requests_waiting_by_reason", reason="deferred") == [2.0]
            assert await client.metric("vllm:num_requests_running") == [2.0]
            for task in queued:
                task.cancel()
        await until(lambda: nothing_in_flight(client))
        assert await client.lora_labels() == ""


async def hold(client: Client, model: str) -> None:
    await client.post("/v1/completions", model=model, prompt="x", max_tokens=8000)


async def waiting(client: Client, count: int) -> bool:
    return (await client.stats())["waiting"] == count


@asynccontextmanager
async def streams(client: Client, *models: str) -> AsyncIterator[list[aiohttp.ClientResponse]]:
    responses = []
    for model in models:
        body = {"model": model, "prompt": "x", "max_tokens": 8000, "stream": True}
        responses.append(await client.session.post("/v1/completions", json=body))
    try:
        yield responses
    finally:
        for response in responses:
            response.close()


async def test_many_adapters_over_few_slots_swap() -> None:
    async with pod(config=limits(max_loras=2, max_cpu_loras=4), report_loaded=True) as client:
        for _ in range(2):
            for number in range(8):
                await client.post("/v1/completions", model=f"adapter-00{number}", prompt="x", max_tokens=2)
        assert await client.metric("lorapick_pod_swaps_total") == [16.0]
        assert await client.metric("lorapick_pod_misses_total") == [16.0]
        assert len(await client.metric("vllm:lora_adapter_loaded", level="gpu")) == 2
        assert len(await client.metric("vllm:lora_adapter_loaded", level="cpu")) == 2
        assert await client.metric("vllm:num_cpu_loaded_lora_adapters") == [4.0]
        assert (await client.metric("lorapick_pod_useful_time_ratio"))[0] < 0.5


async def test_http_families_count_by_handler() -> None:
    async with pod() as client:
        for path in ("/v1/models", "/v1/models", "/nowhere", "/health", "/emulator/state"):
            await client.get(path)
        assert await client.metric("http_requests_total", handler="/v1/models", status="2xx", method="GET") == [2.0]
        assert await client.metric("http_requests_total", handler="none", status="4xx") == [1.0]
        assert sum(await client.metric("http_requests_total")) == 3.0


async def test_statistics_lag_as_told() -> None:
    async with pod(metrics_lag=1000.0) as client:
        assert await client.metric("vllm:generation_tokens_total") == [0.0]
        await client.post("/v1/completions", prompt="x", max_tokens=7)
        assert await client.metric("vllm:generation_tokens_total") == [0.0]
        await client.post("/emulator/faults", metrics_lag=0)
        assert await client.metric("vllm:generation_tokens_total") == [7.0]


# ---- faults ----


async def test_metrics_can_be_garbage_an_error_or_silent_and_come_back() -> None:
    async with pod(metrics_fault="garbage") as client:
        page = await client.get("/metrics")
        assert page.status == 200
        with pytest.raises(ValueError):
            list(text_string_to_metric_families(page.text))
        await client.post("/emulator/faults", metrics="error")
        assert (await client.get("/metrics")).status == 503
        await client.post("/emulator/faults", metrics="hang")
        silent = asyncio.create_task(client.get("/metrics"))
        left = asyncio.create_task(client.get("/metrics"))
        await asyncio.sleep(0.05)
        assert not silent.done()
        left.cancel()
        await client.post("/emulator/faults", metrics="ok")
        assert (await silent).status == 200


async def test_requests_can_fail_or_hang_and_health_too() -> None:
    async with pod() as client:
        faults = (await client.post("/emulator/faults", requests="error", health="error")).json
        assert (faults["requests"], faults["health"], faults["metrics"]) == ("error", "error", "ok")
        assert (await client.post("/v1/completions", prompt="x")).status == 500
        assert (await client.get("/health")).status == 503
        await client.post("/emulator/faults", requests="hang", health="ok")
        hangs = asyncio.create_task(client.post("/v1/completions", prompt="x" * 100_000, max_tokens=1))
        assert (await client.get("/health")).status == 200
        await asyncio.sleep(0.05)
        assert not hangs.done()
        await client.post("/emulator/faults", requests="ok", requests_delay=0.01)
        assert (await hangs).status == 400, "its body was kept while it hung"
        assert (await client.post("/v1/completions", prompt="x")).status == 200


@pytest.mark.parametrize("change", [{"metrics": "purple"}, {"metrics_delay": -1}, {"colour": 1}])
async def test_unknown_faults_are_refused(change: dict) -> None:
    async with pod() as client:
        answer = await client.post("/emulator/faults", **change)
        assert answer.status == 400 and next(iter(change)) in answer.text


async def test_a_restart_empties_memory_and_moves_the_start_time() -> None:
    async with pod() as client:
        await client.post("/v1/completions", model="adapter-000", prompt="x")
        (began,) = await client.metric("process_start_time_seconds")
        assert (await client.stats())["on_gpu"] == ["adapter-000"]
        await client.send("POST", "/emulator/restart")
        assert (await client.stats())["on_gpu"] == []
        assert (await client.metric("process_start_time_seconds"))[0] > began
        assert await client.metric("vllm:generation_tokens_total") == [0.0]
        assert await client.lora_labels() is None
        assert (await client.post("/v1/completions", model="adapter-000", prompt="x")).status == 200


# ---- the other APIs ----


async def test_embeddings_come_as_numbers_or_base64() -> None:
    async with pod() as client:
        body = {"model": "adapter-000", "input": ["a", "b", "a"], "dimensions": 4}
        numbers = (await client.post("/v1/embeddings", **body)).json
        packed = (await client.post("/v1/embeddings", encoding_format="base64", **body)).json
        rows = [row["embedding"] for row in numbers["data"]]
        assert rows[0] == rows[2] != rows[1]
        unpacked = struct.unpack("<4f", base64.b64decode(packed["data"][1]["embedding"]))
        assert unpacked == pytest.approx(rows[1])
        assert numbers["usage"]["prompt_tokens"] == 3
        assert (await client.stats())["finished"] == 2


async def test_rerank_sorts_and_cuts() -> None:
    async with pod() as client:
        answer = await client.post("/v1/rerank", query="q", documents=list("abcdef"), top_n=3)
        scores = [result["relevance_score"] for result in answer.json["results"]]
        assert len(scores) == 3 and scores == sorted(scores, reverse=True)
        first = answer.json["results"][0]
        assert first["document"]["text"] == "abcdef"[first["index"]]


async def test_scores_pair_texts() -> None:
    async with pod() as client:
        one = (await client.post("/score", text_1="a", text_2=["b", "c"])).json["data"]
        pairs = (await client.post("/v1/score", queries=["a", "a"], documents=["b", "c"])).json["data"]
        assert [row["score"] for row in one] == [row["score"] for row in pairs]
        assert all(0 <= row["score"] <= 1 for row in one)


async def test_tokenize_asks_no_engine() -> None:
    async with pod() as client:
        answer = await client.post("/tokenize", model="adapter-000", prompt="hello world")
        assert (answer.json["count"], len(answer.json["tokens"])) == (3, 3)
        assert (await client.stats())["finished"] == 0
        again = await client.post("/v1/completions", prompt=answer.json["tokens"], max_tokens=1)
        assert again.json["usage"]["prompt_tokens"] == 3


@pytest.mark.parametrize(
    ("path", "body", "last"),
    [
        ("/v1/responses", {"input": "hi", "max_output_tokens": 5}, "response.incomplete"),
        ("/v1/responses", {"input": [{"role": "user", "content": "hi"}], "instructions": "x"}, "response.completed"),
        (
            "/v1/messages",
            {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 5, "system": "x"},
            "message_stop",
        ),
    ],
)
async def test_younger_apis_say_the_same_whole_and_streamed(path: str, body: dict, last: str) -> None:
    async with pod() as client:
        whole = (await client.post(path, model="adapter-000", **body)).json
        streamed = (await client.post(path, model="adapter-000", stream=True, **body)).text
    events = [dict(line.split(": ", 1) for line in event.split("\n")) for event in streamed.split("\n\n") if event]
    assert events[-1]["event"] == last
    documents = [json.loads(event["data"]) for event in events]
    assert [document["type"] for document in documents] == [event["event"] for event in events]
    said = "".join(
        d["delta"] if isinstance(d["delta"], str) else d["delta"].get("text", "") for d in with_delta(documents)
    )
    content = whole["output"][0]["content"] if "output" in whole else whole["content"]
    assert said == content[0]["text"]


def with_delta(documents: list[dict]) -> list[dict]:
    return [document for document in documents if "delta" in document]


# ---- listening ----


async def test_a_port_in_use_is_named() -> None:
    async with serving(PodServerOptions(port=0)) as served:
        with pytest.raises(PortInUseError, match=f"port {served.port} on 127.0.0.1 is in use"):
            async with serving(PodServerOptions(port=served.port)):
                pass


async def test_status_routes() -> None:
    async with pod() as client:
        for path in ("/health", "/ping"):
            answer = await client.get(path)
            assert (answer.status, answer.text) == (200, "")
        assert (await client.get("/metrics/")).status == 200


def test_bad_options_never_become_a_pod() -> None:
    with pytest.raises(OptionsError):
        PodServerOptions(metrics_lag=-1.0)


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        ("/v1/embeddings", {"input": "x", "dimensions": 1_000_000_000}, "dimensions is 1000000000; it must be 1 to"),
        ("/v1/embeddings", {"input": "x", "dimensions": 0}, "dimensions is 0"),
        ("/v1/embeddings", {"input": ["x"] * 100_000}, "input has 100000 items; the emulated pod takes 2048"),
        ("/v1/embeddings", {"input": ["x"] * 100, "dimensions": 16_000}, "100 inputs of 16000 dimensions"),
        ("/score", {"text_1": "x", "text_2": ["x"] * 3000}, "text_2 has 3000 items"),
        ("/rerank", {"query": "x", "documents": ["x"] * 3000}, "documents has 3000 items"),
    ],
)
async def test_work_that_would_take_the_pods_time_is_refused(path: str, body: dict, words: str) -> None:
    async with pod() as client:
        answer = await client.post(path, model="base", **body)
        assert answer.status == 400
        assert words in answer.json["error"]["message"]


async def test_names_that_no_header_can_hold_are_percent_encoded() -> None:
    names = ("適配器", "nl\nx: y", "a b%", "org/code@7")
    async with pod(name="pöd", adapters=tuple(adapter_spec(name) for name in names)) as client:
        for name in names:
            served = await client.post("/v1/completions", model=name, prompt="x", max_tokens=1)
            assert served.status == 200
            assert unquote(served.headers["x-lorapick-adapter"]) == name
            assert served.headers["x-lorapick-pod"] == "p%C3%B6d"
        assert served.headers["x-lorapick-adapter"] == "org/code@7"


async def test_loads_of_what_cannot_be_are_refused() -> None:
    async with pod() as client:
        nul = await client.post("/v1/load_lora_adapter", lora_name="z", lora_path="a\0b")
        assert (nul.status, nul.json["error"]["type"]) == (404, "NotFoundError")
        comma = await client.post("/v1/load_lora_adapter", lora_name="a,b", lora_path="/adapters/adapter-000")
        assert comma.status == 400
        assert "'a,b' has a comma" in comma.json["error"]["message"]
