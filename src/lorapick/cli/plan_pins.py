"""`lorapick plan pins`: which adapters to pin, how often and where, from request logs.

In: request logs, or what a warehouse counted; a configuration, or pods and slots. Out: a report as text, JSON or a
page, and the section of the configuration, printed and in a file; rates for the gate. Exit code 2 for bad input.
Not here: counting (`plan.logs`), the advice (`plan.pins`).
"""

import json
import sys
from pathlib import Path
from typing import Annotated, TypeAlias

import msgspec
import typer

from lorapick.cli.loading import load
from lorapick.cli.plan_report import show
from lorapick.cli.progress_bar import progress_bar
from lorapick.core.picking.policies import POLICIES
from lorapick.model.pods import Pod, PodLimits
from lorapick.plan.logs.doubts import doubts
from lorapick.plan.logs.options import LogOptions
from lorapick.plan.logs.values import LogSummary
from lorapick.plan.pins.rates import today_list
from lorapick.plan.pins.report import PinPlan, pin_plan
from lorapick.plan.pins.simulating import check_fleet
from lorapick.plan.pins.snippet import Section, section_of
from lorapick.plan.pins.values import PinFleet, PinOptions
from lorapick.plan.spreading import WorkerDied
from lorapick.plan.work import to_json
from lorapick.plan.work_page import report_page
from lorapick.sim.hardware import PRESETS
from lorapick.wire.units import UnitError, parse_duration, parse_size

_DEFAULT, _LOGS = PinOptions(), LogOptions()
_MOST = 10_000
"""Pods, and slots of one."""
_CPU_LORAS = 16


LogsArgument = Annotated[
    list[str] | None, typer.Argument(help="JSON lines, CSV or Parquet: files, folders or patterns.")
]
HardwareOption = Annotated[str, typer.Option(help=f"Of the simulated pods: {', '.join(PRESETS)}.")]
PolicyOption = Annotated[str, typer.Option(help=f"How requests are sent today: {', '.join(POLICIES)}.")]
PromptOption = Annotated[int, typer.Option(help="Tokens of a prompt where logs tell none, such as 800.")]
OutputOption = Annotated[int, typer.Option(help="Tokens of an answer where logs tell none, such as 150.")]
CoverOption = Annotated[str, typer.Option(help="Share of the requests that pins should answer, such as 70% or 0.7.")]
WithNewOption = Annotated[
    bool, typer.Option("--with-new/--without-new", help="Pins also for who came first in the last 3 days: experiments?")
]
TodayOption = Annotated[
    Path | None, typer.Option(help="Write names with requests per second, for `lorapick check --today`.")
]
ServiceOption = Annotated[
    str | None, typer.Option(help="How long a request is on its pod, such as 2s. Default: from its tokens.")
]


Told: TypeAlias = tuple[PinPlan, LogSummary]


