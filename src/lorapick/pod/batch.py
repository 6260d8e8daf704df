"""The running batch and the span of equal steps that it makes.

In: requests that join and leave. Out: how many distinct adapters run, which request ends next and after how many
steps, and when each step of a span ends. Not here: who may join (`machine`), memory (`kv`, `lru`).

`steps` counts the steps of the pod. A running request has `steps - offset` output tokens: nothing is written per token.
"""

from collections.abc import Sequence
from heapq import heappop, heappush

from lorapick.model.units import RequestId, Seconds, Tokens
from lorapick.pod.lru import AdapterCopy
from lorapick.pod.values import PodRequest


class Job:
    """One request in the pod, waiting or running."""

    __slots__ = (
        "aborted",
        "adapter",
        "cached",
        "id",
        "keeps",
        "keys",
        "loads_seen",
        "offset",
        "order",
        "out",
        "output",
        "parked",
        "place",
        "prompt",
        "received",
        "reused",
        "since",
        "started",
        "waited",
    )

    def __init__(
        self, request: PodRequest, adapter: AdapterCopy | None, keys: Sequence[int], since: Seconds = 0.0
    ) -> None:
        self.id: RequestId = request.id
        self.adapter = adapter
        self.prompt: Tokens = request.prompt_tokens
        self.output: Tokens = request.output_tokens
        self.keys = keys
        """Ids of the prompt's full blocks, salted by the adapter."""
        self.since = since
        """When it was submitted."""
        self.out: Tokens = 0
        """Output tokens that existed when it last waited."""
        self.cached: Tokens
        """Prompt tokens found in the prefix cache when it first joined."""
        self.reused: Tokens
        """Tokens that were there when it last joined, in the prefix cache or received: not to be computed."""
        self.keeps = request.prefill_only
        """Its KV is held when it is over."""
        self.received = request.kv is not None
        """Its prompt's KV has come from another pod, and it has not joined yet."""
        self.started = False
        self.waited = False
        """It was in the queue while a load of its adapter began or went on."""
        self.loads_seen = 0
        self.aborted = False
        self.offset: int
        """Steps that the pod had made when it joined, minus the tokens it had then."""
        self.order = 0
        """Rank of joining; 0: not in the batch."""
        self.place: int
        """Where it stands in the queue."""
        self.parked = False
        """Passed over in the queue."""


class Batch:
    """The running requests, in order of joining."""

    __slots__ = ("_joined", "active", "ends", "running", "steps")

    def __init__(self) -> None:
        self.running: dict[Job, None] = {}
        self.steps = 0
        self.active = 0
        """Distinct adapters among the running requests."""
        self._joined = 0
        self.ends: list[tuple[int, int, Job]] = []
        """Heap of (step at which it ends, rank of joining, request); entries of those that left early stay behind."""

    def join(self, job: Job) -> None:
        """Add a request as the youngest."""
        self._joined += 1
        job.order = self._joined
        job.offset = self.steps - job.out
        self.running[job] = None
        heappush(self.ends, (job.offset + job.output, job.order, job))
        adapter = job.adapter
        if adapter is not None:
            if not adapter.seats:
                self.active += 1
            adapter.seats += 1

    def leave(self, job: Job) -> None:
        """Remove a request; its tokens so far are noted in `out`."""
        del self.running[job]
        job.out = self.steps - job.offset
        job.order = 0
        adapter = job.adapter
        if adapter is not None:
            adapter.seats -= 1
            if not adapter.seats:
                self.active -= 1

    def youngest(self) -> Job:
        """The request that joined last."""
        return next(reversed(self.running))

    def steps_to_end(self) -> int:
        """Steps until the first running request has all its tokens; there must be one running."""
        ends = self.ends
        while ends[0][2].order != ends[0][1]:
            heappop(ends)
        return ends[0][0] - self.steps

    def take_ended(self) -> list[Job]:
        """The running requests that have all their tokens, in order of joining. The caller makes them leave."""
        ends, steps, ended = self.ends, self.steps, []
        while ends and ends[0][0] <= steps:
            _, order, job = heappop(ends)
            if job.order == order:
                ended.append(job)
        return ended


class Span:
    """Equal steps after a prefill from `start` to `origin`: the i-th step ends at `origin + i·step`; `count` in all."""

    __slots__ = ("count", "origin", "start", "step")

    def __init__(self, start: Seconds, *, origin: Seconds, step: Seconds, count: int) -> None:
        self.start = start
        self.origin = origin
        self.step = step
        self.count = count

    def begin(self, start: Seconds, *, origin: Seconds, step: Seconds, count: int) -> None:
        """Become another span."""
        self.start = start
        self.origin = origin
        self.step = step
        self.count = count

    def at(self, index: int) -> Seconds:
        """When the step ends."""
        return self.origin + index * self.step

    @property
    def end(self) -> Seconds:
        """When the last step ends."""
        return self.origin + self.count * self.step

    def done(self, now: Seconds) -> int:
        """Steps that have ended at `now`."""
        origin, step = self.origin, self.step
        if now < origin:
            return 0
        index = int((now - origin) / step)
        # Division and multiplication round differently; the ends of steps are what counts.
        while origin + (index + 1) * step <= now:
            index += 1
        while index and origin + index * step > now:
            index -= 1
        return index

    def first_at(self, t: Seconds) -> int:
        """The first step that ends at or after `t`."""
        index = max(1, int((t - self.origin) / self.step))
        while index > 1 and self.at(index - 1) >= t:
            index -= 1
        while self.at(index) < t:
            index += 1
        return index

    def cut(self, now: Seconds) -> None:
        """End with the step that runs at `now`."""
        index = self.done(now) + 1
        if index < self.count:
            self.count = index
