"""Looks at all pods at the edges of windows: where their time went so far, and who holds which slot.

In: a world, its tally. Out: one sample per window edge, and residencies as slots over time for a drawing. At each look
what was told of the pods' slots is compared with the slots themselves.
Bounded: as many samples as the run has windows, and at most `COLUMNS` looks at slots. Not here: anything between looks.
"""

from collections.abc import Callable
from itertools import count
from typing import NamedTuple

import msgspec

from lorapick.model.units import AdapterName, PodName, Ratio, Seconds
from lorapick.sim.conservation import check_slots
from lorapick.sim.kernel import Priority
from lorapick.sim.measures import GpuTime
from lorapick.sim.shortage import Shortage
from lorapick.sim.tally import Tally
from lorapick.sim.world import World

COLUMNS = 160
"""Most looks at who holds which slot."""
ROWS = 64
"""Slots of one pod beyond these are not looked at."""


class Held(msgspec.Struct, frozen=True, array_like=True):
    """One adapter seen in one slot at every look from the one at `start` to the last before `end`."""

    pod: int
    slot: int
    start: Seconds
    end: Seconds
    adapter: int
    """Index into `Timeline.adapters`."""


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """Who held which slot, as seen at some moments. Loads that came and went between two looks are not in it."""

    every: Seconds
    """Time between two looks."""
    slots: int
    """Rows per pod; a pod with a unified pool has as many as it held adapters at once, up to `ROWS`."""
    pods: tuple[PodName, ...]
    adapters: tuple[AdapterName, ...]
    held: tuple[Held, ...]


class Sample(NamedTuple):
    """Sums since the begin of the run."""

    t: Seconds
    slot_seconds: Seconds
    pods: tuple[GpuTime, ...]
    turns: int = 0
    """Of the picker."""


class Sampler:
    """Takes samples at `start`, at every window edge after it, and at `end`."""

    def __init__(self, world: World, tally: Tally, *, start: Seconds, end: Seconds, window: Seconds) -> None:
        """Schedule all looks."""
        self.samples: list[Sample] = []
        self.progress: Callable[[Ratio], None] | None = None
        """Told at every look how much of the time has passed."""
        self.pods = tuple(world.pods)
        """In the order of the samples' parts."""
        self._world = world
        self._tally = tally
        self._end = end
        edges = max(1, -int(-(end - start) // window))
        self._stride = -(-edges // COLUMNS)
        self._slots = Slots(world)
        self.shortage = Shortage(world)
        """Of memory, seen at the same moments."""
        self.every = window * self._stride
        for number in range(edges + 1):
            world.kernel.at(min(start + number * window, end), self._look, argument=number, priority=Priority.CHANGE)

    def _look(self, number: int) -> None:
        world, now = self._world, self._world.kernel.now
        world.settle()
        check_slots(world, self._tally)
        pods = world.pods.values()
        slot_seconds = sum(sim.slot_seconds(now) for sim in pods)
        turns = world.fleet.state.tally.turns
        self.samples.append(Sample(now, slot_seconds, tuple([sim.time(now) for sim in pods]), turns))
        self.shortage.look(now)
        if number % self._stride == 0:
            self._slots.look(now)
        if self.progress is not None:
            self.progress(now / self._end)

    def timeline(self, end: Seconds) -> Timeline:
        """The slots over time, up to `end`."""
        return self._slots.timeline(end, every=self.every)

    def between(self, start: Seconds, end: Seconds) -> tuple[GpuTime, Seconds]:
        """GPU time and slot-seconds of all pods between two samples: the last ones at or before these times."""
        first, last = self._at(start), self._at(end)
        spent = GpuTime()
        for before, after in zip(first.pods, last.pods, strict=True):
            spent = spent.plus(after.less(before))
        return spent, last.slot_seconds - first.slot_seconds

    def turns(self, start: Seconds, end: Seconds) -> int:
        """Turns that the picker gave between two samples."""
        return self._at(end).turns - self._at(start).turns

    def _at(self, t: Seconds) -> Sample:
        found = self.samples[0]
        for sample in self.samples:
            if sample.t > t + 1e-9:
                break
            found = sample
        return found


class Slots:
    """Which adapter is in which slot: an adapter keeps its row of the drawing as long as it is seen."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._names: dict[AdapterName, int] = {}
        self._rows: list[dict[int, tuple[AdapterName, Seconds]]] = [{} for _ in world.pods]
        self._held: list[Held] = []
        slots = max((sim.pod.limits.max_loras for sim in world.pods.values()), default=0)
        self._most = min(slots, ROWS)

    def look(self, now: Seconds) -> None:
        """Note who is there now."""
        for index, sim in enumerate(self._world.pods.values()):
            there = dict.fromkeys(sim.engine.stats(now).on_gpu if sim.alive else ())
            rows = self._rows[index]
            for slot, (name, since) in [*rows.items()]:
                if name in there:
                    del there[name]
                else:
                    self._close(name, since, pod=index, slot=slot, now=now)
                    del rows[slot]
            free = (slot for slot in count() if slot not in rows)
            for name, slot in zip(there, free, strict=False):
                rows[slot] = (name, now)

    def _close(self, name: AdapterName, since: Seconds, *, pod: int, slot: int, now: Seconds) -> None:
        if slot >= ROWS:
            return
        self._most = max(self._most, slot + 1)
        number = self._names.setdefault(name, len(self._names))
        self._held.append(Held(pod, slot, since, now, number))

    def timeline(self, end: Seconds, *, every: Seconds) -> Timeline:
        """Everything seen; what is still there ends at `end`."""
        for pod, rows in enumerate(self._rows):
            for slot, (name, since) in rows.items():
                self._close(name, since, pod=pod, slot=slot, now=end)
        return Timeline(
            every=every,
            slots=self._most,
            pods=tuple(self._world.pods),
            adapters=tuple(self._names),
            held=tuple(sorted(self._held, key=lambda each: (each.pod, each.slot, each.start))),
        )
