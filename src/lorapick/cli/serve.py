"""`lorapick serve`: the picker for an Envoy that runs already.

In: a configuration file. Out: a picker until Ctrl-C; exit code 2 for bad input.
Not here: what it consists of (`live.serve`).
"""

import json
import logging
import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer
import uvloop

from lorapick.cli.loading import load
from lorapick.dash.page import static_directory
from lorapick.dash.runbooks import runbook_directory
from lorapick.live.eventlog import MAX_BYTES
from lorapick.live.peers.store import PeersError
from lorapick.live.runbook_pages import Files
from lorapick.live.serve import Addresses, Recording, serve
from lorapick.live.tracing_setup import NoExporterError
from lorapick.live.web import BindError
from lorapick.wire.config import ConfigError, one_per_key
from lorapick.wire.config.later import HEADING
from lorapick.wire.config.roles import ROLES_HEADING

log = logging.getLogger(__name__)


def register(app: typer.Typer) -> None:
    """Add the command `serve`."""
    app.command("serve")(serve_command)


def serve_command(
    config: Annotated[Path, typer.Option(help="The configuration, lorapick.yaml.")],
    event_log: Annotated[Path | None, typer.Option(help="Keep every event in this file, for a replay.")] = None,
    event_log_max_bytes: Annotated[
        int, typer.Option(min=1, help="Size at which the event log ends; the picker goes on.")
    ] = MAX_BYTES,
    log_level: Annotated[str, typer.Option(help="debug, info, warning or error.")] = "info",
    as_json: Annotated[bool, typer.Option("--json", help="Say where it listens as one JSON line.")] = False,
) -> None:
    """Run the picker for an Envoy that runs already."""
    try:
        _logging(log_level)
        loaded = load(config)
        for line in one_per_key(loaded.later):
            log.warning("%s: %s", HEADING, line)
        for line in loaded.useless_roles:
            log.warning("%s: %s", ROLES_HEADING, line)
        uvloop.run(
            serve(
                loaded.settings,
                beside=config.parent,
                static=Files(static_directory(), runbook_directory()),
                record=None if event_log is None else Recording(event_log, event_log_max_bytes),
                on_ready=lambda addresses: _say_ready(addresses, as_json=as_json),
            )
        )
    except OSError as error:
        _fail(f"{error.filename or config}: {error.strerror or error}")
    except (ConfigError, BindError, NoExporterError, PeersError) as error:
        _fail(str(error))


def _fail(message: str) -> None:
    print(f"lorapick serve: {message}", file=sys.stderr)
    raise typer.Exit(2) from None


def _logging(level: str) -> None:
    names = ("debug", "info", "warning", "error")
    if level not in names:
        _fail(f"--log-level: {level!r} is unknown; use one of {', '.join(names)}")
    logging.basicConfig(level=level.upper(), format="%(asctime)s %(levelname)s %(name)s %(message)s")


def _say_ready(addresses: Addresses, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"event": "ready", **msgspec.to_builtins(addresses)}), flush=True)
    else:
        told = ", ".join(f"{name} {address}" for name, address in msgspec.to_builtins(addresses).items())
        print(f"ready: {told}", flush=True)
