"""When an adapter is folded into the base weights ("merged"), and what may run meanwhile.

In: who waits and who runs. Out: whether to merge or unmerge now, or whom to let in. Not here: doing it (`machine`).

Folded in, an adapter costs nothing per step, and nothing else can run: neither other adapters nor the base model.
*always* (the engines that S-LoRA and dLoRA compare themselves with): the weights always stand for one model. Its
requests join as they come. When it has none left, or somebody else has waited for `patience`, the batch runs dry and
the weights are changed for the one who has waited longest: unmerged, and the other adapter loaded and merged. Whoever
waits for a model when it has been folded in may join before the next change.
*by_load* (after dLoRA, OSDI'24): unmerged, everything runs as usual. When one adapter has at least `share` of all
requests in the pod, and no other has waited for `patience`, only its requests join; when only they run, it is merged.
It is unmerged, with its requests in the batch, when others wait and it has none left or one has waited for `patience`.
In both, an idle adapter is unmerged for a load that was ordered and finds no room beside it.
"""

from collections import Counter

from lorapick.model.units import Seconds
from lorapick.pod.batch import Batch, Job, Span
from lorapick.pod.lru import AdapterCopy
from lorapick.pod.queue import Queue
from lorapick.pod.values import MergePolicy, Merging


class Folding:
    """What is folded in, and what is to be."""

    __slots__ = ("_fresh", "_heading", "_longest", "_target", "always", "folded", "merging", "only", "policy", "since")

    def __init__(self, policy: MergePolicy) -> None:
        self.policy = policy
        self.always = policy.mode is Merging.ALWAYS
        self.folded: AdapterCopy | None = None
        self.merging: AdapterCopy | None = None
        """Is being folded in or out."""
        self.since: Seconds = 0.0
        """When that began."""
        self.only: tuple[AdapterCopy | None, ...] | None = None
        """Whose requests may join; None: everybody's."""
        self._longest: Seconds | None = None
        """When the one who waits longest for something else came, if that can change anything."""
        self._heading = False
        self._target: AdapterCopy | None = None
        """always: what the weights are being changed for, while `_heading`; None is the base model."""
        self._fresh = False
        """always: that has just been reached."""

    @property
    def bare(self) -> bool:
        """Whether steps are computed without LoRA kernels."""
        return self.always or self.folded is not None

    def begin(self, adapter: AdapterCopy, t: Seconds) -> Seconds:
        """Merge or unmerge; returns when that ends."""
        self.merging = adapter
        self.since = t
        return t + self.policy.seconds

    def end(self) -> AdapterCopy:
        """The merge or unmerge has ended."""
        adapter = self.merging
        assert adapter is not None, "nothing is being merged"
        self.merging = None
        self.folded = None if self.folded is adapter else adapter
        adapter.folded = self.folded is adapter
        return adapter

    def makes_way(self, batch: Batch) -> bool:
        """Whether what is folded in is idle, so that it has to leave for a load that finds no room beside it."""
        folded = self.folded
        return folded is not None and not (batch.running or folded.queued)

    def decide(self, t: Seconds, queue: Queue, batch: Batch, jobs: dict[str, Job]) -> AdapterCopy | None:
        """What is to be merged or unmerged now (to be loaded first, if it is not on the GPU). None: nothing.

        Afterwards `only` says whose requests may join.
        """
        self._longest = None
        if self.always:
            return self._change(t, queue, batch)
        if self.folded is None:
            return self._fold(t, queue, batch, jobs)
        return self._unfold(t, queue, batch)

    def last_step(self, span: Span) -> int:
        """After how many steps of a span somebody's patience ends; the span's own end at most."""
        since = self._longest
        if since is None:
            return span.count
        patience = self.policy.patience
        index = max(1, int((since + patience - span.origin) / span.step) - 1)
        while index > 1 and span.at(index) - since >= patience:
            index -= 1
        while index < span.count and span.at(index) - since < patience:
            index += 1
        return min(index, span.count)

    # ---- by load ----

    def _fold(self, t: Seconds, queue: Queue, batch: Batch, jobs: dict[str, Job]) -> AdapterCopy | None:
        leader = self._leader(jobs)
        other = _longest_waiting(queue, leader) if leader is not None else None
        if leader is None or self._out_of_patience(other, t):
            self.only = None
            return None
        self.only = (leader,)
        if batch.running and leader.seats == len(batch.running):
            return leader
        self._longest = other.since if other is not None else None
        return None

    def _leader(self, jobs: dict[str, Job]) -> AdapterCopy | None:
        """The adapter with enough of the requests in the pod."""
        counts = Counter(job.adapter for job in jobs.values() if job.adapter is not None)
        for leader, most in counts.most_common(1):  # the first of equals: its request is the oldest
            return leader if most >= self.policy.share * len(jobs) else None
        return None

    def _unfold(self, t: Seconds, queue: Queue, batch: Batch) -> AdapterCopy | None:
        folded = self.folded
        assert folded is not None
        other = _longest_waiting(queue, folded)
        self.only = (folded,)
        if other is None:
            return None
        if self._out_of_patience(other, t) or not (batch.running or folded.queued):
            return folded
        self._longest = other.since
        return None

    # ---- always ----

    def _change(self, t: Seconds, queue: Queue, batch: Batch) -> AdapterCopy | None:
        self._head_for(t, queue, batch)
        self.only = () if self._heading else (self.folded,)
        if not self._heading or batch.running:
            return None
        return self._target if self.folded is None else self.folded

    def _head_for(self, t: Seconds, queue: Queue, batch: Batch) -> None:
        folded, fresh = self.folded, False
        if self._heading:
            fresh = folded is self._target
            self._heading = not fresh and any(job.adapter is self._target for job in queue)
            if self._heading:
                return
        mine = any(job.adapter is folded for job in queue)
        other = _longest_waiting(queue, folded)
        if other is None or (fresh and mine):
            self._longest = other.since if other is not None else None
        elif self._out_of_patience(other, t) or not (mine or batch.running):
            self._heading = True
            self._target = other.adapter
        else:
            self._longest = other.since

    def _out_of_patience(self, job: Job | None, t: Seconds) -> bool:
        return job is not None and t - job.since >= self.policy.patience


def _longest_waiting(queue: Queue, but: AdapterCopy | None) -> Job | None:
    """Of those who wait for anything else, the one who came first."""
    return min((job for job in queue if job.adapter is not but), key=lambda job: job.since, default=None)
