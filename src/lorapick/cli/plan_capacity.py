"""`lorapick plan capacity`: how many pods and slots a demand needs for a P95.

In: a list of adapters with their rates, or a scenario; limits, what to choose from. Out: a report. Exit code 0: a fleet
was found; 1: nothing in the range suffices; 2: bad input. Not here: the search (`plan.fleet_size`).
"""

import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from lorapick.cli.plan_report import show
from lorapick.cli.progress_bar import progress_bar
from lorapick.plan.bill.reserve import RANKS
from lorapick.plan.fleet_size.choice import cheapest
from lorapick.plan.fleet_size.demand import OUTPUT, PROMPT, Unsaid, read_demand, unsaid_lengths
from lorapick.plan.fleet_size.memory import memory
from lorapick.plan.fleet_size.report import GPU_HOUR, Price, sizing_report
from lorapick.plan.fleet_size.search import Span
from lorapick.plan.fleet_size.size import Sized, Sizing, size
from lorapick.plan.fleet_size.trial import MOST_LOST, Limits
from lorapick.plan.spreading import WorkerDied
from lorapick.plan.work import MOST
from lorapick.pod.values import Memory as PodMemory
from lorapick.sim.hardware import PRESETS
from lorapick.wire.units import UnitError, parse_duration

T = TypeVar("T")
_SPAN = re.compile(r"(\d{1,6})(?:\.\.(\d{1,6}))?", re.ASCII)
_MOST_SLOTS, _MOST_WORKERS = 4096, 256


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("capacity")(capacity)


def capacity(
    demand: Annotated[
        str, typer.Argument(help="List of adapters with rates, as `check --today` reads it; or a scenario or its file.")
    ],
    p95: Annotated[str, typer.Option(help="Highest P95 of latency, e.g. 1.5s.")],
    pods: Annotated[str, typer.Option(help="Pods to choose from.")] = "1..32",
    slots: Annotated[str, typer.Option(help="Slots of a pod to choose from.")] = "4,8,16",
    policy: Annotated[
        str | None, typer.Option("--policy", "-p", help="Default: the scenario's, or the configuration's default.")
    ] = None,
    lost: Annotated[str, typer.Option(help="Most requests that may be lost.")] = f"{MOST_LOST:.0%}",
    rate: Annotated[float | None, typer.Option(help="Requests per second in all, where a list has none.")] = None,
    zipf: Annotated[float | None, typer.Option(help="Popularity of those without a rate; default: 1.")] = None,
    prompt: Annotated[
        str | None, typer.Option(help=f"Tokens of a list's prompts, such as 200 or 100..300; default: {PROMPT}.")
    ] = None,
    output: Annotated[
        str | None, typer.Option(help=f"Tokens of its answers, such as 80 or 4..12; default: {OUTPUT}.")
    ] = None,
    hardware: Annotated[
        str | None, typer.Option(help=f"{', '.join(PRESETS)}; default: the scenario's, or the first.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Base model that slots are made for, or a config.json; default: the hardware's.")
    ] = None,
    rank: Annotated[int | None, typer.Option(help="Highest that a slot is made for; default: the demand's.")] = None,
    put: Annotated[
        list[str] | None, typer.Option("--set", help="A key of the scenario, e.g. fleet.max_num_seqs=128.")
    ] = None,
    seconds: Annotated[
        float | None, typer.Option(help="Simulated seconds of a run; default: enough for 2,000 requests.")
    ] = None,
    seeds: Annotated[int, typer.Option(help="Runs of each point; the worst counts.")] = 3,
    spare: Annotated[int, typer.Option(help="Pods beside, for when one fails.")] = 1,
    gpu_hour: Annotated[
        float | None, typer.Option(help=f"Dollars of a GPU and hour; default: {GPU_HOUR.value}.")
    ] = None,
    workers: Annotated[int | None, typer.Option(help="Processes; default: one per core.")] = None,
    show_work: Annotated[bool, typer.Option("--show-work", help="With formulas and sources.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Say it as JSON.")] = False,
    html: Annotated[Path | None, typer.Option(help="Also write a page with charts.")] = None,
) -> None:
    """Say how many pods and slots a demand needs, and what they cost: searched with the simulator."""
    flags = dict(locals())
    try:
        price = Price(gpu_hour=_checked("--gpu-hour", gpu_hour), spare=int(_checked("--spare", spare) or 0))
        _check_page(html)
        sized = _sized(flags)
        show(sizing_report(sized, price), as_json=as_json, page=html, show_work=show_work)
    except (OSError, ValueError, WorkerDied) as error:
        print(f"lorapick plan capacity: {error}", file=sys.stderr)
        raise typer.Exit(2) from None
    if cheapest(sized.found) is None:
        raise typer.Exit(1)


