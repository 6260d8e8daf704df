"""`lorapick up`: everything on this machine, with one command.

In: flags. Out: a running installation until Ctrl-C; exit code 2 for bad input, 1 when a part does not come up.
Not here: how the parts are started and kept (`live.stack`), traffic (`live.traffic`).
"""

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
import uvloop

from lorapick.cli.up_options import UpError, UpPlan, plan_of, read_pods
from lorapick.live.addresses import in_use
from lorapick.live.admin_token import token_from
from lorapick.live.processes import ChildExit
from lorapick.live.run_lock import RunDirectoryError, RunLock
from lorapick.live.signals import asked_to_stop
from lorapick.live.stack import Stack, StackError
from lorapick.live.stack_options import StackOptions
from lorapick.live.tls.exposure import check_exposure
from lorapick.live.traffic import sample_traffic
from lorapick.live.web import BindError
from lorapick.model.settings import Settings
from lorapick.wire.config import ConfigError
from lorapick.wire.config.later import HEADING
from lorapick.wire.config.roles import ROLES_HEADING

_LOOK_AT_PODS_EVERY = 1.0


def register(app: typer.Typer) -> None:
    """Add the command `up`."""
    app.command("up")(up)


def up(
    config: Annotated[
        Path | None, typer.Option(help="lorapick.yaml of an existing fleet; without it, pods are emulated.")
    ] = None,
    pods: Annotated[int, typer.Option(help="Emulated pods.")] = 8,
    prefill: Annotated[int, typer.Option(help="Emulated pods of these that prefill; the others decode then.")] = 0,
    slots: Annotated[int, typer.Option(help="GPU slots for adapters of every emulated pod.")] = 4,
    adapters: Annotated[int, typer.Option(help="Adapters that every emulated pod can serve.")] = 40,
    policy: Annotated[str | None, typer.Option(help="Policy that chooses a pod; default: weighted.")] = None,
    mode: Annotated[str, typer.Option(help="How emulated pods swap: inline (as vLLM) or drain.")] = "inline",
    body: Annotated[
        str | None, typer.Option(help="buffered (fails open) or full_duplex_streamed; default: buffered.")
    ] = None,
    pickers: Annotated[int, typer.Option(help="Pickers; take 2 with full_duplex_streamed.")] = 1,
    port: Annotated[int | None, typer.Option(help="Port of the OpenAI endpoint; default: 8080.")] = None,
    admin_port: Annotated[int | None, typer.Option(help="Port of page and admin API; default: 9091.")] = None,
    metrics_port: Annotated[int | None, typer.Option(help="Port of the metrics; default: 9090.")] = None,
    health_port: Annotated[int | None, typer.Option(help="Port of the gRPC health service; default: 9003.")] = None,
    pod_port: Annotated[int, typer.Option(help="Port of the first emulated pod; 0: free ones.")] = 0,
    concurrency: Annotated[int, typer.Option(help="Envoy's worker threads.")] = 1,
    speed: Annotated[float, typer.Option(help="Model seconds per real second in emulated pods.")] = 1.0,
    traffic: Annotated[bool, typer.Option(help="Send a sample of traffic.")] = True,
    rate: Annotated[float, typer.Option(help="Requests per second of that sample.")] = 4.0,
    seed: Annotated[int, typer.Option(help="Seed of traffic and tie-breaks.")] = 0,
    run_dir: Annotated[Path, typer.Option(help="Directory for sockets, logs and generated files.")] = Path("run"),
    event_log: Annotated[bool, typer.Option(help="Keep each picker's events in the run directory.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Say all of it as JSON lines.")] = False,
) -> None:
    """Start Envoy, the picker, emulated pods and a sample of traffic; end all of it with Ctrl-C."""
    flags = dict(locals())
    say = _say_json if as_json else _say_text
    try:
        plan = plan_of(flags)
        with RunLock(run_dir):
            _check_ports(plan)
            _check_token(plan)
            uvloop.run(_run(plan, say))
    except (UpError, RunDirectoryError, ValueError) as error:
        print(f"lorapick up: {error}", file=sys.stderr)
        raise typer.Exit(2) from None
    except StackError as error:
        print(f"lorapick up: {error}\nlogs are in {run_dir}", file=sys.stderr)
        raise typer.Exit(1) from None


