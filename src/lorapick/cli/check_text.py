"""What `lorapick check` prints for people.

In: a verdict with what it was reckoned with. Out: lines and tables on a console. Not here: the other formats (see
`plan.gate.formats`).
"""

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table

from lorapick.cli.admin_client import printable
from lorapick.plan.gate.fitting import Times
from lorapick.plan.gate.formats import NOTHING, basis, headline, reliability, remedy
from lorapick.plan.gate.report import Checked
from lorapick.plan.gate.values import Level, Verdict
from lorapick.plan.prediction.values import Prediction

WATCH = (
    "watch mean residency (5 min warns, 1 min pages), swaps per second and pod (0.5), active adapters per slot (0.8): "
    "`lorapick dashboards` writes the alerts"
)


def print_verdict(console: Console, checked: Checked) -> None:
    """The verdict, its figures, the findings, what would pass, and what was assumed."""
    verdict = checked.verdict
    console.print(headline(verdict), markup=False, soft_wrap=True)
    console.print(_figures(verdict))
    for finding in verdict.findings:
        if finding.level is not Level.OK:
            console.print(
                f"{finding.level.value:5}{finding.rule}: {printable(finding.message)}", markup=False, soft_wrap=True
            )
    for line in _changes(verdict):
        console.print(printable(line), markup=False, soft_wrap=True)
    for line in assumed(checked):
        console.print(line, markup=False, style="dim", soft_wrap=True)


def _changes(verdict: Verdict) -> Iterator[str]:
    if not verdict.changes:
        return
    best = verdict.cheapest or verdict.closest
    yield ""
    yield "what would pass, cheapest first:" if verdict.cheapest else f"{NOTHING}; what comes closest is marked:"
    for change in verdict.changes:
        yield f"{'→' if change is best else ' '} {remedy(change)}; costs {change.costs}"
        if change is verdict.closest:
            yield from (f"    {each.rule}: {each.message}" for each in change.failing)
    if any(each.adapter is not None and each.level is Level.FAIL for each in verdict.findings):
        yield "  and none of them mends what is said of single adapters above"
    yield f"  {WATCH}"


def assumed(checked: Checked) -> Iterator[str]:
    """What the figures rest on, and how far they may be off."""
    yield f"\n{basis(checked.then)}"
    yield from reliability(checked.verdict)
    yield f"P95 is an estimate: {_times(checked.times)} (--latency-p95, --latency, --swap)" + (
        "" if checked.rules.latency_p95 is not None else "; no promise is configured (slo.latency_p95)"
    )
    if checked.times.contradiction is not None:
        yield checked.times.contradiction


def _times(times: Times) -> str:
    """What P95 was reckoned with, assumptions named as such."""
    costs, told = times.costs, times.told
    load = f"{costs.swap:.3g} s for a load{'' if told.swap is not None else ', assumed'}"
    without = f"{costs.latency_p95:.3g} s (median {costs.latency:.3g} s) without swaps"
    if times.today is None:
        return f"{without}{'' if told.p95 is not None else ', assumed'}; {load}"
    given = "given" if told.p95 is not None else "assumed"
    return f"{times.today:g} s today, {given}, are {without}; {load}"


def _figures(verdict: Verdict) -> Table:
    table = Table(box=None, pad_edge=False)
    heads = ("", "today", "then") if verdict.today is not None else ("", "predicted")
    for head in heads:
        table.add_column(head, justify="right" if head else "left")
    columns = [_column(each) for each in (verdict.today, verdict.after) if each is not None]
    for name in columns[0]:
        table.add_row(name, *(column[name] for column in columns))
    return table


def _column(of: Prediction) -> dict[str, str]:
    return {
        "active adapters / slots": f"{of.active}/{of.slots}" + (f" = {of.active_per_slot:.2f}" if of.slots else ""),
        "requests per second": f"{of.requests:.3g}",
        "hits": "–" if of.hit_ratio is None else f"{of.hit_ratio:.1%}",
        "swaps/s/pod": f"{of.swap_rate:.3f}",
        "worst pod": f"{of.worst_swap_rate:.3f}",
        "mean residency": "for ever" if of.residency is None else f"{of.residency:,.0f} s",
        "time for swaps": f"{of.busy:.1%}",
        "P95, estimated": "no bound" if of.p95 is None else f"{of.p95:.2f} s",
    }
