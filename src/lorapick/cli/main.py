"""`lorapick`: finds the command that was asked for, and imports only that.

In: the command line. Out: the command's work and its exit code: 0, 1 for a check that failed, 2 for bad input, and for
whatever else kept a command from saying its answer: nobody may read a 1 into that.
Not here: what commands do (each has its file with `register(app)`).
"""

import errno
import os
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version
from typing import Annotated, NoReturn

import typer

COMMANDS = {
    "up": "Start everything on this machine: Envoy, the picker, emulated pods, a sample of traffic.",
    "serve": "Run the picker for an Envoy that runs already.",
    "pod": "Run one emulated vLLM pod.",
    "demo": "Compare policies, each on fresh pods, with the same traffic.",
    "top": "Show the fleet in the terminal, once a second.",
    "doctor": "Say what is wrong with a running fleet, worst first, and what helps.",
    "explain": "Say why a request went where it went.",
    "ledger": "Which evictions made a window of time slow, and the rows behind the answer.",
    "mode": "Which requests picks are in force for: all, a share, or none; show it, or change it at once.",
    "report": "Both arms of a trial side by side: requests that are picked for, and those routed as before.",
    "residency": "Say which adapter is believed to be where, and how the picker knows.",
    "adapters": "Which adapters there are, where they should be; load, pin, move, declare them.",
    "events": "Tell a running picker that something happened outside.",
    "aliases": "Names that stand for adapters, and moving them.",
    "dashboards": "Write Prometheus rules, a Grafana dashboard, autoscalers and runbooks for it.",
    "placement": "Say what should be where on a running picker, and what stands in the way.",
    "config": "Check a configuration, or say what each part of it will do.",
    "schedules": "Say when each schedule of a configuration fires next, on local clocks and in UTC.",
    "plan": "Say what would fit, what it would cost, and where adapters would be placed.",
    "check": "Say whether a rollout of adapters may go out: exit code 1 when the fleet would thrash.",
    "simulate": "Play a scenario under one or more policies, beside the article's figures.",
    "scenarios": "List the scenarios that can be played.",
    "replay": "Put a picker's event log through the core again; the decisions must be the same.",
    "calibrate": "Fit the pod model to measured runs, and say how far it is off on runs it has not seen.",
    "bound": "Say what no policy can beat: the fewest adapter loads for a sequence of requests.",
}
"""Commands in the order of the help, with its words; the module of each has the command's name."""


def main() -> None:
    """Run the command line; the entry point of the package."""
    # `up` and `demo` start processes while gRPC's threads run, and no child uses gRPC before it becomes another
    # program. gRPC's own care for forks would only print warnings; it reads this when it is imported.
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "false")
    if sys.stdout is None:
        _unsaid("standard output is closed; send it somewhere, or to /dev/null")
    try:
        program(sys.argv[1:])()
    except SystemExit as ended:
        if isinstance(ended.__context__, BrokenPipeError):
            _unsaid(None)  # whoever reads wants no more
        _flush()
        raise
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EIO, errno.EBADF, errno.EFBIG):
            _fault()
        _unsaid(f"the answer cannot be written ({error.strerror})")
    except Exception:  # noqa: BLE001 - the last place that can give another exit code than Python's 1
        _fault()


def _flush() -> None:
    """Write what is left of the answer: Python itself would do so too late for another exit code."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _unsaid(None)
    except OSError as error:
        _unsaid(f"the answer cannot be written ({error.strerror})")


def _fault() -> NoReturn:
    traceback.print_exc()
    _unsaid("that was a fault of lorapick itself; nothing is said about what was asked. Please report it")


def _unsaid(why: str | None) -> NoReturn:
    """End with the code of what was not answered."""
    if why is not None and sys.stderr is not None:
        print(f"lorapick: {why}", file=sys.stderr)
    if sys.stdout is not None:
        # Else Python writes the rest once more when it ends, and its exit code is 120.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise SystemExit(2) from None


def program(arguments: Sequence[str]) -> typer.Typer:
    """Return the application for these arguments, with only the command in it that they name.

    Importing all of them would cost half a second of `lorapick --help`.
    """
    app = typer.Typer(
        name="lorapick",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_lorapick)
    name = next((argument for argument in arguments if not argument.startswith("-")), None)
    if name in COMMANDS:
        import_module(f"lorapick.cli.{name}").register(app)
    else:
        for each, words in COMMANDS.items():
            app.command(each, help=words)(_only_listed)
    return app


def _lorapick(
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version and end.", is_eager=True, callback=lambda v: _say(v))
    ] = False,
) -> None:
    """Send each request to where its LoRA adapter is."""


def _only_listed() -> None:
    """Stand in for a command in the list of the help; never called, since naming a command imports it."""


def _say(wanted: bool) -> None:
    if wanted:
        print(f"lorapick {version('lorapick')}")
        raise typer.Exit


if __name__ == "__main__":
    main()
