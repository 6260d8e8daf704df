"""The event log: every event of a run and what it decided, as lines of a file, for a replay through the same core.

In: events in the order they were applied, with their effects. Out: a file in the format of `wire.eventlog`.
Not here: that format, and reading it back (`lorapick replay`).

Recording never costs a request, nor a start: when the file cannot be opened or written (a full disk), that is said
once, recording ends and what is not recorded is counted. A replay begins at the beginning, so a log that has reached
its size limit ends with a line that says so; it does not forget its oldest events.
What is older than a second is in the file, so a killed picker leaves a log that ends with its last second.
"""

import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from lorapick.model.effects import Effect
from lorapick.model.events import Event
from lorapick.model.settings import Settings
from lorapick.model.units import Seconds
from lorapick.wire.eventlog import LineEncoder, header_of

log = logging.getLogger(__name__)

FLUSH_EVERY: Seconds = 1.0
MAX_BYTES = 2**30
_BUFFER = 2**16
_LAST_LINE = 128
"""Bytes kept free for the line that says that the limit was reached."""


class EventLog:
    """Writes events to a new file."""

    def __init__(
        self,
        path: Path,
        *,
        settings: Settings,
        seed: int,
        max_bytes: int = MAX_BYTES,
        on_lost: Callable[[], None] = lambda: None,
    ) -> None:
        """Begin the file; one of that name is kept beside it, as `.1`, in place of an older one.

        Args:
            path: the file; when it cannot be opened, nothing is recorded.
            settings: the picker's.
            seed: the picker's.
            max_bytes: size at which the log ends.
            on_lost: told of each event that is lost to a fault; the limit is none.
        """
        self.missing = 0
        """Events that are not in the file."""
        self._path = path
        self._encoder = LineEncoder()
        self._room = max_bytes - _LAST_LINE
        self._on_lost = on_lost
        self._broken = False
        self._flush_at: Seconds = float("-inf")
        self._file: BinaryIO | None = None
        header = header_of(settings, seed=seed, epoch=time.time() - time.monotonic())
        try:
            self._begin(self._encoder.header(header))
        except OSError as error:
            self._broken = True
            log.error("event log %s: %s; nothing is recorded", path, error.strerror)

    def _begin(self, header: bytes) -> None:
        path = self._path
        # Not for devices and pipes. A picker that is started again must not write over the log of the one that died.
        if path.is_file():
            path.replace(older(path))
        path.write_bytes(header)
        self._room -= len(header)
        self._file = path.open("ab", buffering=_BUFFER)

    def record(self, event: Event, outcome: Sequence[Effect] | Exception) -> None:
        """Append one event, with its effects or with what the core raised."""
        file = self._file
        if file is None:
            self._miss()
            return
        try:
            lines = self._encoder.step(event, outcome)
            self._room -= len(lines)
            if self._room < 0:
                self._end_at_limit(file, event)
                return
            file.write(lines)
            if event.t >= self._flush_at:
                self._flush_at = event.t + FLUSH_EVERY
                file.flush()
        except (OSError, TypeError, ValueError) as error:
            # A log with a hole is worth nothing behind it.
            why = error.strerror if isinstance(error, OSError) else error
            log.error("event log %s: %s; nothing is recorded from event %d on", self._path, why, event.id)
            self._broken = True
            self._miss()
            self._abandon(file)

    def _miss(self) -> None:
        self.missing += 1
        if self._broken:
            self._on_lost()

    def _end_at_limit(self, file: BinaryIO, event: Event) -> None:
        file.write(self._encoder.full(event))
        file.flush()
        log.warning("event log %s: has reached its limit; nothing is recorded from event %d on", self._path, event.id)
        self._miss()
        self._abandon(file)

    def _abandon(self, file: BinaryIO) -> None:
        self._file = None
        try:
            file.close()
        except OSError as error:
            log.debug("event log %s: %s", self._path, error)

    def close(self) -> None:
        """Write what is left and close."""
        file, self._file = self._file, None
        if file is not None:
            try:
                file.close()
            except OSError as error:
                log.error("event log %s: %s; its end is missing", self._path, error)
        if self.missing:
            log.warning("event log %s: %d events are not in it", self._path, self.missing)

    def __enter__(self) -> "EventLog":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def older(path: Path) -> Path:
    """Where the log before this one is kept."""
    return path.with_name(f"{path.name}.1")
