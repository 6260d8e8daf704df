"""What becomes of a decision to send a request: by Envoy to one pod, and by that pod's sidecar to another first.

In: Dispatch effects, and what pods say of the requests that another one decodes. Out: requests to pods, and the events
that a driver would see. Not here: what the core decides, when pods do anything (see `sim.world`).

The pod that prefills gets the prompt alone and holds its KV; when that exists, it goes to the pod that decodes, which
gets the request then. A handover has its link to itself. Until that the pod that decodes knows nothing of the request,
as a real engine; while the request waits for a seat there, its KV takes no room. What goes wrong:
the pod that prefills fails or dies: the pod that decodes does it all;
the pod that decodes dies before it has the request: the fallbacks of the dispatch in order, else the pod that prefills;
it dies later: the request fails.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from lorapick.core.picking.links import transfer_seconds
from lorapick.model import events as said
from lorapick.model.effects import Dispatch
from lorapick.model.events import Event
from lorapick.model.requests import Outcome
from lorapick.model.units import PodName, RequestId
from lorapick.pod.errors import PodError, UnknownAdapter
from lorapick.pod.values import KvExpired, PodEvent, PodRequest, ReceivedKv, RequestFailed, RequestFinished
from lorapick.sim.arrivals import Arrival
from lorapick.sim.kernel import Kernel, Priority
from lorapick.sim.observer import Handed, Observer
from lorapick.sim.setup import Setup
from lorapick.sim.simpod import SimPod

UNREACHABLE, ERROR, UNKNOWN = "prefiller_unreachable", "prefiller_error", "kv_unknown"
"""Why a pod prefills itself although another one was named, in the words of sidecars (`live.podserver`)."""


class Fleet(Protocol):
    """What sending needs of a world."""

    kernel: Kernel
    setup: Setup
    observer: Observer
    open: dict[RequestId, Arrival]

    @property
    def pods(self) -> Mapping[PodName, SimPod]:
        """By name."""
        ...

    def apply(self, kind: Callable[..., Event], **fields: Any) -> None:
        """Hand the core an event, now."""
        ...

    def rewake(self, sim: SimPod) -> None:
        """A pod may have something to do sooner than it had."""
        ...

    def end(self, request_id: RequestId, outcome: Outcome, *, status: int) -> None:
        """A request leaves."""
        ...


class _Course:
    """A request that one pod prefills for another."""

    __slots__ = ("decode", "effect", "fetches", "prefill")

    def __init__(self, effect: Dispatch, *, prefill: SimPod, decode: SimPod) -> None:
        self.effect = effect
        self.prefill = prefill
        self.decode = decode
        self.fetches = 0
        """Handovers begun; the last one counts. 0: its prompt is not computed yet."""

    @property
    def request_id(self) -> RequestId:
        return self.effect.request_id


class Sending:
    """Requests on their way to the pods of one world."""

    def __init__(self, world: Fleet) -> None:
        self._world = world
        self._courses: dict[RequestId, _Course] = {}
        self.fetching = 0
        """Handovers that are under way."""

    def dispatch(self, effect: Dispatch) -> None:
        """Send a request where the core wants it."""
        sim = self._alive(effect.target.pod)
        if sim is None:
            sim = self._fall_back(effect)
        if sim is None:
            self._world.end(effect.request_id, Outcome.FAILED, status=503)
        elif effect.prefill is None:
            self._submit(sim, effect)
        else:
            self._split(effect, decode=sim, prefill=self._alive(effect.prefill.pod))

    def _alive(self, name: PodName) -> SimPod | None:
        sim = self._world.pods.get(name)
        return sim if sim is not None and sim.alive else None

    def _fall_back(self, effect: Dispatch) -> SimPod | None:
        """What Envoy does when a pod refuses the connection; None: nobody takes the request."""
        for target in effect.fallbacks:
            sim = self._alive(target.pod)
            if sim is not None:
                self._world.apply(said.RequestDispatched, request_id=effect.request_id, pod=target.pod)
                return sim
        return None

    def _submit(self, sim: SimPod, effect: Dispatch, *, kv: ReceivedKv | None = None) -> None:
        """Give a request to the pod that answers it."""
        world, arrival = self._world, self._world.open[effect.request_id]
        request = _whole(arrival, effect, kv=kv)
        try:
            sim.engine.submit(request, world.kernel.now)
        except PodError as error:
            world.end(arrival.id, Outcome.FAILED, status=404 if isinstance(error, UnknownAdapter) else 400)
        if world.setup.tells_starts and arrival.id in world.open:
            world.apply(said.ResponseStarted, request_id=arrival.id, status=200)
        sim.note_slots(world.kernel.now)
        world.rewake(sim)

    # -- on two pods

    def _split(self, effect: Dispatch, *, decode: SimPod, prefill: SimPod | None) -> None:
        arrival = self._world.open[effect.request_id]
        self._world.observer.handed(effect.request_id, Handed.BEGUN)
        taken = prefill is not None and prefill is not decode and self._take_prompt(prefill, arrival, effect=effect)
        if prefill is None or not taken:
            self._alone(
                effect, decode, why=UNREACHABLE if prefill is None else ERROR if prefill is not decode else None
            )
            return
        self._courses[arrival.id] = _Course(effect, prefill=prefill, decode=decode)
        self._world.rewake(prefill)

    def _take_prompt(self, sim: SimPod, arrival: Arrival, *, effect: Dispatch) -> bool:
        """Whether a pod takes a request to prefill."""
        now = self._world.kernel.now
        request = PodRequest(
            id=arrival.id,
            adapter=effect.pick.adapter,
            prompt_tokens=arrival.prompt_tokens,
            output_tokens=1,
            blocks=arrival.blocks,
            prefill_only=True,
        )
        try:
            sim.engine.submit(request, now)
        except PodError:
            return False
        sim.note_slots(now)
        return True

    def _alone(self, effect: Dispatch, decode: SimPod, *, why: str | None) -> None:
        """The pod that decodes does it all; `why` is the sidecar's word, None where it was never asked to do else."""
        self._world.observer.handed(effect.request_id, Handed.ALONE)
        self._world.apply(said.PrefillEnded, request_id=effect.request_id, ok=False, why=why)
        self._submit(decode, effect)

    def ours(self, sim: SimPod, event: PodEvent) -> bool:
        """Whether an event is of a request that another pod decodes; the KV of a finished prefill is fetched."""
        request_id = getattr(event, "request_id", None) if self._courses else None
        course = self._courses.get(request_id) if request_id is not None else None
        if course is None or course.prefill is not sim:
            return False
        self._world.observer.prefilling(sim.pod.name, event)
        if isinstance(event, RequestFinished):
            self._fetch(course)
        elif isinstance(event, RequestFailed | KvExpired):
            self._close(course)
            self._alone(course.effect, course.decode, why=UNKNOWN if isinstance(event, KvExpired) else ERROR)
        return True

    def _fetch(self, course: _Course) -> None:
        """The KV begins to go to the pod that decodes."""
        world, decode = self._world, course.decode
        wanted = _whole(world.open[course.request_id], course.effect)
        cached = decode.engine.cached_tokens(wanted, world.kernel.now)
        seconds = transfer_seconds(
            course.prefill.pod,
            decode.pod,
            tokens=wanted.prompt_tokens - cached,
            settings=world.setup.settings.disaggregation,
        )
        course.fetches += 1
        self.fetching += 1
        world.observer.fetching(course.request_id, seconds)
        fetch = (course, course.fetches)
        world.kernel.at(world.kernel.now + seconds, self._fetched, argument=fetch, priority=Priority.POD)

    def _fetched(self, fetch: tuple[_Course, int]) -> None:
        course, number = fetch
        self.fetching -= 1
        if self._courses.get(course.request_id) is not course or course.fetches != number:
            return  # a pod died meanwhile
        self._close(course)
        course.prefill.engine.release_kv(course.request_id, self._world.kernel.now)
        self._world.rewake(course.prefill)
        self._world.observer.handed(course.request_id, Handed.FETCHED)
        self._world.apply(said.PrefillEnded, request_id=course.request_id, ok=True)
        self._submit(course.decode, course.effect, kv=ReceivedKv(adapter=course.effect.pick.adapter))

    def _close(self, course: _Course) -> None:
        del self._courses[course.request_id]

    # -- pods that die

    def died(self, sim: SimPod, lost: Iterable[RequestId]) -> list[RequestId]:
        """A process died. Returns those of `lost` that it was not to prefill for others: they have failed."""
        rest = [each for each in lost if each not in self._courses or self._courses[each].prefill is not sim]
        for course in [*self._courses.values()]:
            if course.prefill is sim:
                self._close(course)
                self._without_prefill(course)
            elif course.decode is sim:
                self._without_decode(course)
        return rest

    def _without_prefill(self, course: _Course) -> None:
        if course.decode is course.prefill:
            self._world.end(course.request_id, Outcome.FAILED, status=503)
        else:
            self._alone(course.effect, course.decode, why=UNREACHABLE)

    def _without_decode(self, course: _Course) -> None:
        decode = self._fall_back(course.effect)
        if decode is None:
            decode = course.prefill
            self._world.apply(said.RequestDispatched, request_id=course.request_id, pod=decode.pod.name)
        course.decode = decode
        moved = Handed.AT_PREFILL if decode is course.prefill else Handed.MOVED
        self._world.observer.handed(course.request_id, moved)
        if course.fetches:
            self._fetch(course)

    def has(self, request_id: RequestId) -> bool:
        """Whether a request is on its way between two pods, or on one that prefills it."""
        course = self._courses.get(request_id)
        if course is None:
            return False
        return course.fetches > 0 or course.prefill.has(request_id, self._world.kernel.now)


def _whole(arrival: Arrival, effect: Dispatch, *, kv: ReceivedKv | None = None) -> PodRequest:
    """What the pod that answers is asked."""
    return PodRequest(
        id=arrival.id,
        adapter=effect.pick.adapter,
        prompt_tokens=arrival.prompt_tokens,
        output_tokens=arrival.output_tokens,
        blocks=arrival.blocks,
        kv=kv,
    )
