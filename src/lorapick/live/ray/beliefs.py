"""What one router of Ray Serve believes of its replicas, and where a request costs least.

In: replicas as Ray lists them, requests that come, are routed and end. Out: names of replicas, best first. Nothing of
Ray is imported here, and nothing is sent to replicas: they load a model when a request for it comes.

The decision is the picker's own (`core.fleet`), driven as behind Envoy: a replica is a pod, a multiplexed model id an
adapter, and a replica's `max_num_models_per_replica` its slots.
"""

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from lorapick.core.picking.policies import POLICIES
from lorapick.live.driver import Driver
from lorapick.model.adapters import Adapter
from lorapick.model.effects import Dispatch
from lorapick.model.events import AdapterDeclared, Event, PodAppeared, PodChanged, PodGone, PodReported
from lorapick.model.pods import LoadedAdapter, Pod, PodLimits, PodReport
from lorapick.model.requests import Outcome, Request
from lorapick.model.settings import (
    AdmissionSettings,
    BudgetSettings,
    LoadTimes,
    PickingSettings,
    PlacementSettings,
    ScrapeSettings,
    Settings,
)
from lorapick.model.units import Seconds

log = logging.getLogger("lorapick.ray")

NO_MODEL = "\x00"
"""Name of what requests without a model id ask for; no model can be called so."""
LAG: Seconds = 1.0
"""For how long what Ray lists may be old: replicas send their models to the controller every 0.1 s, which tells routers
(ray 2.60)."""
EVERY: Seconds = 1.0
"""Between two looks at what Ray knows of queues."""
SERVED = 200
TRIES = 3
"""How often Ray asks before a decision is made anew. It is given the chosen replica alone but for the last time: a busy
one may be too slow to say how long its queue is, and Ray would take the next rank, where the model is not."""


class RouterOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`request_router_kwargs` of a deployment.

    Raises:
        msgspec.ValidationError: when converted from anything else; the message names the key.
        ValueError: a value has no sense.
    """

    max_models: int = 3
    """`max_num_models_per_replica` of the deployment's `serve.multiplexed`: Ray does not tell routers."""
    policy: str = "cost"
    load_seconds: Seconds = 1.0
    """What a load is taken to last until some have been seen."""
    max_wait: Seconds = 5.0
    """How long a request may wait in the router for a load under way or a free slot; then Ray's own choice counts."""
    seed: int = 0

    def __post_init__(self) -> None:
        if self.max_models < 1:
            raise ValueError(f"max_models is {self.max_models}; it must be at least 1")
        if self.policy not in POLICIES:
            raise ValueError(f"policy {self.policy!r} is unknown; use one of {', '.join(POLICIES)}")
        if not (self.load_seconds > 0 and self.max_wait > 0):
            raise ValueError(f"load_seconds is {self.load_seconds}, max_wait {self.max_wait}; both must be above 0")

    def settings(self) -> Settings:
        """The picker's, for this."""
        return Settings(
            base_model=NO_MODEL,
            picking=PickingSettings(policy=self.policy),
            load_times=LoadTimes(cpu=self.load_seconds, disk=self.load_seconds),
            admission=AdmissionSettings(max_wait=self.max_wait, patience=min(2.0, self.max_wait)),
            # A replica goes on while one of its models loads, and nothing is known of what they all load from.
            budgets=BudgetSettings(pods_loading_share=1.0, loads_at_once=1_000, loads_per_pod_per_minute=100_000),
            placement=PlacementSettings(enabled=False),
            scrape=ScrapeSettings(interval=EVERY, stale_after=3600.0),
        )


class Replica(NamedTuple):
    """One replica, as Ray lists it."""

    name: str
    models: Sequence[str]
    """Loaded there, by its own word."""
    most: int
    """Requests that it takes at once (`max_ongoing_requests`)."""
    ongoing: int | None = None
    """Requests there, as Ray's router last heard; None: it has not."""


class Ranked(NamedTuple):
    """Names of replicas for one request."""

    names: tuple[str, ...]
    """Best first; empty: Ray may choose."""
    alone: bool = False
    """Whether the first one is to be asked alone."""


class _Sent(NamedTuple):
    """A request that was decided for."""

    ours: str
    """Its id in the core."""
    names: tuple[str, ...]
    replica: str
    """That is to take it, or has."""
    asked: int = 0
    """How often Ray asked since."""
    taken: bool = False
    """Whether the replica has accepted it."""


