"""`lorapick pod`: one emulated vLLM pod in a process of its own.

In: flags. Out: a served pod, one ready line, exit code 2 for bad input.
Not here: behaviour (see `live.podserver`).
"""

import asyncio
import json
import os
import re
import signal
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer
import uvloop

from lorapick.live.podserver import (
    CannotListenError,
    OptionsError,
    PodServerOptions,
    Served,
    numbered_adapters,
    read_adapters,
    serve,
)
from lorapick.live.podserver.options import MAX_ADAPTERS
from lorapick.model.pods import Engine, PodLimits
from lorapick.pod.errors import PodError
from lorapick.pod.values import AdapterSpec, PodConfig, SwapMode

_COUNT = re.compile(r"-?[0-9]+", re.ASCII)
_MOST_DIGITS = 9
_DEFAULT = PodConfig()
_LIMITS = PodLimits()


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
    engine: Annotated[str, typer.Option(help="vllm, or sglang: its page, and its unload, which frees.")] = "vllm",
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
    drain_timeout: Annotated[float, typer.Option(help="Seconds for requests in flight after SIGTERM.")] = 10.0,
    seed: Annotated[int, typer.Option(help="Seed of the load failures.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the ready line as JSON.")] = False,
) -> None:
    """Run one emulated vLLM pod: real routes, real metrics, modelled time and memory."""
    try:
        options = PodServerOptions(
            name=name,
            host=host,
            port=port,
            base_model=base_model,
            config=PodConfig(
                limits=_limits(max_loras, max_cpu_loras, rank=max_lora_rank, requests=max_num_seqs),
                mode=mode,
                block_size=block_size,
                kv_blocks=kv_blocks,
                max_model_len=max_model_len,
                load_failure_share=load_failure_share,
                unload_frees=engine == Engine.SGLANG,
            ),
            engine=_engine(engine),
            adapters=_adapters(adapters, "--adapters"),
            catalogue=_adapters(catalogue, "--catalogue"),
            speed=speed,
            runtime_lora=runtime_lora,
            report_loaded=report_loaded,
            seed=seed,
            metrics_lag=metrics_lag,
            metrics_fault="hang" if metrics_hang else "garbage" if metrics_garbage else "ok",
            kv_events_port=kv_events_port,
            drain_timeout=drain_timeout,
        )
        uvloop.run(_run(options, as_json=as_json))
    except (OptionsError, PodError, CannotListenError) as error:
        _refuse(error)


def _refuse(error: Exception) -> NoReturn:
    print(f"lorapick pod: {error}", file=sys.stderr)
    raise typer.Exit(2) from None


async def _run(options: PodServerOptions, *, as_json: bool) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
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
    }
    text = f"{options.name} ready at {served.url}: {options.base_model} and {len(options.adapters)} adapters"
    print(json.dumps(facts) if as_json else text, flush=True)


def _engine(word: str) -> Engine:
    try:
        return Engine(word)
    except ValueError:
        raise OptionsError(f"--engine {word}: emulated are vllm and sglang") from None


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
