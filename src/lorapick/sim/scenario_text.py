"""A scenario file's text as a `Scenario`.

In: YAML text, its name for messages, the policies that exist. Out: the scenario; or `ConfigError` with every problem,
each with line, field, value and what would be right. Not here: reading files (see `plan.scenario_files`), arrivals (see
`sim.traffic_text`).
"""

import contextlib
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Any

import msgspec

from lorapick.model.adapters import Adapter
from lorapick.model.settings import Settings
from lorapick.model.units import AdapterName, Seconds
from lorapick.sim.expect_text import check_expected, expected, expected_capacity, period, with_usual
from lorapick.sim.fleet_changes import FleetChange
from lorapick.sim.fleet_text import check_memory, fleet_plan
from lorapick.sim.hardware import PRESETS
from lorapick.sim.intent_text import check_day, groups, parts, pins, schedules, triggers
from lorapick.sim.metrics import METRICS
from lorapick.sim.overrides import override
from lorapick.sim.phases_text import changed, later_pods, phase
from lorapick.sim.pipelines_text import pipelines
from lorapick.sim.recorded_text import Recordings
from lorapick.sim.run_text import run_plan
from lorapick.sim.scenario import (
    LLM_D_INTERVALS,
    PODS_OWN,
    AdapterPlan,
    Expected,
    ExpectedCapacity,
    RunPlan,
    Scenario,
    names_of,
)
from lorapick.sim.scenario_readers import made, popularity, raw
from lorapick.sim.traffic_text import Stream, When, chosen, streams
from lorapick.sim.workload.spec import Flow, Traced, Workload
from lorapick.sim.workload.stream import OpenLines, undeclared_names
from lorapick.wire.config import alerting, sections
from lorapick.wire.config.disaggregation import disaggregation
from lorapick.wire.config.document import At, Refused, Report, parse_document
from lorapick.wire.config.mode import mode
from lorapick.wire.config.readers import (
    Reader,
    adapter_name,
    choice,
    duration,
    fields,
    integer,
    list_of,
    record,
    size,
    text,
    word,
)

_KEYS = (
    "name", "title", "source", "assumes", "fleet", "adapters", "arrivals", "pipelines", "phases", "run", "periods",
    "expect", "policy", "policies", "settings", "scrape_intervals", "latency_limit", "grid", "suites",
    "without_swaps", "pins", "groups", "schedules", "triggers", "weekend", "in_periods", "parts",
)  # fmt: skip


def parse_scenario(
    content: bytes | str,
    *,
    file: str,
    policies: Collection[str],
    overrides: Mapping[str, str] | None = None,
    open_lines: OpenLines | None = None,
) -> Scenario:
    """Read and check a scenario.

    Args:
        content: the YAML text.
        file: what messages call it.
        policies: names that policies may have.
        overrides: values for keys (`fleet.slots`), in the place of the file's.
        open_lines: opens traces and recordings that the scenario names; kept by the scenario, and sent with it to other
            processes. None: it may name none.

    Raises:
        ConfigError: every problem of the file.
    """
    report = Report(file)
    root = parse_document(content, report)
    found: Scenario | None = None
    with contextlib.suppress(Refused):
        override(root, overrides or {})
        found = _scenario(root, policies, open_lines=open_lines or _no_files)
    report.raise_if_any()
    assert found is not None, f"{file}: refused without a problem"
    return found


def _no_files(name: str) -> Iterable[bytes]:
    raise FileNotFoundError(f"{name} cannot be opened: this scenario does not come from a file")


