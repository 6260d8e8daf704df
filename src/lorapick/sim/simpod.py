"""One pod of a simulated fleet: the pod model, the process around it, and the scrapes of it.

In: what happens to its process. Out: where its time went over all its processes, and its slots in use times time, as
the pod model has them (not as its events tell). Not here: when anything happens.
"""

import msgspec

from lorapick.model.pods import Pod
from lorapick.model.units import AdapterName, Ratio, RequestId, Seconds
from lorapick.pod.engine import PodEngine
from lorapick.pod.errors import UnknownRequest
from lorapick.pod.values import Memory, TimeSpent
from lorapick.sim.measures import GpuTime
from lorapick.sim.scrapes import Scrape
from lorapick.wire.emulator_page import memory_pressure


class SimPod:
    """A pod."""

    __slots__ = (
        "_down_since",
        "_names",
        "_past",
        "_preempted",
        "_reports_loaded",
        "_slot_seconds",
        "_slots",
        "_used",
        "_used_since",
        "alive",
        "commanded",
        "due",
        "engine",
        "listed",
        "pod",
        "registering",
        "scrape",
    )

    def __init__(
        self, pod: Pod, engine: PodEngine, *, names: tuple[AdapterName, ...], reports_loaded: bool, now: Seconds
    ) -> None:
        """A process that begins now; `names`: adapters that it accepts."""
        self.pod = pod
        self.engine = engine
        self.alive = True
        self.listed = True
        """Whether discovery names it. It may be there and not be alive, never the other way round."""
        self.due: Seconds | None = None
        """Time of the earliest wake that is scheduled."""
        self.commanded: dict[AdapterName, None] = {}
        """Loads that the controller asked for and that have not ended."""
        self.registering: dict[AdapterName, None] = {}
        """Of those, the ones that are to make a name known."""
        self._names = names
        self._reports_loaded = reports_loaded
        self._past = GpuTime()
        """Time of earlier processes, and between them."""
        self._preempted = 0
        """Preemptions of earlier processes."""
        self._down_since = now
        unified = engine.config.memory is Memory.UNIFIED
        self._slots = pod.limits.max_cpu_loras if unified else pod.limits.max_loras
        self._used = 0
        """Slots in use since `_used_since`; before that, `_slot_seconds`."""
        self._used_since = now
        self._slot_seconds: Seconds = 0.0
        self.scrape = self._new_scrape(now)

    def _new_scrape(self, now: Seconds) -> Scrape:
        slots = self.pod.limits.max_loras
        return Scrape(started=now, registered=self._names, slots=slots, reports_loaded=self._reports_loaded)

    def die(self, now: Seconds) -> tuple[RequestId, ...]:
        """The process ends; returns the requests that it had. The pod has lived up to now."""
        last = self.engine.stats(now)
        self._past = self._past.plus(spent(last.time))
        self._preempted += last.preemptions
        self._down_since = now
        self.alive = False
        lost = self.engine.restart(now)
        self.note_slots(now)
        return lost

    def rise(self, now: Seconds) -> None:
        """A new process begins, with nothing loaded."""
        self._past = self._past.plus(GpuTime(down=now - self._down_since))
        self.engine.restart(now)  # its clock begins now
        self.alive = True
        self.scrape = self._new_scrape(now)

    def time(self, now: Seconds) -> GpuTime:
        """Where its time went since it appeared. The pod has lived up to now."""
        if not self.alive:
            return self._past.plus(GpuTime(down=now - self._down_since))
        return self._past.plus(spent(self.engine.stats(now).time))

    # -- what it has

    def preemptions(self, now: Seconds) -> int:
        """Since it appeared. The pod has lived up to now."""
        return self._preempted + self.engine.glance(now).preemptions

    def pressure(self, now: Seconds) -> Ratio:
        """How short its memory is: as it tells it, or the use of KV memory while requests wait."""
        seen = self.engine.glance(now)
        told = memory_pressure(self.engine.config, kv_usage=seen.kv_usage, slots_used=seen.on_gpu)
        return max(told or 0.0, seen.kv_usage if seen.waiting else 0.0)

    def note_slots(self, now: Seconds) -> None:
        """Look at its slots. To be called whenever they may have changed.

        Raises:
            AssertionError: more are in use than there are.
        """
        used = self.engine.slots_used
        if used == self._used:
            return
        assert used <= self._slots, f"{self.pod.name}: {used} slots are in use at {now} s of {self._slots}"
        self._slot_seconds += self._used * (now - self._used_since)
        self._used, self._used_since = used, now

    def slot_seconds(self, now: Seconds) -> Seconds:
        """Slots in use times time since it appeared. The pod has lived up to now."""
        return self._slot_seconds + self._used * (now - self._used_since)

    def held(self, now: Seconds) -> tuple[AdapterName, ...]:
        """Adapters that hold its slots now, the one on its way included."""
        stats = self.engine.stats(now)
        return (*stats.on_gpu, *stats.loading[:1])

    def has(self, request_id: RequestId, now: Seconds) -> bool:
        """Whether the process knows a request."""
        try:
            self.engine.tokens_out(request_id, now)
        except UnknownRequest:
            return False
        return self.alive


def spent(time: TimeSpent) -> GpuTime:
    """The pod model's own account."""
    return GpuTime(**msgspec.structs.asdict(time))
