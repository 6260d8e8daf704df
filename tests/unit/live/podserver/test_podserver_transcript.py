"""The emulated pod's answers beside recorded ones of a real vLLM 0.32, field by field.

`DIFFERENCES` lists every field in which the two differ, and why that is right. A difference that is not listed fails,
and so does a listed one that is none any more.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import aiohttp
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families

from lorapick.live.podserver import PodServerOptions, serving
from lorapick.live.podserver.options import adapter_spec
from lorapick.model.pods import PodLimits
from lorapick.pod.values import PodConfig

DATA = Path(__file__).parents[3] / "data"
TRANSCRIPT = json.loads((DATA / "vllm_0_32_transcript.json").read_text())
LONG_PROMPT = "hello " * 1000

NO_MODEL = "there is no language model: words are hashes of adapter and prompt"
NO_STEPS = "needs a look at every engine step; the pod model jumps from change to change in closed form"
NO_FLOPS = "the pod model counts time, not floating point operations or bytes"
NOT_TOLD = "the pod model counts preemptions per pod, not per request"
OUR_TRUTH = "only an emulator knows; under our own prefix"

DIFFERENCES: dict[str, str] = {
    "completion of an adapter / choices.0.text": NO_MODEL,
    "no model field / choices.0.text": NO_MODEL,
    "metrics / vllm:estimated_flops_per_gpu": NO_FLOPS,
    "metrics / vllm:estimated_flops_per_gpu_created": NO_FLOPS,
    "metrics / vllm:estimated_read_bytes_per_gpu": NO_FLOPS,
    "metrics / vllm:estimated_read_bytes_per_gpu_created": NO_FLOPS,
    "metrics / vllm:estimated_write_bytes_per_gpu": NO_FLOPS,
    "metrics / vllm:estimated_write_bytes_per_gpu_created": NO_FLOPS,
    "metrics / vllm:iteration_tokens_total": NO_STEPS,
    "metrics / vllm:iteration_tokens_total_created": NO_STEPS,
    "metrics / vllm:request_num_preemptions": NOT_TOLD,
    "metrics / vllm:request_num_preemptions_created": NOT_TOLD,
    "metrics / vllm:cache_config_info kv_cache_memory_bytes": "the real server was given a size in bytes, a pod blocks",
    "metrics / lorapick_pod_swaps": OUR_TRUTH,
    "metrics / lorapick_pod_loads": OUR_TRUTH,
    "metrics / lorapick_pod_load_failures": OUR_TRUTH,
    "metrics / lorapick_pod_evictions": OUR_TRUTH,
    "metrics / lorapick_pod_hits": OUR_TRUTH,
    "metrics / lorapick_pod_misses": OUR_TRUTH,
    "metrics / lorapick_pod_seconds": OUR_TRUTH,
    "metrics / lorapick_pod_useful_time_ratio": OUR_TRUTH,
    "metrics / lorapick_pod_gpu_utilization": OUR_TRUTH,
    "metrics / lorapick_pod_memory_pressure": OUR_TRUTH,
}

OPTIONS = PodServerOptions(
    port=0,
    adapters=tuple(adapter_spec(f"ad{number}", rank=rank) for number, rank in enumerate((4, 8, 16, 4, 8, 16))),
    config=PodConfig(
        limits=PodLimits(max_loras=2, max_cpu_loras=4, max_lora_rank=16, max_num_seqs=8),
        block_size=128,
        kv_blocks=4096,
        max_model_len=1024,
    ),
    speed=50.0,
)


async def test_answers_and_metrics_differ_from_vllm_only_where_listed() -> None:
    found: dict[str, str] = {}
    async with serving(OPTIONS) as served, aiohttp.ClientSession(served.url) as client:
        for exchange in TRANSCRIPT["exchanges"]:
            found.update(await answer_differences(client, exchange))
        async with client.get("/metrics") as response:
            page = await response.text()
    found.update(page_differences(page))
    unlisted = {field: found[field] for field in found if field not in DIFFERENCES}
    assert not unlisted, "differs from vLLM and is not in DIFFERENCES:\n" + json.dumps(unlisted, indent=2)
    gone = [field for field in DIFFERENCES if field not in found]
    assert not gone, f"listed in DIFFERENCES and no longer different: {gone}"


async def answer_differences(client: aiohttp.ClientSession, exchange: dict) -> dict[str, str]:
    request, wanted = exchange["request"], exchange["response"]
    body = json.loads(json.dumps(request.get("json")).replace("$LONG", LONG_PROMPT))
    call = client.request(request["method"], request["path"], json=body, headers=request.get("headers"))
    async with call as response:
        text = await response.text()
        seen: list[tuple[str, object, object]] = [("status", wanted["status"], response.status)]
        for name, value in wanted.get("headers", {}).items():
            seen.append((f"header {name}", value, response.headers.get(name)))
    if "text" in wanted:
        seen.append(("text", wanted["text"], text))
    for path, value in wanted.get("fields", {}).items():
        seen.append((path, value, at(json.loads(text), path)))
    for path, value in wanted.get("events", {}).items():
        seen.append((f"event {path}", value, at(events_of(text), path)))
    return {
        f"{exchange['name']} / {field}": f"vLLM {vllm!r}, emulator {ours!r}"
        for field, vllm, ours in seen
        if not matches(vllm, ours)
    }


def events_of(text: str) -> list[object]:
    lines = [line.removeprefix("data: ") for line in text.split("\n\n") if line]
    return [line if line == "[DONE]" else json.loads(line) for line in lines]


def at(document: object, path: str) -> object:
    for part in path.split("."):
        if part == "#":
            document = len(document)
        else:
            document = document[int(part)] if isinstance(document, list) else document.get(part, "(absent)")
    return document


def matches(wanted: object, seen: object) -> bool:
    if isinstance(wanted, dict):
        return isinstance(seen, str) and all(part in seen for part in wanted["contains"])
    return type(wanted) is type(seen) and wanted == seen


def page_differences(page: str) -> dict[str, str]:
    real = families_of((DATA / "vllm-0.32-metrics.txt").read_text())
    ours = families_of(page)
    found = {f"metrics / {name}": "vLLM only" for name in real if name not in ours}
    found |= {f"metrics / {name}": "emulator only" for name in ours if name not in real}
    for name in real:
        if name in ours:
            for what, vllm, emulated in compare(real[name], ours[name]):
                if vllm != emulated:
                    found[f"metrics / {name} {what}"] = f"vLLM {vllm!r}, emulator {emulated!r}"
    return found


def families_of(page: str) -> dict[str, Metric]:
    return {family.name: family for family in text_string_to_metric_families(page)}


def compare(real: Metric, ours: Metric) -> Iterator[tuple[str, object, object]]:
    yield "type", real.type, ours.type
    yield "help", real.documentation, ours.documentation
    yield "sample names", sample_names(real), sample_names(ours)
    yield "labels", label_names(real), label_names(ours)
    yield "buckets", label_values(real, "le"), label_values(ours, "le")
    for label in ("reason", "source", "finished_reason", "sleep_state", "engine", "model_name", "max_lora"):
        yield label, label_values(real, label), label_values(ours, label)
    if real.name == "vllm:cache_config_info":
        for label, value in real.samples[0].labels.items():
            yield label, value, ours.samples[0].labels[label]


def sample_names(family: Metric) -> list[str]:
    return sorted({sample.name for sample in family.samples})


def label_names(family: Metric) -> list[list[str]]:
    return sorted({tuple(sorted(sample.labels)) for sample in family.samples})


def label_values(family: Metric, label: str) -> list[str]:
    return list(dict.fromkeys(sample.labels.get(label, "") for sample in family.samples))
