"""How the commands about a configuration answer: in words or JSON, and with all problems when it is wrong.

In: what finds something out about a file, and how that is said. Out: standard output, or problems and exit code 2.
Not here: what is found out (see `cli.config`, `cli.config_explain`).
"""

import json
import sys
from collections.abc import Callable
from typing import TypeVar

import msgspec
import typer

from lorapick.wire.config import ConfigError

T = TypeVar("T", bound=msgspec.Struct)


def answer(find: Callable[[], T], say: Callable[[T], None], *, as_json: bool) -> None:
    """Say what `find` comes to, by `say` or as JSON; its `ConfigError` ends the command."""
    try:
        found = find()
    except ConfigError as error:
        if as_json:
            print(json.dumps({"ok": False, "problems": msgspec.to_builtins(error.problems)}, indent=2))
        else:
            print(error, file=sys.stderr)
        raise typer.Exit(2) from None
    if as_json:
        print(json.dumps({"ok": True, **msgspec.to_builtins(found)}, indent=2))
    else:
        say(found)
