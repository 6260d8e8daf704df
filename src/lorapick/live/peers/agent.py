"""One picker's part in the agreement: says what it has, hears what others have, claims loads.

In: the driver's fleet, effects of its core, a store. Out: PeerReported, LoadClaimed and PeersReached through the
driver's door. Whatever happens here, requests are served: when the store is lost that is said, and tried again.
Not here: what any of it means (see `core.peers`), keys and scripts (see `live.peers.store`).
"""

import asyncio
import contextlib
import logging
import os
import random
import socket
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from lorapick.core.peers.claims import Claim, Key, Standing
from lorapick.core.peers.saying import own_marks
from lorapick.live.driver import Driver
from lorapick.live.fencing import Fence
from lorapick.live.peers.counts import PeersCounts
from lorapick.live.peers.leading import StoreLeader
from lorapick.live.peers.store import Store, connect
from lorapick.model.effects import ClaimLoad, Effect, ReleaseClaim
from lorapick.model.events import Event, LoadClaimed, PeerReported, PeersReached
from lorapick.model.peers import Marks
from lorapick.model.settings import PeersSettings
from lorapick.model.tiers import Tier
from lorapick.model.units import Seconds
from lorapick.wire.peers import Message, read, write

log = logging.getLogger(__name__)

SAY_EVERY: Seconds = 0.1
"""What has changed is told within so long; a load that begins or ends is told at once."""
GATHER: Seconds = 0.005
"""Changes within so long are one message."""
SHORTEST_PAUSE: Seconds = 0.1
LONGEST_PAUSE: Seconds = 5.0
"""Between two attempts to reach the store."""
MOST_ASKED = 10_000
"""Claims and releases that wait to be sent."""
MOST_HEARD = 1_000
"""Pickers whose last message is remembered."""
FORGOTTEN_AFTER: Seconds = 30.0
"""Messages of pickers that have said nothing for so long are taken out of the store."""


def own_name(settings: PeersSettings) -> str:
    """This process and no other: its configured name or where it runs, and a mark that a restart changes."""
    return f"{settings.id or f'{socket.gethostname()}-{os.getpid()}'}~{uuid.uuid4().hex[:8]}"


