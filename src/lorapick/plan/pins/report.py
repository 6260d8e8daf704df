"""What `lorapick plan pins` says: shares, pins, pods, swaps before and after, each with its formula.

In: counted logs, a fleet, options. Out: a report and the snippet. Not here: how they look (see `plan.work`), how pins
are chosen (see `choosing`, `assigning`), what is played (see `simulating`).
"""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from lorapick.core.placement.replicas import DEFAULT_RULES
from lorapick.model.adapters import PinSpec
from lorapick.model.settings import PickingSettings
from lorapick.model.units import AdapterName, Seconds
from lorapick.plan.logs.values import LogAdapter, LogSummary
from lorapick.plan.pins import notes
from lorapick.plan.pins.assigning import BURST, advise
from lorapick.plan.pins.before_after import CASES, Outcome, assumed_of, figures_of, tables_of
from lorapick.plan.pins.choosing import count_for, gone, remark_of
from lorapick.plan.pins.predicting import length_of, predicted
from lorapick.plan.pins.service import service_of, step_seconds
from lorapick.plan.pins.simulating import Case, play
from lorapick.plan.pins.snippet import Section, snippet, specs
from lorapick.plan.pins.values import DAY, FREE, Advice, PinFleet, PinOptions, counted, readable
from lorapick.plan.pins.verdict import verdict
from lorapick.plan.spreading import Progress
from lorapick.plan.work import GIVEN, Chart, Curve, Figure, Report, Table, shown, tabled
from lorapick.sim.hardware import PRESETS

SHOWN = 20
"""Adapters in the table of shares."""
POINTS = 200
"""Of the curve, at most about."""
COVERS = (0.6, 0.7, 0.8)
"""Shares of the traffic for which adapters are counted: from 60 to 80 %, as the article has it."""
_LOGS = "the logs"


class PinPlan(NamedTuple):
    """The answer."""

    report: Report
    snippet: str
    """Empty: nothing should be pinned."""
    advice: Advice


def pin_plan(
    summary: LogSummary,
    fleet: PinFleet,
    *,
    options: PinOptions,
    section: Section | None = None,
    progress: Progress | None = None,
) -> PinPlan:
    """Advise, play, predict, and put it in words.

    Raises:
        ValueError: no pods, or slots that leave no memory for requests.
    """
    advice = advise(summary, fleet, options=options)
    service = mean_service(summary, fleet, options=options)
    cases = cases_of(advice, fleet, options=options)
    arrivals = bool(summary.sample.arrivals)
    measured = play(cases, summary.sample, fleet=fleet, options=options, progress=progress) if arrivals else ()
    outcome = Outcome(cases, measured, predicted(cases, summary, fleet=fleet, service=service))
    found = verdict(advice, outcome)
    told = Report(
        f"pins for {counted(len(summary.adapters), 'adapter')} on {counted(fleet.slots, 'slot')} of "
        f"{counted(len(fleet.pods), 'pod')}: {found.words}",
        (
            found.figure,
            *_traffic(summary),
            *_advised(advice, options),
            _service(service, summary, fleet=fleet, options=options),
            *figures_of(outcome),
        ),
        notes=(
            *notes.of_outcome(found, outcome),
            *notes.of_logs(summary, options),
            *notes.of_newcomers(summary),
            *notes.of_advice(advice, options),
        ),
        assumptions=(*_assumed(summary, options), *assumed_of(summary, options)),
        tables=(_shares(summary), *_pins(advice), _pods(advice), *tables_of(outcome)),
        charts=(_curve(summary),),
    )
    return PinPlan(told, snippet(advice, fleet, section=section, head=f"Verdict: {found.words}. {found.why}"), advice)


def cases_of(advice: Advice, fleet: PinFleet, *, options: PinOptions) -> tuple[Case, ...]:
    """As it is, with lorapick's own policy, and with the pins. Pins of the configuration are in all of them."""
    own: Mapping[AdapterName, PinSpec] = {
        each.name: each.pin for each in fleet.declared if each.pin is not None and each.name in advice.own
    }
    default = PickingSettings().policy
    policies = (options.policy_now, default, default)
    pins = (own, own, {**own, **specs(advice, fleet)})
    return tuple(
        Case(name=name, policy=policy, pins=held) for name, policy, held in zip(CASES, policies, pins, strict=True)
    )


