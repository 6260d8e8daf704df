"""Drivers with agents of their own in one process, over a real redis-server: what they say, claim, lead, survive."""

import asyncio
import signal
from contextlib import asynccontextmanager, suppress

import pytest
import trustme
from msgspec.structs import replace
from redis.exceptions import RedisError
from redis_kit import RedisServer

from lorapick.live.addresses import free_ports
from lorapick.live.driver import Driver
from lorapick.live.peers.agent import Peers
from lorapick.live.peers.store import PeersError, Store, connect
from lorapick.model.adapters import Adapter, PinSpec
from lorapick.model.arms import Mode, ModeKind
from lorapick.model.effects import Dispatch
from lorapick.model.events import ConfigChanged, PinSet, PodAppeared, PodReported
from lorapick.model.placement import Side
from lorapick.model.pods import PodReport
from lorapick.model.requests import Outcome, Request
from lorapick.model.settings import PeersSettings, Settings
from lorapick.model.tiers import Source
from lorapick.testing.playbook import plain_pod

pytestmark = [pytest.mark.system, pytest.mark.timeout(60)]
PODS = ("a", "b", "c", "d")
ADAPTERS = tuple(Adapter(name=f"adapter-{number}", declared=True) for number in range(20))


@pytest.fixture
def redis(tmp_path):
    server = RedisServer(tmp_path)
    server.start()
    yield server
    server.kill()


class Control:
    """Commands that got through the fence."""

    def __init__(self):
        self.commands = []

    def perform(self, command, /):
        self.commands.append(command)


class Picker:
    def __init__(self, redis, name, **settings):
        self.settings = PeersSettings(redis=redis.url, id=name, stale_after=1.0, claim_timeout=0.5, **settings)
        self.driver = Driver(Settings(peers=self.settings, adapters=ADAPTERS), seed=0)
        self.driver.control = self.control = Control()
        self.peers = Peers(self.settings, self.driver, beside=redis.socket.parent)
        self.driver.agreement = self.peers
        self.driver.observers.append(self.peers)
        for pod in PODS:
            self.driver.submit(lambda t, i, pod=pod: PodAppeared(t=t, id=i, pod=plain_pod(pod)))
            self.report(pod)
        self.task = asyncio.create_task(self.peers.run())

    def report(self, pod):
        report = PodReport(waiting=0, running=0, registered=tuple(each.name for each in ADAPTERS))
        self.driver.submit(lambda t, i: PodReported(t=t, id=i, pod=pod, report=report))

    @property
    def state(self):
        return self.driver.fleet.state

    @property
    def claims(self):
        return self.state.peers.claims

    async def ask(self, name, request_id):
        answer = await self.driver.decide(Request(id=request_id, model=name))
        self.driver.fleet.check()
        return answer

    async def end(self):
        self.task.cancel()
        with suppress(asyncio.CancelledError):
            await self.task


@asynccontextmanager
async def pickers(redis, count=2, **settings):
    found = [Picker(redis, f"picker-{number}", **settings) for number in range(count)]
    try:
        await until(lambda: all(each.claims.reachable for each in found))
        await until(lambda: all(len(each.state.peers.marks.peers) == count - 1 for each in found))
        yield found
    finally:
        for each in found:
            await each.end()


async def until(true, within=20.0):
    end = asyncio.get_running_loop().time() + within
    while not true():
        assert asyncio.get_running_loop().time() < end, "it did not become true"
        await asyncio.sleep(0.01)


async def stampede(found, name, each=20, tag=""):
    """Requests for one adapter to all pickers at once; the pods that they were sent to."""
    asked = [
        picker.ask(name, f"{tag}{name}-{number}-{index}")
        for index in range(each)
        for number, picker in enumerate(found)
    ]
    answers = await asyncio.gather(*asked)
    for number, picker in enumerate(found):
        for index in range(each):
            picker.driver.ended(f"{tag}{name}-{number}-{index}", Outcome.SERVED, 200, None)
    assert all(isinstance(answer, Dispatch) for answer in answers)
    return [answer.target.pod for answer in answers]


