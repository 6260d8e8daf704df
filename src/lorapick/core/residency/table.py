"""What is where on each pod, since when, and how we know [R3.1].

In: dispatches, response starts, ends, scrapes, commands. Out: residency codes and free slots in the columns,
and beliefs for people. Reported beats commanded beats inferred:
- a pod that reports its adapters (`vllm:lora_adapter_loaded`) is believed, except about what changed after
  the scrape was sent;
- commands change the belief when the engine agreed;
- otherwise a shadow of the engine's two LRU levels follows what we routed (`core.residency.shadow`).
`lora_requests_info` is activity, never absence: vLLM names an adapter in it once a request has its first token, so
one that it names is on the GPU, and nothing follows for others. Where the two labels differ, only `running` counts.
A load the engine does by itself lasts until an answer shows that it ran, or the tier's expected time.
Not here: who should be where (`core.placement`), which names pods accept (`core.residency.registry`).
"""

from collections.abc import Callable

from lorapick.core.columns import PodColumns
from lorapick.core.residency.cells import EndedLoad, PodResidency
from lorapick.core.residency.loading import LoadClock
from lorapick.core.residency.reports import Listed
from lorapick.core.residency.reserving import Reserving
from lorapick.core.residency.retained import shadow_of
from lorapick.model.pods import LoadedAdapter, Pod, PodReport
from lorapick.model.settings import LoadTimes
from lorapick.model.signals import Change
from lorapick.model.tiers import Evidence, Source, Tier
from lorapick.model.units import AdapterName, Seconds

# Looking a member up in its enum costs more than the rest of a write.
_LOADING, _IDLE, _SERVING = Tier.LOADING, Tier.GPU_IDLE, Tier.GPU_SERVING


AGAIN: Seconds = 0.1
"""Seconds after which to look again, at least, whether a commanded load has been answered."""


def _nobody(row: int, name: AdapterName) -> bool:
    del row, name
    return False


