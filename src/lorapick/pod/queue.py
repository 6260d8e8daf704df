"""The waiting requests of a pod, first come first served.

In: requests that arrive, that the pod sends back, that leave. Out: who is next.
Not here: whether there is room for it (`machine`).

A request that is passed over, because its adapter would be one too many in the batch, is *parked* in its adapter's
lane: nobody looks at it again before that adapter runs or one more may run. So a long queue costs nothing per step.
Every request has a place: parked ones and arrivals keep the order of coming, those sent back come before all others.
"""

from collections import deque
from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import chain
from operator import attrgetter

from lorapick.pod.batch import Job
from lorapick.pod.lru import AdapterCopy

_PLACE = attrgetter("place")


class Queue:
    """Waiting requests; iterates in order."""

    __slots__ = ("_first", "_heads", "_lanes", "_last", "_open", "arrived", "base", "count", "parked", "returned")

    def __init__(self) -> None:
        self.arrived: deque[Job] = deque()
        """Not looked at yet."""
        self.returned: list[Job] = []
        """Preempted and not looked at since; the last is the first in line."""
        self.count = 0
        """All of them; faster than `len`, which is a call."""
        self.parked = 0
        self.base = 0
        """Requests of the base model."""
        self._lanes: dict[AdapterCopy, deque[Job]] = {}
        self._heads: list[tuple[int, AdapterCopy]] = []
        """Heap of (place of a lane's first, its adapter); entries of former firsts stay behind."""
        self._open: list[AdapterCopy] = []
        """Adapters that run and have a lane; may hold some that do not any more."""
        self._first = 0
        self._last = 0

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Job]:
        lanes = sorted(chain.from_iterable(self._lanes.values()), key=_PLACE)
        return chain(reversed(self.returned), lanes, self.arrived)

    def add(self, job: Job) -> None:
        """A request came."""
        self.count += 1
        self._last += 1
        job.place = self._last
        self.arrived.append(job)
        if job.adapter is not None:
            job.adapter.queued += 1
        else:
            self.base += 1

    def send_back(self, job: Job) -> None:
        """A request was preempted: it stands before everybody else."""
        self.count += 1
        self._first -= 1
        job.place = self._first
        self.returned.append(job)
        if job.adapter is not None:
            job.adapter.queued += 1
        else:
            self.base += 1

    def front(self) -> Job | None:
        """The first of all; for a queue in which nobody is parked."""
        if self.returned:
            return self.returned[-1]
        return self.arrived[0] if self.arrived else None

    def next(self, *, room: bool) -> Job | None:
        """The first that may run beside the adapters that do; `room`: one more adapter may. None: nobody.

        Parks whom it passes over. The request stays in the queue until it is taken.
        """
        returned, arrived = self.returned, self.arrived
        while returned:
            job = returned[-1]
            if room or job.adapter is None or job.adapter.seats:
                return job
            self._park(returned.pop(), job.adapter)
        if self.parked and (parked := self._first_parked(room=room)) is not None:
            return parked
        while arrived:
            job = arrived[0]
            if room or job.adapter is None or job.adapter.seats:
                return job
            self._park(arrived.popleft(), job.adapter)
        return None

    def take(self, job: Job) -> None:
        """Remove a request that has joined the batch."""
        if self.arrived and self.arrived[0] is job:
            self.arrived.popleft()
            self.count -= 1
            adapter = job.adapter
            if adapter is not None:
                adapter.queued -= 1
                if self.parked and adapter in self._lanes and adapter not in self._open:
                    self._open.append(adapter)
            else:
                self.base -= 1
        else:
            self.remove(job)

    def remove(self, job: Job) -> None:
        """Remove a request from wherever it stands."""
        self.count -= 1
        adapter = job.adapter
        if job.parked:
            assert adapter is not None, f"request {job.id} of the base model is parked"
            self._unpark(job, adapter)
        elif job.place < 0:
            self.returned.remove(job) if self.returned[-1] is not job else self.returned.pop()
        else:
            self.arrived.remove(job)
        if adapter is not None:
            adapter.queued -= 1
            if adapter in self._lanes and adapter not in self._open:
                self._open.append(adapter)
        else:
            self.base -= 1

    def remove_all(self, adapter: AdapterCopy) -> list[Job]:
        """Remove and return everybody who waits for an adapter."""
        jobs = [job for job in self if job.adapter is adapter] if adapter.queued else []
        for job in jobs:
            self.remove(job)
        return jobs

    def _park(self, job: Job, adapter: AdapterCopy) -> None:
        lane = self._lanes.setdefault(adapter, deque())
        place, index = job.place, len(lane)
        while index and lane[index - 1].place > place:
            index -= 1  # only those sent back come before others of their lane
        lane.insert(index, job)
        job.parked = True
        self.parked += 1
        if not index:
            heappush(self._heads, (place, adapter))

    def _unpark(self, job: Job, adapter: AdapterCopy) -> None:
        lane = self._lanes[adapter]
        was_first = lane[0] is job
        lane.remove(job)
        job.parked = False
        self.parked -= 1
        if not lane:
            del self._lanes[adapter]
        elif was_first:
            heappush(self._heads, (lane[0].place, adapter))

    def _first_parked(self, *, room: bool) -> Job | None:
        if not room:
            return self._first_of_open()
        heads, lanes = self._heads, self._lanes
        while heads:
            place, adapter = heads[0]
            lane = lanes.get(adapter)
            if lane is not None and lane[0].place == place:
                return lane[0]
            heappop(heads)
        return None

    def _first_of_open(self) -> Job | None:
        first: Job | None = None
        if self._open:
            self._open = [adapter for adapter in self._open if adapter.seats and adapter in self._lanes]
            for adapter in self._open:
                job = self._lanes[adapter][0]
                if first is None or job.place < first.place:
                    first = job
        return first
