"""Follow the KV events that pods publish: evidence of which adapter ran where.

In: pods with a `kv_events` endpoint, as an observer of discovery's events; their ZMQ messages. Out: `KvStored` for each
adapter that ran, and `KvCleared`, through `submit`. Not here: the format (see `wire.kv_events`), what the core believes
of it, and scraping, which goes on beside this.

Events name blocks by hashes of token ids, and the picker, which has no tokenizer, names them by hashes of text; so
blocks are counted and not passed on, and neither is their removal. Events are evidence of use and never of absence:
those that were missed are counted, and nothing has to be asked for again.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from lorapick.live.transport_counts import TransportCounts
from lorapick.model.effects import Effect
from lorapick.model.events import Event, KvCleared, KvStored, PodAppeared, PodChanged, PodGone
from lorapick.model.pods import Pod
from lorapick.model.units import AdapterName, PodName, Seconds
from lorapick.wire.kv_events import Batch, KvEventsError, decode

if TYPE_CHECKING:
    import zmq.asyncio

log = logging.getLogger(__name__)

Submit: TypeAlias = Callable[[Callable[[Seconds, int], Event]], object]
"""The driver's door: takes a function from (time, id) to the event."""

PAUSE: Seconds = 0.02
"""Between two looks at one pod: steps take as long, and what came meanwhile is one piece of news."""
MOST_AT_ONCE = 256
"""Messages of one pod that are read in one go."""
_MOST_WAITING = 4096
"""Messages of one pod that ZMQ keeps; those beyond are lost and counted."""
_MOST_BYTES = 8 * 1024 * 1024


class KvEvents:
    """One subscription for each pod that publishes. Everything runs on one event loop; only `run` waits."""

    def __init__(self, *, submit: Submit, counts: TransportCounts) -> None:
        """Follow nobody yet."""
        self._submit = submit
        self._counts = counts
        self._pods: dict[PodName, str] = {}
        self._tasks: dict[PodName, asyncio.Task[None]] = {}
        self._group: asyncio.TaskGroup | None = None
        self._context: zmq.asyncio.Context | None = None

    def observe(self, event: Event, _effects: Sequence[Effect]) -> None:
        """Follow discovery: the driver tells its observers every event."""
        if isinstance(event, PodAppeared | PodChanged):
            self._watch(event.pod)
        elif isinstance(event, PodGone):
            self._forget(event.pod)

    def _watch(self, pod: Pod) -> None:
        if self._pods.get(pod.name) == pod.kv_events:
            return
        self._forget(pod.name)
        if pod.kv_events is not None:
            self._pods[pod.name] = pod.kv_events
            self._start(pod.name, pod.kv_events)

    def _forget(self, name: PodName) -> None:
        self._pods.pop(name, None)
        task = self._tasks.pop(name, None)
        if task is not None:
            task.cancel()

    async def run(self) -> None:
        """Follow until cancelled."""
        assert self._group is None, "the KV events are followed already"
        try:
            async with asyncio.TaskGroup() as self._group:
                for name, endpoint in self._pods.items():
                    self._start(name, endpoint)
                try:
                    await asyncio.Event().wait()
                finally:
                    self._group = None  # pods that appear from now on are not begun
        finally:
            self._tasks.clear()
            if self._context is not None:
                self._context.destroy(linger=0)
                self._context = None

    def _start(self, name: PodName, endpoint: str) -> None:
        if self._group is not None:
            self._tasks[name] = self._group.create_task(self._follow(name, endpoint), name=f"KV events {name}")

    async def _follow(self, name: PodName, endpoint: str) -> None:
        import zmq.asyncio  # most fleets have no such endpoint

        if self._context is None:
            self._context = zmq.asyncio.Context()
        socket = self._context.socket(zmq.SUB)
        socket.set_hwm(_MOST_WAITING)
        socket.setsockopt(zmq.MAXMSGSIZE, _MOST_BYTES)
        socket.setsockopt(zmq.LINGER, 0)
        feed = PodFeed(name, submit=self._submit, counts=self._counts)
        try:
            socket.connect(endpoint)
            socket.subscribe(b"")
            while True:
                feed.take(await socket.recv_multipart())
                for _ in range(MOST_AT_ONCE):
                    if not await socket.poll(0):
                        break
                    feed.take(await socket.recv_multipart())
                feed.pass_on()
                await asyncio.sleep(PAUSE)
        except zmq.ZMQError as error:
            log.error("pod %s: no KV events from %s: %s; name the endpoint as tcp://ip:port", name, endpoint, error)
        finally:
            socket.close()


class PodFeed:
    """One pod's messages, gathered until they are passed on."""

    def __init__(self, pod: PodName, *, submit: Submit, counts: TransportCounts) -> None:
        self._pod = pod
        self._submit = submit
        self._counts = counts
        self._last: int | None = None
        self._ran: dict[AdapterName, None] = {}
        self._cleared = False
        self._complained = False

    def take(self, frames: Sequence[bytes]) -> None:
        """One message; one that cannot be read is counted, and the first of them logged."""
        try:
            batch = decode(frames)
        except KvEventsError as error:
            self._counts.kv_events_malformed += 1
            self._complain(str(error))
            return
        self._count(batch)
        if batch.cleared:
            self._cleared = True
        for name in batch.adapters:
            self._ran.pop(name, None)
            self._ran[name] = None

    def _count(self, batch: Batch) -> None:
        last, self._last = self._last, batch.sequence
        if last is not None and batch.sequence > last + 1:
            self._counts.kv_events_missed += batch.sequence - last - 1
        elif last is not None and batch.sequence <= last:
            self._cleared = True  # the numbers begin anew: another process, whose cache is empty
        self._counts.kv_events_malformed += batch.unknown
        if batch.unnamed:
            self._complain("its KV events give adapters by number only; vLLM 0.12 and later name them")

    def _complain(self, what: str) -> None:
        if not self._complained:
            log.warning("pod %s: %s", self._pod, what)
        self._complained = True

    def pass_on(self) -> None:
        """Tell the picker what came since the last time: a cleared cache, then who ran, the last one last."""
        pod = self._pod
        if self._cleared:
            self._submit(lambda t, i: KvCleared(t=t, id=i, pod=pod))
        for name in self._ran:
            self._submit(_stored(pod, name))
        self._cleared = False
        self._ran = {}


def _stored(pod: PodName, adapter: AdapterName) -> Callable[[Seconds, int], Event]:
    return lambda t, i: KvStored(t=t, id=i, pod=pod, adapter=adapter, blocks=())
