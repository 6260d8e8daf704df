"""What a scrape of a simulated pod says: the pod model's statistics as the report that a metrics page would give.

In: `PodStats` at a time. Out: `PodReport`. Not here: pages (live, they are rendered and parsed by `wire`).
"""

from lorapick.model.pods import GpuSource, LoadedAdapter, PodReport
from lorapick.model.units import AdapterName, Ratio, Seconds
from lorapick.pod.values import PodStats, TimeSpent


class Scrape:
    """Turns the statistics of one pod into reports; remembers the last look, as a GPU's counter does."""

    __slots__ = ("_busy", "_reports_loaded", "_since", "_slots", "_told")

    def __init__(self, *, slots: int, reports_loaded: bool = False) -> None:
        """`slots`: the pod's GPU slots; `reports_loaded`: whether its engine says what it holds.

        Slots are a label of the activity series, which a pod has once an adapter was loaded.
        """
        self._slots = slots
        self._reports_loaded = reports_loaded
        self._since: Seconds | None = None
        self._busy: Seconds = 0.0
        self._told = False

    def report(
        self, stats: PodStats, *, now: Seconds, started: Seconds, registered: tuple[AdapterName, ...]
    ) -> PodReport:
        """One successful scrape at `now` of a process that runs since `started`."""
        # The list of models is asked for rarely; once is enough for a registry that never changes.
        told, self._told = self._told, True
        return PodReport(
            waiting=stats.waiting,
            running=stats.running,
            deferred=stats.deferred,
            kv_usage=stats.kv_usage,
            gpu_utilization=self._utilization(stats.time, now),
            gpu_source=GpuSource.POD,
            preemptions=stats.preemptions,
            in_flight_adapters=stats.in_flight if stats.loads else None,
            max_loras=self._slots if stats.loads else None,
            loaded=_loaded(stats) if self._reports_loaded else None,
            registered=None if told else registered,
            process_start=started,
        )

    def _utilization(self, time: TimeSpent, now: Seconds) -> Ratio | None:
        """Busy share since the last look, swaps included, as a GPU's own counter has it; None: no time has passed."""
        busy = (
            time.prefill + time.decode + time.drain + time.deallocation + time.transfer
            + time.initialisation + time.warm_up
        )  # fmt: skip
        since, self._since = self._since, now
        before, self._busy = self._busy, busy
        if since is None or now <= since:
            return None
        return min(1.0, max(0.0, (busy - before) / (now - since)))


def _loaded(stats: PodStats) -> tuple[LoadedAdapter, ...]:
    on_gpu = dict.fromkeys(stats.on_gpu)
    return tuple(LoadedAdapter(name=name, on_gpu=name in on_gpu) for name in dict.fromkeys(stats.on_cpu))