def _check_ports(plan: UpPlan) -> None:
    """Find ports in use before anything is started."""
    taken = [f"{address} is in use; {remedy}" for address, remedy in plan.listens if in_use(address)]
    if taken:
        raise UpError("; ".join(taken))


def _check_token(plan: UpPlan) -> None:
    """Find a token that is missing, or needed, before anything starts: pickers would end, one after the other."""
    try:
        token_from(plan.settings.server.admin_token, os.environ)
        check_exposure(plan.settings)
    except BindError as error:
        raise UpError(str(error)) from None


async def _run(plan: UpPlan, say: Callable[[str, dict[str, Any]], None]) -> None:
    with asked_to_stop() as stop:
        await _up(plan, say, stop=stop)


async def _up(plan: UpPlan, say: Callable[[str, dict[str, Any]], None], *, stop: asyncio.Event) -> None:
    say("starting", _starting(plan))
    for line in plan.later:
        say("later", {"message": line})
    for line in plan.useless_roles:
        say("useless_role", {"message": line})
    stack = Stack(plan.options, on_exit=lambda ended: _say_exit(ended, say))
    try:
        if await _unless(stop, stack.start()):
            say("ready", _ready(stack))
            await _serve(plan, stack, stop=stop, say=say)
            say("ending", {"processes": len(_pids(stack))})
    finally:
        count = len(_pids(stack))
        await stack.aclose()
        say("ended", {"processes": count})


async def _serve(
    plan: UpPlan, stack: Stack, *, stop: asyncio.Event, say: Callable[[str, dict[str, Any]], None]
) -> None:
    """Traffic, and news of the pods, until `stop`."""
    async with asyncio.TaskGroup() as group:
        if plan.rate is not None:
            say("traffic", {"rate": plan.rate, "adapters": len(plan.traffic_adapters)})
            group.create_task(
                sample_traffic(stack.endpoint, plan.traffic_adapters, rate=plan.rate, seed=plan.options.seed, stop=stop)
            )
        following = None
        if plan.pods_file is not None:
            following = group.create_task(_follow(plan, plan.pods_file, stack))
        await stop.wait()
        if following is not None:
            following.cancel()


async def _follow(plan: UpPlan, path: Path, stack: Stack) -> None:
    """Keep Envoy's endpoints as the pods file has them; a file with errors changes nothing (the picker reports it)."""
    known = tuple(pod.address for pod in stack.pods)
    seen: tuple[int, ...] | None = None
    while True:
        await asyncio.sleep(_LOOK_AT_PODS_EVERY)
        with contextlib.suppress(OSError):
            stat = await asyncio.to_thread(path.stat)
            mark = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
            if mark == seen:
                continue
            found = await asyncio.to_thread(_addresses, path, plan.settings)
            if found is not None and found != known:
                stack.set_endpoints(found)
                known = found
            # Only now: what could not be read or written (a full disk) is tried again.
            seen = mark


def _addresses(path: Path, settings: Settings) -> tuple[str, ...] | None:
    """Addresses of the pods in the file, perhaps none; None: the file is wrong."""
    try:
        return tuple(pod.address for pod in read_pods(path, settings))
    except ConfigError:
        return None