class Peers:
    """Used on the driver's event loop."""

    def __init__(
        self,
        settings: PeersSettings,
        driver: Driver,
        *,
        beside: Path,
        leader: bool = True,
        environment: Mapping[str, str] = os.environ,
        clock: Callable[[], Seconds] = time.monotonic,
    ) -> None:
        """Send nothing yet. With `leader` (and unless the settings say no) commands to pods are fenced from here on.

        Raises:
            PeersError: the store cannot be used by this process at all.
        """
        self.me = own_name(settings)
        self.counts = PeersCounts()
        self._settings = settings
        self._driver = driver
        self._clock = clock
        self._store = Store(connect(settings, beside=beside, environment=environment), fleet=settings.fleet, me=self.me)
        self._asked: asyncio.Queue[ClaimLoad | ReleaseClaim] = asyncio.Queue(MOST_ASKED)
        self._changed = asyncio.Event()
        self._number = 0
        self._heard: dict[str, tuple[int, Seconds]] = {}
        """Number of each peer's last message, and when that was first seen."""
        self._pause = SHORTEST_PAUSE
        self._up = False
        self._said_down = False
        self.leader = self._candidate() if leader and settings.leader else None

    def _candidate(self) -> StoreLeader | None:
        control = self._driver.control
        if control is None:
            return None
        leader = StoreLeader(self._store, me=self.me, clock=self._clock)
        fence = Fence(self._driver, leader, inner=control, counts=self.counts)
        self._driver.control = fence
        leader.on_change = fence.changed
        fence.changed(False)
        return leader

    # -- what the driver tells

    def perform(self, effect: ClaimLoad | ReleaseClaim) -> None:
        """Ask, or give back, soon; an answer is an event."""
        if not self._up:
            return  # claims end by themselves, in the store and in the core
        try:
            self._asked.put_nowait(effect)
        except asyncio.QueueFull:
            self.counts.dropped += 1

    def observe(self, event: Event, effects: Sequence[Effect]) -> None:
        """A load that begins or ends is told at once."""
        del event, effects
        if any(Tier.LOADING in (change.before, change.after) for change in self._driver.fleet.changes):
            self._changed.set()

    # -- the store

    async def run(self) -> None:
        """Agree until cancelled; then leave."""
        try:
            while True:
                await self._session()
                await asyncio.sleep(self._pause * random.uniform(0.5, 1.0))
                self._pause = min(2 * self._pause, LONGEST_PAUSE)
        finally:
            await asyncio.shield(self._leave())

    async def _session(self) -> None:
        """Until the store is lost."""
        try:
            async with asyncio.timeout(3.0):
                await self._store.ping()
            self._came()
            async with asyncio.TaskGroup() as group:
                group.create_task(self._listen(), name="hear peers")
                group.create_task(self._say(), name="tell peers")
                group.create_task(self._look(), name="look for peers")
                group.create_task(self._ask(), name="claims")
                group.create_task(self._renew(), name="renew claims")
                if self.leader is not None:
                    group.create_task(self.leader.run(), name="leader")
        except ExceptionGroup as group_of:
            self._lost(group_of.exceptions[0])
        except Exception as error:  # noqa: BLE001 - whatever the client raises, requests are served and it is said
            self._lost(error)

    def _came(self) -> None:
        self._up, self._pause = True, SHORTEST_PAUSE
        self._said_down = False
        self.counts.connects += 1
        log.info("peers: the store is in reach; this picker is %s of fleet %s", self.me, self._settings.fleet)
        self._driver.submit(lambda t, i: PeersReached(t=t, id=i, up=True))

    def _lost(self, error: BaseException) -> None:
        why = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        self.counts.losses[type(error).__name__] += 1
        if not self._said_down:
            log.warning("peers: the store is out of reach, so this picker goes on alone: %s", why)
        self._said_down = True
        self._end(why)

    def _end(self, why: str) -> None:
        self._up = False
        while not self._asked.empty():
            self._asked.get_nowait()
        self._driver.submit(lambda t, i: PeersReached(t=t, id=i, up=False, why=why[:300]))

    async def _leave(self) -> None:
        """Take what is ours out of the store, if it answers."""
        was_up, ours = self._up, [*self._driver.fleet.state.peers.claims.ours]
        self._end("this picker ends")  # from here on the core has no claims
        with contextlib.suppress(Exception):
            async with asyncio.timeout(1.0):
                if was_up:
                    for adapter, side in ours:
                        await self._store.release(adapter, side)
                    if self.leader is not None:
                        await self.leader.release()
                    await self._store.forget(self.me)
        with contextlib.suppress(Exception):
            await self._store.close()

    # -- marks

    async def _say(self) -> None:
        heartbeat, last, said = self._settings.stale_after / 4, Marks(), float("-inf")
        while True:
            marks = own_marks(self._driver.fleet.state)
            if marks != last or self._clock() - said >= heartbeat:
                self._number += 1
                data = write(Message(peer=self.me, number=self._number, marks=marks))
                if data is None:
                    self.counts.too_large += 1
                else:
                    await self._store.say(data, lasts=max(60.0, 10 * self._settings.stale_after))
                    self.counts.said += 1
                last, said = marks, self._clock()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(SAY_EVERY):
                    await self._changed.wait()
                await asyncio.sleep(GATHER)
            self._changed.clear()

    async def _listen(self) -> None:
        async for data in self._store.listen(within=max(1.0, self._settings.stale_after)):
            self._hear(data, looked=False)

    async def _look(self) -> None:
        """What was not heard: messages that were left while nobody listened."""
        while True:
            messages = await self._store.said()
            for data in messages.values():
                self._hear(data, looked=True)
            now = self._clock()
            gone = [name for name in messages if now - self._heard.get(name, (0, now))[1] > FORGOTTEN_AFTER]
            if gone:
                await self._store.forget(*gone)
            await asyncio.sleep(self._settings.stale_after / 2)

    def _hear(self, data: bytes, *, looked: bool) -> None:
        message = read(data)
        if message is None:
            self.counts.malformed += 1
            return
        name, before = message.peer, self._heard.get(message.peer)
        if name == self.me or (before is not None and message.number <= before[0]):
            return
        self._heard[name] = (message.number, self._clock())
        if len(self._heard) > MOST_HEARD:
            del self._heard[next(iter(self._heard))]
        if looked and before is None:
            return  # nobody knows how old it is; one that lives will say more
        self.counts.heard += 1
        self.counts.missed += looked
        marks = message.marks
        self._driver.submit(
            lambda t, i: PeerReported(
                t=t, id=i, peer=name, loads=marks.loads, in_flight=marks.in_flight, pins=marks.pins, mode=marks.mode
            )
        )

    # -- claims

    async def _ask(self) -> None:
        """One after the other, so that a release does not overtake a claim."""
        while True:
            effect = await self._asked.get()
            if isinstance(effect, ReleaseClaim):
                await self._store.release(effect.adapter, effect.side)
            elif self._wanted(effect):
                await self._claim(effect)

    def _wanted(self, effect: ClaimLoad) -> bool:
        """Whether the core still wants to know: it may have waited for too long."""
        claim: Claim | None = self._driver.fleet.state.peers.claims.by_key.get((effect.adapter, effect.side))
        return claim is not None and claim.number == effect.claim and claim.standing in (Standing.ASKED, Standing.OURS)

    async def _claim(self, effect: ClaimLoad) -> None:
        owner = await self._store.claim(effect.adapter, effect.side, pod=effect.pod, lasts=self._settings.claim_ttl)
        granted = owner.peer == self.me
        self._driver.submit(
            lambda t, i: LoadClaimed(
                t=t,
                id=i,
                claim=effect.claim,
                adapter=effect.adapter,
                side=effect.side,
                granted=granted,
                owner=owner.peer,
                pod=owner.pod,
            )
        )

    async def _renew(self) -> None:
        """Claims of loads that take long must not end before these."""
        while True:
            await asyncio.sleep(self._settings.claim_ttl / 3)
            keys: list[Key] = [*self._driver.fleet.state.peers.claims.ours]
            for adapter, side in keys:
                await self._store.renew(adapter, side, lasts=self._settings.claim_ttl)
