"""`lorapick events fire NAME key=value...`: tell a running picker that something happened outside.

In: an event's name and attributes; the admin API's URL. Out: what the picker loads because of it; exit code 1 when it
refuses, 2 for bad input. Not here: which trigger is for which event (see `core.placement.triggers`).
"""

from typing import Annotated

import typer

from lorapick.cli import admin_client
from lorapick.cli.admin_changes import given, pairs, path_of, told
from lorapick.cli.admin_client import DEFAULT, AdminOption, JsonOption


def register(app: typer.Typer) -> None:
    """Add the command group `events`."""
    commands = typer.Typer(no_args_is_help=True, help="Tell a running picker that something happened outside.")
    commands.callback()(lambda: None)
    commands.command("fire")(fire)
    app.add_typer(commands, name="events")


def fire(
    name: Annotated[str, typer.Argument(help="Such as tenant.login.")],
    attributes: Annotated[list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="Of the event.")] = None,
    admin: AdminOption = DEFAULT,
    as_json: JsonOption = False,
) -> None:
    """Fire an event; its triggers load what they name, for a while."""
    with admin_client.told("events fire"):
        body = given(name=name, attributes=pairs(attributes, option="attribute"))
        told(admin_client.change(admin, "POST", path=path_of("events"), body=body), admin, as_json=as_json)
