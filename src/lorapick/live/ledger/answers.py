"""Answers to questions about a ledger, as JSON; and, run as a program, the process that makes them for a picker.

A window of a busy day takes seconds of work, which would keep picks waiting if it were done in the picker's process.
In: a path and a question, as arguments. Out: on stdout a `LedgerAnswer`, exit code 0; or on stderr what is wrong, 2.
Not here: what the answers mean (`core.ledger.report`), HTTP (`live.ledger.route`).
"""

import gc
import os
import sys
from enum import StrEnum
from pathlib import Path

import msgspec

from lorapick.core.ledger.report import Asked
from lorapick.live.ledger.file import LedgerError
from lorapick.live.ledger.reader import listed, report_of
from lorapick.live.ledger.schema import LOADS, REQUESTS, RESIDENCIES
from lorapick.model.ledger import LoadRow, RequestRow, ResidencyRow
from lorapick.model.ledger_report import LedgerReport

_NICE = 10
"""Gives way to the picker where both want the same core."""


class View(StrEnum):
    """What is asked for."""

    REPORT = "report"
    REQUESTS = "requests"
    LOADS = "loads"
    EVICTIONS = "evictions"


class LedgerAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One of these."""

    report: LedgerReport | None = None
    requests: tuple[RequestRow, ...] | None = None
    loads: tuple[LoadRow, ...] | None = None
    evictions: tuple[ResidencyRow, ...] | None = None


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """To the process."""

    path: str
    view: View
    asked: Asked


def answer(path: Path, view: View, *, asked: Asked) -> LedgerAnswer:
    """Read the file and answer. Raises LedgerError."""
    # Hundreds of thousands of values, none of them in a circle: looking for circles takes a third of the time.
    collecting = gc.isenabled()
    gc.disable()
    try:
        return _answer(path, view, asked=asked)
    finally:
        if collecting:
            gc.enable()


def _answer(path: Path, view: View, *, asked: Asked) -> LedgerAnswer:
    match view:
        case View.REPORT:
            return LedgerAnswer(report=report_of(path, asked))
        case View.REQUESTS:
            return LedgerAnswer(requests=listed(path, REQUESTS, asked=asked))
        case View.LOADS:
            return LedgerAnswer(loads=listed(path, LOADS, asked=asked))
        case View.EVICTIONS:
            return LedgerAnswer(evictions=listed(path, RESIDENCIES, asked=asked))


def command(question: Question) -> tuple[str, ...]:
    """Command line of the process that answers."""
    return (sys.executable, "-m", __name__, msgspec.json.encode(question).decode())


def main() -> None:
    """The process."""
    os.nice(_NICE)
    question = msgspec.json.decode(sys.argv[1], type=Question)
    try:
        found = answer(Path(question.path), question.view, asked=question.asked)
    except LedgerError as error:
        print(error, file=sys.stderr)  # noqa: T201 - what it is for
        raise SystemExit(2) from None
    sys.stdout.buffer.write(msgspec.json.encode(found))


if __name__ == "__main__":
    main()
