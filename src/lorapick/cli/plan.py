"""`lorapick plan`: what would be decided, or what would fit and cost. Nothing is done.

Each of its commands has a file `plan_<name>.py`; `placement` is here: where adapters would be placed, what would move
for it, and why.

In: a file with pods and adapters, as a placement sees them; or a running picker (`--dry-run`). Out: loads, drops,
replicas without a slot, costs. Exit code 2 for bad input, 1 when the picker refuses.
Not here: how it is decided (`core.placement.solving`).
"""

import json
import sys
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec
import typer

from lorapick.cli import admin_client
from lorapick.cli.admin_client import DEFAULT, AdminOption
from lorapick.core.placement.plans import Action, Move, PlacementPlan
from lorapick.core.placement.solving import FLOW, RENDEZVOUS, solve
from lorapick.model.placement import PlacedAdapter, PlacementProblem, PodRoom
from lorapick.model.units import Seconds
from lorapick.wire.admin_answers import PlanAnswer

Entry = TypeVar("Entry", PodRoom, PlacedAdapter)
COMMANDS = ("size", "swap", "slots", "fleet", "bill", "merged", "pins", "capacity")
"""Beside `placement`; the module of each is `lorapick.cli.plan_<name>`, with `register(app)`."""
_PATIENCE: Seconds = 30.0
"""The picker's own with its solver is half of that."""


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the file has."""

    pods: tuple[dict[str, object], ...]
    adapters: tuple[dict[str, object], ...]
    """Most important first."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    plans = typer.Typer(no_args_is_help=True, help="Say what would be decided, fit or cost, without doing it.")
    plans.command("placement")(placement)
    for name in COMMANDS:
        import_module(f"lorapick.cli.plan_{name}").register(plans)
    app.add_typer(plans, name="plan")


def placement(
    file: Annotated[Path | None, typer.Argument(help="YAML or JSON with `pods` and `adapters`.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Of a running picker, instead of a file.")] = False,
    admin: AdminOption = DEFAULT,
    solver: Annotated[
        str | None, typer.Option(help=f"{FLOW} or {RENDEZVOUS}; default: {FLOW}, or the picker's.")
    ] = None,
    kept: Annotated[bool, typer.Option("--all", help="Also show copies that stay.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Say it as JSON.")] = False,
) -> None:
    """Say where adapters would be placed, and what would move and why."""
    try:
        if solver not in (None, FLOW, RENDEZVOUS):
            raise ValueError(f"--solver {solver}: there are {FLOW} and {RENDEZVOUS}")
        if dry_run is (file is not None):
            raise ValueError("give a file, or --dry-run to ask the picker at --url")
        plan = solve(_read(file), solver=solver or FLOW) if file is not None else _of_picker(admin, solver)
    except (OSError, ValueError) as error:
        print(f"lorapick plan placement: {error}", file=sys.stderr)
        raise typer.Exit(2) from None
    if as_json:
        print(json.dumps(msgspec.to_builtins(plan), indent=2))
    else:
        print("\n".join(_lines(plan, kept=kept)))


def _of_picker(admin: str, solver: str | None) -> PlanAnswer:
    """What a running picker would do now; ends the program when it does not say."""
    with admin_client.told("plan placement"):
        body = {} if solver is None else {"solver": solver}
        answer = admin_client.change(admin, "POST", path="/v1/placement/plan", body=body, timeout=_PATIENCE)
        return admin_client.decode(answer, PlanAnswer, admin)


def _read(file: Path) -> PlacementProblem:
    """The problem in a file.

    Raises:
        ValueError: with the place of what is wrong in it.
    """
    try:
        found = msgspec.yaml.decode(file.read_bytes(), type=_File)
        pods = tuple(_entry(each, PodRoom, place=f"pods[{row}]") for row, each in enumerate(found.pods))
        adapters = tuple(
            _entry(each, PlacedAdapter, place=f"adapters[{row}]") for row, each in enumerate(found.adapters)
        )
        _once([pod.pod for pod in pods])
        _once([adapter.adapter for adapter in adapters])
    except (msgspec.DecodeError, ValueError) as error:
        raise ValueError(f"{file}: {error}") from None
    return PlacementProblem(version=0, pods=pods, adapters=adapters)


def _entry(entry: dict[str, object], kind: type[Entry], *, place: str) -> Entry:
    unknown = [key for key in entry if key not in kind.__struct_fields__]
    if unknown:
        raise ValueError(f"{place} has {', '.join(unknown)}; there are {', '.join(kind.__struct_fields__)}")
    try:
        return msgspec.convert(entry, kind)
    except msgspec.ValidationError as error:
        raise ValueError(f"{place}: {error}") from None


def _once(names: list[str]) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ValueError(f"{', '.join(twice)} is there more than once; name each pod and adapter once")


def _lines(plan: PlacementPlan | PlanAnswer, *, kept: bool) -> Iterator[str]:
    counts = Counter(move.action for move in plan.moves)
    yield f"{counts[Action.LOAD]} loads, {counts[Action.DROP]} drops, {counts[Action.KEEP]} stay"
    shown = [move for move in plan.moves if kept or move.action is not Action.KEEP]
    widths = [max((len(text) for text in column), default=0) for column in zip(*_cells(shown), strict=True)]
    for cells, move in zip(_cells(shown), shown, strict=True):
        yield "  " + "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)) + f"  {move.why}"
    for adapter, missing in plan.short.items():
        yield f"  no slot for {missing} of {adapter}"
    if plan.costs is not None:
        parts = {name: seconds for name, seconds in msgspec.to_builtins(plan.costs).items() if seconds}
        named = ", ".join(f"{name} {seconds:.2f}" for name, seconds in parts.items())
        yield f"costs {plan.costs.total:.2f} s" + (f": {named}" if named else "")


def _cells(moves: list[Move]) -> list[tuple[str, str, str]]:
    return [(move.action.value, move.adapter, move.pod) for move in moves]