def mean_service(summary: LogSummary, fleet: PinFleet, *, options: PinOptions) -> Seconds:
    """Of a request: what each adapter's take, by their number."""
    slots = max(pod.limits.max_loras for pod in fleet.pods)
    total = sum(each.requests * service_of(each, options, slots=slots) for each in summary.adapters)
    return total / summary.requests


# -- figures


def _traffic(summary: LogSummary) -> tuple[Figure, ...]:
    adapters, total = summary.adapters, summary.requests
    days = length_of(summary) / DAY
    covers = []
    for share in COVERS:
        count = count_for(adapters, share)
        have = sum(each.requests for each in adapters[:count])
        formula = f"the fewest with {100 * share:g} % of {total:,} requests: the first {count:,} have {have:,}"
        covers.append(Figure(f"adapters for {100 * share:g} %", count, "", formula, _LOGS))
    return (
        Figure("requests", total, "", f"for {counted(len(adapters), 'adapter')} in {days:.3g} days", _LOGS),
        *_left_out(summary),
        *covers,
    )


def _left_out(summary: LogSummary) -> tuple[Figure, ...]:
    """What of the logs is not among the requests."""
    rows = summary.damaged + summary.without_time + summary.too_old
    formula = (
        f"{counted(summary.damaged, 'damaged line')} + {counted(summary.without_time, 'row')} without a time + "
        f"{summary.too_old:,} older than --days"
    )
    files = ", ".join(readable(each) for each in summary.skipped) or "none is damaged"
    return (
        Figure("requests for the base model", summary.without_adapter, "", "adapter empty, or --base", _LOGS),
        Figure("rows left out", rows, "", formula, _LOGS),
        Figure("damaged files left out", len(summary.skipped), "", files, _LOGS),
    )


def _advised(advice: Advice, options: PinOptions) -> tuple[Figure, ...]:
    slots, room = sum(pod.slots for pod in advice.pods), sum(pod.room for pod in advice.pods)
    own = sum(pod.own for pod in advice.pods)
    share = advice.covered / advice.current if advice.current else None
    fewest = f"the fewest with {shown(options.cover, 'share')} of the requests for adapters that are still asked for"
    already = f" - {own} of pins that the configuration has" if own else ""
    return (
        Figure("pins", len(advice.pins), "", f"{fewest}: {advice.needed:,}; room: {room:,}", "most asked for"),
        Figure("pins cover", share, "share", f"{advice.covered:,} / {advice.current:,} requests", _LOGS),
        Figure(
            "slots that pins may take",
            room,
            "",
            f"of each pod floor({1 - FREE:g} × slots){already}, of {slots:,} in all",
            "`lorapick check`: half of the slots stay free of pins",
        ),
        Figure(
            "slots that pins take",
            advice.copies,
            "",
            "Σ min(copies that the busiest minute asks for, pods, room left)",
            "placement by the controller's own solver",
        ),
        Figure(
            "slots left to others",
            slots - own - advice.copies,
            "",
            f"{slots:,} - {own + advice.copies:,}",
            "the figures above",
        ),
    )


def _service(service: Seconds, summary: LogSummary, *, fleet: PinFleet, options: PinOptions) -> Figure:
    if options.service is not None:
        return Figure("service time", service, "s", "of a request on its pod", GIVEN)
    slots = max(pod.limits.max_loras for pod in fleet.pods)
    hardware = PRESETS[options.hardware]
    prompt, output = (_mean(summary, name, default=default) for name, default in _tokens(options))
    prefill = hardware.prefill_per_token * 1e6
    step = step_seconds(options, slots) * 1e3
    formula = (
        f"mean of: {prompt:,.0f} prompt tokens × {prefill:.3g} µs + {output:,.0f} output tokens × {step:.3g} ms, a "
        f"step of {options.target:g} requests for {min(options.target, slots):g} adapters"
    )
    return Figure("service time", service, "s", formula, f"{hardware.name}: {hardware.sources[0]}")


def _tokens(options: PinOptions) -> tuple[tuple[str, int], ...]:
    return ("prompt_tokens", options.prompt), ("output_tokens", options.output)


def _mean(summary: LogSummary, name: str, *, default: int) -> float:
    values = ((each.requests, getattr(each, name)) for each in summary.adapters)
    return sum(count * (default if value is None else value) for count, value in values) / summary.requests


