"""What `lorapick simulate` prints below its table: figures by period, by groups of adapters, by side, and of commands.

In: comparisons and reports. Out: rows of text, tables on a console. Not here: figures of whole runs (see
`cli.simulation_table`).
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Generic, NamedTuple, TypeVar

from rich.console import Console

from lorapick.cli.fitting_table import print_table
from lorapick.model.pods import Role
from lorapick.model.units import Seconds
from lorapick.sim.compare import Comparison, Estimate, estimate
from lorapick.sim.metrics import METRICS, shown
from lorapick.sim.report import PartRow, RunReport, SideRow
from lorapick.sim.scenario import Scenario

Rows = list[list[str]]
_ROLES = {Role.PREFILL: "prefill", Role.DECODE: "decode", Role.BOTH: "do both"}


def estimated(value: Estimate, unit: str) -> str:
    """`12.3 ± 0.4 ms`."""
    text = shown(value.mean, unit)
    if value.mean is None or not value.half_width:
        return text
    number, _, unit_shown = text.partition(" ")
    half, _, _ = shown(value.half_width, unit, beside=value.mean).partition(" ")
    return f"{number} ± {half} {unit_shown}".rstrip()


R = TypeVar("R")


class _Figure(NamedTuple, Generic[R]):
    label: str
    unit: str
    of: Callable[[R], float | None]


def _ms(seconds: Seconds | None) -> float | None:
    return None if seconds is None else seconds * 1e3


_FIGURES: tuple[_Figure[PartRow], ...] = (
    _Figure("requests", "", lambda part: part.arrivals),
    _Figure("served", "%", lambda part: part.served / part.arrivals if part.arrivals else None),
    _Figure("cold starts/1,000", "", lambda part: 1000 * part.cold / part.arrivals if part.arrivals else None),
    _Figure("TTFT p50", "ms", lambda part: _ms(part.ttft.p50)),
    _Figure("TTFT p95", "ms", lambda part: _ms(part.ttft.p95)),
    _Figure("TTFT p99", "ms", lambda part: _ms(part.ttft.p99)),
    _Figure("latency p95", "ms", lambda part: _ms(part.latency.p95)),
)
_OF_SIDES: tuple[_Figure[SideRow], ...] = (
    _Figure("pods", "", lambda side: side.pods),
    _Figure("loads", "", lambda side: side.loads),
    _Figure("hits", "%", lambda side: side.hit_ratio),
    _Figure("busy", "%", lambda side: side.busy),
    _Figure("prefill", "%", lambda side: side.share("prefill")),
    _Figure("decode", "%", lambda side: side.share("decode")),
)


def part_heads() -> list[str]:
    """Headings of figures by groups of adapters."""
    return ["requests for", *(figure.label for figure in _FIGURES)]


def part_rows(reports: Sequence[RunReport], policy: str) -> Rows:
    """A row for each group of adapters, over the seeds of a policy."""
    own = [report.parts for report in reports if report.policy == policy]
    return [
        [rows[0].part, *(estimated(estimate([figure.of(row) for row in rows]), figure.unit) for figure in _FIGURES)]
        for rows in zip(*own, strict=True)
    ]


def side_heads() -> list[str]:
    """Headings of figures by what pods do: prefill for others, decode, or both."""
    return ["pods that", *(figure.label for figure in _OF_SIDES)]


def side_rows(reports: Sequence[RunReport], policy: str) -> Rows:
    """A row for each role that pods have, over the seeds of a policy; none where all do both."""
    own = [report.sides for report in reports if report.policy == policy]
    return [
        [
            _ROLES[rows[0].role],
            *(estimated(estimate([figure.of(row) for row in rows]), figure.unit) for figure in _OF_SIDES),
        ]
        for rows in zip(*own, strict=True)
    ]


def period_heads(scenario: Scenario) -> list[str]:
    """Headings of figures by period."""
    return ["period", *(METRICS[name].label for name in scenario.in_periods)]


def period_rows(scenario: Scenario, compared: Comparison, policy: str) -> Rows:
    """A row for each period, if the scenario wants any shown."""
    if not scenario.in_periods:
        return []
    return [
        [
            period.name,
            *(
                estimated(compared.of(name, policy, period=period.name), METRICS[name].unit)
                for name in scenario.in_periods
            ),
        ]
        for period in scenario.periods
    ]


class Played(NamedTuple):
    """Runs of one scenario, and in which columns of a table they stand."""

    scenario: Scenario
    reports: tuple[RunReport, ...]
    compared: Comparison
    place: tuple[str, ...] = ()
    """Values of a family's keys."""


def print_details(console: Console, played: Sequence[Played], *, keys: Sequence[str] = ()) -> None:
    """Figures by period, by groups of adapters and by role; nothing for scenarios that ask for none and have none."""
    if not played:
        return
    several = names_policies([each.compared for each in played], keys=keys)
    left = [*keys, *(("policy",) if several else ())]
    scenario = played[0].scenario
    _print(console, [*left, *period_heads(scenario)], list(_period_lines(played, several=several)))
    _print(console, [*left, *part_heads()], list(_part_lines(played, several=several)))
    _print(console, [*left, *side_heads()], list(_side_lines(played, several=several)))


def names_policies(played: Sequence[Comparison], *, keys: Sequence[str] = ()) -> bool:
    """Whether rows must say their policy: there are several, and no key of the family says it already."""
    return "policy" not in keys and len({policy for compared in played for policy in compared.policies}) > 1


def _period_lines(played: Sequence[Played], *, several: bool) -> Iterator[list[str]]:
    for each in played:
        for policy in each.compared.policies:
            for row in period_rows(each.scenario, each.compared, policy):
                yield [*each.place, *((policy,) if several else ()), *row]


def _part_lines(played: Sequence[Played], *, several: bool) -> Iterator[list[str]]:
    for each in played:
        for policy in each.compared.policies:
            for row in part_rows(each.reports, policy):
                yield [*each.place, *((policy,) if several else ()), *row]


def _side_lines(played: Sequence[Played], *, several: bool) -> Iterator[list[str]]:
    for each in played:
        for policy in each.compared.policies:
            for row in side_rows(each.reports, policy):
                yield [*each.place, *((policy,) if several else ()), *row]


def _print(console: Console, heads: Sequence[str], rows: Rows) -> None:
    if not rows:
        return
    named = next(heads.index(head) for head in ("period", "requests for", "pods that") if head in heads)
    print_table(console, heads, rows, named=named + 1)


def print_commands(console: Console, reports: Sequence[RunReport], *, of: str = "") -> None:
    """What pods were told to load, and for how long pins were missing; nothing where there was neither."""
    for report in reports:
        run = f"{of}{report.policy}, seed {report.seed}"
        if report.whole.commanded:
            told = ", ".join(f"{why} {count}" for why, count in report.whole.commanded.items())
            console.print(f"loads commanded, {run}: {told}", highlight=False)
        if report.pins_missing is not None:
            console.print(f"pins missing, {run}: for {report.pins_missing:,.1f} s at most", highlight=False)
