"""What is believed of one adapter on one pod, and of one pod.

In: nothing; the table writes these. Out: plain state. Not here: rules (see `core.residency.table`).
"""

from typing import NamedTuple

from lorapick.core.residency.engines import CACHES
from lorapick.core.residency.shadow import Shadow
from lorapick.model.picks import Belief
from lorapick.model.pods import Pod
from lorapick.model.tiers import Evidence, Source, Tier
from lorapick.model.units import AdapterName, PodName, Seconds


class Cell:
    """Belief about one adapter on one pod. `tier` is DISK, CPU, LOADING or GPU_IDLE; serving follows from use."""

    __slots__ = (
        "active",
        "begun",
        "came_from",
        "evidence",
        "evidence_kind",
        "expected",
        "in_flight",
        "pinned",
        "proven",
        "reserved",
        "since",
        "source",
        "tier",
    )

    def __init__(self, since: Seconds) -> None:
        self.tier = Tier.DISK
        self.since = since
        """When the tier last changed."""
        self.source = Source.INFERRED
        self.evidence: Seconds | None = None
        """When the pod or an answer of it last spoke of this adapter; None: never."""
        self.evidence_kind: Evidence | None = None
        self.in_flight = 0
        """Requests of ours that the pod has not ended."""
        self.reserved = 0
        """Of these, the ones that are still being prefilled elsewhere: its engine does not know of them yet."""
        self.active = False
        """The last scrape named it in flight: traffic that bypasses us counts too."""
        self.pinned = False
        self.expected = 0.0
        """While loading: when it must be there at the latest."""
        self.begun: Seconds | None = None
        """When its last load began, until something shows that it is over; None also while it waits for a slot, and
        when requests sent before may still end."""
        self.proven = False
        """Whether the pod, or an answer of it, has spoken of this adapter since its last load began."""
        self.came_from = Tier.DISK
        """While loading: the tier it comes from."""

    @property
    def in_use(self) -> bool:
        """Whether the engine cannot throw it out, or is bringing it in."""
        return self.in_flight > 0 or self.active or self.tier is Tier.LOADING

    @property
    def needed(self) -> bool:
        """Whether it says more than that an adapter lies on disk unused."""
        return bool(self.in_flight) or self.active or self.pinned or self.tier is Tier.LOADING

    def belief(self, pod: PodName, adapter: AdapterName, *, tier: Tier) -> Belief:
        """This belief for people; `tier` tells serving from idle."""
        return Belief(
            pod=pod,
            adapter=adapter,
            tier=tier,
            since=self.since,
            source=self.source,
            in_flight=self.in_flight,
            pinned=self.pinned,
            last_evidence=self.evidence,
            evidence=self.evidence_kind,
        )

    def saw(self, kind: Evidence, now: Seconds) -> None:
        """The pod, or an answer of it, speaks of this adapter."""
        self.evidence = now
        self.evidence_kind = kind
        self.proven = True

    def changed_after(self, since: Seconds) -> bool:
        """Whether a report asked for at `since` is older than this belief; a load begun at that instant is."""
        return self.since > since or (self.since == since and self.tier is Tier.LOADING)


class EndedLoad(NamedTuple):
    """A load that has ended, however we know."""

    row: int
    name: AdapterName
    tier: Tier
    """Where the adapter came from."""
    seconds: Seconds | None = None
    """How long it took; None: nobody saw its end."""


class Lost(NamedTuple):
    """An adapter that left a slot which was reserved for it."""

    pod: PodName
    adapter: AdapterName
    known: bool
    """The pod says so; otherwise it follows from what came to the pod."""


