"""The event log: every event of a run and what it decided, as lines of a file, for a replay through the same core.

In: events in the order they were applied, with their effects. Out: a file in the format of `wire.eventlog`.
Not here: that format, and reading it back (`lorapick replay`).

Recording never costs a request: when the file cannot be written (a full disk), that is said once and recording ends.
What is older than a second is in the file, so a killed picker leaves a log that ends with its last second.
"""

import logging
import time
from collections.abc import Sequence
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
_BUFFER = 2**16


class EventLog:
    """Appends events to a new file."""

    def __init__(self, path: Path, *, settings: Settings, seed: int) -> None:
        """Begin the file; one of that name is overwritten.

        Raises:
            OSError: it cannot be opened or written.
        """
        self._path = path
        self._encoder = LineEncoder()
        self._flush_at: Seconds = float("-inf")
        header = header_of(settings, seed=seed, epoch=time.time() - time.monotonic())
        path.write_bytes(self._encoder.header(header))
        self._file: BinaryIO | None = path.open("ab", buffering=_BUFFER)

    def record(self, event: Event, outcome: Sequence[Effect] | Exception) -> None:
        """Append one event, with its effects or with what the core raised."""
        file = self._file
        if file is None:
            return
        try:
            file.write(self._encoder.step(event, outcome))
            if event.t >= self._flush_at:
                self._flush_at = event.t + FLUSH_EVERY
                file.flush()
        except (OSError, TypeError, ValueError) as error:
            # A log with a hole is worth nothing behind it.
            log.error("event log %s: %s; nothing is recorded from event %d on", self._path, error, event.id)
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

    def __enter__(self) -> "EventLog":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
