"""`lorapick replay LOG`: put the events of a picker's log through the core again; the decisions must be the same.

In: a log that `lorapick serve --event-log` wrote, plain, `.gz` or `.zst`. Out: what was compared, and the first
difference; exit code 1 when there is one, 2 for a file that is no log. Not here: the replay itself (see `sim.replay`).
"""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from lorapick import __version__
from lorapick.model.events import Event
from lorapick.plan.datafiles import DataFileError, open_lines
from lorapick.sim.replay import Difference, Replay, replay
from lorapick.wire.eventlog import AnyAnswer, Dispatched, Failed, Held, LogError, LogReader, Result

_LONGEST_LINE = 2**25
"""Bytes: a header with the settings of some hundred thousand adapters."""
_PACKED = (".gz", ".zst")
_WORDS = {"dispatch": "dispatched", "hold": "held", "reject": "rejected"}


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("replay")(replay_command)


def replay_command(
    log: Annotated[Path, typer.Argument(help="An event log; plain, .gz or .zst.")],
    as_json: Annotated[bool, typer.Option("--json", help="Say it as JSON.")] = False,
) -> None:
    """Put a picker's event log through the core again; the decisions must be the same."""
    try:
        reader = LogReader(open_lines(log, longest=_LONGEST_LINE), name=str(log))
        with _progress(log, reader) as progress:
            found = replay(reader, progress=progress)
    except (DataFileError, LogError) as error:
        print(f"lorapick replay: {error}", file=sys.stderr)
        raise typer.Exit(2) from None
    if as_json:
        print(json.dumps(_document(reader, found), indent=2))
    else:
        _tell(reader, found)
    if found.difference is not None:
        raise typer.Exit(1)


@contextmanager
def _progress(log: Path, reader: LogReader) -> Iterator[Callable[[], None]]:
    """A bar over the bytes of a plain file; for a compressed one, whose size is not known, a count of lines."""
    # On stderr, so that --json stays JSON; gone when done.
    console = Console(stderr=True)
    packed = log.suffix in _PACKED
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        unit = "lines" if packed else "kB"
        task = bar.add_task(f"{log.name}, {unit}", total=None if packed else log.stat().st_size // 1000)
        yield lambda: bar.update(task, completed=reader.lines if packed else reader.size // 1000)


def _document(reader: LogReader, found: Replay) -> dict[str, object]:
    header = reader.header
    same = found.difference is None
    head = {"configuration": header.configuration, "seed": header.seed, "written_by": header.written_by}
    document: dict[str, object] = {"same": same, **head, **msgspec.to_builtins(found)}
    return document


# -- in words


def _tell(reader: LogReader, found: Replay) -> None:
    decided = sum(found.answers.values())
    kinds = ", ".join(f"{count:,} {_WORDS[kind]}" for kind, count in found.answers.items()) or "none"
    print(f"{found.events:,} events over {found.seconds:,.1f} s, {decided:,} decisions ({kinds})")
    if found.alerts:
        print(f"alerts raised: {', '.join(f'{alert} {count}' for alert, count in found.alerts.items())}")
    if found.failures:
        print(f"{found.failures:,} of the events failed in the log, and failed again")
    if found.cut_at is not None:
        print(f"line {found.cut_at} is cut off: the picker was killed, or its disk full; the log counts up to there")
    if found.full is not None:
        first = found.full
        print(f"the log has reached its size limit; what came from event {first.id} at t={first.t:.6f} on is not in it")
    if found.difference is None:
        print(f"no difference; effects {found.digest}, configuration {reader.header.configuration}")
    else:
        _tell_difference(reader, found.difference)


def _tell_difference(reader: LogReader, difference: Difference) -> None:
    event = difference.event
    print(f"\nfirst difference at line {difference.line}: {_event(event)}")
    print(f"  log:    {_result(difference.logged)}")
    print(f"  replay: {_result(difference.replayed)}")
    writer = reader.header.written_by
    if writer != __version__:
        print(f"the log was written by lorapick {writer}, this is {__version__}: it may decide otherwise on purpose")
    else:
        print("the same version wrote the log: the log was changed, the code was, or this is a bug; please report it")


def _event(event: Event) -> str:
    told = {
        key: value
        for key, value in msgspec.to_builtins(event).items()
        if key in ("pod", "request_id", "adapter", "outcome", "status", "why") and isinstance(value, str | int)
    }
    request = getattr(event, "request", None)
    if request is not None:
        told = {"request": request.id, "model": request.model}
    words = " ".join(f"{key}={value}" for key, value in told.items())
    return f"event {event.id}, {type(event).__name__} at t={event.t:.6f} {words}".rstrip()


def _result(result: Result) -> str:
    if isinstance(result, Failed):
        return f"failed with {result.error}: {result.detail}"
    return "; ".join(_answer(answer) for answer in result.answers) or "nothing was decided"


def _answer(answer: AnyAnswer) -> str:
    match answer:
        case Dispatched():
            return f"{answer.request_id} dispatched to {answer.pod}{_details(answer)}"
        case Held():
            return f"{answer.request_id} held ({answer.reason}) until t={answer.until:.6f}"
        case _:
            return f"{answer.request_id} rejected ({answer.status} {answer.reason})"


def _details(answer: Dispatched) -> str:
    parts = [
        f"else {', '.join(answer.fallbacks)}" if answer.fallbacks else "",
        f"as {answer.model}" if answer.model is not None else "",
        f"prefilled by {answer.prefill}" if answer.prefill is not None else "",
        f"from {answer.tier}" if answer.tier is not None else "",
        f"score {answer.score!r}" if answer.score is not None else "",
    ]
    told = ", ".join(part for part in parts if part)
    return f" ({told})" if told else ""
