"""`lorapick serve`: the picker for an Envoy that runs already.

In: a configuration file; or the flags of llm-d's endpoint picker (see `wire.config.epp.flags`). Out: a picker until
Ctrl-C; exit code 2 for bad input.
Not here: what it consists of (`live.serve`).
"""

import json
import logging
import os
import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer
import uvloop

from lorapick.cli.loading import Loaded, load, load_flags
from lorapick.dash.page import static_directory
from lorapick.dash.runbooks import runbook_directory
from lorapick.live.eventlog import MAX_BYTES
from lorapick.live.peers.store import PeersError
from lorapick.live.runbook_pages import Files
from lorapick.live.serve import Addresses, Recording, serve
from lorapick.live.tracing_setup import NoExporterError
from lorapick.live.web import BindError
from lorapick.wire.config import ConfigError, one_per_key
from lorapick.wire.config.epp.flags import FlagError, Flags, read_flags
from lorapick.wire.config.later import HEADING
from lorapick.wire.config.roles import ROLES_HEADING

log = logging.getLogger(__name__)


def register(app: typer.Typer) -> None:
    """Add the command `serve`."""
    # What typer does not know are flags of llm-d's picker, or refused by name.
    others = {"allow_extra_args": True, "ignore_unknown_options": True}
    app.command("serve", context_settings=others)(serve_command)


def serve_command(
    context: typer.Context,
    config: Annotated[Path | None, typer.Option(help="The configuration, lorapick.yaml.")] = None,
    event_log: Annotated[Path | None, typer.Option(help="Keep every event in this file, for a replay.")] = None,
    event_log_max_bytes: Annotated[
        int, typer.Option(min=1, help="Size at which the event log ends; the picker goes on.")
    ] = MAX_BYTES,
    log_level: Annotated[str | None, typer.Option(help="debug, info (by default), warning or error.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Say where it listens as one JSON line.")] = False,
) -> None:
    """Run the picker for an Envoy that runs already.

    The flags of llm-d's endpoint picker are taken too, such as --pool-name, --config-file, --grpc-port;
    docs/endpoint-picker-config.md has them all.
    """
    try:
        flags = _flags(config, context.args)
        _logging(log_level or (flags.log_level if flags is not None else None) or "info")
        loaded = _load(config, flags)
        for line in one_per_key(loaded.later):
            log.warning("%s: %s", HEADING, line)
        for line in loaded.useless_roles:
            log.warning("%s: %s", ROLES_HEADING, line)
        uvloop.run(
            serve(
                loaded.settings,
                beside=loaded.path.parent,
                static=Files(static_directory(), runbook_directory()),
                record=None if event_log is None else Recording(event_log, event_log_max_bytes),
                on_ready=lambda addresses: _say_ready(addresses, as_json=as_json),
            )
        )
    except OSError as error:
        _fail(f"{error.filename or config or 'the configuration'}: {error.strerror or error}")
    except (ConfigError, FlagError, BindError, NoExporterError, PeersError) as error:
        _fail(str(error))


def _flags(config: Path | None, arguments: list[str]) -> Flags | None:
    """llm-d's flags, with `--config` as its `--config-file`; None: there are none beside a configuration."""
    if config is None:
        return read_flags(arguments, os.environ)
    if not arguments:
        return None
    flags = read_flags(arguments, os.environ)
    if flags.config_file is not None or flags.config_text is not None:
        raise FlagError("--config, and --config-file or --config-text: keep one of them")
    return flags._replace(config_file=str(config))


def _load(config: Path | None, flags: Flags | None) -> Loaded:
    if flags is not None:
        return load_flags(flags)
    assert config is not None, "without a configuration there are flags"
    return load(config)


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
