"""Adapters that a pod failed to load, and how long nobody tries again there.

In: failed and successful loads. Out: rows to leave out for an adapter. The first failure keeps requests away for a
second, each further one for twice as long, up to a minute; a load that works forgets them all.
Not here: who waited for the load (see `core.requests`).
"""

from lorapick.model.units import AdapterName, Seconds

FIRST: Seconds = 1.0
LONGEST: Seconds = 60.0


class Quarantine:
    """Pairs of pod and adapter."""

    __slots__ = ("_failures",)

    def __init__(self) -> None:
        self._failures: dict[AdapterName, dict[int, tuple[int, Seconds]]] = {}
        """By adapter and row: failures in a row, and until when nobody tries."""

    def failed(self, row: int, name: AdapterName, *, now: Seconds) -> Seconds:
        """One more failure; return for how long nobody tries."""
        rows = self._failures.setdefault(name, {})
        count = rows.get(row, (0, now))[0] + 1
        pause = min(LONGEST, FIRST * 2.0 ** min(count - 1, 16))
        rows[row] = (count, now + pause)
        return pause

    def worked(self, row: int, name: AdapterName) -> None:
        """The adapter is there."""
        rows = self._failures.get(name)
        if rows is not None and rows.pop(row, None) is not None and not rows:
            del self._failures[name]

    def rows(self, name: AdapterName, *, now: Seconds) -> list[int]:
        """Rows on which nobody tries this adapter now."""
        rows = self._failures.get(name)
        return [row for row, (_, until) in rows.items() if now < until] if rows else []

    def pairs(self, now: Seconds) -> list[tuple[int, AdapterName]]:
        """Rows and adapters that nobody tries now."""
        return [(row, name) for name in self._failures for row in self.rows(name, now=now)]

    def gone(self, row: int) -> None:
        """The pod is gone, or its process is new."""
        for name in [*self._failures]:
            self.worked(row, name)