class Forms(msgspec.Struct, frozen=True, kw_only=True):
    """How the answer is told, and into which files."""

    as_json: bool
    html: Path | None
    snippet: Path | None
    today: Path | None
    show_work: bool


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What is read."""

    logs: tuple[str, ...]
    counted: Path | None
    options: LogOptions


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("pins")(pins)


def pins(
    logs: LogsArgument = None,
    config: Annotated[Path | None, typer.Option(help="The fleet: its configuration, lorapick.yaml.")] = None,
    pods: Annotated[int | None, typer.Option(help="Or how many pods, all alike.")] = None,
    slots: Annotated[int | None, typer.Option(help="Adapter slots of each.")] = None,
    cover: CoverOption = "70%",
    service: ServiceOption = None,
    target: Annotated[float, typer.Option(help="Requests of one adapter that one pod runs at once.")] = _DEFAULT.target,
    with_new: WithNewOption = False,
    policy_now: PolicyOption = _DEFAULT.policy_now,
    days: Annotated[float, typer.Option(help="Of the logs, the last ones.")] = _LOGS.days,
    adapter_column: Annotated[str | None, typer.Option(help="With the adapter's name. Default: by its name.")] = None,
    time_column: Annotated[str | None, typer.Option(help="With the time of arrival.")] = None,
    prompt_column: Annotated[str | None, typer.Option(help="With the prompt's tokens.")] = None,
    output_column: Annotated[str | None, typer.Option(help="With the answer's tokens.")] = None,
    base: Annotated[list[str] | None, typer.Option(help="A name that means the base model.")] = None,
    skip_damaged: Annotated[bool, typer.Option("--skip-damaged", help="Leave out lines that cannot be read.")] = False,
    sample: Annotated[int, typer.Option(help="Requests that are simulated, at most.")] = _LOGS.sample,
    threads: Annotated[int, typer.Option(help="For counting.")] = _LOGS.threads,
    memory: Annotated[str, typer.Option(help="For counting.")] = f"{_LOGS.memory // 10**6}MB",
    prompt: PromptOption = _DEFAULT.prompt,
    output: OutputOption = _DEFAULT.output,
    hardware: HardwareOption = _DEFAULT.hardware,
    counted: Annotated[Path | None, typer.Option(help="Folder with what a warehouse counted, instead of logs.")] = None,
    sql: Annotated[bool, typer.Option("--sql", help="Print the statements for a warehouse, and end.")] = False,
    snippet: Annotated[Path | None, typer.Option(help="Write the section of the configuration to this file.")] = None,
    today: TodayOption = None,
    seed: Annotated[int, typer.Option(help="Of the simulation.")] = _DEFAULT.seed,
    show_work: Annotated[bool, typer.Option("--show-work", help="With formulas and sources.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Say it as JSON.")] = False,
    html: Annotated[Path | None, typer.Option(help="Also write a page with the curve.")] = None,
) -> None:
    """Say which adapters to pin, how often and on which pods, from request logs; and what that would change."""
    try:
        reading = LogOptions(
            adapter=adapter_column,
            time=time_column,
            prompt_tokens=prompt_column,
            output_tokens=output_column,
            days=days,
            base=tuple(base or ()),
            sample=sample,
            threads=threads,
            memory=_size(memory),
            skip_damaged=skip_damaged,
        )
        if sql:
            print(_sql(reading), end="")
            return
        asked = Asked(logs=tuple(logs or ()), counted=counted, options=reading)
        lengths = PinOptions(prompt=prompt, output=output, hardware=hardware, policy_now=policy_now, seed=seed)
        lengths = msgspec.structs.replace(lengths, with_new=with_new)
        options = _options(lengths, cover=cover, service=service, target=target)
        told = _planned(asked, _fleet(config, pods, slots=slots), options=options)
        forms = Forms(as_json=as_json, html=html, snippet=snippet, today=today, show_work=show_work)
        _tell(*told, forms=forms)
    except (OSError, ValueError, WorkerDied) as error:
        print(f"lorapick plan pins: {error}", file=sys.stderr)
        raise typer.Exit(2) from None


# -- input


def _options(options: PinOptions, *, cover: str, service: str | None, target: float) -> PinOptions:
    changed: PinOptions = msgspec.structs.replace(
        options, cover=_share(cover), service=_duration(service), target=target
    )
    return changed


def _share(text: str) -> float:
    try:
        return float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        raise ValueError(f"--cover {text!r}: give a share, such as 0.7 or 70%") from None


def _duration(text: str | None) -> float | None:
    try:
        return None if text is None else parse_duration(text)
    except UnitError as error:
        raise ValueError(f"--service {text!r}: {error}") from None


def _size(text: str) -> int:
    try:
        return parse_size(text)
    except UnitError as error:
        raise ValueError(f"--memory {text!r}: {error}") from None


def _fleet(config: Path | None, pods: int | None, *, slots: int | None) -> tuple[PinFleet, Section | None]:
    """The fleet, and the section of its configuration that is about adapters.

    Raises:
        ValueError: neither a configuration nor pods and slots, or both.
    """
    if config is not None and (pods is not None or slots is not None):
        raise ValueError("--config names pods and slots; give it, or --pods and --slots")
    if config is not None:
        return _configured(config)
    if pods is None or slots is None:
        raise ValueError("name the fleet: its configuration with --config, or --pods and --slots")
    for name, value in (("--pods", pods), ("--slots", slots)):
        if not 1 <= value <= _MOST:
            raise ValueError(f"{name} {value}: 1 to {_MOST:,}")
    limits = PodLimits(max_loras=slots, max_cpu_loras=max(_CPU_LORAS, slots))
    width = len(str(pods))
    alike = (
        Pod(name=f"pod-{number:0{width}d}", address=f"pod-{number}", limits=limits) for number in range(1, pods + 1)
    )
    return PinFleet(pods=tuple(alike), named=False), None


def _configured(config: Path) -> tuple[PinFleet, Section]:
    loaded = load(config)
    settings = loaded.settings
    if not loaded.pods:
        raise ValueError(f"{config} names no pods; pins need their slots: list them, or give --pods and --slots")
    fleet = PinFleet(
        pods=loaded.pods,
        named=True,
        base_model=settings.base_model,
        declared=settings.adapters,
        aliases=tuple(alias.name for alias in settings.aliases),
    )
    return fleet, section_of(loaded.content)


def _with_base(options: LogOptions, fleet: PinFleet) -> LogOptions:
    """Names of the fleet's base models are not those of adapters."""
    names = [*options.base, fleet.base_model, *(pod.base_model for pod in fleet.pods)] if fleet.named else options.base
    return msgspec.structs.replace(options, base=tuple(dict.fromkeys(names)))


