"""Requests that follow a load and wait for it at the picker.

In: request ids with the pod they wait for and their bound. Out: who may be tried again, in order of arrival.
Bounded in time; nothing is lost: every held request leaves by a decision at the latest at `until`.
Not here: the decision itself (see `core.deciding`), those who wait for a place (see `core.admission.queues`).
"""

from collections import OrderedDict

from lorapick.model.units import RequestId, Seconds


class Holds:
    """Held requests, oldest first, by the row they wait for."""

    __slots__ = ("_by_row", "_next_due", "held")

    def __init__(self) -> None:
        self.held: OrderedDict[RequestId, tuple[Seconds, int]] = OrderedDict()
        """Until when, and the row they wait for. To be read only."""
        self._by_row: dict[int, OrderedDict[RequestId, None]] = {}
        self._next_due: Seconds | None = None
        """The first bound; None: nothing is held, or it must be looked for."""

    def __len__(self) -> int:
        return len(self.held)

    def __contains__(self, request_id: RequestId) -> bool:
        return request_id in self.held

    def add(self, request_id: RequestId, row: int, *, until: Seconds) -> None:
        """Hold a request for a pod, at the longest until `until`; one that waits for another pod moves to the end."""
        self.remove(request_id)
        self.held[request_id] = (until, row)
        self._by_row.setdefault(row, OrderedDict())[request_id] = None
        self._next_due = None

    def remove(self, request_id: RequestId) -> None:
        """Let go of a request, held or not."""
        entry = self.held.pop(request_id, None)
        if entry is None:
            return
        until, row = entry
        waiting = self._by_row[row]
        del waiting[request_id]
        if not waiting:
            del self._by_row[row]
        if until == self._next_due:
            self._next_due = None

    def row_of(self, request_id: RequestId) -> int:
        """Row that a request waits for; -1: it is not held."""
        entry = self.held.get(request_id)
        return entry[1] if entry is not None else -1

    def waiting_for(self, row: int) -> list[RequestId]:
        """Requests held for a pod, oldest first."""
        return [*self._by_row.get(row, ())]

    def any_for(self, row: int) -> bool:
        """Whether some request is held for a pod."""
        return row in self._by_row

    def due(self, now: Seconds) -> list[RequestId]:
        """Requests whose time is up, oldest first."""
        return [request_id for request_id, (until, _) in self.held.items() if until <= now]

    def next_due(self) -> Seconds | None:
        """When the first bound is reached; None: nothing is held."""
        if self._next_due is None and self.held:
            self._next_due = min(until for until, _ in self.held.values())
        return self._next_due