async def _unless(stop: asyncio.Event, work: Any) -> bool:
    """Do the work unless `stop` comes first; whether it was done."""
    task = asyncio.ensure_future(work)
    stopped = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({task, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
            return True
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        return False
    finally:
        stopped.cancel()


def _starting(plan: UpPlan) -> dict[str, Any]:
    running = len(plan.options.external)
    return {"pods": running or plan.options.pods, "emulated": not running, "run_dir": str(plan.options.run_dir)}


def _ready(stack: Stack) -> dict[str, Any]:
    names = stack.options.adapter_names
    return {
        "endpoint": f"{stack.endpoint}/v1",
        "page": stack.admin,
        "metrics": stack.metrics,
        "model": names[0] if names else stack.pods[0].base_model,
        **_sample(stack.options),
        "pods": {pod.name: pod.address for pod in stack.pods},
        "pids": {
            "envoy": stack.envoy_pid,
            "pickers": stack.picker_pids,
            "pods": stack.pod_pids,
        },
    }


def _sample(options: StackOptions) -> dict[str, Any]:
    """What the emulated fleet's configuration pins, and which event loads what; nothing of an operator's own."""
    if options.external or "adapters" not in options.configuration:
        return {}
    pinned = options.configuration["adapters"]["list"][-1]
    trigger = options.configuration["triggers"][0]
    return {
        "pinned": {"adapter": pinned["name"], "pods": pinned["pin"]["replicas"]},
        "trigger": {"event": trigger["event"], "adapter": trigger["preload"]},
    }


def _pids(stack: Stack) -> list[int]:
    return [pid for pid in (*stack.pod_pids, *stack.picker_pids, stack.envoy_pid) if pid is not None]


def _say_exit(ended: ChildExit, say: Callable[[str, dict[str, Any]], None]) -> None:
    if not ended.wanted:
        say("died", msgspec.to_builtins(ended))


def _say_json(event: str, facts: dict[str, Any]) -> None:
    print(json.dumps({"event": event, **facts}), flush=True)


def _say_text(event: str, facts: dict[str, Any]) -> None:
    print(_TEXTS[event](facts), flush=True)


def _starting_text(facts: dict[str, Any]) -> str:
    count = f"{facts['pods']} pod{'' if facts['pods'] == 1 else 's'}"
    what = f"Envoy, the picker and {count}" if facts["emulated"] else f"Envoy and the picker, for {count} of yours"
    return f"starting {what}; logs are in {facts['run_dir']}/"


def _ready_text(facts: dict[str, Any]) -> str:
    body = json.dumps({"model": facts["model"], "prompt": "Hello", "max_tokens": 16})
    return "\n".join(
        (
            "",
            f"  endpoint  {facts['endpoint']}",
            f"  page      {facts['page']}",
            f"  metrics   {facts['metrics']}",
            *_sample_text(facts),
            "",
            "Try it:",
            "",
            f"  curl {facts['endpoint']}/completions -H 'content-type: application/json' -d '{body}'",
            "",
            "Ctrl-C ends all of it.",
        )
    )


def _sample_text(facts: dict[str, Any]) -> list[str]:
    pinned, trigger = facts.get("pinned"), facts.get("trigger")
    if pinned is None or trigger is None:
        return []
    pods = f"{pinned['pods']} pod{'' if pinned['pods'] == 1 else 's'}"
    return [
        f"  pinned    {pinned['adapter']} on {pods}",
        f"  event     lorapick events fire {trigger['event']}  (loads {trigger['adapter']})",
    ]


def _died_text(facts: dict[str, Any]) -> str:
    code = facts["code"]
    how = f"signal {-code}" if code < 0 else f"exit code {code}"
    return f"{facts['name']} (pid {facts['pid']}) died after {facts['lived']:.1f} s with {how}; another is started"


_TEXTS: dict[str, Callable[[dict[str, Any]], str]] = {
    "starting": _starting_text,
    "later": lambda facts: f"{HEADING}: {facts['message']}",
    "useless_role": lambda facts: f"{ROLES_HEADING}: {facts['message']}",
    "ready": _ready_text,
    "traffic": lambda facts: f"sample traffic: {facts['rate']:g} requests/s over {facts['adapters']} adapters",
    "died": _died_text,
    "ending": lambda facts: f"\nending {facts['processes']} processes",
    "ended": lambda _: "all ended",
}
