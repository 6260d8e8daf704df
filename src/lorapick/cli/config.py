"""`lorapick config check FILE`: say what is wrong with a configuration, all of it, before anything is started.

In: a configuration file, and the pods file and catalogue that it names. Out: one line when all is good, else a line per
problem and exit code 2. Not here: what is right (see `wire.config`).
"""

import json
import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from lorapick.core.picking.policies import POLICIES
from lorapick.live.catalogue import CatalogueError
from lorapick.live.serve import NotYetError, refuse_later_parts, with_catalogue
from lorapick.model.pods import Pod
from lorapick.model.settings import Settings
from lorapick.wire.config import ConfigError, Problem, parse_settings, settings_hash
from lorapick.wire.podsfile import parse_pods


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """What a good configuration comes to."""

    file: str
    hash: str
    """As in the head of event logs."""
    policy: str
    adapters: int
    """Those of the catalogue included."""
    pods: int | None
    """None: they are found while the picker runs."""
    pods_from: str


def register(app: typer.Typer) -> None:
    """Add the command group `config`."""
    commands = typer.Typer(no_args_is_help=True, help="Check a configuration.")
    commands.callback()(_group)
    commands.command("check")(check)
    app.add_typer(commands, name="config")


def _group() -> None:
    """Check a configuration."""


def check(
    file: Annotated[Path, typer.Argument(help="The configuration, lorapick.yaml.")],
    as_json: Annotated[bool, typer.Option("--json", help="Say it as JSON.")] = False,
) -> None:
    """Say what is wrong with a configuration, with the pods file and the catalogue that it names."""
    try:
        checked = examine(file)
    except ConfigError as error:
        if as_json:
            _print({"ok": False, "problems": msgspec.to_builtins(error.problems)})
        else:
            print(error, file=sys.stderr)
        raise typer.Exit(2) from None
    if as_json:
        _print({"ok": True, **msgspec.to_builtins(checked)})
    else:
        pods = "pods" if checked.pods is None else f"{checked.pods} pod{'' if checked.pods == 1 else 's'}"
        print(
            f"{checked.file} is good: policy {checked.policy}, {checked.adapters} adapters, "
            f"{pods} from {checked.pods_from}, hash {checked.hash}"
        )


def examine(file: Path) -> Checked:
    """Check one configuration and what it names.

    Raises:
        ConfigError: all problems of the configuration; or, when it has none, those of the files that it names.
    """
    settings = parse_settings(_read(file), file=str(file), policies=POLICIES)
    problems: list[Problem] = []
    try:
        refuse_later_parts(settings)
    except NotYetError as error:
        problems.append(_problem(file, str(error)))
    try:
        settings = with_catalogue(settings, beside=file.parent)
    except CatalogueError as error:
        problems.append(_problem(file, str(error)))
    pods: tuple[Pod, ...] | None = None
    try:
        pods = _pods(settings, file)
    except ConfigError as error:
        problems.extend(error.problems)
    if problems:
        raise ConfigError(problems)
    return Checked(
        file=str(file),
        hash=settings_hash(settings),
        policy=settings.picking.policy,
        adapters=len(settings.adapters),
        pods=None if pods is None else len(pods),
        pods_from=_pods_from(settings),
    )


def _pods(settings: Settings, file: Path) -> tuple[Pod, ...] | None:
    discovery = settings.discovery
    if discovery.file is None:
        return None if discovery.kubernetes is not None else discovery.pods
    path = file.parent / discovery.file
    return parse_pods(_read(path), file=str(path), settings=settings)


def _pods_from(settings: Settings) -> str:
    if settings.discovery.file is not None:
        return settings.discovery.file
    return "Kubernetes" if settings.discovery.kubernetes is not None else "the configuration"


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError([_problem(path, f"cannot be read: {error.strerror or error}")]) from None


def _problem(path: Path, message: str) -> Problem:
    return Problem(file=str(path), line=1, column=1, field="", value="", message=message)


def _print(document: object) -> None:
    print(json.dumps(document, indent=2))
