"""`lorapick pod` as a process of its own, driven by real clients."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import Request, urlopen

import aiohttp
import openai
import pytest
from prometheus_client.parser import text_string_to_metric_families

pytestmark = pytest.mark.e2e

COMMAND = [sys.executable, "-m", "lorapick.cli.main", "pod"]
FLAGS = ["--port", "0", "--json", "--name", "pod-7", "--adapters", "8", "--max-loras", "2", "--max-cpu-loras", "4"]


@contextmanager
def pod(*flags: str) -> Iterator[tuple[subprocess.Popen[str], dict]]:
    """A pod process and its ready line; ended by SIGTERM."""
    process = subprocess.Popen([*COMMAND, *FLAGS, *flags], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        assert line, process.stderr.read()
        yield process, json.loads(line)
    finally:
        process.terminate()
        try:
            process.communicate(timeout=20)
        finally:
            process.kill()


@pytest.fixture(scope="module")
def ready() -> Iterator[dict]:
    with pod("--speed", "20") as (_, line):
        yield line


def families(url: str) -> dict[str, list]:
    with urlopen(f"{url}/metrics") as response:
        page = response.read().decode()
    return {family.name: family.samples for family in text_string_to_metric_families(page)}


def test_the_ready_line_says_where_and_what(ready: dict) -> None:
    assert (ready["event"], ready["name"], ready["adapters"], ready["base_model"]) == ("ready", "pod-7", 8, "base")
    assert ready["url"] == f"http://127.0.0.1:{ready['port']}"
    with urlopen(f"{ready['url']}/health") as response:
        assert response.status == 200


def test_prefilled_by_another_process_and_without_it_when_it_was_killed(ready: dict) -> None:
    def answer() -> dict[str, str]:
        headers = {"content-type": "application/json", "x-prefiller-host-port": address}
        body = json.dumps({"model": "adapter-005", "prompt": "of whales " * 40, "max_tokens": 3}).encode()
        with urlopen(Request(f"{ready['url']}/v1/completions", body, headers)) as response:
            assert json.load(response)["usage"]["completion_tokens"] == 3
            return dict(response.headers)

    with pod("--role", "prefill", "--speed", "20", "--name", "prefill-0") as (process, line):
        assert line["role"] == "prefill"
        address = line["url"].removeprefix("http://")
        assert answer()["x-lorapick-prefiller"] == address
        process.kill()
        process.wait()
        assert answer()["x-lorapick-local-prefill"] == "prefiller_unreachable"
    [transfers] = [s for s in families(ready["url"])["lorapick_pod_kv_transfers"] if s.labels.get("result") == "ok"]
    assert transfers.value == 1


def test_openai_client_whole_and_streamed(ready: dict) -> None:
    with openai.OpenAI(base_url=f"{ready['url']}/v1", api_key="none", max_retries=0) as client:
        models = [model.id for model in client.models.list()]
        assert models == ["base", *(f"adapter-00{number}" for number in range(8))]

        raw = client.completions.with_raw_response.create(model="adapter-003", prompt="def main(", max_tokens=8)
        assert raw.headers["x-lorapick-pod"] == "pod-7"
        whole = raw.parse()
        assert whole.usage is not None and whole.usage.completion_tokens == 8
        assert whole.system_fingerprint == f"lorapick/pod-7/adapter-003/{raw.headers['x-lorapick-tier']}"

        streamed = client.completions.create(
            model="adapter-003",
            prompt="def main(",
            max_tokens=8,
            stream=True,
            stream_options={"include_usage": True},
            extra_headers={"x-request-id": "mine"},
        )
        chunks = list(streamed)
        assert "".join(chunk.choices[0].text for chunk in chunks[:-1]) == whole.choices[0].text
        assert chunks[-2].choices[0].finish_reason == "length"
        assert chunks[-1].choices == [] and chunks[-1].usage == whole.usage
        assert {chunk.id for chunk in chunks} == {"cmpl-mine"}


async def test_openai_async_client_chats(ready: dict) -> None:
    async with openai.AsyncOpenAI(base_url=f"{ready['url']}/v1", api_key="none", max_retries=0) as client:
        message = {"role": "user", "content": "hello"}
        whole, other = await asyncio.gather(
            client.chat.completions.create(model="adapter-001", messages=[message], max_completion_tokens=6),
            client.chat.completions.create(model="adapter-002", messages=[message], max_completion_tokens=6),
        )
        assert whole.choices[0].message.content != other.choices[0].message.content
        stream = await client.chat.completions.create(
            model="adapter-001", messages=[message], max_completion_tokens=6, stream=True
        )
        chunks = [chunk async for chunk in stream]
        assert chunks[0].choices[0].delta.role == "assistant"
        said = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
        assert said == whole.choices[0].message.content


async def test_openai_client_embeds_responds_and_gets_errors(ready: dict) -> None:
    async with openai.AsyncOpenAI(base_url=f"{ready['url']}/v1", api_key="none", max_retries=0) as client:
        embedded = await client.embeddings.create(model="adapter-001", input="hello", dimensions=8)
        assert len(embedded.data[0].embedding) == 8
        whole = await client.responses.create(model="adapter-001", input="hello", max_output_tokens=5)
        assert whole.output_text.count(" ") == 5
        async with client.responses.stream(model="adapter-001", input="hello", max_output_tokens=5) as stream:
            said = [event.delta async for event in stream if event.type == "response.output_text.delta"]
        assert "".join(said) == whole.output_text
        with pytest.raises(openai.NotFoundError, match="The model `nope` does not exist"):
            await client.completions.create(model="nope", prompt="x")
        with pytest.raises(openai.BadRequestError, match="maximum context length is 8192 tokens"):
            await client.completions.create(model="base", prompt="x" * 40_000)


async def test_requests_shaped_like_vllm_bench_serve(ready: dict) -> None:
    """The benchmark's payload and its way of reading the stream: first token, gaps, counts from the usage chunk."""
    async with aiohttp.ClientSession() as session:
        outcomes = await asyncio.gather(*(bench_request(session, ready["url"], number) for number in range(16)))
    for seen in outcomes:
        assert seen["output_tokens"] == 24 and seen["prompt_tokens"] == 64
        assert seen["chunks"] >= 1 and seen["text"].count(" ") == 24


