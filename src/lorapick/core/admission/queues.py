"""Requests that wait because no pod can take them now: bounded, in bands of priority, fair within a band [R3.8].

In: requests with priority, fairness id, adapter, and how long they may wait. Out: who is to be tried next.
Between bands strictly the higher one first. Within a band whoever has waited for longer than `patience` comes first,
the longest waiting before others, so that no adapter is starved; then flows (fairness id and adapter) take turns, or
those whose fairness id has had the fewest tokens lately (least attained service) come first. A flow's turn serves
everything that waits in it, by rank where waiters have one. Not here: whether a pod can take anybody (see
`core.deciding`), requests that follow a load (see `core.admission.holds`).
"""

from collections import Counter, OrderedDict
from collections.abc import Iterator
from heapq import heappop, heappush
from typing import NamedTuple, TypeAlias

from lorapick.core.admission.attained import Attained
from lorapick.core.admission.ceilings import Ceilings
from lorapick.model.settings import Fairness
from lorapick.model.units import AdapterName, RequestId, Seconds

FlowKey: TypeAlias = tuple[int, str, AdapterName | None]
"""Priority, fairness id ("" when nobody gave one), adapter (None: the base model)."""


class Waiter(NamedTuple):
    """One request that waits."""

    request_id: RequestId
    flow: FlowKey
    since: Seconds
    """When it began to wait."""
    until: Seconds
    """When somebody must decide for good."""
    rank: Seconds = 0.0
    """Of one flow the lowest comes first, of equal ones the oldest."""


def _rank(waiter: Waiter) -> Seconds:
    return waiter.rank


