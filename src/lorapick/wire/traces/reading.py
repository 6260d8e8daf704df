"""Which reader a trace of requests needs, told by its first line.

In: lines of bytes. Out: one `TraceRow` each.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain

from lorapick.wire.traces.azure import COLUMNS as AZURE_COLUMNS
from lorapick.wire.traces.azure import azure_rows
from lorapick.wire.traces.burstgpt import COLUMNS as BURSTGPT_COLUMNS
from lorapick.wire.traces.burstgpt import burstgpt_rows
from lorapick.wire.traces.mooncake import mooncake_rows
from lorapick.wire.traces.rows import TraceError, TraceRow, shown

READERS: Mapping[str, Callable[..., Iterator[TraceRow]]] = {
    "azure": azure_rows,
    "burstgpt": burstgpt_rows,
    "mooncake": mooncake_rows,
}


def trace_rows(lines: Iterable[bytes], *, name: str = "trace") -> Iterator[TraceRow]:
    """Requests of a trace in any of the known formats.

    Raises:
        TraceError: the first line is of none, or a line cannot be read.
    """
    rest = iter(lines)
    first = next(rest, b"")
    return READERS[_format(first, name=name)](chain((first,), rest), name=name)


def _format(first: bytes, *, name: str) -> str:
    text = first.decode("utf-8-sig", "replace").strip()
    if text.startswith("{"):
        return "mooncake"
    columns = [each.strip() for each in text.split(",")]
    if all(column in columns for column in AZURE_COLUMNS):
        return "azure"
    if all(column in columns for column in BURSTGPT_COLUMNS):
        return "burstgpt"
    raise TraceError(
        f"{name}:1: the first line is {shown(text)}; JSON lines (Mooncake), or a header with "
        f"{','.join(AZURE_COLUMNS)} (Azure) or {','.join(BURSTGPT_COLUMNS)} (BurstGPT) is needed"
    )
