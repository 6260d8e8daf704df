"""Which adapters the requests of a trace ask for, in the order of its lines.

In: lines of bytes: JSON objects with `adapter`, or comma-separated values with a column `adapter`; other keys and
columns are passed over. Out: names, None for the base model (null, or an empty field). Not here: files, event logs
(see `sim.bounds.logged`; `begins_event_log` tells them).
"""

from collections.abc import Iterable, Iterator
from itertools import chain

import msgspec

from lorapick.model.units import AdapterName
from lorapick.wire.traces.rows import fault, shown, table

COLUMN = "adapter"
_MARK = b"\xef\xbb\xbf"
"""Some programs begin UTF-8 files with it."""


class _Row(msgspec.Struct):
    adapter: AdapterName | None


class _Head(msgspec.Struct):
    version: int
    settings: msgspec.Raw


def begins_event_log(line: bytes) -> bool:
    """Whether a file's first line is that of an event log."""
    try:
        msgspec.json.decode(line, type=_Head)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def adapter_names(lines: Iterable[bytes], *, name: str = "trace") -> Iterator[AdapterName | None]:
    """The adapter of each request; None: the base model. Empty lines are passed over.

    Raises:
        TraceError: a line names no adapter, or is neither of the two.
    """
    rest = iter(lines)
    first = next(rest, b"").removeprefix(_MARK)
    lines = chain((first,), rest)
    return _json(lines, name) if first.lstrip().startswith(b"{") else _csv(lines, name)


def _json(lines: Iterable[bytes], name: str) -> Iterator[AdapterName | None]:
    decode = msgspec.json.Decoder(_Row).decode
    for number, line in enumerate(lines, start=1):
        try:
            adapter = decode(line).adapter
        except (msgspec.DecodeError, RecursionError) as error:
            if not line.strip():
                continue
            text = shown(line.decode("utf-8", "replace").strip())
            raise fault(name, number, f'{error}; {text} should be an object like {{"adapter": "a"}}') from None
        if adapter == "":
            raise fault(name, number, "adapter is ''; a name is needed, or null for the base model")
        yield adapter


def _csv(lines: Iterable[bytes], name: str) -> Iterator[AdapterName | None]:
    for _, record in table(lines, name=name, columns=(COLUMN,)):
        yield record[COLUMN] or None