class Residency(Reserving):
    """The table of all pods; the only writer of residency codes and free slots."""

    def __init__(self, columns: PodColumns, load_times: LoadTimes, *, clock: Callable[[], Seconds]) -> None:
        super().__init__(columns, load_times, clock=clock)
        self._active: dict[int, dict[AdapterName, None]] = {}
        """Adapters whose cells are active, by row."""
        self.awaited: Callable[[int, AdapterName], bool] = _nobody
        """Whether a pod (row) has yet to answer a command that brings an adapter in.

        Where a slot is reserved only the answer ends such a load: one that came late would push out who holds it.
        """
        self._to_sweep = False
        """Whether some pod's list of names has changed since names were last forgotten."""

    # -- pods and names

    def appear(self, row: int, pod: Pod, *, now: Seconds) -> None:
        """A pod with empty slots: a fresh pod is empty, not full."""
        shadow = shadow_of(pod, settings=self.retention, load_times=lambda: self.load_times, clock=self._clock)
        home = self._pods[row] = PodResidency(row, pod, now=now, shadow=shadow)
        self._clocks[row] = LoadClock()
        self.registry.appear(row)
        self._columns.free_slots[row] = home.shadow.free
        self._write_all(home)

    def gone(self, row: int, *, now: Seconds) -> None:
        """Forget a pod."""
        home = self._pods.pop(row)
        for name, cell in home.cells.items():
            if cell.tier >= _LOADING:
                self.changes.append(
                    Change(now, home.name, name, cell.tier, Tier.DISK, cell.since, cell.came_from, restart=True)
                )
        self._active.pop(row, None)
        self.rows_absent.pop(row, None)
        del self._clocks[row]
        self.registry.gone(row)
        self.rows_loading -= home.loading > 0
        for name in home.cells:
            self._loads.end(row, name)

    def restart(self, row: int, *, now: Seconds) -> None:
        """The pod's process is new: nothing is loaded. Requests in flight stay counted until they end."""
        home = self._pods[row]
        home.shadow.clear()
        home.began = now
        home.told = (None, None)
        self._active.pop(row, None)
        self._clocks[row].restart()
        self.registry.ask_again(row)
        self._restarting = True
        for name, cell in [*home.cells.items()]:
            cell.active = False
            self._move(home, name, cell=cell, tier=Tier.DISK, now=now, source=Source.INFERRED)
            if not cell.in_flight and not cell.pinned:
                del home.cells[name]
        self._restarting = False
        self._columns.free_slots[row] = home.shadow.free
        self._write_all(home)

    def declare(self, name: AdapterName) -> None:
        """The operator names an adapter: pods that have not been asked are taken to accept it."""
        self.registry.declare(name)
        self._write_unasked(name)

    def retire(self, name: AdapterName) -> None:
        """The operator withdraws an adapter; pods that accept it may still serve it."""
        self.registry.retire(name)
        self._write_unasked(name)

    def _write_unasked(self, name: AdapterName) -> None:
        """What the operator says of a name changes only what is taken of pods that have not been asked."""
        codes, listed = self._columns.adapter_row(name), self.registry.listed
        if self.registry.all_asked:
            return
        plain = int(Tier.DISK) if self.registry.declared(name) else 0
        for row, home in self._pods.items():
            if listed(row) is None and name in home.cells:
                self._write(home, name)
            elif listed(row) is None:
                codes[row] = plain

    def pin(self, row: int, name: AdapterName, *, pinned: bool) -> None:
        """Mark an adapter as pinned on a pod (bookkeeping for the score; the controller keeps it there)."""
        home = self._pods[row]
        if pinned or name in home.cells:
            home.cell(name).pinned = pinned
            self._write(home, name)

    # -- what requests tell

    def dispatched(self, row: int, name: AdapterName, *, now: Seconds) -> Tier:
        """A request for `name` goes to the pod; return the tier it was believed in. Off the GPU, a load begins."""
        home = self._pods[row]
        cell = home.cells.get(name) or home.cell(name)
        before = cell.tier
        if before is _IDLE and (cell.in_flight or cell.active):
            before = _SERVING
        cell.in_flight += 1
        home.shadow.asked(name)
        if not home.shadow.touch(name):
            self._use(home, name, now=now)
        if cell.tier < _LOADING:
            self._begin_load(home, name, cell=cell, now=now, source=Source.INFERRED)
        elif before is _IDLE:
            self._write(home, name)  # it serves now
        return before

    def ran(self, row: int, name: AdapterName, *, now: Seconds, kind: Evidence = Evidence.ANSWER) -> EndedLoad | None:
        """Something shows that the pod ran the adapter just now: it is on the GPU. Return the load that this ended."""
        home = self._pods[row]
        cell = home.cell(name)
        load = EndedLoad(row, name, cell.came_from, now - cell.since) if cell.tier is _LOADING else None
        cell.saw(kind, now)
        if cell.begun is not None:
            self._clocks[row].seen(cell, now=now)
        if cell.tier is not _IDLE:
            self._arrive(home, name, cell=cell, now=now, source=Source.INFERRED)
        elif not home.shadow.touch(name):
            self._use(home, name, now=now)
        return load

    def ended(self, row: int, name: AdapterName, *, now: Seconds, load_failed: bool, reserved: bool = False) -> bool:
        """One request less. With `load_failed` it failed before anything of it ran; `reserved`: it never came there.

        If nothing has shown that the adapter is there since it was to be loaded, it is not: return True. That holds
        past the expected end of the load too, and for the first of several that wait for it.
        """
        home = self._pods[row]
        cell = home.cells[name]
        if reserved:
            self._release(home, name, cell=cell)
        cell.in_flight -= 1
        deferred, idle = name in home.shadow.deferred, not cell.in_flight
        failed = False
        if deferred and idle and cell.source is Source.INFERRED:
            # Nobody waits for it any more, and its load never began.
            home.shadow.drop(name, cell.came_from)
            self._move(home, name, cell=cell, tier=cell.came_from, now=now, source=Source.INFERRED)
        elif load_failed and cell.tier >= _LOADING and not cell.proven and (idle or not deferred):
            failed = True
            home.shadow.doubt(name, Tier.DISK)
            self._move(home, name, cell=cell, tier=Tier.DISK, now=now, source=Source.INFERRED)
            self._columns.free_slots[row] = home.shadow.free
        elif cell.tier is _IDLE and not reserved and not home.shadow.touch(name):
            # The engine touches an adapter in each step it runs in, so its recency is the end of the last request.
            self._use(home, name, now=now)
        if not cell.in_flight:
            self._write(home, name)  # it may be idle now
            self._grant(home, now=now)
        return failed

    def expire(self, now: Seconds) -> list[EndedLoad]:
        """End loads whose expected time has passed, and return them."""
        if now < self.next_due:
            return []
        ended = []
        for row, name, cell in [*self._loads]:
            if cell.expected <= now and name in self._pods[row].shadow.deferred:
                self._expect(self._pods[row], name, cell=cell, now=now)  # it waits for a slot still
            elif cell.expected <= now and self._pods[row].reserved and self.awaited(row, name):
                self._loads.expect(cell, now + max(self.load_time(cell.came_from), AGAIN))  # its answer will tell
            elif cell.expected <= now:
                ended.append(EndedLoad(row, name, cell.came_from))
                self._arrive(self._pods[row], name, cell=cell, now=now, source=cell.source)
                self._pods[row].maybe_unused(name, cell)
        self._loads.look_again()
        return ended

    # -- what pods and commands tell

    def reported(self, row: int, report: PodReport, *, since: Seconds, now: Seconds) -> list[EndedLoad]:
        """Take over one scrape, sent at `since`; return the loads that it shows to have ended."""
        home = self._pods[row]
        ended: list[EndedLoad] = []
        if report.registered is not None:
            news = self.registry.learn(row, report.registered)
            for name in news:
                self._write(home, name)
            self._to_sweep = self._to_sweep or bool(news)
        if report.loaded is not None:
            ended = self._believe(home, report.loaded, since=since, now=now)
        if report.used:
            self._recall(home, report.used, now=now, levels=report.loaded is None)
        if report.in_flight_adapters is not None:
            ended += self._activity(home, report, since=since, now=now)
        home.looked = since
        self._settle(home, now=now)
        return ended

    def forget(self) -> list[AdapterName]:
        """Drop names that nobody gives any more and no pod holds (tenants that left); return them."""
        if not self._to_sweep:
            return []
        self._to_sweep = False
        names = [name for name in self._columns.adapters if not self.registry.known(name) and not self._in_use(name)]
        for name in names:
            del self._columns.adapters[name]
            for home in self._pods.values():
                home.cells.pop(name, None)
        return names

    def _in_use(self, name: AdapterName) -> bool:
        found = ((home, home.cells[name]) for home in self._pods.values() if name in home.cells)
        return any(cell.needed or name in home.shadow.cpu for home, cell in found)

    def commanded(self, row: int, name: AdapterName, *, now: Seconds) -> bool:
        """A load that somebody asked for begins; return whether none was under way and none was needed."""
        home = self._pods[row]
        cell = home.cell(name)
        begins = cell.tier < _LOADING
        self._use(home, name, now=now)
        if begins:
            self._begin_load(home, name, cell=cell, now=now, source=Source.COMMANDED)
        cell.source = Source.COMMANDED
        self._write(home, name)
        return begins

    def arrived(self, row: int, name: AdapterName, *, now: Seconds, seconds: Seconds | None) -> EndedLoad:
        """The engine says that a load ended well: it accepts the adapter and has put it into a slot."""
        home = self._pods[row]
        self.registry.add(row, name)
        cell = home.cell(name)
        tier = cell.came_from if cell.tier is _LOADING else cell.tier
        cell.saw(Evidence.COMMAND, now)
        self._arrive(home, name, cell=cell, now=now, source=Source.COMMANDED)
        return EndedLoad(row, name, tier, seconds)

    def left(self, row: int, name: AdapterName, *, tier: Tier, now: Seconds, source: Source) -> None:
        """The adapter is now in host memory (`cpu`) or only on disk (any other tier): evicted, or its load failed."""
        home = self._pods[row]
        cell = home.cell(name)
        cell.saw(Evidence.COMMAND, now)
        if source is Source.REPORTED:
            self._lose(home, name, cell=cell, tier=tier, known=True)
        home.shadow.drop(name, tier)
        if tier is Tier.CPU:
            home.shadow.cpu[name] = None
        self._move(home, name, cell=cell, tier=tier if tier is Tier.CPU else Tier.DISK, now=now, source=source)
        self._settle(home, now=now)

    def registered(self, row: int, name: AdapterName) -> None:
        """The pod accepts a name; where the adapter is has not changed."""
        self.registry.add(row, name)
        self._write(self._pods[row], name)

    def unregistered(self, row: int, name: AdapterName, *, now: Seconds) -> None:
        """An unload succeeded: the engine answers 404. On vLLM the weights keep their slot until the LRU moves on."""
        self.registry.drop(row, name)
        home = self._pods[row]
        if home.caches.unload_frees and name in home.cells:
            home.shadow.drop(name, Tier.DISK)
            self._move(home, name, cell=home.cells[name], tier=Tier.DISK, now=now, source=Source.COMMANDED)
        self._settle(home, now=now)
        self._write(home, name)

    # -- inside

    def _believe(
        self, home: PodResidency, loaded: tuple[LoadedAdapter, ...], *, since: Seconds, now: Seconds
    ) -> list[EndedLoad]:
        listed = Listed(loaded)
        # What we learnt after the scrape was sent, and a load that is still on its way, stay as they are.
        kept = {
            name: cell
            for name, cell in home.cells.items()
            if cell.changed_after(since) or (cell.tier is _LOADING and not listed.on_gpu(name, before=cell.tier))
        }
        listed.take_over(home.shadow, home.cells, kept=kept)
        ended = []
        for name in dict.fromkeys([*home.cells, *listed.names]):
            cell = home.cell(name)
            cell.saw(Evidence.LIST, now)
            if name in kept or listed.only_implied(name, before=cell.tier):
                continue
            tier = listed.place(name, before=cell.tier)
            if cell.tier is _LOADING:
                ended.append(EndedLoad(home.row, name, cell.came_from))
                home.maybe_unused(name, cell)
            self._lose(home, name, cell=cell, tier=tier, known=True)
            self._move(home, name, cell=cell, tier=tier, now=now, source=Source.REPORTED)
        return ended

    def _recall(self, home: PodResidency, used: tuple[AdapterName, ...], *, now: Seconds, levels: bool) -> None:
        """Take over in which order the engine last ran its adapters; and `levels`, unless it lists them."""
        if all(home.explained(name) for name in used):
            return  # the shadow's own order is finer, and has what commands loaded in it
        if not levels:
            home.shadow.order(used)
            return
        for name in used:
            home.cell(name).saw(Evidence.SCRAPE, now)
        # Those under way come to their slots by what ends a load; the record may be of their last stay.
        there = [name for name in used if home.cells[name].tier is not _LOADING]
        for name, tier in home.shadow.recall(there, home.busy).items():
            cell = home.cell(name)
            if cell.tier is _LOADING:
                cell.came_from = min(cell.came_from, tier)
            else:
                self._lose(home, name, cell=cell, tier=tier, known=True)
                self._move(home, name, cell=cell, tier=tier, now=now, source=Source.INFERRED)

    def _activity(self, home: PodResidency, report: PodReport, *, since: Seconds, now: Seconds) -> list[EndedLoad]:
        in_flight = report.in_flight_adapters or ()
        active: dict[AdapterName, None] = {}
        before, self._active[home.row] = self._active.get(home.row, {}), active
        for name in before:
            home.cells[name].active = False
        for name in in_flight:
            cell = home.cell(name)
            # Requests of ours explain it, and their ends will be known before the next scrape.
            cell.active = not cell.in_flight and (cell.evidence is None or cell.evidence < since)
            if cell.active:
                active[name] = None
            cell.saw(Evidence.SCRAPE, now)
        for name in {**before, **active}:
            self._write(home, name)
        ended = []
        for name in in_flight if report.running_adapters is None else report.running_adapters:
            cell = home.cell(name)
            if cell.tier.on_gpu or cell.changed_after(since):
                continue
            if cell.tier is _LOADING:
                ended.append(EndedLoad(home.row, name, cell.came_from))
            self._arrive(home, name, cell=cell, now=now, source=Source.INFERRED)
        return ended
