"""Pods that look like SGLang, TensorRT-LLM and Triton: how they are asked for adapters, what they list and refuse."""

from typing import Any

import msgspec
import pytest
from starlette.testclient import TestClient

from lorapick.live.podserver import OptionsError, PodServerOptions, numbered_adapters
from lorapick.live.podserver.app import build_app
from lorapick.model.pods import Engine, PodLimits
from lorapick.pod.values import PodConfig
from lorapick.wire.engines import DIALECTS

CONFIG = PodConfig(limits=PodLimits(max_loras=2, max_cpu_loras=8))


def pod(engine: Engine, *, registered: int = 0, **more: Any) -> TestClient:
    config = msgspec.structs.replace(CONFIG, unload_frees=engine is Engine.SGLANG)
    every = numbered_adapters(6)
    options = PodServerOptions(
        engine=engine, config=config, adapters=every[:registered], catalogue=every[registered:], speed=1000.0, **more
    )
    return TestClient(build_app(options))


def ask(client: TestClient, path: str = "/v1/completions", **body: Any) -> tuple[int, Any, str | None]:
    """Status, document, and the adapter that really ran."""
    response = client.post(path, json={"prompt": "hi", "max_tokens": 1, **body})
    return response.status_code, response.json(), response.headers.get("x-lorapick-adapter")


def load(client: TestClient, name: str, **more: Any) -> Any:
    body = {"lora_name": name, "lora_path": f"/adapters/{name}", **more}
    response = client.post("/load_lora_adapter", json=body)
    assert response.status_code == (200 if response.json()["success"] else 400)
    return response.json()


A, B, C, D = (each.name for each in numbered_adapters(4))


# -- SGLang


@pytest.mark.parametrize(
    ("body", "adapter"),
    [
        ({"model": A}, None),  # no colon: whatever it is, the base model answers
        ({"model": "base"}, None),
        ({"model": "whatever"}, None),
        ({"model": f"base:{A}"}, A),
        ({"model": f"what:{A}"}, A),
        ({"model": "base", "lora_path": A}, A),
        ({"model": A, "lora_path": A}, A),
        ({"model": f"base:{A}", "lora_path": B}, A),
        ({"model": "base:"}, None),
    ],
)
def test_sglang_reads_adapters_behind_a_colon_and_in_a_field(body: dict[str, str], adapter: str | None) -> None:
    with pod(Engine.SGLANG, registered=2) as client:
        status, document, ran = ask(client, **body)
        assert (status, ran, document["model"]) == (200, adapter, body["model"])


def test_sglang_refuses_who_was_never_loaded_in_its_own_shape() -> None:
    with pod(Engine.SGLANG) as client:
        status, document, _ = ask(client, model="base", lora_path=A)
        assert status == 400 and document["object"] == "error" and "never been loaded" in document["message"]
        status, document, _ = ask(client, model="base", lora_path=[A])
        assert status == 400
        assert client.post("/v1/load_lora_adapter", json={}).json() == {"detail": "Not Found"}


def test_sglang_keeps_so_many_in_memory_and_loads_again_whom_it_evicted() -> None:
    with pod(Engine.SGLANG, max_loaded_loras=2) as client:
        load(client, A, pinned=True)
        load(client, B)
        assert [*load(client, C)["loaded_adapters"]] == [A, C]  # B was used least lately, A is pinned
        assert ask(client, model=f"base:{B}")[0::2] == (200, B)
        listed = [card["id"] for card in client.get("/v1/models").json()["data"]]
        assert listed == ["base", A, B]
        assert client.post("/unload_lora_adapter", json={"lora_name": C}).status_code == 400
        assert ask(client, model=f"base:{C}")[0] == 400, "an unload is more than an eviction"


def test_sglang_does_not_pin_all_slots() -> None:
    with pod(Engine.SGLANG, max_loaded_loras=2) as client:
        assert load(client, A, pinned=True)["success"] and load(client, B, pinned=True)["success"]
        refused = load(client, C, pinned=True)
        assert not refused["success"] and "as a pinned adapter" in refused["error_message"]
        assert "all are pinned" in load(client, C)["error_message"]


def test_sglang_answers_unloads_and_what_it_does_not_take() -> None:
    with pod(Engine.SGLANG, registered=1) as client:
        gone = client.post("/unload_lora_adapter", json={"lora_name": "nobody"}).json()
        assert (gone["success"], gone["loaded_adapters"]) == (False, None) and "does not exist" in gone["error_message"]
        tensors = client.post("/load_lora_adapter_from_tensors", json={"lora_name": "x"})
        assert tensors.status_code == 400 and "from paths only" in tensors.json()["error_message"]
        for path in ("/server_info", "/get_server_info"):
            info = client.get(path).json()
            assert (info["max_loras_per_batch"], info["lora_paths"][0]["lora_name"]) == (3, A)
        client.post("/unload_lora_adapter", json={"lora_name": A})
        client.post("/emulator/restart")
        assert ask(client, model=f"base:{A}")[0::2] == (200, A), "those of the start are back"


