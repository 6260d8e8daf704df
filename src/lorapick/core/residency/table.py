"""What is where on each pod, since when, and how we know [R3.1].

In: dispatches, response starts, ends, scrapes, commands. Out: residency codes and free slots in the columns,
and beliefs for people. Reported beats commanded beats inferred:
- a pod that reports its adapters (`vllm:lora_adapter_loaded`) is believed, except about loads begun after
  the scrape was sent;
- commands change the belief when the engine agreed;
- otherwise a shadow of the engine's two LRU levels follows what we routed (`core.residency.shadow`).
`lora_requests_info` is activity, never absence: an adapter it names must be on the GPU, nothing follows for others.
A load the engine does by itself lasts from dispatch to the first response headers or to the tier's expected
time, whichever is first. Not here: who should be where (see `core.placement`).
"""

from collections.abc import Iterable, Iterator

from lorapick.core.columns import PINNED, TIER_BITS, PodColumns
from lorapick.core.residency.shadow import Shadow
from lorapick.model.picks import Belief
from lorapick.model.pods import Pod, PodReport
from lorapick.model.settings import LoadTimes
from lorapick.model.tiers import Source, Tier
from lorapick.model.units import AdapterName, PodName, Seconds


class Cell:
    """Belief about one adapter on one pod. `tier` is DISK, CPU, LOADING or GPU_IDLE; serving follows from use."""

    __slots__ = ("active", "came_from", "evidence", "expected", "in_flight", "pinned", "since", "source", "tier")

    def __init__(self, now: Seconds) -> None:
        self.tier = Tier.DISK
        self.since = now
        self.source = Source.INFERRED
        self.evidence: Seconds | None = None
        self.in_flight = 0
        """Requests of ours that the pod has not ended."""
        self.active = False
        """The last scrape named it in flight: traffic that bypasses us counts too."""
        self.pinned = False
        self.expected = 0.0
        """While loading: when it must be there at the latest."""
        self.came_from = Tier.DISK
        """While loading: the tier it comes from."""


class PodResidency:
    """Cells and shadow of one pod."""

    __slots__ = ("cells", "name", "process_start", "registered", "row", "shadow")

    def __init__(self, row: int, pod: Pod) -> None:
        self.row = row
        self.name = pod.name
        self.cells: dict[AdapterName, Cell] = {}
        self.shadow = Shadow(gpu_slots=pod.limits.max_loras, cpu_slots=pod.limits.max_cpu_loras)
        self.registered: dict[AdapterName, None] | None = None
        """Names the engine accepts; None: it has not been asked, so declared adapters are taken as known to it."""
        self.process_start: Seconds | None = None


