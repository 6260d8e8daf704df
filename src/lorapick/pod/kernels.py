"""How long a decode step takes: the LoRA kernels that engines have, as terms of a and b.

In: the running batch. Out: seconds of its next step. Not here: prompts (`machine`), merged weights' special case.

A step is a + b·B for B requests, and for their adapters:
*distinct*: c·A + d·B·A with A distinct adapters. Ranks do not matter, as in vLLM, where every slot has room for the
largest rank; that one is in the coefficients.
*padded*: the same with c·(1 + rank_slope·(R/16 - 1)) for the highest rank R among the A: the kernel treats all of them
as if they had it.
*segmented*: c/16·(sum of the A ranks) + d/16·(sum of the ranks of all requests): a segment's weights are read once, and
each of its requests computes with them.
All three agree when every adapter has the reference rank 16, but for what d multiplies.
"""

from collections import Counter

from lorapick.model.units import Seconds
from lorapick.pod.batch import Batch, Job
from lorapick.pod.values import Kernel, PodConfig


class RankedBatch(Batch):
    """A batch that knows the ranks in it."""

    __slots__ = ("rank_of_adapters", "rank_of_requests", "ranks")

    def __init__(self) -> None:
        super().__init__()
        self.ranks: Counter[int] = Counter()
        """Distinct adapters by rank."""
        self.rank_of_adapters = 0
        self.rank_of_requests = 0

    def join(self, job: Job) -> None:
        """Add a request as the youngest."""
        super().join(job)
        if job.adapter is not None:
            rank = job.adapter.spec.rank
            self.rank_of_requests += rank
            if job.adapter.seats == 1:
                self.rank_of_adapters += rank
                self.ranks[rank] += 1

    def leave(self, job: Job) -> None:
        """Remove a request; its tokens so far are noted in `out`."""
        super().leave(job)
        if job.adapter is not None:
            rank = job.adapter.spec.rank
            self.rank_of_requests -= rank
            if not job.adapter.seats:
                self.rank_of_adapters -= rank
                self.ranks[rank] -= 1
                if not self.ranks[rank]:
                    del self.ranks[rank]

    @property
    def highest_rank(self) -> int:
        """Of the adapters in the batch; 0: none."""
        return max(self.ranks, default=0)


class StepTimer:
    """Kernel `distinct`."""

    __slots__ = ("a", "b", "bare", "batch", "c", "d")

    def __init__(self, config: PodConfig, batch: Batch) -> None:
        costs = config.step
        self.batch = batch
        self.bare = costs.a
        """What a step of merged weights has for `a`: no adapter costs anything."""
        self.a = costs.a + costs.slot * config.limits.max_loras
        self.b = costs.b
        self.c = costs.c
        self.d = costs.d

    def seconds(self) -> Seconds:
        """Length of the batch's next step."""
        batch = self.batch
        requests, adapters = len(batch.running), batch.active
        return self.a + self.b * requests + self.c * adapters + self.d * requests * adapters

    def merged_seconds(self) -> Seconds:
        """Length of the next step when all its requests are computed with merged weights."""
        return self.bare + self.b * len(self.batch.running)


class PaddedTimer(StepTimer):
    """Kernel `padded`."""

    __slots__ = ("_ranked", "_reference", "_slope")

    def __init__(self, config: PodConfig, batch: RankedBatch) -> None:
        super().__init__(config, batch)
        self._ranked = batch
        self._reference = config.step.reference_rank
        self._slope = config.step.rank_slope

    def seconds(self) -> Seconds:
        """Length of the batch's next step."""
        batch = self._ranked
        requests, adapters = len(batch.running), batch.active
        padding = 1 + self._slope * (batch.highest_rank / self._reference - 1)
        return self.a + self.b * requests + self.c * padding * adapters + self.d * requests * adapters


class SegmentedTimer(StepTimer):
    """Kernel `segmented`."""

    __slots__ = ("_ranked", "_reference")

    def __init__(self, config: PodConfig, batch: RankedBatch) -> None:
        super().__init__(config, batch)
        self._ranked = batch
        self._reference = config.step.reference_rank

    def seconds(self) -> Seconds:
        """Length of the batch's next step."""
        batch = self._ranked
        segments = self.c * batch.rank_of_adapters + self.d * batch.rank_of_requests
        return self.a + self.b * len(batch.running) + segments / self._reference


def batch_and_timer(config: PodConfig) -> tuple[Batch, StepTimer]:
    """An empty batch and what times it, for a pod's kernel."""
    if config.kernel is Kernel.DISTINCT:
        plain = Batch()
        return plain, StepTimer(config, plain)
    ranked = RankedBatch()
    return ranked, (PaddedTimer if config.kernel is Kernel.PADDED else SegmentedTimer)(config, ranked)
