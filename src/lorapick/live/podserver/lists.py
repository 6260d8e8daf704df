"""`GET /v1/models` as each engine answers it.

In: the base model's name, the adapters with their paths. Out: the document. Not here: which adapters those are.

vLLM lists what is registered, SGLang what is in memory, both with `root` and `parent`. `trtllm-serve` lists its model
alone; Triton's frontend has one name for a model with an adapter.
"""

import time
import uuid
from collections.abc import Mapping

from lorapick.live.podserver.options import PodServerOptions
from lorapick.live.podserver.refusals import Json
from lorapick.model.pods import Engine
from lorapick.model.units import AdapterName
from lorapick.wire.asking import SEPARATOR


def document(options: PodServerOptions, paths: Mapping[AdapterName, str]) -> Json:
    """The answer; `paths` are those from which the adapters that are served were loaded."""
    base = options.base_model
    match options.engine:
        case Engine.TRTLLM:
            cards = [_plain(base, owner="tensorrt_llm")]
        case Engine.TRITON:
            names = [base, *(f"{base}{SEPARATOR}{name}" for name in paths)]
            cards = [_plain(name, owner="Triton Inference Server") for name in names]
        case engine:
            owner = "sglang" if engine is Engine.SGLANG else "vllm"
            cards = [_card(base, root=base, parent=None, owner=owner, max_model_len=options.config.max_model_len)]
            for name, path in paths.items():
                cards.append(_card(name, root=path, parent=base, owner=owner, max_model_len=None))
    return {"object": "list", "data": cards}


def _plain(name: str, *, owner: str) -> Json:
    return {"id": name, "object": "model", "created": int(time.time()), "owned_by": owner}


def _card(name: str, *, root: str, parent: str | None, owner: str, max_model_len: int | None) -> Json:
    now = int(time.time())
    permission = {
        "id": f"modelperm-{uuid.uuid4().hex}",
        "object": "model_permission",
        "created": now,
        "allow_create_engine": False,
        "allow_sampling": True,
        "allow_logprobs": True,
        "allow_search_indices": False,
        "allow_view": True,
        "allow_fine_tuning": False,
        "organization": "*",
        "group": None,
        "is_blocking": False,
    }
    return {
        "id": name,
        "object": "model",
        "created": now,
        "owned_by": owner,
        "root": root,
        "parent": parent,
        "max_model_len": max_model_len,
        "permission": [permission],
    }