def _scenario(root: At, policies: Collection[str], *, open_lines: OpenLines) -> Scenario:
    plain = fields(
        root,
        {
            "name": word,
            "title": text,
            "source": text,
            "assumes": list_of(text, least=1),
            "fleet": fleet_plan,
            "adapters": _adapters,
            "run": run_plan,
            "policy": choice(*policies),
            "policies": list_of(choice(*policies), least=1, unique=""),
            "settings": fields_of_settings(policies),
            "scrape_intervals": lambda at: _intervals(at, policies),
            "latency_limit": duration(least=1e-3),
            "grid": _grid,
            "suites": _suites,
            "without_swaps": _overrides,
            "in_periods": list_of(choice(*METRICS), least=1, unique=""),
        },
        required=("name", "source", "assumes", "fleet", "adapters", "arrivals", "run"),
        also=_KEYS,
    )
    if not {"fleet", "adapters", "run"} <= plain.keys():
        raise Refused
    adapters, run = plain["adapters"], plain["run"]
    fleet = plain["fleet"] = msgspec.structs.replace(plain["fleet"], later=later_pods(root, plain["fleet"]))
    check_memory(root, fleet, adapters=adapters)
    when = When(begin=run.begin, length=run.length)
    recordings = Recordings(open_lines=open_lines, block_tokens=PRESETS[fleet.hardware].block_size)
    later = fields(
        root,
        {
            "arrivals": lambda at: streams(at, adapters, when=when, recordings=recordings),
            "pipelines": pipelines(adapters, recordings),
            "phases": list_of(phase(adapters, fleet, when=when)),
            "parts": parts(adapters),
            "pins": pins(adapters, fleet),
            "groups": groups(adapters),
            "schedules": schedules(adapters),
            "triggers": triggers(adapters),
            "weekend": chosen(adapters),
            "periods": list_of(period(when), unique="name"),
            "expect": lambda at: (expected(at, policies), expected_capacity(at, policies)),
        },
        also=_KEYS,
    )
    if root.report.problems:
        raise Refused
    found = _put_together(root, plain | later, run=run, policies=policies)
    return msgspec.structs.replace(found, open_lines=open_lines)


def _put_together(root: At, values: dict[str, Any], *, run: RunPlan, policies: Collection[str]) -> Scenario:
    fleet, adapters = values["fleet"], values["adapters"]
    changes: list[FleetChange] = []
    found: tuple[Stream, ...] = values["arrivals"]
    for place, (traffic, pods) in zip(root.each("phases"), values.get("phases", ()), strict=True):
        changes += pods
        found = made(place, partial(changed, found, traffic))
    workload = made(
        root.nearest("arrivals"),
        lambda: Workload(
            flows=tuple(each for each in found if isinstance(each, Flow)),
            traces=tuple(each for each in found if isinstance(each, Traced)),
            follows=values.get("pipelines", ()),
            clock=run.begin,
            until=run.length,
            block_tokens=PRESETS[fleet.hardware].block_size,
        ),
    )
    picker = values.get("settings", Settings())
    intervals = _usual_intervals(root) | values.get("scrape_intervals", {})
    _check_intervals(root, intervals, stale_after=picker.scrape.stale_after)
    policy: str = values.get("policy", picker.picking.policy)
    settings = _settings(root, values, policy=policy, workload=workload)
    check_day(root, settings)
    expect: tuple[Expected, ...]
    capacities: tuple[ExpectedCapacity, ...]
    expect, capacities = values.get("expect", ((), ()))
    periods = with_usual(values.get("periods", ()), expect, run=run, phases=_phases(found, changes))
    check_expected(root, expect, periods=periods)
    retention = fleet.retention or PODS_OWN
    expect = tuple(each for each in expect if each.retention in (None, retention))
    return Scenario(
        name=values["name"],
        title=values.get("title", values["name"]),
        source=values["source"],
        assumes=values["assumes"],
        fleet=fleet,
        adapters=adapters,
        workload=workload,
        settings=settings,
        changes=tuple(sorted(changes, key=lambda each: each.at)),
        run=run,
        periods=periods,
        in_periods=values.get("in_periods", ()),
        parts=values.get("parts", {}),
        expect=expect,
        expect_capacity=capacities,
        without_swaps=values.get("without_swaps", {}),
        policies=values.get("policies", tuple(dict.fromkeys((*policies, policy)))),
        scrape_intervals=intervals,
        latency_limit=values.get("latency_limit"),
        grid=values.get("grid", {}),
        suites=values.get("suites", {}),
    )


def _settings(root: At, values: Mapping[str, Any], *, policy: str, workload: Workload) -> Settings:
    """The picker's configuration."""
    picker: Settings = values.get("settings", Settings())
    return msgspec.structs.replace(
        picker,
        adapters=_declared(root, values["adapters"], workload=workload, values=values),
        groups=values.get("groups", ()),
        schedules=values.get("schedules", ()),
        triggers=values.get("triggers", ()),
        defaults=values["fleet"].limits,
        picking=msgspec.structs.replace(picker.picking, policy=policy),
    )


