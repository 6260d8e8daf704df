"""`lorapick mode [enforce|observe|percent N]`: which requests picks are in force for, shown or changed at once.

In: a mode; the admin API's URL. Out: the mode, or what the change came to; exit code 1 when the picker refuses, 2 for
bad input. Not here: what a mode does (see docs/trying.md).
"""

from typing import Annotated

import typer

from lorapick.cli import admin_client
from lorapick.cli.admin_changes import given, path_of, told
from lorapick.cli.admin_client import DEFAULT, AdminError, AdminOption, JsonOption
from lorapick.model.arms import ArmsReport, ModeKind


def register(app: typer.Typer) -> None:
    """Add the command `mode`."""
    app.command("mode")(mode)


def mode(
    kind: Annotated[ModeKind | None, typer.Argument(help="None: show it.")] = None,
    percent: Annotated[float | None, typer.Argument(min=0.0, max=100.0, help="Of the requests, with percent.")] = None,
    route: Annotated[
        str | None, typer.Option("--route", help="Of the others: gateway, or a policy. None: as it was.")
    ] = None,
    admin: AdminOption = DEFAULT,
    as_json: JsonOption = False,
) -> None:
    """Show or change which requests picks are in force for, without a restart."""
    with admin_client.told("mode"):
        if kind is None:
            _show(admin, as_json=as_json)
            return
        if (kind is ModeKind.PERCENT) != (percent is not None):
            raise AdminError("a number goes with percent, and with nothing else: `lorapick mode percent 25`")
        body = given(kind=kind.value, percent=percent, route=route)
        told(admin_client.change(admin, "PUT", path=path_of("mode"), body=body), admin, as_json=as_json)


def _show(admin: str, *, as_json: bool) -> None:
    body = admin_client.get(admin, path_of("report"))
    report = admin_client.decode(body, ArmsReport, admin)
    if as_json:
        print(body.decode())
        return
    route = "" if report.mode == ModeKind.ENFORCE else f"; the others are routed by {report.route}"
    print(f"{report.mode}{route}")
