"""`lorapick pod`: one emulated vLLM pod in a process of its own.

In: flags. Out: a served pod, one ready line, exit code 2 for bad input.
Not here: behaviour (see `live.podserver`).
"""

import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
import uvloop
from msgspec.structs import replace

from lorapick.live.podserver import (
    CannotListenError,
    OptionsError,
    PodServerOptions,
    Served,
    numbered_adapters,
    read_adapters,
    serve,
)
from lorapick.live.podserver.options import EMULATED, MAX_ADAPTERS, HandoverOptions
from lorapick.live.signals import asked_to_stop
from lorapick.model.pods import Engine, PodLimits, Role
from lorapick.pod.errors import PodError
from lorapick.pod.values import AdapterSpec, PodConfig, SwapMode

_COUNT = re.compile(r"-?[0-9]+", re.ASCII)
_MOST_DIGITS = 9
_DEFAULT = PodConfig()
_LIMITS = PodLimits()
_HANDOVER = HandoverOptions()


def register(app: typer.Typer) -> None:
    """Add the command `pod`."""
    app.command("pod")(pod)


def pod(
    name: Annotated[str, typer.Option(help="The pod's name, in its answers' headers.")] = "pod-0",
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0: any free one, named in the ready line.")] = 8000,
    base_model: Annotated[str, typer.Option(help="Name of the base model.")] = "base",
    max_loras: Annotated[int, typer.Option(help="GPU slots for adapters.")] = _LIMITS.max_loras,
    max_cpu_loras: Annotated[int, typer.Option(help="Adapters in host memory, those on the GPU included.")] = 16,
    max_lora_rank: Annotated[int, typer.Option(help="Highest rank of an adapter.")] = _LIMITS.max_lora_rank,
    max_num_seqs: Annotated[int, typer.Option(help="Most requests in one batch.")] = _LIMITS.max_num_seqs,
    max_model_len: Annotated[int, typer.Option(help="Most tokens of one sequence.")] = _DEFAULT.max_model_len,
    block_size: Annotated[int, typer.Option(help="Tokens in a KV block.")] = _DEFAULT.block_size,
    kv_blocks: Annotated[int, typer.Option(help="KV blocks in GPU memory.")] = _DEFAULT.kv_blocks,
    engine: Annotated[str, typer.Option(help="Whose API and metrics: vllm, sglang, trtllm or triton.")] = "vllm",
    max_loaded_loras: Annotated[int | None, typer.Option(help="Of sglang: adapters in memory at most.")] = None,
    mode: Annotated[SwapMode, typer.Option(help="inline: as vLLM; drain: the batch ends first.")] = SwapMode.INLINE,
    load_failure_share: Annotated[float, typer.Option(help="Share of adapter loads that fail, 0 to 1.")] = 0.0,
    adapters: Annotated[str, typer.Option(help="Registered at the start: how many, or a file that lists them.")] = "0",
    catalogue: Annotated[str, typer.Option(help="Can be loaded from /adapters/NAME: how many, or a file.")] = "0",
    speed: Annotated[float, typer.Option(help="Model seconds per real second.")] = 1.0,
    runtime_lora: Annotated[bool, typer.Option(help="Offer /v1/load_lora_adapter and /v1/unload_lora_adapter.")] = True,
    report_loaded: Annotated[bool, typer.Option(help="Report which adapters are in memory, as newer vLLM.")] = False,
    metrics_lag: Annotated[float, typer.Option(help="Oldest age in seconds of what /metrics shows.")] = 0.0,
    metrics_garbage: Annotated[bool, typer.Option(help="/metrics answers nonsense.")] = False,
    metrics_hang: Annotated[bool, typer.Option(help="/metrics never answers.")] = False,
    kv_events_port: Annotated[int | None, typer.Option(help="ZMQ port for KV events; 0: any free one.")] = None,
    role: Annotated[str, typer.Option(help="prefill, decode or both: its part in a fleet.")] = Role.BOTH.value,
    sidecar: Annotated[bool | None, typer.Option(help="Heed x-prefiller-host-port; prefill pods do not.")] = None,
    prefillers: Annotated[
        str, typer.Option(help="ip:port,... that may prefill; empty: local ones, to a local pod.")
    ] = "",
    prefill_timeout: Annotated[float, typer.Option(help="Seconds for their answer.")] = _HANDOVER.prefill_timeout,
    kv_bandwidth: Annotated[float, typer.Option(help="Bytes of KV per second from them.")] = _HANDOVER.kv_bandwidth,
    kv_hold: Annotated[float, typer.Option(help="Seconds that KV waits for another pod.")] = _DEFAULT.kv_hold,
    reserve: Annotated[bool, typer.Option(help="Hold the adapter while another pod prefills.")] = False,
    drain_timeout: Annotated[float, typer.Option(help="Seconds for requests in flight after SIGTERM.")] = 10.0,
    seed: Annotated[int, typer.Option(help="Seed of the load failures.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the ready line as JSON.")] = False,
) -> None:
    """Run one emulated pod: real routes, real metrics, modelled time and memory."""
    with _refusals():
        options = PodServerOptions(name=name, host=host, port=port, base_model=base_model, speed=speed, seed=seed)
        limits = _limits(max_loras, max_cpu_loras, rank=max_lora_rank, requests=max_num_seqs)
        tokens = PodConfig(block_size=block_size, kv_blocks=kv_blocks, max_model_len=max_model_len)
        frees = engine == Engine.SGLANG
        loads = replace(tokens, limits=limits, mode=mode, load_failure_share=load_failure_share, unload_frees=frees)
        options = replace(
            options, config=replace(loads, kv_hold=kv_hold * speed), engine=_engine(engine), role=_role(role)
        )
        options = replace(options, max_loaded_loras=max_loaded_loras)
        allowed = tuple(prefillers.split(",")) if prefillers else None
        speeds = HandoverOptions(prefill_timeout=prefill_timeout, kv_bandwidth=kv_bandwidth)
        options = replace(options, handover=replace(speeds, sidecar=sidecar, prefillers=allowed, reserve=reserve))
        known, on_disk = _adapters(adapters, "--adapters"), _adapters(catalogue, "--catalogue")
        options = replace(options, adapters=known, catalogue=on_disk, runtime_lora=runtime_lora)
        fault = "hang" if metrics_hang else "garbage" if metrics_garbage else "ok"
        options = replace(options, report_loaded=report_loaded, metrics_lag=metrics_lag, metrics_fault=fault)
        options = replace(options, kv_events_port=kv_events_port, drain_timeout=drain_timeout)
        uvloop.run(_run(options, as_json=as_json))


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except (OptionsError, PodError, CannotListenError) as error:
        print(f"lorapick pod: {error}", file=sys.stderr)
        raise typer.Exit(2) from None


