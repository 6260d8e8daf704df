"""The class that Ray Serve routes a deployment's requests by.

    @serve.deployment(request_router_config=RequestRouterConfig(
        request_router_class="lorapick.live.ray.router:LorapickRouter",
        request_router_kwargs={"max_models": 4}))

In: Ray's calls. Out: ranks of replicas. Not here: what is believed and chosen (see `live.ray.beliefs`). It uses what
`ray.serve.request_router` publishes (alpha; ray 2.60). Whatever goes wrong in our part leaves the choice to Ray's
multiplexing ranks, and is counted and logged.
"""

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import Any

import msgspec
from ray.serve.request_router import (
    LocalityMixin,
    MultiplexMixin,
    PendingRequest,
    ReplicaID,
    RequestRouter,
    RunningReplica,
)

from lorapick.live.ray.beliefs import Beliefs, Ranked, Replica, RouterOptions

log = logging.getLogger("lorapick.ray")

Ranks = list[list[RunningReplica]]


class LorapickRouter(LocalityMixin, MultiplexMixin, RequestRouter):
    """Least expected seconds: queue, load of the model, and what both cost others."""

    def initialize_state(self, **kwargs: Any) -> None:
        """Take `request_router_kwargs` (see `RouterOptions`).

        Raises:
            msgspec.ValidationError, ValueError: a key is unknown, or a value has no sense.
        """
        self.failures = 0
        """Times that our part raised."""
        self._beliefs = Beliefs(msgspec.convert(kwargs, RouterOptions))
        self._undelivered: dict[str, PendingRequest] = {}
        """Requests that were decided for and that no replica has taken yet."""
        self._thread: int | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    # -- what Ray says

    def update_replicas(self, replicas: list[RunningReplica]) -> None:
        """Replicas came or went, or models were loaded."""
        super().update_replicas(replicas)
        self._here()
        self._safely(self._look)

    def on_replica_actor_died(self, replica_id: ReplicaID) -> None:
        """It is no more."""
        super().on_replica_actor_died(replica_id)
        self._soon(lambda: self._beliefs.gone(replica_id.unique_id))

    def on_request_routed(self, pending_request: PendingRequest, replica_id: ReplicaID, result: Any) -> None:
        """A replica accepted a request."""
        del result
        request_id = pending_request.metadata.internal_request_id
        self._soon(lambda: self._routed(request_id, replica_id.unique_id))

    def on_request_completed(self, replica_id: ReplicaID, internal_request_id: str) -> None:
        """A request ended, or a replica refused it."""
        self._soon(lambda: self._completed(internal_request_id, replica_id.unique_id))

    # -- what Ray asks

    async def choose_replicas(
        self, candidate_replicas: list[RunningReplica], pending_request: PendingRequest | None = None
    ) -> Ranks:
        """The replica that costs least; if it does not take the request, then its fallbacks, then all others."""
        if pending_request is None:
            return [candidate_replicas]
        pending_request.routing_context.should_backoff = True
        model = pending_request.metadata.multiplexed_model_id
        try:
            names, alone = await self._ranked(pending_request, model)
        except Exception:
            self.failures += 1
            log.exception("the choice is left to Ray (%d times so far)", self.failures)
            names, alone = (), False
        by_name = {replica.replica_id.unique_id: replica for replica in candidate_replicas}
        ranks = [[by_name.pop(name)] for name in names if name in by_name]
        if ranks:
            return ranks[:1] if alone else [*ranks, [*by_name.values()]]
        return self.rank_replicas_via_multiplex(candidate_replicas, model) if model else [candidate_replicas]

    async def _ranked(self, pending: PendingRequest, model: str) -> Ranked:
        self._here()
        if self._beliefs.due():
            self._look()
        request_id = pending.metadata.internal_request_id
        ranked = await self._beliefs.ranked(request_id, model)
        if ranked.names:
            self._undelivered[request_id] = pending
        return ranked

    # -- ours

    def _look(self) -> None:
        """Tell what Ray's router knows of its replicas now, and forget requests whose callers left before they went."""
        self._beliefs.listed(self._replica(each) for each in self.curr_replicas.values())
        left = [request_id for request_id, pending in self._undelivered.items() if pending.future.cancelled()]
        for request_id in left:
            del self._undelivered[request_id]
        self._beliefs.abandoned(left)

    def _replica(self, replica: RunningReplica) -> Replica:
        return Replica(
            name=replica.replica_id.unique_id,
            models=sorted(replica.multiplexed_model_ids),
            most=replica.max_ongoing_requests,
            ongoing=self.replica_queue_len_cache.get(replica.replica_id),
        )

    def _routed(self, request_id: str, name: str) -> None:
        self._undelivered.pop(request_id, None)
        self._beliefs.routed(request_id, name)

    def _completed(self, request_id: str, name: str) -> None:
        self._undelivered.pop(request_id, None)
        self._beliefs.completed(request_id, name)

    def _here(self) -> None:
        """Remember where beliefs may be changed."""
        if self._loop is None:
            self._loop, self._thread = asyncio.get_running_loop(), threading.get_ident()

    def _soon(self, what: Callable[[], None]) -> None:
        """Do it on the router's loop: ends of requests are told by other threads."""
        if self._loop is None or threading.get_ident() == self._thread:
            self._safely(what)
        else:
            self._loop.call_soon_threadsafe(self._safely, what)

    def _safely(self, what: Callable[[], None]) -> None:
        try:
            what()
        except Exception:
            self.failures += 1
            log.exception("news of a replica or a request was lost (%d times so far)", self.failures)