def _sql(options: LogOptions) -> str:
    from lorapick.plan.logs.warehouse import sql_text

    return sql_text(options)


def _summary(asked: Asked, options: LogOptions) -> LogSummary:
    """The logs, counted; DuckDB is loaded when it is needed.

    Raises:
        ValueError: they cannot be counted, or it is not said which.
    """
    if asked.counted is not None and asked.logs:
        raise ValueError("--counted is read instead of logs; give one of both")
    if asked.counted is not None:
        from lorapick.plan.logs.warehouse import read_counted

        return read_counted(asked.counted)
    if not asked.logs:
        raise ValueError("name request logs: JSON lines, CSV or Parquet; or what a warehouse counted (--counted)")
    from lorapick.plan.logs.counting import count_logs
    from lorapick.plan.logs.doubts import refuse_timeless

    with progress_bar("counting") as progress:
        summary = count_logs(asked.logs, options=options, progress=progress)
    refuse_timeless(summary)
    return summary


# -- output


def _planned(asked: Asked, where: tuple[PinFleet, Section | None], *, options: PinOptions) -> Told:
    fleet, section = where
    check_fleet(fleet, options)
    reading = _with_base(asked.options, fleet)
    summary = _summary(asked, reading)
    options = msgspec.structs.replace(options, base=reading.base)
    with progress_bar("simulating") as progress:
        plan = pin_plan(summary, fleet, options=options, section=section, progress=progress)
    report = msgspec.structs.replace(plan.report, notes=(*doubts(summary), *plan.report.notes))
    return plan._replace(report=report), summary


def _write(file: Path, text: str) -> None:
    """With the folders that it is in."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def _tell(plan: PinPlan, summary: LogSummary, *, forms: Forms) -> None:
    """Files first: whoever reads the answer may look at them."""
    if forms.html is not None:
        forms.html.write_text(report_page(plan.report), encoding="utf-8")
    if forms.snippet is not None and plan.snippet:
        _write(forms.snippet, plan.snippet)
    if forms.today is not None:
        _write(forms.today, today_list(summary, suffix=forms.today.suffix))
    if forms.as_json:
        print(json.dumps({**to_json(plan.report), "snippet": plan.snippet}, indent=2, ensure_ascii=False))
        return
    show(plan.report, as_json=False, page=None, show_work=forms.show_work)
    if plan.snippet:
        print(f"\nin place of `adapters:` in the configuration:\n\n{plan.snippet}", end="")
    elif forms.snippet is not None:
        print(f"\nno pins: {forms.snippet} is not written")
