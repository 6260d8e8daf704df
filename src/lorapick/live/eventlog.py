"""The event log: every event of a run as JSON lines, for a replay through the same core.

In: events in the order they were applied. Out: a file whose first line is a header (format version, wall time of
t = 0, configuration hash, seed) and whose other lines are tagged events (docs/interfaces.md).
Not here: reading it back (the simulator's replay does).
"""

import time
from io import BufferedWriter
from pathlib import Path
from types import TracebackType

import msgspec

from lorapick.model.events import Event

FORMAT = 1


class LogHeader(msgspec.Struct, frozen=True, kw_only=True):
    """First line of an event log."""

    version: int
    epoch: float
    """Unix time of the driver's t = 0."""
    configuration: str
    """Hash of the settings."""
    seed: int


class EventLog:
    """Appends events to a file; flushed by the operating system's own buffering and at close."""

    def __init__(self, path: Path, *, configuration: str, seed: int) -> None:
        self._file: BufferedWriter = path.open("wb")
        self._encode = msgspec.json.Encoder().encode
        epoch = time.time() - time.monotonic()
        self._write(LogHeader(version=FORMAT, epoch=epoch, configuration=configuration, seed=seed))

    def record(self, event: Event) -> None:
        """Append one event."""
        self._write(event)

    def _write(self, value: msgspec.Struct) -> None:
        self._file.write(self._encode(value))
        self._file.write(b"\n")

    def close(self) -> None:
        """Flush and close."""
        self._file.close()

    def __enter__(self) -> "EventLog":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
