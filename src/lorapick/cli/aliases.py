"""`lorapick aliases`: names that stand for adapters, and moving them.

In: an alias, adapters with weights; the admin API's URL. Out: a list, or how many sessions a change moves; exit code 1
when the picker refuses, 2 for bad input. Not here: who gets which adapter (see `core.placement.aliases`).
"""

from typing import Annotated

import typer

from lorapick.cli import admin_client
from lorapick.cli.admin_changes import path_of, told
from lorapick.cli.admin_client import DEFAULT, AdminError, AdminOption, JsonOption
from lorapick.core.placement.aliases import shares
from lorapick.wire.admin_answers import AliasesAnswer

NameArgument = Annotated[str, typer.Argument(help="The alias.")]


def register(app: typer.Typer) -> None:
    """Add the command group `aliases`."""
    commands = typer.Typer(no_args_is_help=True, help="Names that stand for adapters, and moving them.")
    commands.callback()(lambda: None)
    commands.command("list")(list_)
    commands.command("set")(set_)
    commands.command("clear")(clear)
    app.add_typer(commands, name="aliases")


def list_(admin: AdminOption = DEFAULT, as_json: JsonOption = False) -> None:
    """Say which aliases there are, and which share of the sessions each adapter gets."""
    with admin_client.told("aliases list"):
        body = admin_client.get(admin, "/v1/aliases")
        found = admin_client.decode(body, AliasesAnswer, admin)
    if as_json:
        print(body.decode())
        return
    for alias in found.aliases:
        print(f"{alias.name}: " + ", ".join(f"{name} {share:.3g}" for name, share in shares(alias).items()))
    if not found.aliases:
        print("no aliases")


def set_(
    name: NameArgument,
    to: Annotated[list[str], typer.Argument(metavar="ADAPTER[=WEIGHT]...", help="Where it leads to.")],
    admin: AdminOption = DEFAULT,
    as_json: JsonOption = False,
) -> None:
    """Set an alias, or move it: the next request by that name goes there."""
    with admin_client.told("aliases set"):
        body = {"to": [_target(word) for word in to]}
        told(admin_client.change(admin, "PUT", path=path_of("aliases", name), body=body), admin, as_json=as_json)


def _target(word: str) -> dict[str, object]:
    adapter, equals, weight = word.rpartition("=")
    if not equals:
        return {"adapter": word}
    if not weight.isascii() or not weight.isdigit():
        raise AdminError(f"{word!r}: the weight {weight!r} is no whole number; write for example {adapter}=10")
    return {"adapter": adapter, "weight": int(weight)}


def clear(name: NameArgument, admin: AdminOption = DEFAULT, as_json: JsonOption = False) -> None:
    """Clear an alias: the name is unknown from then on."""
    with admin_client.told("aliases clear"):
        told(admin_client.change(admin, "DELETE", path=path_of("aliases", name)), admin, as_json=as_json)