class PodResidency:
    """Cells and shadow of one pod."""

    __slots__ = (
        "absent", "began", "caches", "cells", "excused", "in_use", "loading", "looked", "name", "now", "process_start",
        "reserved", "row", "shadow", "told",
    )  # fmt: skip

    def __init__(self, row: int, pod: Pod, *, now: Seconds, shadow: Shadow | None = None) -> None:
        self.row = row
        self.began = now
        """When its process began, as far as we know: since then every adapter nobody spoke of is on disk."""
        self.name: PodName = pod.name
        self.cells: dict[AdapterName, Cell] = {}
        self.caches = CACHES[pod.engine]
        self.shadow = shadow or Shadow(gpu_slots=1, cpu_slots=1)
        self.resize(gpu_slots=pod.limits.max_loras, cpu_slots=pod.limits.max_cpu_loras)
        self.process_start: Seconds | None = None
        self.told: tuple[int | None, int | None] = (None, None)
        """How many adapters each level holds, by the engine's own word, which beats that of discovery; None: unsaid."""
        self.looked = float("-inf")
        """When the last scrape that brought a report was sent."""
        self.in_use: dict[AdapterName, None] = {}
        """Adapters with requests in flight, or on their way into a slot: what the pod's batch has to have room for."""
        self.reserved: dict[AdapterName, None] = {}
        """Adapters of requests that are still being prefilled elsewhere; in use as well."""
        self.absent: dict[AdapterName, None] = {}
        """Of these, the ones that are in no slot, nor on their way into one."""
        self.loading = 0
        """Loads under way."""
        self.now: Seconds = now
        """When somebody last looked who may load here. What was uncertain then is at most as uncertain since."""
        self.excused = False
        """Whether more adapters are in use than there are slots through no pick of ours: a fallback, a command, a
        request of somebody else's, slots that were taken away."""

    def count_use(self, name: AdapterName, cell: Cell) -> None:
        """Note whether an adapter is in use."""
        if cell.in_flight or cell.active or cell.tier is Tier.LOADING:
            self.in_use[name] = None
        else:
            self.in_use.pop(name, None)
            if self.excused:
                self.excuse()
        if name in self.reserved and cell.tier < Tier.LOADING:
            self.absent[name] = None
        else:
            self.absent.pop(name, None)

    def maybe_unused(self, name: AdapterName, cell: Cell) -> None:
        """A load is over that began for a request of ours: where all these wait for seats, nobody has used it yet."""
        if cell.in_flight == cell.reserved > 0 and name in self.shadow.gpu:
            self.shadow.unsure[name] = None

    def excuse(self) -> None:
        """Something came into use that was not picked, or the number of slots changed."""
        self.excused = len(self.in_use) > self.shadow.gpu_slots

    def resize(self, *, gpu_slots: int, cpu_slots: int) -> None:
        """Discovery or the engine says how many adapters each level holds."""
        self.shadow.resize(gpu_slots=gpu_slots, cpu_slots=cpu_slots if self.caches.host_level else gpu_slots)

    def cell(self, name: AdapterName) -> Cell:
        """The adapter's cell, made on first use."""
        cell = self.cells.get(name)
        if cell is None:
            cell = self.cells[name] = Cell(self.began)
        return cell

    def explained(self, name: AdapterName) -> bool:
        """Whether requests of ours, in flight or answered since the last scrape, say why the pod ran this adapter."""
        cell = self.cells.get(name)
        return cell is not None and (
            cell.in_flight > 0 or (cell.evidence_kind is Evidence.ANSWER and (cell.evidence or 0.0) >= self.looked)
        )

    def busy(self, name: AdapterName) -> bool:
        """Whether the engine would not take its slot away."""
        if name in self.shadow.pinned:
            return True
        cell = self.cells.get(name)
        return cell is not None and (cell.in_flight > cell.reserved or cell.active or cell.tier is Tier.LOADING)

    def has_idle(self) -> bool:
        """Whether somebody without a reservation may make room, once that is the one used longest ago."""
        return any(name not in self.reserved and not self.busy(name) for name in self.shadow.gpu)

    def endangers_reserved(self) -> bool:
        """Whether a load may lead to the loss of a reserved slot: its engine may not know yet that it is."""
        return self.endangered() is not None

    def endangered(self) -> AdapterName | None:
        """The reserved adapter that the next load may throw out; None: it would throw out another, or nobody."""
        shadow = self.shadow
        if not self.reserved or shadow.free > 0:
            return None
        may_go = shadow.may_go(self.busy)
        found = next((name for name in may_go if name in self.reserved), None)
        if found is not None or not may_go:
            return found
        # What runs may have ended before the end of another that we have just heard of.
        oldest = next((name for name in may_go if name not in shadow.unsure), may_go[0])
        running = (name for name in self.reserved if name in shadow.gpu and name not in shadow.pinned)
        return next((name for name in running if shadow.precedes(name, oldest, now=self.now)), None)