class Residency:
    """The table of all pods; the only writer of residency codes and free slots."""

    def __init__(self, columns: PodColumns, load_times: LoadTimes) -> None:
        self._columns = columns
        self._load_times = load_times
        self._pods: dict[int, PodResidency] = {}
        self._declared: dict[AdapterName, None] = {}
        self._loading: dict[tuple[int, AdapterName], Cell] = {}
        self._next_due = float("inf")

    # -- pods and names

    def appear(self, row: int, pod: Pod) -> None:
        """A pod with empty slots: a fresh pod is empty, not full."""
        self._pods[row] = PodResidency(row, pod)
        self._columns.free_slots[row] = pod.limits.max_loras
        for name in [*self._columns.adapters]:
            self._write(self._pods[row], name)

    def resize(self, row: int, pod: Pod) -> None:
        """Discovery or the engine changed a pod's slots."""
        home = self._pods[row]
        home.shadow.gpu_slots = pod.limits.max_loras
        home.shadow.cpu_slots = max(pod.limits.max_cpu_loras, pod.limits.max_loras)
        self._columns.free_slots[row] = home.shadow.free

    def gone(self, row: int) -> None:
        """Forget a pod."""
        home = self._pods.pop(row)
        for name in home.cells:
            self._loading.pop((row, name), None)

    def restart(self, row: int, now: Seconds) -> None:
        """The pod's process is new: nothing is loaded. Requests in flight stay counted until they end."""
        home = self._pods[row]
        home.shadow.clear()
        home.registered = None
        for name, cell in [*home.cells.items()]:
            cell.active = False
            self._move(home, name, cell, Tier.DISK, now=now, source=Source.INFERRED)
            if not cell.in_flight and not cell.pinned:
                del home.cells[name]
        self._settle(home)

    def declare(self, name: AdapterName) -> None:
        """The operator names an adapter: pods whose registry is unknown are taken to know it."""
        self._declared[name] = None
        self._columns.adapter_row(name)
        for home in self._pods.values():
            self._write(home, name)

    def retire(self, name: AdapterName) -> None:
        """The operator withdraws an adapter; pods that register it may still serve it."""
        self._declared.pop(name, None)
        for home in self._pods.values():
            self._write(home, name)

    def known(self, name: AdapterName) -> bool:
        """Whether the operator or some pod named this adapter."""
        return name in self._declared or any(
            home.registered is not None and name in home.registered for home in self._pods.values()
        )

    def names(self) -> list[AdapterName]:
        """All names that the operator or a pod gave, sorted."""
        names = dict(self._declared)
        for home in self._pods.values():
            names.update(home.registered or {})
        return sorted(names)

    def registries_unknown(self) -> bool:
        """Whether no pod has said yet which adapters it accepts."""
        return all(home.registered is None for home in self._pods.values())

    def pin(self, row: int, name: AdapterName, pinned: bool, now: Seconds) -> None:
        """Mark an adapter as pinned on a pod (bookkeeping for the score; the controller keeps it there)."""
        home = self._pods[row]
        self._cell(home, name, now).pinned = pinned
        self._write(home, name)

    # -- what requests tell

    def dispatched(self, row: int, name: AdapterName, now: Seconds) -> Tier:
        """A request for `name` goes to the pod; return the tier it was believed in. Off the GPU, a load begins."""
        home = self._pods[row]
        cell = self._cell(home, name, now)
        before = Tier.GPU_SERVING if cell.tier.on_gpu and (cell.in_flight or cell.active) else cell.tier
        cell.in_flight += 1
        if not cell.tier.on_gpu and cell.tier is not Tier.LOADING:
            self._begin_load(home, name, cell, now)
        self._use(home, name, now)
        self._write(home, name)
        return before

    def started(self, row: int, name: AdapterName, now: Seconds) -> tuple[Tier, Seconds] | None:
        """First response headers: it is on the GPU. Return (tier it came from, seconds) if that ended a load."""
        home = self._pods.get(row)
        if home is None or name not in home.cells:
            return None
        cell = home.cells[name]
        ended = (cell.came_from, now - cell.since) if cell.tier is Tier.LOADING else None
        cell.evidence = now
        if not cell.tier.on_gpu:
            self._arrive(home, name, cell, now=now, source=Source.INFERRED)
        return ended

    def ended(self, row: int, name: AdapterName, now: Seconds, *, load_failed: bool) -> None:
        """One request less; a failed first load means that the adapter is not there."""
        home = self._pods.get(row)
        cell = home.cells.get(name) if home is not None else None
        if home is None or cell is None or not cell.in_flight:
            return
        cell.in_flight -= 1
        if cell.tier.on_gpu:
            # The engine touches an adapter in each step it runs in, so its recency is the end of the last request.
            self._use(home, name, now)
        elif load_failed and not cell.in_flight:
            home.shadow.drop(name, Tier.DISK)
            self._move(home, name, cell, Tier.DISK, now=now, source=Source.INFERRED)
        self._write(home, name)

    def expire(self, now: Seconds) -> list[tuple[PodName, AdapterName, Tier]]:
        """End loads whose expected time has passed; return (pod, adapter, tier it came from)."""
        if now < self._next_due:
            return []
        due = [(key, cell) for key, cell in self._loading.items() if cell.expected <= now]
        ended = []
        for (row, name), cell in due:
            home = self._pods[row]
            ended.append((home.name, name, cell.came_from))
            self._arrive(home, name, cell, now=now, source=cell.source)
        self._next_due = min((cell.expected for cell in self._loading.values()), default=float("inf"))
        return ended

    # -- what pods and commands tell

    def reported(self, row: int, report: PodReport, *, since: Seconds, now: Seconds) -> None:
        """Take over one scrape; `since` is when it was sent."""
        home = self._pods[row]
        if report.registered is not None:
            self._register(home, report.registered)
        if report.loaded is not None:
            self._believe(home, report, since=since, now=now)
        if report.in_flight_adapters is not None:
            self._activity(home, report.in_flight_adapters, now)
        if report.max_loras is not None and report.max_loras != home.shadow.gpu_slots:
            home.shadow.gpu_slots = report.max_loras
        self._settle(home)

    def commanded(self, row: int, name: AdapterName, now: Seconds) -> None:
        """A load that we asked for begins."""
        home = self._pods[row]
        cell = self._cell(home, name, now)
        if not cell.tier.on_gpu and cell.tier is not Tier.LOADING:
            self._begin_load(home, name, cell, now)
        cell.source = Source.COMMANDED
        self._use(home, name, now)
        self._write(home, name)

    def arrived(self, row: int, name: AdapterName, now: Seconds, source: Source) -> None:
        """The engine says that a load ended well: it registered the adapter and put it into a slot."""
        home = self._pods[row]
        if home.registered is not None:
            home.registered[name] = None
        cell = self._cell(home, name, now)
        cell.evidence = now
        self._arrive(home, name, cell, now=now, source=source)

    def left(self, row: int, name: AdapterName, tier: Tier, now: Seconds, source: Source) -> None:
        """The adapter is now in `tier`: a load failed, or the engine evicted it."""
        home = self._pods[row]
        cell = self._cell(home, name, now)
        home.shadow.drop(name, tier)
        cell.evidence = now
        self._move(home, name, cell, tier, now=now, source=source)
        self._settle(home)

    def unregistered(self, row: int, name: AdapterName) -> None:
        """An unload succeeded: the engine answers 404. On vLLM the weights keep their slot until the LRU moves on."""
        home = self._pods[row]
        if home.registered is None:
            home.registered = dict(self._declared)
        home.registered.pop(name, None)
        self._write(home, name)

    # -- what people ask

    @property
    def next_due(self) -> Seconds:
        """When the next unreported load counts as ended; infinity: none is under way."""
        return self._next_due

    def tier(self, row: int, name: AdapterName) -> Tier:
        """Tier as picking sees it."""
        return Tier(self._columns.adapter_row(name)[row] & TIER_BITS)

    def loading_rows(self, name: AdapterName) -> list[int]:
        """Rows that are bringing this adapter in, in row order."""
        return sorted(row for row, adapter in self._loading if adapter == name)

    def loading_until(self, row: int, name: AdapterName) -> Seconds | None:
        """When the load must have ended; None when there is none."""
        cell = self._loading.get((row, name))
        return cell.expected if cell is not None else None

    def load_time(self, tier: Tier) -> Seconds:
        """Expected seconds of a load from `tier`."""
        return self._load_times.cpu if tier is Tier.CPU else self._load_times.disk

    def beliefs(self) -> Iterator[Belief]:
        """Every cell, by pod row and then adapter name."""
        for home in self._pods.values():
            for name in sorted(home.cells):
                cell = home.cells[name]
                yield Belief(
                    pod=home.name,
                    adapter=name,
                    tier=self.tier(home.row, name),
                    since=cell.since,
                    source=cell.source,
                    in_flight=cell.in_flight,
                    pinned=cell.pinned,
                    last_evidence=cell.evidence,
                )

    def source(self, row: int, name: AdapterName) -> Source:
        """How we know; INFERRED when nobody ever said anything."""
        cell = self._pods[row].cells.get(name)
        return cell.source if cell is not None else Source.INFERRED

    def home(self, row: int) -> PodResidency:
        """Cells and shadow of one pod, for invariants and restarts."""
        return self._pods[row]

    # -- inside

    def _cell(self, home: PodResidency, name: AdapterName, now: Seconds) -> Cell:
        cell = home.cells.get(name)
        if cell is None:
            cell = home.cells[name] = Cell(now)
        return cell

    def _begin_load(self, home: PodResidency, name: AdapterName, cell: Cell, now: Seconds) -> None:
        cell.came_from = cell.tier
        cell.expected = now + self.load_time(cell.tier)
        self._move(home, name, cell, Tier.LOADING, now=now, source=Source.INFERRED)
        self._loading[home.row, name] = cell
        self._next_due = min(self._next_due, cell.expected)

    def _arrive(self, home: PodResidency, name: AdapterName, cell: Cell, *, now: Seconds, source: Source) -> None:
        self._move(home, name, cell, Tier.GPU_IDLE, now=now, source=source)
        self._use(home, name, now, must_fit=True)
        self._write(home, name)

    def _use(self, home: PodResidency, name: AdapterName, now: Seconds, *, must_fit: bool = False) -> None:
        def busy(held: AdapterName) -> bool:
            other = home.cells.get(held)
            return other is not None and (other.in_flight > 0 or other.active or other.tier is Tier.LOADING)

        moved = home.shadow.use(name, busy)
        if moved is None and must_fit:
            # It runs, so some adapter that we thought busy is not: the oldest one went.
            moved = home.shadow.use(name, lambda held: held == name)
        for adapter, tier in moved or ():
            self._move(home, adapter, self._cell(home, adapter, now), tier, now=now, source=Source.INFERRED)
        self._columns.free_slots[home.row] = home.shadow.free

    def _register(self, home: PodResidency, names: Iterable[AdapterName]) -> None:
        fresh = dict.fromkeys(names)
        if fresh == home.registered:
            return
        touched = {**(home.registered or self._declared), **fresh}
        home.registered = fresh
        for name in touched:
            self._write(home, name)

    def _believe(self, home: PodResidency, report: PodReport, *, since: Seconds, now: Seconds) -> None:
        assert report.loaded is not None
        on_gpu = {entry.name: entry.on_gpu for entry in report.loaded}
        # Loads begun after the scrape was sent cannot be in it; all else is as the engine says.
        late = [n for n, c in home.cells.items() if c.tier is Tier.LOADING and c.since >= since and not on_gpu.get(n)]
        gpu = [*(name for name, there in on_gpu.items() if there), *late]
        home.shadow.replace(gpu, [*on_gpu])
        for name in {**home.cells, **on_gpu}:
            if name in late:
                continue
            cell = self._cell(home, name, now)
            there = on_gpu.get(name)
            tier = Tier.DISK if there is None else Tier.GPU_IDLE if there else Tier.CPU
            if tier is not Tier.GPU_IDLE and cell.tier is Tier.LOADING:
                continue  # still on its way
            cell.evidence = now
            self._move(home, name, cell, tier, now=now, source=Source.REPORTED)

    def _activity(self, home: PodResidency, names: tuple[AdapterName, ...], now: Seconds) -> None:
        for cell in home.cells.values():
            cell.active = False
        for name in names:
            cell = self._cell(home, name, now)
            cell.active = True
            cell.evidence = now
            if not cell.tier.on_gpu:
                self._arrive(home, name, cell, now=now, source=Source.INFERRED)

    def _settle(self, home: PodResidency) -> None:
        self._columns.free_slots[home.row] = home.shadow.free
        for name in home.cells:
            self._write(home, name)

    def _move(
        self, home: PodResidency, name: AdapterName, cell: Cell, tier: Tier, *, now: Seconds, source: Source
    ) -> None:
        if cell.tier is not tier:
            if cell.tier is Tier.LOADING:
                self._loading.pop((home.row, name), None)
            cell.tier = tier
            cell.since = now
        cell.source = source
        self._write(home, name)

    def _write(self, home: PodResidency, name: AdapterName) -> None:
        cell = home.cells.get(name)
        tier = cell.tier if cell is not None else Tier.DISK
        if cell is not None and tier is Tier.GPU_IDLE and (cell.in_flight or cell.active):
            tier = Tier.GPU_SERVING
        known = name in home.registered if home.registered is not None else name in self._declared
        code = int(tier) if known else int(Tier.UNREGISTERED)
        self._columns.adapter_row(name)[home.row] = code | (PINNED if cell is not None and cell.pinned else 0)
