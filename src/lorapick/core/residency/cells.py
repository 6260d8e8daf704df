"""What is believed of one adapter on one pod, and of one pod.

In: nothing; the table writes these. Out: plain state. Not here: rules (see `core.residency.table`).
"""

from typing import NamedTuple

from lorapick.core.residency.shadow import Shadow
from lorapick.model.picks import Belief
from lorapick.model.pods import Pod
from lorapick.model.tiers import Source, Tier
from lorapick.model.units import AdapterName, PodName, Seconds


class Cell:
    """Belief about one adapter on one pod. `tier` is DISK, CPU, LOADING or GPU_IDLE; serving follows from use."""

    __slots__ = ("active", "came_from", "evidence", "expected", "in_flight", "pinned", "since", "source", "tier")

    def __init__(self, since: Seconds) -> None:
        self.tier = Tier.DISK
        self.since = since
        """When the tier last changed."""
        self.source = Source.INFERRED
        self.evidence: Seconds | None = None
        """When the pod or an answer of it last spoke of this adapter; None: never."""
        self.in_flight = 0
        """Requests of ours that the pod has not ended."""
        self.active = False
        """The last scrape named it in flight: traffic that bypasses us counts too."""
        self.pinned = False
        self.expected = 0.0
        """While loading: when it must be there at the latest."""
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
        )

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


class PodResidency:
    """Cells and shadow of one pod."""

    __slots__ = ("began", "cells", "excused", "in_use", "loading", "name", "process_start", "row", "shadow")

    def __init__(self, row: int, pod: Pod, *, now: Seconds) -> None:
        self.row = row
        self.began = now
        """When its process began, as far as we know: since then every adapter nobody spoke of is on disk."""
        self.name: PodName = pod.name
        self.cells: dict[AdapterName, Cell] = {}
        self.shadow = Shadow(gpu_slots=pod.limits.max_loras, cpu_slots=pod.limits.max_cpu_loras)
        self.process_start: Seconds | None = None
        self.in_use: dict[AdapterName, None] = {}
        """Adapters with requests in flight, or on their way into a slot: what the pod's batch has to have room for."""
        self.loading = 0
        """Loads under way."""
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

    def excuse(self) -> None:
        """Something came into use that was not picked, or the number of slots changed."""
        self.excused = len(self.in_use) > self.shadow.gpu_slots

    def cell(self, name: AdapterName) -> Cell:
        """The adapter's cell, made on first use."""
        cell = self.cells.get(name)
        if cell is None:
            cell = self.cells[name] = Cell(self.began)
        return cell