def _assumed(summary: LogSummary, options: PinOptions) -> tuple[Figure, ...]:
    files = ", ".join(summary.files[:3]) + (f" and {len(summary.files) - 3:,} more" if len(summary.files) > 3 else "")
    columns = ", ".join(f"{what}: {name}" for what, name in summary.columns.items()) or "as counted"
    return (
        Figure("logs", len(summary.files), "", files, columns),
        Figure("cover", options.cover, "share", "of requests that pins should answer", "article: 60 to 80 %, or given"),
        Figure("target", options.target, "", "requests of one adapter at once on one pod", "the picker's placement"),
        Figure(
            "z", DEFAULT_RULES.z, "", "standard deviations above the mean: 95 % of the time", "the picker's placement"
        ),
        Figure("burst", BURST, "", "variance / mean in the busiest minute: its rate has the bursts already", "Poisson"),
    )


# -- tables and chart


def _shares(summary: LogSummary) -> Table:
    total = summary.requests
    running = accumulate(each.requests for each in summary.adapters)
    values = [
        (readable(each.adapter), each.requests, each.requests / total, upto / total, each.peak, _remark(each, summary))
        for each, upto in zip(summary.adapters[:SHOWN], running, strict=False)
    ]
    more = len(summary.adapters) - SHOWN
    title = "shares of the requests" + (f"; {more:,} more adapters" if more > 0 else "")
    return tabled(
        title,
        (
            ("adapter", ""),
            ("requests", ""),
            ("share", "share"),
            ("cumulative", "share"),
            ("busiest minute", ""),
            ("", ""),
        ),
        values=values,
        formula=f"share = requests / {total:,}; cumulative = share of this and all above; requests in any clock minute",
        source=_LOGS,
    )


def _remark(adapter: LogAdapter, summary: LogSummary) -> str:
    if gone(adapter, summary):
        return f"gone for {(summary.end - adapter.last) / DAY:.0f} days"
    found = remark_of(adapter, summary)
    return "" if found is None else f"new: {(summary.end - adapter.first) / DAY:.1f} days"


def _pins(advice: Advice) -> tuple[Table, ...]:
    """Every pin, with how its copies come about; nothing where nobody should be pinned."""
    if not advice.pins:
        return ()
    rows = tuple(
        (each.adapter, shown(each.share, "share"), f"{each.log.peak:,}/min × {each.service:.3g} s",
         f"{each.load:.3g}", f"{each.wanted:,}", f"{len(each.pods):,}", ", ".join(each.pods))
        for each in advice.pins
    )  # fmt: skip
    values = tuple(
        (each.adapter, each.share, each.log.peak, each.load, each.wanted, len(each.pods), ", ".join(each.pods))
        for each in advice.pins
    )
    head = ("pin", "share", "busiest minute", "at once", "wanted", "copies", "on")
    formula = (
        f"at once = requests of the busiest minute / 60 s × service time; wanted as above, with z {DEFAULT_RULES.z:g}; "
        "copies: as many as there are pods with room"
    )
    return (
        Table(
            "pins: wanted = ceil((at once + z × √at once) / target)",
            head,
            rows,
            formula,
            "the logs; the picker's placement",
            values,
        ),
    )


def _pods(advice: Advice) -> Table:
    return tabled(
        "pods",
        (("pod", ""), ("slots", ""), ("pinned already", ""), ("room", ""), ("new pins", ""), ("", "")),
        values=((pod.pod, pod.slots, pod.own, pod.room, len(pod.pins), ", ".join(pod.pins)) for pod in advice.pods),
        formula=f"room = slots that pins may take, all but {shown(FREE, 'share')}, less those pinned already",
        source="the configuration, or --pods and --slots; placed by the picker's solver",
    )


def _curve(summary: LogSummary) -> Chart:
    upto = [0, *accumulate(each.requests for each in summary.adapters)]
    counts = _some(len(upto))
    return Chart(
        title="requests that the most popular adapters have, %",
        x="adapters",
        xs=tuple(float(count) for count in counts),
        curves=(
            Curve("cumulative", tuple(100 * upto[count] / summary.requests for count in counts)),
            *(Curve(f"{100 * share:g} %", tuple(100 * share for _ in counts)) for share in COVERS),
        ),
    )


def _some(count: int) -> Sequence[int]:
    """All of `range(count)`, or about `POINTS` of them with the last."""
    stride = max(1, -(-count // POINTS))
    return sorted({*range(0, count, stride), count - 1})