class Beliefs:
    """One deployment, as one router sees it. To be called from its event loop."""

    def __init__(self, options: RouterOptions, *, clock: Callable[[], Seconds] = time.monotonic) -> None:
        self._options = options
        self._driver = Driver(options.settings(), seed=options.seed, clock=clock)
        self._clock = clock
        self._listed: dict[str, Replica] = {}
        self._sent: dict[str, _Sent] = {}
        self._looked = float("-inf")
        self.loads_expected = 0
        """Requests that were sent where their model was not believed to be."""
        self.undecided = 0
        """Requests that nobody could be named for, so that Ray's own choice counted."""

    @property
    def served(self) -> int:
        """Requests that ended where they had been accepted."""
        return self._driver.fleet.state.tally.outcomes[Outcome.SERVED]

    @property
    def in_flight(self) -> int:
        """Requests that were decided for and have not ended."""
        return len(self._sent)

    # -- what Ray says

    def listed(self, replicas: Iterable[Replica]) -> None:
        """These are the replicas now; what they say of themselves may be `LAG` old."""
        now = {replica.name: replica for replica in replicas}
        for name in [name for name in self._listed if name not in now]:
            self.gone(name)
        for name, replica in now.items():
            known = self._listed.get(name)
            if known is None:
                self._tell(PodAppeared, pod=self._pod(replica))
            elif known.most != replica.most:
                self._tell(PodChanged, pod=self._pod(replica))
            self._listed[name] = replica
            self._report(replica)
        self._looked = self._clock()

    def due(self) -> bool:
        """Whether it is time to look again at what Ray knows."""
        return self._clock() - self._looked >= EVERY

    def gone(self, name: str) -> None:
        """A replica died or was taken away, with what it had."""
        if self._listed.pop(name, None) is not None:
            self._tell(PodGone, pod=name)

    def _tell(self, kind: type[Event], **values: Any) -> None:
        self._driver.submit(lambda t, i: kind(t=t, id=i, **values))

    def _pod(self, replica: Replica) -> Pod:
        slots = self._options.max_models
        limits = PodLimits(
            max_loras=slots, max_cpu_loras=slots, max_num_seqs=max(1, replica.most), max_queue=max(1, replica.most)
        )
        return Pod(name=replica.name, address=replica.name, base_model=NO_MODEL, limits=limits)

    def _report(self, replica: Replica) -> None:
        # Two reports, for Ray lists models late but counts requests at once: with one age for both, what was sent
        # within `LAG` would be counted by Ray and by us.
        models = PodReport(loaded=tuple(LoadedAdapter(name=name, on_gpu=True) for name in replica.models))
        since = max(0.0, self._clock() - LAG)
        self._tell(PodReported, pod=replica.name, report=models, since=since)
        if replica.ongoing is not None:
            self._tell(PodReported, pod=replica.name, report=PodReport(waiting=0, running=replica.ongoing))

    # -- what becomes of requests

    async def ranked(self, request_id: str, model: str) -> Ranked:
        """Who should take a request. Waits while a load is worth waiting for.

        Asked again for the same request, it names the same replica, then its fallbacks too, and then decides anew; at
        once if that replica is gone.

        Args:
            request_id: Ray's internal one.
            model: the multiplexed model id; empty: none is asked for.
        """
        sent = self._sent.get(request_id)
        if sent is None or sent.asked >= TRIES or sent.replica not in self._listed:
            sent = await self._decided(request_id, model)
        if sent is None:
            return Ranked(())
        sent = self._sent[request_id] = sent._replace(asked=sent.asked + 1)
        return Ranked(sent.names, alone=sent.asked < TRIES)

    async def _decided(self, request_id: str, model: str) -> _Sent | None:
        self._give_up(request_id)
        if model and model not in self._driver.fleet.state.adapters:
            adapter = Adapter(name=model, declared=True)
            self._tell(AdapterDeclared, adapter=adapter)
        answer = await self._driver.decide(Request(id=request_id, model=model or NO_MODEL))
        if not isinstance(answer, Dispatch):
            self.undecided += 1
            return None
        tier = answer.pick.tier
        self.loads_expected += bool(model) and tier is not None and not tier.on_gpu
        names = (answer.target.pod, *(target.pod for target in answer.fallbacks))
        return _Sent(answer.request_id, names, replica=names[0])

    def routed(self, request_id: str, replica: str) -> None:
        """A replica has taken a request."""
        sent = self._sent.get(request_id)
        if sent is None:
            return
        if sent.replica != replica and replica in self._listed:
            self._driver.dispatched(sent.ours, replica)
        self._sent[request_id] = sent._replace(replica=replica, taken=True)

    def completed(self, request_id: str, replica: str) -> None:
        """A request has ended at a replica, Ray does not say how; or was refused by it, and will be asked for again."""
        sent = self._sent.get(request_id)
        if sent is None or sent.replica != replica:
            return
        if not sent.taken:
            self._give_up(request_id)
            return
        del self._sent[request_id]
        self._driver.response_started(sent.ours, SERVED)
        self._driver.ended(sent.ours, Outcome.SERVED, SERVED, None)

    def _give_up(self, request_id: str) -> None:
        sent = self._sent.pop(request_id, None)
        if sent is not None:
            self._driver.ended(sent.ours, Outcome.ABANDONED, None, None)

    def abandoned(self, request_ids: Iterable[str]) -> None:
        """These were decided for and never sent."""
        for request_id in request_ids:
            self._give_up(request_id)
