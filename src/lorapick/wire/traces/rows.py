"""What traces say: one request, or a client's demand in one window; and the error of a line that says neither.

In: fields of lines. Out: values. Not here: files (readers take lines of bytes from whoever opened them), adapters (no
public trace names any; `sim.workload` lays them over).
"""

import csv
import math
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from lorapick.model.units import Seconds, Tokens

MOST_TOKENS = 10**7
"""More than any model reads; a larger number is a broken line."""
LATEST: Seconds = 1e12
_SHOWN = 60
"""Characters of a wrong value that an error repeats."""


class TraceError(ValueError):
    """A line that cannot be read: the trace's name, the line, the value, and what would be right."""


class TraceRow(msgspec.Struct, frozen=True, kw_only=True):
    """One request of a trace."""

    line: int
    """Where it was read, 1 for the first."""
    t: Seconds
    """From the trace's own zero; readers keep the order of the file."""
    prompt_tokens: Tokens
    output_tokens: Tokens
    """0 when the trace has a request that failed."""
    session: str | None = None
    model: str | None = None
    hash_ids: tuple[int, ...] = ()
    """Ids of the prompt's blocks of `hash_tokens` tokens, the last perhaps not full; equal ids, equal prefix."""
    hash_tokens: Tokens = 512


class DemandWindow(msgspec.Struct, frozen=True, kw_only=True):
    """One client's demand in one window of time (ServeGen)."""

    client: str
    start: Seconds
    rate: float
    """Requests per second."""
    cv: float | None
    """Of the gaps; None when there were none."""
    family: str | None
    """Law fitted to the gaps, `Gamma` or `Weibull`, with its shape and scale (seconds); None when there were none."""
    shape: float | None
    scale: float | None


def fault(name: str, line: int, what: str) -> TraceError:
    """The error for a line."""
    return TraceError(f"{name}:{line}: {what}")


def shown(value: str) -> str:
    """A wrong value as an error repeats it."""
    return repr(value if len(value) <= _SHOWN else value[:_SHOWN] + "...")


def whole(value: str, column: str, *, most: int = MOST_TOKENS) -> int:
    """A whole number from 0 to `most`.

    Raises:
        ValueError: it is not.
    """
    if value.isascii() and value.isdigit() and len(value) <= len(str(most)) and int(value) <= most:
        return int(value)
    raise ValueError(f"{column} is {shown(value)}; a whole number from 0 to {most:,} is needed")


def number(value: str, column: str, *, most: float = LATEST) -> float:
    """A decimal number from 0 to `most`.

    Raises:
        ValueError: it is not.
    """
    try:
        found = float(value) if value.isascii() and "_" not in value else math.nan
    except ValueError:
        found = math.nan
    if 0 <= found <= most:
        return found
    raise ValueError(f"{column} is {shown(value)}; a number from 0 to {most:g} is needed")


def fields(lines: Iterable[bytes], *, name: str) -> Iterator[tuple[int, list[str]]]:
    """Line numbers and fields of comma-separated lines, one record a line; empty lines are passed over.

    Raises:
        TraceError: a line is not UTF-8 text, or its quotes do not end.
    """
    for line, content in enumerate(lines, start=1):
        try:
            text = content.decode("utf-8-sig" if line == 1 else "utf-8").rstrip("\r\n")
            record = next(csv.reader([text], strict=True), [])
        except UnicodeDecodeError as error:
            raise fault(name, line, f"not UTF-8 text (byte {error.start}); is the file compressed?") from None
        except csv.Error as error:
            raise fault(name, line, f"not comma-separated: {error}") from None
        if record:
            yield line, record


def table(lines: Iterable[bytes], *, name: str, columns: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Records of lines under a header, by column, in whatever order the header has them.

    Raises:
        TraceError: there is no header, a column is missing, or a record has fewer or more fields than the header.
    """
    records = fields(lines, name=name)
    line, header = next(records, (1, []))
    header = [each.strip() for each in header]
    missing = [column for column in columns if column not in header]
    if missing:
        raise fault(name, line, f"the header lacks {', '.join(missing)}; it has {shown(','.join(header))}")
    for line, record in records:
        if len(record) != len(header):
            raise fault(name, line, f"{len(record)} fields where the header has {len(header)}")
        yield line, dict(zip(header, record, strict=True))
