"""One pod of a simulated fleet: the pod model, the process around it, and the scrapes of it.

In: what happens to its process. Out: where its time went over all its processes. Not here: when anything happens.
"""

import msgspec

from lorapick.model.pods import Pod
from lorapick.model.units import AdapterName, RequestId, Seconds
from lorapick.pod.engine import PodEngine
from lorapick.pod.values import TimeSpent
from lorapick.sim.measures import GpuTime
from lorapick.sim.scrapes import Scrape


class SimPod:
    """A pod."""

    __slots__ = (
        "_down_since",
        "_names",
        "_past",
        "_reports_loaded",
        "alive",
        "commanded",
        "due",
        "engine",
        "pod",
        "scrape",
    )

    def __init__(
        self, pod: Pod, engine: PodEngine, *, names: tuple[AdapterName, ...], reports_loaded: bool, now: Seconds
    ) -> None:
        """A process that begins now; `names`: adapters that it accepts."""
        self.pod = pod
        self.engine = engine
        self.alive = True
        self.due: Seconds | None = None
        """Time of the earliest wake that is scheduled."""
        self.commanded: dict[AdapterName, None] = {}
        """Loads that the controller asked for and that have not ended."""
        self._names = names
        self._reports_loaded = reports_loaded
        self._past = GpuTime()
        """Time of earlier processes, and between them."""
        self._down_since = now
        self.scrape = self._new_scrape(now)

    def _new_scrape(self, now: Seconds) -> Scrape:
        slots = self.pod.limits.max_loras
        return Scrape(started=now, registered=self._names, slots=slots, reports_loaded=self._reports_loaded)

    def die(self, now: Seconds) -> tuple[RequestId, ...]:
        """The process ends; returns the requests that it had. The pod has lived up to now."""
        self._past = self._past.plus(spent(self.engine.stats(now).time))
        self._down_since = now
        self.alive = False
        self.commanded.clear()
        return self.engine.restart(now)

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


def spent(time: TimeSpent) -> GpuTime:
    """The pod model's own account."""
    return GpuTime(**msgspec.structs.asdict(time))
