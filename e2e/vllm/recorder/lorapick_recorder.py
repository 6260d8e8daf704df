"""A vLLM plugin that writes down which adapters the worker really holds: the judge of what the picker believes.

In: `LORAPICK_RECORD`, a file to append to; vLLM calls `register` in each of its processes. Out: JSON lines, with `t` on
the system's monotonic clock:
- `holds`: adapters in GPU slots and in host memory, after either set has changed;
- `runs`: when a request's first step began, its adapter, and where that had to be fetched from in it (`gpu`: nowhere).
Not here: anything of lorapick; the file shares no code with what it judges. vLLM 0.32.
"""

import json
import os
import time
from typing import Any

_seen: tuple[tuple[str, ...], tuple[str, ...]] | None = None
_names: dict[int, str] = {}
_came_from: dict[str, str] = {}
"""Adapters that this step put into a slot, and where they were before."""


def register() -> None:
    """Wrap the worker's adapter manager and its step; no-op where no record is asked for."""
    path = os.environ.get("LORAPICK_RECORD")
    if not path:
        return
    from vllm.lora.worker_manager import LRUCacheWorkerLoRAManager as Manager
    from vllm.v1.worker.gpu_worker import Worker

    out = open(path, "a", buffering=1)  # noqa: SIM115 - one write per line, until the process ends
    for method in ("add_adapter", "remove_adapter", "remove_all_adapters"):
        _around(Manager, method, out)
    step = Worker.execute_model

    def execute_model(self: Any, scheduler_output: Any, *more: Any, **named: Any) -> Any:
        began = time.monotonic()
        _came_from.clear()
        result = step(self, scheduler_output, *more, **named)
        for request in scheduler_output.scheduled_new_reqs:
            adapter = request.lora_request and request.lora_request.lora_name
            tier = adapter and _came_from.get(adapter, "gpu")
            _write(out, {"kind": "runs", "t": began, "request": request.req_id, "adapter": adapter, "tier": tier})
        return result

    Worker.execute_model = execute_model


def _around(cls: type, method: str, out: Any) -> None:
    inner = getattr(cls, method)

    def wrapped(self: Any, *arguments: Any) -> Any:
        for argument in arguments:
            if hasattr(argument, "lora_int_id"):
                _names[argument.lora_int_id] = argument.lora_name
                gpu, host = _levels(self)
                if argument.lora_int_id not in gpu:
                    _came_from[argument.lora_name] = "cpu" if argument.lora_int_id in host else "disk"
        result = inner(self, *arguments)
        _holds(self, out)
        return result

    setattr(cls, method, wrapped)


def _levels(manager: Any) -> tuple[set[int], set[int]]:
    inner = manager._adapter_manager  # nothing public says it
    return set(inner._active_adapters.cache), set(inner._registered_adapters.cache)


def _holds(manager: Any, out: Any) -> None:
    global _seen  # one worker per process
    gpu, host = (tuple(sorted(_names.get(number, str(number)) for number in level)) for level in _levels(manager))
    if (gpu, host) != _seen:
        _seen = (gpu, host)
        _write(out, {"kind": "holds", "t": time.monotonic(), "gpu": gpu, "host": host})


def _write(out: Any, row: dict[str, Any]) -> None:
    out.write(json.dumps(row) + "\n")
