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

from collections.abc import Iterable, Iterator

from lorapick.core.columns import PINNED, SOURCE_SHIFT, SOURCES, TIER_BITS, PodColumns
from lorapick.core.residency.cells import Cell, EndedLoad, PodResidency
from lorapick.core.residency.registry import Registry
from lorapick.model.picks import Belief
from lorapick.model.pods import LoadedAdapter, Pod, PodReport
from lorapick.model.settings import LoadTimes
from lorapick.model.tiers import Source, Tier
from lorapick.model.units import AdapterName, Seconds

_SOURCE_BITS = {source: index << SOURCE_SHIFT for index, source in enumerate(SOURCES)}
# Looking a member up in its enum costs more than the rest of a write, and every scrape writes all cells of a pod.
_DISK, _IDLE, _SERVING = int(Tier.DISK), Tier.GPU_IDLE, Tier.GPU_SERVING


class Residency:
    """The table of all pods; the only writer of residency codes and free slots."""

    def __init__(self, columns: PodColumns, load_times: LoadTimes) -> None:
        self.load_times = load_times
        self.registry = Registry()
        self._columns = columns
        self._pods: dict[int, PodResidency] = {}
        self._loading: dict[AdapterName, dict[int, Cell]] = {}
        """Loads under way, by adapter and row; no adapter without one."""
        self._next_due = float("inf")
        self.rows_loading = 0
        """Pods on which some load is under way."""
        self._to_sweep = False
        """Whether some pod's list of names has changed since names were last forgotten."""

    # -- pods and names

    def appear(self, row: int, pod: Pod, *, now: Seconds) -> None:
        """A pod with empty slots: a fresh pod is empty, not full."""
        home = self._pods[row] = PodResidency(row, pod, now=now)
        self.registry.appear(row)
        self._columns.free_slots[row] = home.shadow.free
        self._write_all(home)

    def resize(self, row: int, *, gpu_slots: int, cpu_slots: int) -> None:
        """Discovery or the engine says how many adapters a pod holds."""
        shadow = self._pods[row].shadow
        shadow.resize(gpu_slots=gpu_slots, cpu_slots=cpu_slots)
        self._columns.free_slots[row] = shadow.free

    def gone(self, row: int) -> None:
        """Forget a pod."""
        home = self._pods[row]
        self.registry.gone(row)
        for name in home.cells:
            self._loaded(row, name)
        del self._pods[row]

    def restart(self, row: int, *, now: Seconds) -> None:
        """The pod's process is new: nothing is loaded. Requests in flight stay counted until they end."""
        home = self._pods[row]
        home.shadow.clear()
        home.began = now
        self.registry.ask_again(row)
        for name, cell in [*home.cells.items()]:
            cell.active = False
            self._move(home, name, cell=cell, tier=Tier.DISK, now=now, source=Source.INFERRED)
            if not cell.in_flight and not cell.pinned:
                del home.cells[name]
        self._columns.free_slots[row] = home.shadow.free
        self._write_all(home)

    def declare(self, name: AdapterName) -> None:
        """The operator names an adapter: pods that have not been asked are taken to accept it."""
        self.registry.declare(name)
        self._columns.adapter_row(name)
        for home in self._pods.values():
            self._write(home, name)

    def retire(self, name: AdapterName) -> None:
        """The operator withdraws an adapter; pods that accept it may still serve it."""
        self.registry.retire(name)
        for home in self._pods.values():
            self._write(home, name)

    def names(self) -> list[AdapterName]:
        """All names that the operator or a pod gave, sorted."""
        return self.registry.names()

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
        cell = home.cell(name)
        before = Tier.GPU_SERVING if cell.tier.on_gpu and (cell.in_flight or cell.active) else cell.tier
        cell.in_flight += 1
        if cell.tier < Tier.LOADING:
            self._begin_load(home, name, cell=cell, now=now, source=Source.INFERRED)
        elif before is Tier.GPU_IDLE:
            self._write(home, name)  # it serves now
        self._use(home, name, now=now)
        return before

    def started(self, row: int, name: AdapterName, *, now: Seconds) -> EndedLoad | None:
        """First response headers: it is on the GPU. Return the load if that ended one."""
        home = self._pods[row]
        cell = home.cell(name)
        load = EndedLoad(row, name, cell.came_from, now - cell.since) if cell.tier is Tier.LOADING else None
        cell.evidence = now
        if not cell.tier.on_gpu:
            self._arrive(home, name, cell=cell, now=now, source=Source.INFERRED)
        return load

    def ended(self, row: int, name: AdapterName, *, now: Seconds, load_failed: bool) -> bool:
        """One request less; when the last one that waited for a load failed, the adapter is not there: return True."""
        home = self._pods[row]
        cell = home.cells[name]
        cell.in_flight -= 1
        failed = load_failed and cell.tier is Tier.LOADING and not cell.in_flight
        if cell.tier.on_gpu:
            # The engine touches an adapter in each step it runs in, so its recency is the end of the last request.
            self._use(home, name, now=now)
        elif failed:
            home.shadow.drop(name, Tier.DISK)
            self._move(home, name, cell=cell, tier=Tier.DISK, now=now, source=Source.INFERRED)
            self._columns.free_slots[row] = home.shadow.free
        if not cell.in_flight:
            # What the last scrape saw was ours; if somebody else's request is there, the next one will say so.
            cell.active = False
            self._write(home, name)  # it may be idle now
        return failed

    def expire(self, now: Seconds) -> list[EndedLoad]:
        """End loads whose expected time has passed, and return them."""
        if now < self._next_due:
            return []
        ended = []
        for row, name, cell in [*self.loads()]:
            if cell.expected <= now:
                ended.append(EndedLoad(row, name, cell.came_from))
                self._arrive(self._pods[row], name, cell=cell, now=now, source=cell.source)
        self._next_due = min((cell.expected for _, _, cell in self.loads()), default=float("inf"))
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
        if report.in_flight_adapters is not None:
            ended += self._activity(home, report, since=since, now=now)
        self._settle(home)
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
        begins = cell.tier < Tier.LOADING
        if begins:
            self._begin_load(home, name, cell=cell, now=now, source=Source.COMMANDED)
        cell.source = Source.COMMANDED
        self._use(home, name, now=now)
        self._write(home, name)
        return begins

    def arrived(self, row: int, name: AdapterName, *, now: Seconds, seconds: Seconds | None) -> EndedLoad:
        """The engine says that a load ended well: it accepts the adapter and has put it into a slot."""
        home = self._pods[row]
        self.registry.add(row, name)
        cell = home.cell(name)
        tier = cell.came_from if cell.tier is Tier.LOADING else cell.tier
        cell.evidence = now
        self._arrive(home, name, cell=cell, now=now, source=Source.COMMANDED)
        return EndedLoad(row, name, tier, seconds)

    def left(self, row: int, name: AdapterName, *, tier: Tier, now: Seconds, source: Source) -> None:
        """The adapter is now in host memory (`cpu`) or only on disk (any other tier): evicted, or its load failed."""
        home = self._pods[row]
        cell = home.cell(name)
        cell.evidence = now
        home.shadow.drop(name, tier)
        if tier is Tier.CPU:
            home.shadow.cpu[name] = None
        self._move(home, name, cell=cell, tier=tier if tier is Tier.CPU else Tier.DISK, now=now, source=source)
        self._settle(home)

    def unregistered(self, row: int, name: AdapterName) -> None:
        """An unload succeeded: the engine answers 404. On vLLM the weights keep their slot until the LRU moves on."""
        self.registry.drop(row, name)
        self._write(self._pods[row], name)

    # -- what people ask

    @property
    def next_due(self) -> Seconds:
        """When to look again for loads that nobody reports the end of; infinity: none is under way."""
        return self._next_due

    def in_flight(self, name: AdapterName) -> int:
        """Own requests for an adapter that pods have, all pods together."""
        return sum(cell.in_flight for home in self._pods.values() if (cell := home.cells.get(name)) is not None)

    def loading_rows(self, name: AdapterName) -> list[int]:
        """Rows that are bringing this adapter in, in row order."""
        return sorted(self._loading.get(name, ()))

    def loading_until(self, row: int, name: AdapterName) -> Seconds | None:
        """When the load must have ended; None when there is none."""
        cell = self._loading.get(name, {}).get(row)
        return cell.expected if cell is not None else None

    def load_time(self, tier: Tier) -> Seconds:
        """Expected seconds of a load from `tier`."""
        return self.load_times.cpu if tier is Tier.CPU else self.load_times.disk

    def beliefs(self) -> Iterator[Belief]:
        """Every cell, by pod row and then adapter name."""
        for home in self._pods.values():
            for name in sorted(home.cells):
                tier = Tier(self._columns.adapter_row(name)[home.row] & TIER_BITS)
                yield home.cells[name].belief(home.name, name, tier=tier)

    def homes(self) -> Iterable[PodResidency]:
        """All pods."""
        return self._pods.values()

    def home(self, row: int) -> PodResidency:
        """Cells and shadow of one pod, for views and invariants."""
        return self._pods[row]

    # -- inside

    def loads(self) -> Iterator[tuple[int, AdapterName, Cell]]:
        """Loads under way: row, adapter, cell."""
        for name, cells in self._loading.items():
            for row, cell in cells.items():
                yield row, name, cell

    def _loaded(self, row: int, name: AdapterName) -> None:
        cells = self._loading.get(name)
        if cells is not None and cells.pop(row, None) is not None:
            self._count_loads(row, -1)
            if not cells:
                del self._loading[name]

    def _count_loads(self, row: int, change: int) -> None:
        home = self._pods.get(row)
        if home is not None:
            home.loading += change
            self.rows_loading += (home.loading == 1 and change > 0) - (home.loading == 0)

    def _begin_load(self, home: PodResidency, name: AdapterName, *, cell: Cell, now: Seconds, source: Source) -> None:
        cell.came_from = cell.tier
        cell.expected = now + self.load_time(cell.tier)
        self._move(home, name, cell=cell, tier=Tier.LOADING, now=now, source=source)
        self._loading.setdefault(name, {})[home.row] = cell
        self._count_loads(home.row, 1)
        self._next_due = min(self._next_due, cell.expected)

    def _arrive(self, home: PodResidency, name: AdapterName, *, cell: Cell, now: Seconds, source: Source) -> None:
        self._move(home, name, cell=cell, tier=Tier.GPU_IDLE, now=now, source=source)
        self._use(home, name, now=now, must_fit=True)

    def _use(self, home: PodResidency, name: AdapterName, *, now: Seconds, must_fit: bool = False) -> None:
        if home.shadow.touch(name):
            return
        for adapter, tier in home.shadow.use(name, home.in_use.__contains__, must_fit=must_fit) or ():
            cell = home.cell(adapter)
            if cell.tier is Tier.LOADING:
                cell.came_from = tier  # its load is still to come, from further away
            else:
                self._move(home, adapter, cell=cell, tier=tier, now=now, source=Source.INFERRED)
        self._columns.free_slots[home.row] = home.shadow.free

    def _believe(
        self, home: PodResidency, loaded: tuple[LoadedAdapter, ...], *, since: Seconds, now: Seconds
    ) -> list[EndedLoad]:
        on_gpu: dict[AdapterName, bool] = {}
        for entry in loaded:
            on_gpu[entry.name] = entry.on_gpu or on_gpu.get(entry.name, False)
        # What we learnt after the scrape was sent, and a load that is still on its way, stay as they are.
        kept = {
            name: cell
            for name, cell in home.cells.items()
            if cell.changed_after(since) or (cell.tier is Tier.LOADING and not on_gpu.get(name))
        }
        shadow = home.shadow
        shadow.replace(
            [n for n in {**on_gpu, **kept} if (n in shadow.gpu if n in kept else on_gpu[n])],
            [n for n in {**on_gpu, **kept} if n not in kept or n in shadow.cpu],
        )
        ended = []
        for name in {**home.cells, **on_gpu}:
            cell = home.cell(name)
            cell.evidence = now
            if name in kept:
                continue
            there = on_gpu.get(name)
            tier = Tier.DISK if there is None else Tier.GPU_IDLE if there else Tier.CPU
            if cell.tier is Tier.LOADING:
                ended.append(EndedLoad(home.row, name, cell.came_from))
            self._move(home, name, cell=cell, tier=tier, now=now, source=Source.REPORTED)
        return ended

    def _activity(self, home: PodResidency, report: PodReport, *, since: Seconds, now: Seconds) -> list[EndedLoad]:
        in_flight = dict.fromkeys(report.in_flight_adapters or ())
        for name in in_flight:
            home.cell(name).evidence = now
        for name, cell in home.cells.items():
            cell.active = name in in_flight
            home.count_use(name, cell)
        ended = []
        for name in in_flight if report.running_adapters is None else report.running_adapters:
            cell = home.cell(name)
            if cell.tier.on_gpu or cell.changed_after(since):
                continue
            if cell.tier is Tier.LOADING:
                ended.append(EndedLoad(home.row, name, cell.came_from))
            self._arrive(home, name, cell=cell, now=now, source=Source.INFERRED)
        return ended

    def _settle(self, home: PodResidency) -> None:
        self._columns.free_slots[home.row] = home.shadow.free
        for name in home.cells:
            self._write(home, name)

    def _move(
        self, home: PodResidency, name: AdapterName, *, cell: Cell, tier: Tier, now: Seconds, source: Source
    ) -> None:
        if cell.tier is not tier:
            if cell.tier is Tier.LOADING:
                self._loaded(home.row, name)
            cell.tier = tier
            cell.since = now
        cell.source = source
        self._write(home, name)

    def _write_all(self, home: PodResidency) -> None:
        for name in self._columns.adapters:
            self._write(home, name)

    def _write(self, home: PodResidency, name: AdapterName) -> None:
        cell = home.cells.get(name)
        code = _DISK
        if cell is not None:
            home.count_use(name, cell)
            tier = cell.tier
            if tier is _IDLE and (cell.in_flight or cell.active):
                tier = _SERVING
            code = tier | _SOURCE_BITS[cell.source]
            if cell.pinned:
                code |= PINNED
        if not self.registry.accepts(home.row, name):
            code &= ~TIER_BITS
        self._columns.adapter_row(name)[home.row] = code
