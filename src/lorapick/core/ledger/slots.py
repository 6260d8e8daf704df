"""Loads under way and stays in slots, followed from the residency changes of each event.

In: `Fleet.changes` with the event and effects they belong to. Out: rows of loads and residencies when they begin and
when they end, and the spans of loads that a request met at its pod.
Not here: requests (see `core.ledger.visits`).
"""

from collections import deque
from collections.abc import Sequence
from math import inf
from typing import TypeVar

from lorapick.core.ledger.blame import Blame, Cause, Command, Happened
from lorapick.core.ledger.sharing import Span
from lorapick.model.effects import Effect
from lorapick.model.events import Event, PodGone, PodReported
from lorapick.model.ledger import LeftWhy, LoadEnd, LoadRow, OccupancyRow, ResidencyRow
from lorapick.model.signals import RESIDENCY_WINDOW, Change
from lorapick.model.tiers import Tier
from lorapick.model.units import AdapterName, PodName, Seconds

KEPT_LOADS = 1024
"""Ended loads of a pod that are kept for requests which met them; a request that meets more is told of the last."""
KEPT_PODS = 100
"""Pods that left the fleet."""
KEPT_LEAVINGS = 50_000
"""Last leavings by pod and adapter that are kept for the loads which they will make necessary."""
COUNT_EVERY: Seconds = 10.0
_LOADING = Tier.LOADING

Key = TypeVar("Key")
SlotRow = LoadRow | ResidencyRow | OccupancyRow


class Load:
    """One load; `over` is None while it is under way."""

    __slots__ = ("adapter", "after", "begun", "by", "end", "id", "over", "pod", "request", "tier", "why")

    def __init__(self, number: int, change: Change, *, cause: Cause) -> None:
        seen_begin = change.after is _LOADING
        self.id = number
        self.pod, self.adapter = change.pod, change.adapter
        self.begun: Seconds | None = change.t if seen_begin else None
        self.over: Seconds | None = None if seen_begin else change.t
        self.tier = change.before
        self.by, self.request, self.why = cause
        self.end: LoadEnd | None = None if seen_begin else LoadEnd.DONE
        self.after: int | None = None

    def row(self) -> LoadRow:
        """As it is now."""
        return LoadRow(
            id=self.id,
            pod=self.pod,
            adapter=self.adapter,
            begun=self.begun,
            over=self.over,
            tier=self.tier.word,
            caused_by=self.by,
            request=self.request,
            why=self.why,
            result=self.end,
            after_stay=self.after,
        )


class Stay:
    """One stay in a slot."""

    __slots__ = ("by", "id", "last_request", "load", "requests", "since", "until", "usable", "why")

    def __init__(self, number: int, *, since: Seconds, load: Load | None) -> None:
        self.id = number
        self.since = since
        self.load = load
        self.usable: Seconds | None = None
        """Since when it has been there whole; None: it is still being loaded."""
        self.requests = 0
        self.last_request: Seconds | None = None
        self.until: Seconds | None = None
        self.why: LeftWhy | None = None
        self.by: Load | None = None

    def row(self, pod: PodName, adapter: AdapterName) -> ResidencyRow:
        """As it is now."""
        return ResidencyRow(
            id=self.id,
            pod=pod,
            adapter=adapter,
            since=self.since,
            until=self.until,
            load=None if self.load is None else self.load.id,
            last_request=self.last_request,
            requests=self.requests,
            why=self.why,
            evicted_by=None if self.by is None else self.by.adapter,
            evicted_by_load=None if self.by is None else self.by.id,
        )


class _Pod:
    """One pod's loads and stays."""

    __slots__ = ("ended", "loading", "seen", "stays")

    def __init__(self) -> None:
        self.loading: dict[AdapterName, Load] = {}
        """In the order in which they began."""
        self.ended: deque[Load] = deque(maxlen=KEPT_LOADS)
        """In the order in which they ended."""
        self.stays: dict[AdapterName, Stay] = {}
        self.seen = False
        """Whether it has reported: what it has then was there before."""


