"""KV that outlives its request: it was computed here for another pod, which has not fetched it yet.

In: requests whose prompt alone was wanted, releases, the time. Out: whose memory is free again, and when the next of
them has waited for too long. Not here: moving KV (the pod that fetches it does), who may have it (see `check_handover`
for what a pod refuses).

As in vLLM, blocks stay in use while they wait to be fetched, and are given up some time after the prefill. A busy pod
looks at releases and at the clock when the step that is running ends.
"""

from collections.abc import Sequence
from math import inf
from typing import NamedTuple

from lorapick.model.units import AdapterName, RequestId, Seconds, Tokens
from lorapick.pod.batch import Batch, Job
from lorapick.pod.errors import BadRequest, KvMismatch
from lorapick.pod.kv import KvPool
from lorapick.pod.values import KvExpired, Memory, Merging, PodConfig, PodEvent, PodRequest


class HeldKv(NamedTuple):
    """KV of one prompt."""

    request_id: RequestId
    adapter: AdapterName | None
    """Under which it was computed; None: the base model."""
    tokens: Tokens
    keys: Sequence[int]
    """Its blocks that have ids, salted."""
    until: Seconds
    """Then it is given up."""


class Handover:
    """What one pod holds for others."""

    __slots__ = ("_batch", "_events", "_hold", "_kv", "held", "released")

    def __init__(self, kv: KvPool, batch: Batch, *, hold: Seconds, events: list[PodEvent]) -> None:
        """`hold`: seconds after its prefill at which KV is given up; `events` is the list that this is appended to."""
        self._kv = kv
        self._batch = batch
        self._hold = hold
        self._events = events
        self.held: dict[RequestId, HeldKv] = {}
        """In the order in which they will be given up."""
        self.released: list[HeldKv] = []
        """Are fetched, or are no longer wanted; free at the next scheduling."""

    @property
    def due(self) -> Seconds:
        """When the first is given up."""
        return next(iter(self.held.values())).until if self.held else inf

    def keep(self, job: Job, t: Seconds) -> None:
        """A request is over and its KV is held."""
        adapter = job.adapter.name if job.adapter is not None else None
        self.held[job.id] = HeldKv(job.id, adapter, job.prompt, job.keys, t + self._hold)

    def release(self, request_id: RequestId) -> bool:
        """Let one go at the next scheduling; False: none of that name is held."""
        held = self.held.pop(request_id, None)
        if held is None:
            return False
        self.released.append(held)
        return True

    def let_go(self, t: Seconds) -> bool:
        """Free what was released or has waited for too long; whether there was any."""
        while self.due <= t:
            request_id = next(iter(self.held))
            self.release(request_id)
            self._events.append(KvExpired(t=t, request_id=request_id))
        if not self.released:
            return False
        self._kv.trim(self._batch.steps - 1)  # what the last step needed is not cached any more
        for each in self.released:
            self._kv.free(each.keys, each.tokens)
        self.released = []
        return True

    def all(self) -> list[HeldKv]:
        """Everything whose blocks are in use."""
        return [*self.held.values(), *self.released]


def check_handover(request: PodRequest, config: PodConfig) -> None:
    """Refuse what cannot be handed over.

    Raises:
        KvMismatch: the KV was computed under another adapter.
        BadRequest: the request is to hand KV over and came with some; it wants more than one token; the engine is a
            variant that has nowhere to hold KV.
    """
    if request.kv is not None and request.kv.adapter != request.adapter:
        raise KvMismatch(request.adapter, request.kv.adapter)
    if not request.prefill_only:
        return
    if request.kv is not None:
        raise BadRequest(f"request {request.id} comes with its KV: there is nothing to prefill")
    if request.output_tokens != 1:
        raise BadRequest(f"{request.output_tokens} output tokens: a request of which only the prompt is wanted has 1")
    if config.memory is Memory.UNIFIED or config.merging.mode is not Merging.NEVER:
        raise BadRequest("unified memory and merged weights hold no KV for other pods")
