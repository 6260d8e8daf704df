"""Keeps the ledger of a running picker: an observer of the driver.

In: each event with its effects, the core's residency changes. Out: rows, handed to the writer.
Not here: what rows say (`core.ledger`), how they are written (`live.ledger.writer`).
"""

import logging
from collections.abc import Callable, Sequence

from lorapick.core.ledger.bookkeeper import Bookkeeper
from lorapick.live.ledger.writer import LedgerWriter
from lorapick.model.effects import Effect
from lorapick.model.events import Event
from lorapick.model.signals import Change

log = logging.getLogger(__name__)


class Ledger:
    """An `Observer`. A fault of ours ends the ledger, never the picker."""

    def __init__(self, writer: LedgerWriter, changes: Callable[[], Sequence[Change]]) -> None:
        """`changes` gives those of the event that is being told (`Fleet.changes`)."""
        self.writer = writer
        self._changes = changes
        self._books = Bookkeeper()
        self._broken = False

    def observe(self, event: Event, effects: Sequence[Effect]) -> None:
        """Hand over what this event begins or ends."""
        if self._broken:
            return
        try:
            rows = self._books.observe(event, effects, changes=self._changes())
        except Exception:
            self._broken = True
            self.writer.failures += 1
            log.exception("ledger: event %d cannot be booked; nothing is kept from here on", event.id)
            return
        if rows:
            self.writer.put(rows)
