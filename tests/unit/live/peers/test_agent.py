"""One picker's part in the agreement, over a store in memory: claims that last, messages that go, a silent store."""

import asyncio
from contextlib import suppress

import pytest

from lorapick.core.peers.claims import Standing
from lorapick.live.driver import Driver
from lorapick.live.peers import agent
from lorapick.live.peers.agent import Peers
from lorapick.live.peers.store import Store
from lorapick.model.adapters import Adapter
from lorapick.model.effects import ClaimLoad, ReleaseClaim
from lorapick.model.peers import Marks
from lorapick.model.placement import Side
from lorapick.model.settings import PeersSettings, Settings
from lorapick.wire.peers import Message, Owner, write

KEY = ("legal", Side.DECODE)


class Memory:
    """A store that answers at once, and says what was asked of it."""

    def __init__(self):
        self.asked = []
        self.messages = {}
        self.owner = None

    async def ping(self):
        self.asked.append(("ping",))

    async def close(self):
        self.asked.append(("close",))

    async def claim(self, adapter, side, *, pod, lasts):
        self.asked.append(("claim", adapter, lasts))
        return self.owner or Owner("me", pod)

    async def renew(self, adapter, side, *, lasts):
        self.asked.append(("renew", adapter, lasts))
        return True

    async def release(self, adapter, side):
        self.asked.append(("release", adapter))

    async def said(self):
        return dict(self.messages)

    async def say(self, data, *, lasts):
        self.asked.append(("say", lasts))

    async def forget(self, *names):
        self.asked.append(("forget", *names))

    async def listen(self, *, within):
        await asyncio.sleep(3600)
        yield b""


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


def peers_of(tmp_path, **fields):
    settings = PeersSettings(redis="redis://127.0.0.1:1/0", id="me", stale_after=1.0, **fields)
    driver = Driver(Settings(peers=settings, adapters=(Adapter(name="legal", declared=True),)), seed=0)
    clock = Clock()
    made = Peers(settings, driver, beside=tmp_path, leader=False, clock=clock)
    made._store = store = Memory()
    return made, store, clock


async def steps(task, count=50):
    """Let tasks run for a while."""
    for _ in range(count):
        await asyncio.sleep(0)
    assert not task.done() or task.exception() is None


@pytest.fixture
def no_pauses(monkeypatch):
    """Sleeps are asked for, and take no time."""
    slept, sleep = [], asyncio.sleep

    async def quick(seconds):
        slept.append(seconds)
        await sleep(0)

    monkeypatch.setattr(agent.asyncio, "sleep", quick)
    return slept


async def ended(task):
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def test_a_claim_is_renewed_for_as_long_as_it_is_ours(tmp_path, no_pauses):
    peers, store, _ = peers_of(tmp_path, claim_ttl=9.0)
    claims = peers._driver.fleet.state.peers.claims
    claims.ours[KEY] = None
    task = asyncio.create_task(peers._renew())
    for _ in range(20):
        await no_pauses_step()
    assert no_pauses[0] <= 9.0 / 2, "twice at least before it ends"
    assert ("renew", "legal", 9.0) in store.asked
    claims.ours.clear()
    store.asked.clear()
    for _ in range(20):
        await no_pauses_step()
    assert store.asked == []
    await ended(task)


async def no_pauses_step():
    future = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(future.set_result, None)
    await future


async def test_messages_of_pickers_that_have_gone_are_taken_away(tmp_path, no_pauses):
    peers, store, clock = peers_of(tmp_path)
    for name in ("dead", "alive"):
        store.messages[name] = write(Message(peer=name, number=1, marks=Marks()))
    task = asyncio.create_task(peers._look())
    for number in range(2, 60):
        await no_pauses_step()
        store.messages["alive"] = write(Message(peer="alive", number=number, marks=Marks()))
        clock.now += 1.0
        await no_pauses_step()
    gone = [each[1:] for each in store.asked if each[0] == "forget"]
    assert gone and all(each == ("dead",) for each in gone)
    await ended(task)


async def test_nothing_is_asked_of_a_store_that_is_out_of_reach(tmp_path):
    peers, store, _ = peers_of(tmp_path)
    side = Side.DECODE
    peers.perform(ClaimLoad(cause=0, claim=1, adapter="legal", side=side, pod="a"))
    assert peers._asked.empty()
    peers._came()
    peers.perform(ReleaseClaim(cause=0, adapter="legal", side=side))
    peers.perform(ClaimLoad(cause=0, claim=1, adapter="legal", side=side, pod="a"))
    assert peers._asked.qsize() == 2
    task = asyncio.create_task(peers._ask())
    await steps(task)
    assert store.asked == [("release", "legal")], "nobody wants to know of that claim any more"
    await ended(task)
    peers._lost(OSError("gone"))
    assert not peers._driver.fleet.state.peers.claims.reachable and peers._asked.empty()


async def test_who_ends_gives_back_what_is_its_own(tmp_path):
    peers, store, _ = peers_of(tmp_path)
    peers._came()
    claims = peers._driver.fleet.state.peers.claims
    claims.ask(KEY, 0, pod="a", now=0.0)
    claims.stands(KEY, Standing.OURS, until=1e9)
    await peers._leave()
    assert [each[0] for each in store.asked] == ["release", "forget", "close"]


class Silent:
    """A client whose subscription is taken, and brings nothing: the connection is dead and nobody says so."""

    def register_script(self, text):
        return text

    def pubsub(self, **options):
        return self

    async def __aenter__(self):
        return self

    async def __aexit__(self, *error):
        return None

    async def subscribe(self, channel):
        self.channel = channel

    async def get_message(self, **options):
        self.waited = getattr(self, "waited", 0.0) + options["timeout"]
        return


async def test_a_subscription_that_falls_silent_is_lost():
    client = Silent()
    store = Store(client, fleet="f", me="me")
    with pytest.raises(TimeoutError, match="no word from the store"):
        await anext(store.listen(within=2.0))
    assert client.waited == pytest.approx(2.0) and client.channel == "lorapick:{f}:marks"