async def test_a_stampede_through_several_pickers_comes_to_one_pod(redis):
    async with pickers(redis, 3) as found:
        for adapter in ADAPTERS[:8]:
            assert len({*await stampede(found, adapter.name)}) == 1, adapter.name
        counts = [picker.claims.counts for picker in found]
        assert sum(count["granted"] for count in counts) == 8
        assert sum(count["timeout"] + count["unreachable"] for count in counts) == 0
        assert sum(picker.state.tally.loads for picker in found) == 8
        # Loads end, and nothing is left of any claim.
        await until(lambda: not any(picker.claims.ours or picker.claims.waits for picker in found))
        client = connect(found[0].settings, beside=redis.socket.parent)
        await until_async(lambda: no_claims(client))
        await client.aclose()


async def no_claims(client):
    return not await client.keys("lorapick:*claim*")


async def until_async(true, within=10.0):
    end = asyncio.get_running_loop().time() + within
    while not await true():
        assert asyncio.get_running_loop().time() < end
        await asyncio.sleep(0.02)


async def test_marks_counts_and_pins_arrive(redis):
    async with pickers(redis) as (one, two):
        one.driver.submit(lambda t, i: PinSet(t=t, id=i, adapter="adapter-3", pin=PinSpec(replicas=2)))
        pod = (await one.ask("adapter-1", "r1")).target.pod
        row = two.state.columns.row_of[pod]
        await until(lambda: two.state.loads[row].others == 1)
        assert two.state.columns.load[row] == 1.0
        assert two.state.residency.home(row).cells["adapter-1"].source is Source.PEER
        assert two.state.all_pins == {"adapter-3": PinSpec(replicas=2)} and two.state.pins == {}
        assert two.state.peers.marks.pinned_by["adapter-3"].startswith("picker-0~")
        one.driver.ended("r1", Outcome.SERVED, 200, None)
        await until(lambda: two.state.loads[row].others == 0)
        two.driver.fleet.check()


async def test_a_picker_that_is_gone_counts_for_nothing_soon(redis):
    async with pickers(redis) as (one, two):
        await one.ask("adapter-1", "r1")
        await until(lambda: any(load.others for load in two.state.loads.values()))
        await one.end()
        await until(lambda: not two.state.peers.marks.peers)
        assert not any(load.others for load in two.state.loads.values())
        two.driver.fleet.check()


async def test_the_store_dies_and_comes_back(redis):
    async with pickers(redis) as found:
        await stampede(found, "adapter-1")
        redis.kill()
        await until(lambda: not any(picker.claims.reachable for picker in found))
        pods = await stampede(found, "adapter-2")
        assert len({*pods}) <= 2  # each picker by itself
        assert all(picker.claims.counts["unreachable"] for picker in found)
        assert all(picker.state.peers.problem for picker in found)
        redis.start()
        await until(lambda: all(picker.claims.reachable and picker.state.peers.marks.peers for picker in found))
        assert len({*await stampede(found, "adapter-3")}) == 1


async def test_a_store_that_hangs_delays_loads_for_a_moment_only(redis):
    async with pickers(redis) as found:
        redis.signal(signal.SIGSTOP)
        try:
            pods = await asyncio.wait_for(stampede(found, "adapter-1"), 10)
            assert len(pods) == 40
            assert sum(picker.claims.counts["timeout"] + picker.claims.counts["unreachable"] for picker in found) >= 2
            await until(lambda: not any(picker.claims.reachable for picker in found))
        finally:
            redis.signal(signal.SIGCONT)
        await until(lambda: all(picker.claims.reachable and picker.state.peers.marks.peers for picker in found))
        assert len({*await stampede(found, "adapter-2")}) == 1


async def test_one_picker_leads_and_another_follows_it(redis):
    async with pickers(redis, 2) as found:
        await until(lambda: sum(picker.peers.leader.leads for picker in found) == 1)
        leader = next(picker for picker in found if picker.peers.leader.leads)
        other = next(picker for picker in found if picker is not leader)
        # A pin that is set at the one that does not lead is carried out by the leader.
        other.driver.submit(lambda t, i: PinSet(t=t, id=i, adapter="adapter-5", pin=PinSpec(replicas=1)))
        await until(lambda: leader.control.commands)
        assert not other.control.commands
        await leader.end()
        await until(lambda: other.peers.leader.leads)