class Queues:
    """All of them."""

    __slots__ = (
        "_by_adapter",
        "_due",
        "_ended_at",
        "_flows",
        "_ranked",
        "_turn",
        "_turns",
        "_waiters",
        "attained",
        "ceilings",
        "patience",
    )

    def __init__(self, *, fairness: Fairness = Fairness.ROUND_ROBIN, patience: Seconds) -> None:
        self.attained: Attained | None = None
        """What each fairness id has had; None: nobody counts it."""
        self.ceilings = Ceilings()
        """What is remembered of priorities that may have to wait though pods have room."""
        self.fairness = fairness
        self.patience = patience
        """Seconds after which a request comes before those of its band that have waited for less."""
        self._waiters: dict[RequestId, Waiter] = {}
        self._flows: dict[FlowKey, OrderedDict[RequestId, Waiter]] = {}
        """Oldest request first; no flow is empty."""
        self._by_adapter: Counter[AdapterName | None] = Counter()
        self._turn: dict[FlowKey, int] = {}
        """When each flow had its last turn; lower goes first."""
        self._turns = 0
        self._ranked = 0
        """Waiters with a rank; without one the first of a flow is known without a look at the others."""
        self._ended_at: FlowKey | None = None
        self._due: list[tuple[Seconds, RequestId]] = []
        """Heap; requests that have left are skipped."""

    def __len__(self) -> int:
        return len(self._waiters)

    @property
    def ids(self) -> list[RequestId]:
        """Requests that wait."""
        return [*self._waiters]

    @property
    def fairness(self) -> Fairness:
        """Who comes first within a band."""
        return Fairness.ROUND_ROBIN if self.attained is None else Fairness.LEAST_ATTAINED

    @fairness.setter
    def fairness(self, fairness: Fairness) -> None:
        if fairness is not Fairness.LEAST_ATTAINED:
            self.attained = None
        elif self.attained is None:
            self.attained = Attained()

    def __contains__(self, request_id: RequestId) -> bool:
        return request_id in self._waiters

    def add(self, waiter: Waiter) -> None:
        """Let a request wait, behind all of its flow."""
        assert waiter.request_id not in self._waiters, f"{waiter.request_id!r} waits already"
        self._waiters[waiter.request_id] = waiter
        flow = self._flows.get(waiter.flow)
        if flow is None:
            self._lift(waiter.flow[1])
            flow = self._flows[waiter.flow] = OrderedDict()
            self._last(waiter.flow)
        flow[waiter.request_id] = waiter
        self._ranked += bool(waiter.rank)
        self._by_adapter[waiter.flow[2]] += 1
        heappush(self._due, (waiter.until, waiter.request_id))

    def until(self, request_id: RequestId) -> Seconds | None:
        """When somebody must decide for good about a request; None: it does not wait."""
        waiter = self._waiters.get(request_id)
        return waiter.until if waiter is not None else None

    def remove(self, request_id: RequestId) -> Waiter | None:
        """Let go of a request; None: it did not wait."""
        waiter = self._waiters.pop(request_id, None)
        if waiter is None:
            return None
        flow = self._flows[waiter.flow]
        del flow[request_id]
        self._ranked -= bool(waiter.rank)
        name = waiter.flow[2]
        self._by_adapter[name] -= 1
        if not self._by_adapter[name]:
            del self._by_adapter[name]
        if not flow:
            del self._flows[waiter.flow], self._turn[waiter.flow]
        return waiter

    def served(self, waiter: Waiter) -> None:
        """A request that waited goes to a pod: its flow's turn has come."""
        if waiter.flow in self._turn:
            self._last(waiter.flow)

    def _lift(self, fairness_id: str) -> None:
        """Whoever begins to wait has no claim from the time in which it did not: it begins where others stand."""
        if self.attained is not None:
            waiting = dict.fromkeys(flow[1] for flow in self._flows)
            if waiting and fairness_id not in waiting:
                self.attained.lift(fairness_id, to=min(self.attained.of(each) for each in waiting))

    def _last(self, flow: FlowKey) -> None:
        self._turns += 1
        self._turn[flow] = self._turns

    def order(self, now: Seconds) -> list[FlowKey]:
        """All flows, whose turn it is first."""
        oldest = now - self.patience
        keys = []
        for flow, waiters in self._flows.items():
            since = next(iter(waiters.values())).since
            claim = self.attained.of(flow[1]) if self.attained is not None else 0.0
            first = min(map(_rank, waiters.values())) if self._ranked else 0.0
            rank = (0, first, since) if since <= oldest else (1, claim, float(self._turn[flow]))
            keys.append((-flow[0], rank, flow))
        keys.sort(key=lambda each: each[:2])
        return [flow for _, _, flow in keys]

    def waiting_in(self, flow: FlowKey) -> list[Waiter]:
        """Who waits in a flow: by rank, oldest first."""
        found = [*self._flows.get(flow, {}).values()]
        return sorted(found, key=_rank) if self._ranked else found

    def count(self, name: AdapterName) -> int:
        """Requests that wait for an adapter."""
        return self._by_adapter[name]

    def of_priority(self, priority: int) -> int:
        """Requests of a priority that wait."""
        return sum(len(waiters) for flow, waiters in self._flows.items() if flow[0] == priority)

    def wanted(self, name: AdapterName) -> bool:
        """Whether somebody waits for an adapter."""
        return name in self._by_adapter

    def in_turn(self, now: Seconds) -> list[FlowKey]:
        """All flows as `order` has them, beginning behind the one at which the last round of tries ended."""
        order = self.order(now)
        if self._ended_at is not None:
            place = order.index(self._ended_at) + 1 if self._ended_at in self._flows else 0
            order = order[place:] + order[:place]
            self._ended_at = None
        return order

    def go_on_after(self, flow: FlowKey) -> None:
        """A round of tries ended here: those behind come first in the next, so that nobody stays behind for ever."""
        self._ended_at = flow

    def impatient(self, now: Seconds) -> list[Waiter]:
        """First of each flow, where it has waited for longer than patience allows: by band, then the oldest first."""
        heads = [next(iter(waiters.values())) for waiters in self._flows.values()]
        late = [head for head in heads if head.since <= now - self.patience]
        return sorted(late, key=lambda each: (-each.flow[0], each.since))

    def oldest(self) -> Seconds | None:
        """Since when the one waits that has waited longest; None: nobody waits."""
        return min((next(iter(waiters.values())).since for waiters in self._flows.values()), default=None)

    def yields_to(self, priority: int) -> Waiter | None:
        """Who gives up its place to a request of this priority: the last of the lowest band, if that is lower."""
        lowest = min((flow[0] for flow in self._flows), default=priority)
        if lowest >= priority:
            return None
        band = (waiters for flow, waiters in self._flows.items() if flow[0] == lowest)
        return max((next(reversed(waiters.values())) for waiters in band), key=lambda each: each.since)

    def due(self, now: Seconds) -> Iterator[RequestId]:
        """Requests whose time is up, by their bounds; each is named until it has left."""
        # Who left and came back with the same bound stands in the heap twice.
        left: dict[tuple[Seconds, RequestId], None] = {}
        while self._due and self._due[0][0] <= now:
            until, request_id = heappop(self._due)
            if self._is(request_id, until):
                left[until, request_id] = None
        for entry in left:
            heappush(self._due, entry)
        return iter([request_id for _, request_id in left])

    def next_due(self) -> Seconds | None:
        """When the first bound is reached; None: nobody waits."""
        while self._due and not self._is(self._due[0][1], self._due[0][0]):
            heappop(self._due)
        return self._due[0][0] if self._due else None

    def _is(self, request_id: RequestId, until: Seconds) -> bool:
        waiter = self._waiters.get(request_id)
        return waiter is not None and waiter.until == until

    def check(self) -> None:
        """Flows are what the waiters say; no counter has outlived those whom it counts."""
        said: dict[FlowKey, list[RequestId]] = {}
        for waiter in self._waiters.values():
            said.setdefault(waiter.flow, []).append(waiter.request_id)
        assert said == {flow: [*waiters] for flow, waiters in self._flows.items()}, "flows and waiters differ"
        assert self._ranked == sum(bool(each.rank) for each in self._waiters.values()), "who has a rank"
        assert self._turn.keys() == self._flows.keys(), "turns of flows that nobody waits in"
        assert self._by_adapter == Counter(waiter.flow[2] for waiter in self._waiters.values()), "who waits for whom"