class Slots:
    """All pods."""

    def __init__(self) -> None:
        self._pods: dict[PodName, _Pod] = {}
        self._blame = Blame()
        self._numbers = 0
        self._left: dict[tuple[PodName, AdapterName], tuple[Seconds, int]] = {}
        """Last evictions, by where: when, and which stay it ended."""
        self._left_last: dict[AdapterName, tuple[Seconds, int]] = {}
        """The same wherever it was."""
        self._gone: dict[PodName, _Pod] = {}
        """Pods that left, in this order; some may have come back."""
        self._rows: list[SlotRow] = []
        """Of the event that is being followed."""
        self._used = 0
        self._slot_seconds: Seconds = 0.0
        self._counted_at: Seconds | None = None
        self.count_due: Seconds = -inf
        """When slots in use are to be counted again."""

    # -- for requests

    def loading(self, pod: PodName, adapter: AdapterName) -> Load | None:
        """The load under way there."""
        home = self._pods.get(pod)
        return None if home is None else home.loading.get(adapter)

    def sent(self, pod: PodName, adapter: AdapterName, *, now: Seconds) -> None:
        """A request for the adapter goes there."""
        home = self._pods.get(pod)
        stay = None if home is None else home.stays.get(adapter)
        if stay is not None:
            stay.requests += 1
            stay.last_request = now

    def spans(self, pod: PodName, adapter: AdapterName | None, *, since: Seconds, until: Seconds) -> list[Span]:
        """Loads of the pod that were under way at some time in between; of those that are over, the latest first."""
        home = self._pods.get(pod)
        if home is None:
            return []
        found = [
            Span(load.id, name == adapter, load.begun, until)
            for name, load in home.loading.items()
            if load.begun is not None
        ]
        for load in reversed(home.ended):
            if load.over is None or load.over <= since:
                break
            if load.begun is not None:
                found.append(Span(load.id, load.adapter == adapter, load.begun, load.over))
        return found

    def usable_since(self, pod: PodName, adapter: AdapterName) -> Seconds | None:
        """Since when the adapter has been there whole, as far as anybody looked. None: it is not."""
        home = self._pods.get(pod)
        stay = None if home is None else home.stays.get(adapter)
        return None if stay is None else stay.usable

    # -- from events

    def gone(self, event: PodGone) -> None:
        """A pod left the fleet; its loads are kept for a while, for requests that met them."""
        home = self._pods.get(event.pod)
        if home is None:
            return
        home.seen = False
        self._gone.pop(event.pod, None)
        self._gone[event.pod] = home
        if len(self._gone) > KEPT_PODS:
            oldest = next(iter(self._gone))
            if not self._gone[oldest].seen and not self._gone[oldest].stays:
                self._pods.pop(oldest, None)
            del self._gone[oldest]

    def take(self, event: Event, effects: Sequence[Effect], *, changes: Sequence[Change]) -> list[SlotRow]:
        """Follow the changes of one event."""
        self._rows = rows = list[SlotRow]()
        if changes:
            self._count(event.t)
            self._follow(Happened(event, effects), changes)
        if type(event) is PodReported:
            self._pods.setdefault(event.pod, _Pod()).seen = True
        if event.t >= self.count_due:
            self._count(event.t)
            self.count_due = event.t + COUNT_EVERY
            rows.append(OccupancyRow(t=event.t, used=self._used, slot_seconds=self._slot_seconds))
        return rows

    def asked(self, command: Command, _now: Seconds) -> None:
        """The controller asks a pod for something that brings adapters into slots."""
        self._blame.remember(command)

    def _count(self, now: Seconds) -> None:
        if self._counted_at is not None:
            self._slot_seconds += self._used * (now - self._counted_at)
        self._counted_at = now

    def _follow(self, happened: Happened, changes: Sequence[Change]) -> None:
        came: dict[PodName, list[Load]] = {}
        left: list[tuple[Change, Stay]] = []
        for change in changes:
            home = self._pods.setdefault(change.pod, _Pod())
            if change.before is _LOADING:
                self._load_over(home, change, happened=happened)
            if change.after >= _LOADING:
                load = self._comes(home, change, happened=happened)
                home.stays[change.adapter].usable = change.t if change.after > _LOADING else None
                if load is not None:
                    came.setdefault(change.pod, []).append(load)
            elif change.before >= _LOADING:
                stay = self._leaves(home, change, happened=happened)
                if stay is not None:
                    left.append((change, stay))
        for change, stay in left:
            stay.by = self._successor(change, stay, came=came.get(change.pod, []))
            self._rows.append(stay.row(change.pod, change.adapter))

    def _load_over(self, home: _Pod, change: Change, *, happened: Happened) -> None:
        load = home.loading.pop(change.adapter, None)
        if load is not None:
            load.over = change.t
            load.end = LoadEnd.DONE if change.after > _LOADING else self._blame.load_end(change, happened)
            home.ended.append(load)
            self._rows.append(load.row())

    def _comes(self, home: _Pod, change: Change, *, happened: Happened) -> Load | None:
        """A load begins, or is seen to be over; the stay begins with it."""
        load = None
        found = type(happened.event) is PodReported and not home.seen and change.after > _LOADING
        if change.after is _LOADING or (change.before < _LOADING and not found):
            load = self._begin(home, change, happened=happened)
            self._rows.append(load.row())
        if change.adapter not in home.stays:
            self._numbers += 1
            self._used += 1
            stay = home.stays[change.adapter] = Stay(self._numbers, since=change.t, load=load)
            self._rows.append(stay.row(change.pod, change.adapter))
        return load

    def _begin(self, home: _Pod, change: Change, *, happened: Happened) -> Load:
        self._numbers += 1
        load = Load(self._numbers, change, cause=self._blame.cause(change, happened))
        load.after = self._made_necessary(change)
        if load.over is None:
            home.loading[change.adapter] = load
        else:
            home.ended.append(load)
        return load

    def _made_necessary(self, change: Change) -> int | None:
        """The stay whose end made this load necessary: its last one there, else its last one elsewhere, if recent."""
        here = self._left.get((change.pod, change.adapter))
        if here is not None:
            return here[1]
        elsewhere = self._left_last.get(change.adapter)
        return elsewhere[1] if elsewhere is not None and change.t - elsewhere[0] <= RESIDENCY_WINDOW else None

    def _leaves(self, home: _Pod, change: Change, *, happened: Happened) -> Stay | None:
        stay = home.stays.pop(change.adapter, None)
        if stay is None:
            return None
        self._used -= 1
        stay.until = change.t
        stay.why = self._blame.left_why(change, happened)
        if stay.why not in (LeftWhy.FAILED, LeftWhy.DROPPED):
            self._remember_leaving(change, stay)
        return stay

    def _remember_leaving(self, change: Change, stay: Stay) -> None:
        here, left = (change.pod, change.adapter), (change.t, stay.id)
        self._left.pop(here, None)  # so that the latest come last
        self._left[here] = left
        self._left_last.pop(change.adapter, None)
        self._left_last[change.adapter] = left
        _forget_oldest(self._left)
        _forget_oldest(self._left_last)

    def _successor(self, change: Change, stay: Stay, *, came: list[Load]) -> Load | None:
        """Who got the slot: who came in the same event, else who has been waiting for one for the longest time."""
        if stay.why is not LeftWhy.CAPACITY:
            return None
        if came:
            return came.pop(0) if len(came) > 1 else came[0]
        under_way = self._pods[change.pod].loading
        return next((load for name, load in under_way.items() if name != change.adapter), None)


def _forget_oldest(where: dict[Key, tuple[Seconds, int]]) -> None:
    if len(where) > KEPT_LEAVINGS:
        del where[next(iter(where))]