# -- TensorRT-LLM


def lora(name: str = A, number: int = 7, path: str | None = None) -> dict[str, Any]:
    return {"lora_name": name, "lora_int_id": number, "lora_path": f"/adapters/{name}" if path is None else path}


def test_trtllm_takes_adapters_with_requests() -> None:
    with pod(Engine.TRTLLM) as client:
        assert ask(client, model=A)[2] is None, "names mean nothing to it"
        status, document, ran = ask(client, model="anything", lora_request=lora())
        assert (status, document["model"], ran) == (200, "base", A)
        # The number decides: this is why two adapters must never have one.
        assert ask(client, lora_request=lora(B))[2] == A
        assert ask(client, lora_request=lora(B, 8))[2] == B
        assert client.get("/v1/models").json()["data"] == [
            {"id": "base", "object": "model", "created": pytest.approx(0, abs=1e12), "owned_by": "tensorrt_llm"}
        ]
        client.post("/emulator/restart")
        assert ask(client, lora_request=lora(B))[2] == B


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"lora_request": lora(path="/nowhere")}, "does not exist"),
        ({"lora_request": {"lora_name": A}}, "lora_int_id"),
        ({"lora_request": "text"}, "lora_request"),
        ({"lora_path": A}, "Extra inputs"),
    ],
)
def test_what_trtllm_refuses(body: dict[str, Any], words: str) -> None:
    with pod(Engine.TRTLLM) as client:
        status, document, _ = ask(client, **body)
        assert (status, document["object"]) == (400, "error") and words in document["message"]


def test_trtllm_has_its_page_elsewhere_and_no_adapter_routes() -> None:
    with pod(Engine.TRTLLM) as client:
        assert client.get("/metrics").json() == []
        parse = DIALECTS[Engine.TRTLLM].parse
        assert parse(client.get("/prometheus/metrics").content).running is None
        ask(client, model="base")
        report = parse(client.get("/prometheus/metrics").content)
        assert (report.running, report.waiting, report.process_start) == (0, 0, None)
        for path in ("/load_lora_adapter", "/v1/load_lora_adapter", "/unload_lora_adapter", "/server_info"):
            assert client.post(path, json={}).status_code == 404


# -- Triton


def test_triton_has_the_adapters_of_its_start_under_names_with_the_model() -> None:
    with pod(Engine.TRITON, registered=2) as client:
        assert ask(client, model=f"base_lora_{A}")[0::2] == (200, A)
        assert ask(client, model=f"base_lora_{A}")[1]["model"] == f"base_lora_{A}"
        assert ask(client, model="base")[0::2] == (200, None)
        assert ask(client, model=f"base_lora_{C}")[:2] == (
            400, {"detail": f"Unknown LoRA: {C}; for model: base_lora_{C}"},
        )  # fmt: skip
        assert ask(client, model=A)[:2] == (400, {"detail": f"Unknown model: {A}"})
        found = DIALECTS[Engine.TRITON].parse_models(client.get("/v1/models").content)
        assert (found.base_models, found.registered) == (("base",), (A, B))
        report = DIALECTS[Engine.TRITON].parse(client.get("/metrics").content)
        assert (report.running, report.waiting, report.kv_usage) == (0, 0, 0.0)


def test_embeddings_are_asked_for_in_the_same_words() -> None:
    for engine, body in (
        (Engine.SGLANG, {"model": "base", "lora_path": A}),
        (Engine.TRTLLM, {"model": "base", "lora_request": lora()}),
        (Engine.TRITON, {"model": f"base_lora_{A}"}),
    ):
        with pod(engine, registered=1) as client:
            response = client.post("/v1/embeddings", json={"input": "hi", **body})
            assert (response.status_code, response.headers["x-lorapick-adapter"]) == (200, A)
            assert response.json()["model"] == body["model"]


def test_engines_that_are_not_emulated_are_named() -> None:
    with pytest.raises(OptionsError, match="emulated are vllm, sglang, trtllm, triton"):
        PodServerOptions(engine=Engine.LORAX)
    with pytest.raises(OptionsError, match="max_loaded_loras is 0"):
        PodServerOptions(max_loaded_loras=0)
