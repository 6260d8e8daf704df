"""`lorapick placement`: what should be where on a running picker, and what stands in the way.

In: the admin API's URL. Out: pins, orders, wants, commands under way, refusals and budgets, in words or as JSON.
Not here: what a placement by load would be (`lorapick plan placement --dry-run`), what is decided (`core.placement`).
"""

from collections.abc import Iterator

import typer

from lorapick.cli import admin_client
from lorapick.cli.admin_client import DEFAULT, AdminOption, JsonOption
from lorapick.wire.admin_answers import GroupsAnswer, OrderRow, PinRow, PlacementAnswer

MOST_LINES = 40
"""Of wants, and of refusals."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("placement")(placement)


def placement(admin: AdminOption = DEFAULT, as_json: JsonOption = False) -> None:
    """Say what should be where, and what stands in the way."""
    with admin_client.told("placement"):
        body = admin_client.get(admin, "/v1/placement")
        found = admin_client.decode(body, PlacementAnswer, admin)
        groups = admin_client.decode(admin_client.get(admin, "/v1/groups"), GroupsAnswer, admin)
    if as_json:
        print(body.decode())
    else:
        print("\n".join([*_lines(found), *_groups(groups)]))


def _lines(found: PlacementAnswer) -> Iterator[str]:
    if not found.enabled:
        yield "placement.enabled is false: no pod is told to load anything"
    yield from map(_pin, found.pins)
    yield from map(_order, found.orders)
    for want in found.wants[:MOST_LINES]:
        yield f"{want.pod} should hold {want.adapter} ({want.why}): {want.tier}"
    if found.wants_total > MOST_LINES:
        yield f"  and {found.wants_total - MOST_LINES} more wants; --json has them"
    for each in found.unloads:
        yield f"{each.pod} should lose {each.adapter} ({each.why}): {each.tier}"
    for command in found.commands:
        yield f"{command.pod} is told to {command.kind} {command.adapter} ({command.why}), {command.age_s:.1f} s ago"
    for refusal in found.refusals[:MOST_LINES]:
        what = f"{refusal.adapter} ({refusal.why}) on {refusal.pod}"
        yield f"not now: {what}: {refusal.reason}, for {refusal.age_s:.1f} s"
    for pod, age in found.warming.items():
        yield f"{pod} warms up, for {age:.1f} s"
    for name, problem in found.problems.items():
        yield f"{name}: {problem}"
    yield from _budgets(found)


def _pin(row: PinRow) -> str:
    where = ", ".join(row.pods) or "no pod"
    missing = "; missing on " + ", ".join(f"{pod} for {age:.1f} s" for pod, age in row.missing.items())
    problem = f"; {row.problem}" if row.problem is not None else ""
    return f"pin {row.adapter}: {where}{missing if row.missing else ''}{problem}"


def _order(row: OrderRow) -> str:
    where = ", ".join(row.pods) or f"{row.replicas} pods"
    ends = "once" if row.once else f"for {row.ends_in_s or 0.0:.0f} s more"
    leaves = f", then away from {row.leaves}" if row.leaves is not None else ""
    return f"order {row.order}: {row.adapter} on {where}, {ends}{leaves}; asked for {row.age_s:.0f} s ago"


def _budgets(found: PlacementAnswer) -> Iterator[str]:
    budgets, plan = found.budgets, found.plan
    yield (
        f"budgets: {budgets.moves_last_minute} of {budgets.moves_per_minute:g} moves in the last minute, "
        f"{budgets.pods_loading} of {budgets.most_pods_loading} pods load; a pin was missing for "
        f"{found.longest_pin_missing_s:.1f} s at most"
    )
    yield f"by load: {'on' if plan.on else 'off'}, plan {plan.version} of {plan.asked}; forecast: {found.forecast.uses}"


def _groups(found: GroupsAnswer) -> Iterator[str]:
    for group in found.groups:
        for each in group.then:
            seen = "" if each.confidence is None else f", {each.confidence:.0%} of {each.support or 0.0:.0f} times"
            yield f"group {group.first} -> {each.adapter} ({each.source}{seen})"
