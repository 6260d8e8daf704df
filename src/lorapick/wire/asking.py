"""How each engine is asked for an adapter: what stands in an OpenAI request beside, or in place of, `model`.

In: a pod, an adapter's name, where its weights are. Out: a `Wording`, or None where `model` names the adapter (vLLM).
Not here: writing it into a body (see `wire.openai`), which pods it is asked of (see `live.wordings`).

| engine | the adapter is named by | other names in `model` |
|---|---|---|
| SGLang 0.4 to 0.5.23 | `lora_path`; in newer ones `model: BASE:NAME` too, which counts first | run the base model |
| TensorRT-LLM 1.3 (`trtllm-serve`) | `lora_request` | run the base model |
| Triton 25.12 (OpenAI frontend) | `model: BASE_lora_NAME`, with `--lora-separator=_lora_` | refused |

So a request that is passed on as it came would be answered by the base model on two of them, with status 200.
"""

import re

import xxhash

from lorapick.model.pods import Engine, Pod
from lorapick.model.requests import Wording
from lorapick.model.units import AdapterName

SEPARATOR = "_lora_"
"""Of Triton's OpenAI frontend, as its manual has it. It has no default: the frontend must be started with this one."""
READS_FIELDS = re.compile(r"/v1/(?:completions|chat/completions|embeddings)/?(?:\?.*)?")
"""Paths of the APIs in which SGLang reads `lora_path`. In others (`/v1/messages`, `/v1/responses`) it reads `model`
alone, and TensorRT-LLM refuses the field: it has no adapters there."""
_ID_BITS = 53
"""Numbers of that size are the same in every reader of JSON."""


class WordingError(ValueError):
    """A pod cannot be asked for an adapter; the message says why, and what would help."""


def wording(pod: Pod, adapter: AdapterName, *, source: str | None) -> Wording | None:
    """How `pod` is asked for `adapter`; None: by its name in `model`, and nothing else.

    Args:
        pod: whose engine and base model count.
        adapter: its name.
        source: the path that pods are told; None: nobody knows one. Only TensorRT-LLM needs it.

    Raises:
        WordingError: this engine has no words for it.
    """
    match pod.engine:
        case Engine.SGLANG:
            return _sglang(pod, adapter)
        case Engine.TRTLLM:
            return _trtllm(pod, adapter, source=source)
        case Engine.TRITON:
            return Wording(model=f"{pod.base_model}{SEPARATOR}{adapter}")
        case _:
            return None


def _sglang(pod: Pod, adapter: AdapterName) -> Wording:
    """Both ways, so that any version takes it; everything behind the first colon is the adapter's name.

    Its answers repeat `model`: where `lora_path` is read that may be the adapter's own name.
    """
    fields, plain = {"lora_path": adapter}, adapter if ":" not in adapter else None
    if ":" not in pod.base_model:
        return Wording(model=f"{pod.base_model}:{adapter}", beside_fields=plain, fields=fields)
    if plain is not None:
        return Wording(model=plain, fields=fields)
    raise WordingError(
        f"base model {pod.base_model} and adapter {adapter} both have a colon, behind which SGLang looks for the "
        "adapter: start it with another --served-model-name"
    )


def _trtllm(pod: Pod, adapter: AdapterName, *, source: str | None) -> Wording:
    if source is None:
        raise WordingError(
            f"TensorRT-LLM is told where adapters are with each request, and nobody knows where {adapter} is: "
            "give it a `source` in adapters.list"
        )
    request = {"lora_name": adapter, "lora_int_id": task_id(adapter, source), "lora_path": source}
    return Wording(model=pod.base_model, fields={"lora_request": request})


def model_for(words: Wording, path: str) -> str:
    """What stands in `model` of a request to an HTTP path."""
    plain = words.beside_fields
    return plain if plain is not None and READS_FIELDS.fullmatch(path) else words.model


def task_id(adapter: AdapterName, source: str) -> int:
    """The number that TensorRT-LLM caches weights under: the same for every picker, another for other weights."""
    return max(1, xxhash.xxh3_64_intdigest(f"{adapter}\0{source}".encode()) >> (64 - _ID_BITS))
