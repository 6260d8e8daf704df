"""What a scrape of a simulated pod says: what the pod model knows as the report that a metrics page would give.

In: a pod at a time. Out: `PodReport`. Not here: pages (live, they are rendered and parsed by `wire`).
"""

from lorapick.model.pods import GpuSource, LoadedAdapter, PodReport
from lorapick.model.units import AdapterName, Ratio, Seconds
from lorapick.pod.engine import PodEngine
from lorapick.wire.emulator_page import memory_pressure


class Scrape:
    """Turns looks at one process of a pod into reports; remembers the last look, as a GPU's counter does."""

    __slots__ = ("_busy", "_registered", "_reports_loaded", "_since", "_slots", "_started")

    def __init__(
        self, *, started: Seconds, registered: tuple[AdapterName, ...], slots: int, reports_loaded: bool = False
    ) -> None:
        """A process that runs since `started`.

        `registered`: names it accepts; `slots`: a label of the activity series, which a pod has once an adapter was
        loaded; `reports_loaded`: whether it says what it holds (`vllm:lora_adapter_loaded`).
        """
        self._started = started
        self._registered: tuple[AdapterName, ...] | None = registered
        self._slots = slots
        self._reports_loaded = reports_loaded
        self._since: Seconds | None = None
        self._busy: Seconds = 0.0

    def report(self, engine: PodEngine, now: Seconds) -> PodReport:
        """One successful scrape."""
        seen = engine.glance(now)
        # The list of models is asked for rarely; once is enough for a registry that never changes.
        registered, self._registered = self._registered, None
        used = seen.loads > 0
        return PodReport(
            waiting=seen.waiting,
            running=seen.running,
            deferred=seen.deferred,
            kv_usage=seen.kv_usage,
            gpu_utilization=self._utilization(seen.busy, now),
            gpu_source=GpuSource.POD,
            memory_pressure=memory_pressure(engine.config, kv_usage=seen.kv_usage, slots_used=seen.on_gpu),
            preemptions=seen.preemptions,
            in_flight_adapters=seen.in_flight if used else None,
            max_loras=self._slots if used else None,
            loaded=_loaded(engine, now) if self._reports_loaded else None,
            registered=registered,
            process_start=self._started,
        )

    def _utilization(self, busy: Seconds, now: Seconds) -> Ratio | None:
        """Busy share since the last look, swaps included, as a GPU's own counter has it; None: no time has passed."""
        since, self._since = self._since, now
        before, self._busy = self._busy, busy
        if since is None or now <= since:
            return None
        return min(1.0, max(0.0, (busy - before) / (now - since)))


def _loaded(engine: PodEngine, now: Seconds) -> tuple[LoadedAdapter, ...]:
    stats = engine.stats(now)
    on_gpu = dict.fromkeys(stats.on_gpu)
    return tuple(LoadedAdapter(name=name, on_gpu=name in on_gpu) for name in dict.fromkeys(stats.on_cpu))