async def bench_request(session: aiohttp.ClientSession, url: str, number: int) -> dict:
    payload = {
        "model": f"adapter-00{number % 8}",
        "prompt": "abcd" * 64,
        "repetition_penalty": 1.0,
        "max_tokens": 24,
        "logprobs": None,
        "stream": True,
        "stream_options": {"include_usage": True},
        "ignore_eos": True,
        "temperature": 0.0,
        "top_p": 1.0,
        "seed": 0,
    }
    headers = {"Authorization": "Bearer none", "x-request-id": f"bench-{number}"}
    seen: dict = {"text": "", "chunks": 0}
    async with session.post(f"{url}/v1/completions", json=payload, headers=headers) as response:
        assert response.status == 200
        async for line in response.content:
            chunk = line.decode().strip().removeprefix("data: ")
            if not chunk or chunk == "[DONE]":
                continue
            document = json.loads(chunk)
            if document["choices"]:
                seen["chunks"] += 1
                seen["text"] += document["choices"][0]["text"]
            elif usage := document.get("usage"):
                seen["output_tokens"] = usage["completion_tokens"]
                seen["prompt_tokens"] = usage["prompt_tokens"]
    return seen


def test_the_page_parses_and_shows_the_swaps(ready: dict) -> None:
    with openai.OpenAI(base_url=f"{ready['url']}/v1", api_key="none", max_retries=0) as client:
        for number in range(8):
            client.completions.create(model=f"adapter-00{number}", prompt="x", max_tokens=2)
    page = families(ready["url"])
    swaps = page["lorapick_pod_swaps"][0].value
    assert swaps >= 6, "eight adapters over two slots"
    (config,) = page["vllm:cache_config_info"]
    assert config.labels["block_size"] == "16"
    newest = max(page["vllm:lora_requests_info"], key=lambda sample: sample.value)
    assert newest.labels == {"max_lora": "2", "running_lora_adapters": "", "waiting_lora_adapters": ""}


async def test_a_client_that_leaves_frees_its_place_and_sigterm_lets_the_next_end(tmp_path: Path) -> None:
    listed = tmp_path / "adapters.yaml"
    listed.write_text("- legal\n- {name: code, rank: 64}\n")
    with pod("--max-num-seqs", "1", "--speed", "2", "--adapters", str(listed)) as (process, line):
        assert line["adapters"] == 2
        async with aiohttp.ClientSession(line["url"]) as session:
            body = {"model": "code", "prompt": "x", "max_tokens": 8000, "stream": True}
            async with session.post("/v1/completions", json=body) as response:
                await response.content.readline()
            # The only place is free again, though the first answer had minutes to go.
            body["max_tokens"] = 30
            async with session.post("/v1/completions", json=body) as response:
                await response.content.readline()
                process.send_signal(signal.SIGTERM)
                text = await response.text()
        assert text.endswith("data: [DONE]\n\n")
        assert await asyncio.to_thread(process.wait, 20) == 0
        assert process.stderr.read() == ""


def test_sigterm_ends_a_pod_whose_metrics_hang() -> None:
    with pod("--metrics-hang", "--drain-timeout", "1") as (process, line):
        with socket.create_connection((line["host"], line["port"])) as silent:
            silent.sendall(b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n")
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == 0


def test_a_killed_pod_s_port_can_be_taken_again_at_once() -> None:
    with pod() as (process, line):
        os.kill(process.pid, signal.SIGKILL)
        process.wait(20)
        with pod("--port", str(line["port"])) as (_, again):
            assert again["port"] == line["port"]
