"""What `lorapick simulate --capacity` prints.

In: capacities as they were found, the article's figures. Out: tables on a console. Not here: the search (see
`plan.capacity`).
"""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from lorapick.cli.simulation_table import estimated, print_head, scrapes
from lorapick.plan.capacity import UNROUTED, Beside, Capacity
from lorapick.sim.compare import Estimate, estimate
from lorapick.sim.metrics import METRICS
from lorapick.sim.scenario import Scenario

WORDS = {"gain": "throughput gained over round-robin", "share": "of the throughput without swaps"}
"""What the article's figures are of."""


def print_capacities(
    console: Console, scenario: Scenario, found: Sequence[Capacity], *, without_swaps: Sequence[Capacity] = ()
) -> None:
    """The highest bearable rate of each policy, its ratio to the first policy's, and to a fleet that never swaps."""
    policies = list(dict.fromkeys(each.policy for each in found))
    seeds = list(dict.fromkeys(each.seed for each in found))
    print_head(console, scenario, seeds)
    console.print(scrapes(scenario, policies), highlight=False)
    table = Table(title=f"highest rate with P95 of at most {found[0].limit:g} s", title_justify="left")
    for name in ("policy", "rate", f"to {policies[0]}", *(("to no swaps",) if without_swaps else ())):
        table.add_column(name, justify="left" if name == "policy" else "right")
    by = {policy: {each.seed: each.rate for each in found if each.policy == policy} for policy in policies}
    best = {each.seed: each.rate for each in without_swaps}
    if best:
        by[f"{UNROUTED}, nothing to swap"] = best
    for policy, own in by.items():
        cells = [
            _times([_ratio(own[seed], other[seed]) for seed in seeds]) for other in (by[policies[0]], best) if other
        ]
        table.add_row(policy, _rate([own[seed] for seed in seeds]), *cells)
    console.print(table)


def print_capacities_expected(console: Console, rows: Sequence[Beside]) -> None:
    """The article's figures beside ours."""
    if not rows:
        return
    table = Table(title="beside the article", title_justify="left")
    for name in ("", "policy", "article", "ours", "note"):
        table.add_column(name, justify="right" if name in ("article", "ours") else "left")
    for row in rows:
        each = row.expected
        table.add_row(WORDS[each.capacity], row.policy, percent(each.article), percent(estimate(row.ours)), each.note)
    console.print(table)


def percent(value: float | str | Estimate) -> str:
    """A share as people read it."""
    if isinstance(value, str):
        return value
    found = value if isinstance(value, Estimate) else Estimate(mean=value, half_width=None)
    return estimated(found, METRICS["swap_share"])


def _ratio(one: float | None, other: float | None) -> float | None:
    return None if one is None or not other else one / other


def _rate(values: Sequence[float | None]) -> str:
    return estimated(estimate(values), METRICS["served_rate"])


def _times(values: Sequence[float | None]) -> str:
    value = estimate(values)
    if value.mean is None:
        return "–"
    return f"{value.mean:.2f}" + (f" ± {value.half_width:.2f}" if value.half_width else "")