def _sized(flags: Mapping[str, Any]) -> Sized:
    asked = _asked(flags)
    workers = flags["workers"]
    if workers is not None and not 1 <= workers <= _MOST_WORKERS:
        raise ValueError(f"--workers {workers}: give 1 to {_MOST_WORKERS}")
    with progress_bar(f"{asked.scenario.title}, {len(asked.slots)} searches") as told:
        return size(asked, workers=workers, progress=told)


def _asked(flags: Mapping[str, Any]) -> Sizing:
    limits = Limits(p95=_read("--p95", flags["p95"], parse_duration), lost=_read("--lost", flags["lost"], _share))
    if not limits.p95 > 0:
        raise ValueError(f"--p95 {flags['p95']}: it must be above 0")
    unsaid = Unsaid(
        rate=_checked("--rate", flags["rate"]),
        zipf=_checked("--zipf", flags["zipf"]),
        prompt=_length("--prompt", flags["prompt"]),
        output=_length("--output", flags["output"]),
        hardware=flags["hardware"],
        rank=flags["rank"],
        seconds=_checked("--seconds", flags["seconds"]),
        overrides=_overrides(flags["put"] or ()),
    )
    pods, slots = _read("--pods", flags["pods"], _span), _read("--slots", flags["slots"], _list)
    scenario = read_demand(flags["demand"], unsaid, limit=limits.p95)
    highest = max(scenario.adapters.ranks)
    return Sizing(
        scenario=scenario,
        policy=flags["policy"] or scenario.settings.picking.policy,
        pods=pods,
        slots=slots,
        seeds=flags["seeds"],
        limits=limits,
        unsaid=unsaid_lengths(scenario, unsaid),
        memory=memory(
            scenario.fleet.hardware,
            rank=flags["rank"] or next((each for each in RANKS if each >= highest), highest),
            model=flags["model"],
            unified=scenario.fleet.memory is PodMemory.UNIFIED,
        ),
    )


# -- options


def _read(option: str, text: str, reader: Callable[[str], T]) -> T:
    try:
        return reader(text)
    except (UnitError, ValueError) as error:
        raise ValueError(f"{option} {text!r}: {error}") from None


def _checked(option: str, value: float | None) -> float | None:
    if value is not None and not 0 <= value <= MOST:
        raise ValueError(f"{option} {value:g}: give a number from 0 to {MOST:g}")
    return value


def _span(text: str) -> Span:
    match = _SPAN.fullmatch(text)
    if match is None:
        raise ValueError("give a number of pods, or a range such as 2..16")
    return Span(int(match.group(1)), int(match.group(2) or match.group(1)))


def _list(text: str) -> tuple[int, ...]:
    found = tuple(dict.fromkeys(int(part) if part.isascii() and part.isdigit() else 0 for part in text.split(",")))
    if not all(1 <= each <= _MOST_SLOTS for each in found):
        raise ValueError(f"give slots from 1 to {_MOST_SLOTS} with commas between, such as 4,8,16")
    return found


def _share(text: str) -> float:
    try:
        return float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        raise ValueError("give a share, such as 1% or 0.01") from None


def _length(option: str, text: str | None) -> str | None:
    """Tokens as a scenario has them."""
    if text is None:
        return None
    match = _SPAN.fullmatch(text)
    if match is None:
        raise ValueError(f"{option} {text!r}: give tokens, such as 200 or 100..300")
    return f"[{match.group(1)}, {match.group(2)}]" if match.group(2) else match.group(1)


def _overrides(put: Sequence[str]) -> dict[str, str]:
    pairs = [(each, *each.partition("=")) for each in put]
    wrong = next((each for each, key, _, value in pairs if not key or not value), None)
    if wrong is not None:
        raise ValueError(f"--set {wrong!r}: write KEY=VALUE, for example fleet.max_num_seqs=128")
    return {key: value for _, key, _, value in pairs}


def _check_page(page: Path | None) -> None:
    """Before the search, not after it."""
    if page is not None and not os.access(page if page.exists() else page.parent, os.W_OK):
        raise ValueError(f"--html {page}: cannot be written: no such directory, or it belongs to somebody else")