async def test_claims_are_fenced_by_owner(redis):
    settings = PeersSettings(redis=redis.url)
    client = connect(settings, beside=redis.socket.parent)
    one, two = (Store(client, fleet="f", me=name) for name in ("one", "two"))
    side = Side.DECODE
    assert (await one.claim("x", side, pod="a", lasts=30.0)).peer == "one"
    assert (await two.claim("x", side, pod="b", lasts=30.0)) == (await two.claim("x", side, pod="c", lasts=30.0))
    held = await two.claim("x", side, pod="b", lasts=30.0)
    assert (held.peer, held.pod) == ("one", "a")
    assert (await one.claim("x", side, pod="c", lasts=30.0)).pod == "c"  # moved
    await two.release("x", side)
    assert not await two.renew("x", side, lasts=30.0)
    assert await one.renew("x", side, lasts=30.0)
    assert (await two.claim("x", Side.PREFILL, pod="b", lasts=30.0)).peer == "two"
    other_fleet = Store(client, fleet="g", me="two")
    assert (await other_fleet.claim("x", side, pod="b", lasts=0.05)).peer == "two"
    await one.release("x", side)
    assert (await two.claim("x", side, pod="b", lasts=0.05)).peer == "two"
    await asyncio.sleep(0.2)
    assert (await one.claim("x", side, pod="a", lasts=30.0)).peer == "one"
    await client.aclose()


async def test_a_password_is_asked_for(redis, tmp_path):
    redis.kill()
    redis.start("--requirepass", "secret")
    settings = PeersSettings(redis=redis.url, password="LORAPICK_TEST_REDIS")
    with pytest.raises(PeersError, match="LORAPICK_TEST_REDIS is not set"):
        connect(settings, beside=tmp_path, environment={})
    client = connect(settings, beside=tmp_path, environment={"LORAPICK_TEST_REDIS": "secret"})
    await Store(client, fleet="f", me="one").ping()
    await client.aclose()


async def test_a_store_by_tls_is_asked_for_its_certificate_and_shown_ours(redis, tmp_path):
    authority, stranger = trustme.CA(), trustme.CA()
    made = authority.issue_cert("localhost", "127.0.0.1")
    for name, ca in (("ca.crt", authority), ("other.crt", stranger)):
        (tmp_path / name).write_bytes(ca.cert_pem.bytes())
    (tmp_path / "tls.key").write_bytes(made.private_key_pem.bytes())
    (tmp_path / "tls.crt").write_bytes(b"".join(part.bytes() for part in made.cert_chain_pems))
    (port,) = free_ports(1)
    redis.kill()
    files = [("--tls-cert-file", "tls.crt"), ("--tls-key-file", "tls.key"), ("--tls-ca-cert-file", "ca.crt")]
    options = [part for flag, name in files for part in (flag, str(tmp_path / name))]
    redis.start("--tls-port", str(port), "--bind", "127.0.0.1", "--tls-auth-clients", "yes", *options)
    own = {"tls_certificate": "tls.crt", "tls_key": "tls.key"}
    good = PeersSettings(redis=f"rediss://127.0.0.1:{port}/0", tls_ca="ca.crt", **own)
    client = connect(good, beside=tmp_path)
    assert (await Store(client, fleet="f", me="one").claim("x", Side.DECODE, pod="a", lasts=9.0)).peer == "one"
    await client.aclose()
    without = PeersSettings(redis=good.redis, tls_ca="ca.crt")
    for wrong in (without, PeersSettings(redis=good.redis, tls_ca="other.crt", **own)):
        client = connect(wrong, beside=tmp_path)
        with pytest.raises((RedisError, OSError)):
            await Store(client, fleet="f", me="two").ping()
        await client.aclose()


async def test_one_command_sets_the_mode_of_all_and_outlives_the_picker_it_was_given_to(redis):
    async with pickers(redis, 3) as (one, other, third):
        settings = replace(one.state.settings, mode=Mode(kind=ModeKind.OBSERVE))
        one.driver.submit(lambda t, i: ConfigChanged(t=t, id=i, settings=settings))
        await until(lambda: all(each.state.settings.mode.kind is ModeKind.OBSERVE for each in (other, third)))
        await one.end()
        back = replace(other.state.settings, mode=Mode())
        other.driver.submit(lambda t, i: ConfigChanged(t=t, id=i, settings=back))
        await until(lambda: third.state.settings.mode == Mode())
