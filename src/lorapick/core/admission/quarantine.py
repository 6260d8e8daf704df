"""Adapters that a pod failed to load, and how long nobody tries again there.

In: failed and successful loads. Out: rows to leave out for an adapter. The first failure keeps requests away for a
second, each further one for twice as long, up to a minute; a load that works forgets them all.
An adapter that has failed `TRIES` times in a row, on whatever pods, is not loaded anywhere for such a time: its file
may be broken, and every pod that tries stands still for it. Not here: who waited for the load (see `core.requests`).
"""

from lorapick.model.units import AdapterName, Seconds

FIRST: Seconds = 1.0
LONGEST: Seconds = 60.0
TRIES = 3


class Quarantine:
    """Pairs of pod and adapter."""

    __slots__ = ("_closed", "_failures")

    def __init__(self) -> None:
        self._failures: dict[AdapterName, dict[int, tuple[int, Seconds]]] = {}
        """By adapter and row: failures in a row, and until when nobody tries."""
        self._closed: dict[AdapterName, tuple[int, Seconds]] = {}
        """By adapter: failures in a row on all pods, and until when nobody tries on any."""

    def failed(self, row: int, name: AdapterName, *, now: Seconds) -> Seconds:
        """One more failure; return for how long nobody tries."""
        rows = self._failures.setdefault(name, {})
        count = rows.get(row, (0, now))[0] + 1
        pause = _pause(count)
        rows[row] = (count, now + pause)
        in_all = self._closed.get(name, (0, now))[0] + 1
        self._closed[name] = (in_all, now + _pause(in_all - TRIES + 1) if in_all >= TRIES else now)
        return pause

    def worked(self, row: int, name: AdapterName) -> None:
        """The adapter is there."""
        self._closed.pop(name, None)
        self._forget(row, name)

    def _forget(self, row: int, name: AdapterName) -> None:
        rows = self._failures.get(name)
        if rows is not None and rows.pop(row, None) is not None and not rows:
            del self._failures[name]

    def rows(self, name: AdapterName, *, now: Seconds) -> list[int]:
        """Rows on which nobody tries this adapter now."""
        rows = self._failures.get(name)
        return [row for row, (_, until) in rows.items() if now < until] if rows else []

    def forget(self, name: AdapterName) -> None:
        """Nobody gives the name any more."""
        self._closed.pop(name, None)
        self._failures.pop(name, None)

    def closed(self, name: AdapterName, *, now: Seconds) -> bool:
        """Whether nobody tries this adapter on any pod now."""
        closed = self._closed.get(name)
        return closed is not None and now < closed[1]

    def pairs(self, now: Seconds) -> list[tuple[int, AdapterName]]:
        """Rows and adapters that nobody tries now."""
        return [(row, name) for name in self._failures for row in self.rows(name, now=now)]

    def gone(self, row: int) -> None:
        """The pod is gone, or its process is new."""
        for name in [*self._failures]:
            self._forget(row, name)


def _pause(count: int) -> Seconds:
    return min(LONGEST, FIRST * 2.0 ** min(count - 1, 16))
