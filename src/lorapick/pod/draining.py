"""The drain of the article's pods: finish the running batch, load all adapters that wait, go on.

In: the queue, orders to load. Out: who may join meanwhile, whether a drain is due, what to load. Not here: loading.
"""

from lorapick.model.units import Ratio, Seconds
from lorapick.pod.batch import Batch, Job
from lorapick.pod.loader import Loader
from lorapick.pod.lru import AdapterCopy
from lorapick.pod.queue import Queue


class Drain:
    """A pod in drain mode."""

    __slots__ = ("_batch", "_loader", "since", "width")

    def __init__(self, loader: Loader, batch: Batch) -> None:
        self._loader = loader
        self._batch = batch
        self.since: Seconds | None = None
        """When the drain began; None: there is none."""
        self.width = 0
        """Size of the batch when the drain began."""

    @property
    def empty_share(self) -> Ratio:
        """Share of the seats taken when the drain began that are empty now; 0 outside a drain."""
        if self.since is None:
            return 0.0
        return max(0.0, 1.0 - len(self._batch.running) / self.width)

    def next(self, queue: Queue) -> Job | None:
        """The first in the queue if it may join; None: it may not, and so may nobody."""
        job = queue.front()
        if job is None:
            return None
        absent = job.adapter is not None and not job.adapter.on_gpu
        return None if absent or (self._loader.orders and not job.started) else job

    def is_due(self, queue: Queue) -> bool:
        """Whether the batch is to run dry: a load is ordered, or the first in the queue needs one."""
        if self._loader.orders:
            return True
        front = queue.front()
        if front is not None and front.adapter is not None and not front.adapter.on_gpu:
            return True
        if front is None or not front.started:  # one that was preempted is part of the batch that is being finished
            self.since = None
        return False

    def begin(self, t: Seconds) -> None:
        """The batch runs dry from now on, unless it does already."""
        if self.since is None:
            self.since = t
            self.width = len(self._batch.running)

    def end(self, t: Seconds) -> Seconds:
        """The batch is empty; returns how long that took."""
        drained = 0.0 if self.since is None else t - self.since
        self.since = None
        return drained

    def first_wanted(self, queue: Queue, slots: int) -> list[AdapterCopy]:
        """Take the adapters of one drained operation: those ordered, then the queue's, up to the slots."""
        wanted = self._loader.take_orders(slots)
        for job in queue:
            if len(wanted) >= slots:
                break
            if job.adapter is not None and job.adapter not in wanted:
                wanted.append(job.adapter)
        return wanted