def _declared(root: At, plan: AdapterPlan, *, workload: Workload, values: Mapping[str, Any]) -> tuple[Adapter, ...]:
    """What the picker's configuration names."""
    pinned, weekend = values.get("pins", {}), values.get("weekend", ())
    others = dict.fromkeys(made(root.nearest("phases"), lambda: undeclared_names(workload, known=plan.names)))
    return tuple(
        Adapter(
            name=name,
            rank=plan.rank_of(place),
            declared=True,
            pin=pinned.get(name),
            weekend="deprioritize" if name in weekend else None,
        )
        for place, name in enumerate(names_of(plan, workload))
        if name not in others
    )


def _phases(streams_after: tuple[Stream, ...], changes: list[FleetChange]) -> list[tuple[Seconds, Seconds]]:
    """When each change begins and has happened in full."""
    laws = [each.replay if isinstance(each, Traced) else each for each in streams_after]
    traffic = [(each.at, each.at + each.over) for law in laws for each in law.changes]
    return [*traffic, *((each.at, each.at) for each in changes)]


def _grid(at: At) -> dict[str, tuple[str, ...]]:
    """Keys of this file, each with the values that it takes in the family."""
    return {name: list_of(raw, least=1, unique="")(entry.value) for name, entry in at.entries().items()}


def _suites(at: At) -> dict[str, dict[str, tuple[str, ...]]]:
    return {word(entry.key): _grid(entry.value) for entry in at.entries().values()}


def _overrides(at: At) -> dict[str, str]:
    """Keys of this file, each with another value."""
    return {name: raw(entry.value) for name, entry in at.entries().items()}


# -- adapters


def _build_adapters(
    *, count: int | None = None, names: tuple[AdapterName, ...] = (), name: str = "adapter-{n}", **values: Any
) -> AdapterPlan:
    made_up = count is not None
    width = len(str(count)) if count is not None else 0
    numbered = [name.replace("{n}", f"{number:0{width}d}") for number in range(1, (count or 0) + 1)]
    return AdapterPlan(names=tuple(numbered) if made_up else names, **values)


def _ranks(at: At) -> tuple[int, ...]:
    """One rank for all, or a list that goes round over the adapters."""
    rank = integer(least=1, most=4096)
    return (rank(at),) if at.is_scalar else list_of(rank, least=1)(at)


def _adapters(at: At) -> AdapterPlan:
    if (at.find("count") is None) == (at.find("names") is None):
        at.refuse("must have either count or names", value="")
    place = at.find("name")
    if place is not None and "{n}" not in raw(place):
        place.refuse("must contain {n}, which stands for the adapter's number")
    return record(
        _build_adapters,
        {
            "count": integer(least=1, most=1_000_000),
            "names": list_of(adapter_name, least=1, unique=""),
            "name": adapter_name,
            "rank": _ranks,
            "size": size(),
            "popularity": popularity,
        },
        names={"rank": "ranks"},
    )(at)


# -- the picker's configuration


def fields_of_settings(policies: Collection[str]) -> Reader[Settings]:
    """Those sections of `lorapick.yaml` that decide something."""
    read: Callable[[At], Settings] = record(
        Settings,
        {
            "picking": sections.picking(policies),
            "mode": mode(policies),
            "load_times": sections.load_times,
            "retention": sections.retention,
            "pressure": sections.pressure,
            "admission": sections.admission,
            "placement": sections.placement,
            "budgets": sections.budgets,
            "disaggregation": disaggregation,
            "scrape": sections.scrape,
            "alerts": alerting.alerts,
            "slo": alerting.slo,
        },
    )
    return read


def _intervals(at: At, policies: Collection[str]) -> dict[str, Seconds]:
    """Policies, each with the interval at which it looks at pods."""
    return fields(at, dict.fromkeys(policies, duration(least=0.05, most=3600.0)))


def _check_intervals(root: At, intervals: Mapping[str, Seconds], *, stale_after: Seconds) -> None:
    for name, interval in intervals.items():
        if interval >= stale_after:
            root.nearest("scrape_intervals", name).refuse(
                f"must be shorter than settings.scrape.stale_after, which is {stale_after:g}s"
            )


def _usual_intervals(root: At) -> dict[str, Seconds]:
    """What follows llm-d looks as often as llm-d, unless the file says how often everybody looks."""
    return {} if root.find("settings", "scrape", "interval") is not None else dict(LLM_D_INTERVALS)