async def _run(options: PodServerOptions, *, as_json: bool) -> None:
    with asked_to_stop() as stop:
        await serve(options, stop=stop, ready=lambda served: _say_ready(options, served, as_json=as_json))


def _say_ready(options: PodServerOptions, served: Served, *, as_json: bool) -> None:
    facts = {
        "event": "ready",
        "name": options.name,
        "url": served.url,
        "host": served.host,
        "port": served.port,
        "pid": os.getpid(),
        "base_model": options.base_model,
        "adapters": len(options.adapters),
        "role": options.role,
    }
    text = f"{options.name} ready at {served.url}: {options.base_model} and {len(options.adapters)} adapters"
    print(json.dumps(facts) if as_json else text, flush=True)


def _engine(word: str) -> Engine:
    try:
        return Engine(word)
    except ValueError:
        raise OptionsError(f"--engine {word}: emulated are {', '.join(EMULATED)}") from None


def _role(word: str) -> Role:
    try:
        return Role(word)
    except ValueError:
        raise OptionsError(f"--role {word}: a pod's role is {', '.join(Role)}") from None


def _limits(slots: int, host: int, *, rank: int, requests: int) -> PodLimits:
    return PodLimits(max_loras=slots, max_cpu_loras=host, max_lora_rank=rank, max_num_seqs=requests)


def _adapters(value: str, flag: str) -> tuple[AdapterSpec, ...]:
    """A count, or the path of a file that lists them."""
    if _COUNT.fullmatch(value):
        if len(value) > _MOST_DIGITS:
            raise OptionsError(f"{flag} is a number of {len(value)} digits; ask for 0 to {MAX_ADAPTERS}")
        return numbered_adapters(int(value))
    try:
        text = Path(value).read_bytes()
    except OSError as error:
        raise OptionsError(f"{flag} {value}: {error.strerror}; give a count, or a YAML or JSON file") from None
    try:
        return read_adapters(text, file=value)
    except OptionsError as error:
        raise OptionsError(f"{flag}: {error}") from None
