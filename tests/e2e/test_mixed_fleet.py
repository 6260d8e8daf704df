"""A fleet of four engines behind Envoy: every adapter is loaded where it is pinned, asked for in that engine's words,
and answered under the name that the client asked for, by the pods' own word."""

import contextlib
import json

import aiohttp
import pytest
import pytest_asyncio

from lorapick.live.podserver import PodServerOptions, numbered_adapters, serving
from lorapick.live.processes import becomes_true
from lorapick.model.pods import Engine, Pod, PodLimits
from lorapick.pod.values import PodConfig
from lorapick.testing.stack import Stack

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="module")]

ENGINES = {"vllm": Engine.VLLM, "sglang": Engine.SGLANG, "trtllm": Engine.TRTLLM, "triton": Engine.TRITON}
NAMES = [each.name for each in numbered_adapters(len(ENGINES))]
PINNED = dict(zip(ENGINES, NAMES, strict=True))
"""The adapter of each pod."""
LIMITS = PodLimits(max_loras=2, max_cpu_loras=4)


def emulated(name):
    engine = ENGINES[name]
    every = numbered_adapters(len(NAMES))
    # Triton's frontend has its adapters from the start; the others find them on their disk.
    known = {"adapters": every} if engine is Engine.TRITON else {"catalogue": every}
    config = PodConfig(limits=LIMITS, unload_frees=engine is Engine.SGLANG)
    return PodServerOptions(name=name, port=0, engine=engine, config=config, speed=20.0, **known)


def configuration():
    pins = [{"name": PINNED[pod], "source": f"/adapters/{PINNED[pod]}", "pin": {"pods": [pod]}} for pod in ENGINES]
    return {"adapters": {"list": pins}, "placement": {"sources": ["/adapters"]}}


class Mixed:
    """The pods, the stack in front of them, and a client."""

    def __init__(self, stack, session, served):
        self.stack, self.session, self.served = stack, session, served

    async def state(self, pod):
        async with self.session.get(f"{self.served[pod].url}/emulator/state") as response:
            return (await response.json())["stats"]

    async def ask(self, model, *, path="/v1/completions", **more):
        """Status, body as text, and headers."""
        prompt = {"messages": [{"role": "user", "content": "hi"}]} if "chat" in path else {"prompt": "hi"}
        body = {"model": model, "max_tokens": 4, **prompt, **more}
        async with self.session.post(self.stack.endpoint + path, json=body) as response:
            return response.status, await response.text(), response.headers


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def mixed():
    async with contextlib.AsyncExitStack() as parts:
        served = {name: await parts.enter_async_context(serving(emulated(name))) for name in ENGINES}
        pods = tuple(
            Pod(name=name, address=each.address, engine=ENGINES[name], limits=LIMITS) for name, each in served.items()
        )
        options = {"pods": 0, "external": pods, "configuration": configuration(), "observe": "bodies"}
        stack = await parts.enter_async_context(Stack(adapters=0, **options))
        session = await parts.enter_async_context(aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=30)))
        yield Mixed(stack, session, served)


async def test_pins_are_loaded_by_whatever_each_engine_can_be_told(mixed):
    async def there():
        states = [await mixed.state(pod) for pod in ENGINES]
        return all(name in state["on_gpu"] for name, state in zip(NAMES, states, strict=True))

    # Before any client asks: by a load, by a load and a touch, and by touches alone.
    assert await becomes_true(there, within=40.0), [await mixed.state(pod) for pod in ENGINES]


@pytest.mark.parametrize("pod", ENGINES)
@pytest.mark.parametrize("path", ["/v1/completions", "/v1/chat/completions"])
async def test_each_adapters_requests_go_where_it_is(mixed, pod, path):
    name = PINNED[pod]
    status, text, headers = await mixed.ask(name, path=path)
    assert status == 200, text
    # Not the base model of that pod, which is what two of them answer with when they are not asked in their words.
    assert (headers["x-lorapick-pod"], headers["x-lorapick-adapter"]) == (pod, name)
    assert headers["x-lorapick-tier"] == "hit"
    assert json.loads(text)["model"] == name


@pytest.mark.parametrize("pod", ENGINES)
async def test_streams_name_the_clients_model_too(mixed, pod):
    status, text, headers = await mixed.ask(PINNED[pod], stream=True)
    assert (status, headers["x-lorapick-adapter"]) == (200, PINNED[pod])
    chunks = [json.loads(line.removeprefix("data: ")) for line in text.splitlines() if line.startswith("data: {")]
    assert chunks and {chunk["model"] for chunk in chunks} == {PINNED[pod]}


async def test_all_answer_alike_whoever_serves(mixed):
    """Texts depend on adapter and prompt alone: the words of an engine are not part of the prompt."""
    for name in NAMES:
        status, text, _ = await mixed.ask(name)
        own = mixed.served["vllm"].url
        body = {"lora_name": name, "lora_path": f"/adapters/{name}"}
        async with mixed.session.post(f"{own}/v1/load_lora_adapter", json=body) as response:
            assert response.status in (200, 400)
        asked = {"model": name, "prompt": "hi", "max_tokens": 4}
        async with mixed.session.post(f"{own}/v1/completions", json=asked) as response:
            expected = (await response.json())["choices"]
        assert (status, json.loads(text)["choices"][0]["text"]) == (200, expected[0]["text"])


async def test_the_base_model_is_asked_for_as_ever(mixed):
    for number in range(8):
        status, text, headers = await mixed.ask("base", prompt=f"{number} and counting")
        assert (status, json.loads(text)["model"], headers.get("x-lorapick-adapter")) == (200, "base", None)


async def test_apis_without_a_field_for_adapters_are_asked_by_the_model_alone(mixed):
    body = {"messages": [{"role": "user", "content": "hi"}]}
    status, text, headers = await mixed.ask(PINNED["sglang"], path="/v1/messages", **body)
    assert (status, headers["x-lorapick-adapter"]) == (200, PINNED["sglang"]), text
    assert json.loads(text)["model"] == PINNED["sglang"]


async def test_what_a_client_writes_into_an_engines_own_fields_does_not_count(mixed):
    status, text, headers = await mixed.ask(PINNED["sglang"], lora_path="adapter-000")
    assert (status, headers["x-lorapick-adapter"]) == (200, PINNED["sglang"]), text


async def test_paths_that_change_a_pod_are_refused(mixed):
    for path in ("/load_lora_adapter", "/unload_lora_adapter", "/load_lora_adapter_from_tensors"):
        async with mixed.session.post(mixed.stack.endpoint + path, json={"lora_name": "x"}) as response:
            assert response.status == 403


async def test_when_its_pod_is_gone_another_engine_is_asked_in_its_own_words(mixed):
    name = PINNED["trtllm"]
    async with mixed.session.post(
        f"{mixed.served['trtllm'].url}/emulator/faults", json={"metrics": "error", "requests": "error"}
    ) as response:
        assert response.status == 200

    async def elsewhere():
        status, text, headers = await mixed.ask(name)
        if status != 200 or headers["x-lorapick-pod"] == "trtllm":
            return False
        assert headers["x-lorapick-adapter"] == name and json.loads(text)["model"] == name
        return True

    assert await becomes_true(elsewhere, within=30.0)
