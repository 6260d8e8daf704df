"""At most one replica leads; one does soon after the other is gone; what is not the leader's is held back."""

import asyncio
import contextlib

import pytest
from cluster_kit import POOL, Picker, adapter, pod, running, settings, until

from lorapick.live.kubernetes import cluster
from lorapick.live.kubernetes.access import Access
from lorapick.live.kubernetes.client import Client
from lorapick.live.kubernetes.leader import Leader, own_identity
from lorapick.model.effects import Load, Register, Touch, Unload
from lorapick.model.events import LoadFailed, RegisterFailed, TouchFailed, UnloadFailed
from lorapick.model.settings import LeaderSettings
from lorapick.testing.apiserver import ApiServer

SHORT = LeaderSettings(duration=1.0, renew_within=0.6, retry=0.1)
SLOW = LeaderSettings(duration=15.0, renew_within=10.0, retry=2.0)


@pytest.fixture
async def server(monkeypatch):
    monkeypatch.setattr(cluster, "STATUS_EVERY", 0.05)
    async with ApiServer().running() as found:
        yield found


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@contextlib.asynccontextmanager
async def candidates(server, *names, clocks=None):
    async with contextlib.AsyncExitStack() as stack:
        found = []
        for index, name in enumerate(names):
            client = await stack.enter_async_context(Client(Access(server.url, namespace="default"), timeout=0.5))
            clock = clocks[index] if clocks else Clock()
            found.append(Leader(client, SLOW, name="lease", identity=name, clock=clock))
        yield found


async def test_the_first_leads_and_the_second_waits(server):
    async with candidates(server, "a", "b") as (a, b):
        await a.attempt()
        await b.attempt()
        assert (a.leads, b.leads) == (True, False)
        assert b.holder == "a"
        spec = server.get("leases", "lease")["spec"]
        assert (spec["holderIdentity"], spec["leaseDurationSeconds"], spec["leaseTransitions"]) == ("a", 15, 0)
        acquired = spec["acquireTime"]
        await a.attempt()
        assert server.get("leases", "lease")["spec"]["acquireTime"] == acquired


async def test_a_leader_stops_before_anybody_else_may_begin(server):
    clock_a, clock_b = Clock(), Clock()
    clock_b.now = 5.0  # clocks have nothing to do with one another
    async with candidates(server, "a", "b", clocks=[clock_a, clock_b]) as (a, b):
        await a.attempt()
        await b.attempt()
        clock_a.now += 9.9
        clock_b.now += 9.9
        assert a.leads
        clock_a.now += 0.2
        clock_b.now += 0.2
        assert not a.leads
        await b.attempt()
        assert not b.leads
        clock_b.now += 5.0
        await b.attempt()
        assert b.leads
        assert server.get("leases", "lease")["spec"]["leaseTransitions"] == 1
        await a.attempt()
        assert (a.leads, a.holder) == (False, "b")


async def test_only_one_of_two_that_come_at_once_wins(server):
    async with candidates(server, *"abcdef") as found:
        await asyncio.gather(*(each.attempt() for each in found))
        assert sum(each.leads for each in found) == 1


async def test_a_lease_that_nobody_may_touch_makes_no_leader(server, caplog):
    server.refuse["leases"] = 403
    async with candidates(server, "a") as (a,):
        await a.attempt()
        assert not a.leads
        assert "must allow get, create and update of leases" in caplog.text
        server.refuse.clear()
        await a.attempt()
        assert a.leads
        assert a.problem is None


async def test_a_request_that_hangs_does_not_prolong_the_lead(server):
    async with Client(Access(server.url, namespace="default"), timeout=30.0) as client:
        leader = Leader(client, SHORT, name="lease", identity="a")
        told: list[bool] = []
        leader.on_change = told.append
        task = asyncio.create_task(leader.run())
        await until(lambda: leader.leads)
        server.hang.add("leases")
        await until(lambda: told[-1:] == [False])
        assert leader.losses
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def test_two_processes_of_one_pod_are_not_the_same():
    assert own_identity({"POD_NAME": "p"}).startswith("p_")
    assert own_identity({"POD_NAME": "p"}) != own_identity({"POD_NAME": "p"})
    assert own_identity({})


async def put_fleet(server):
    await server.put("inferencepools", POOL)
    await server.put("pods", pod("a", "10.0.0.1"))
    await server.put("loraadapters", adapter("sql", replicas=1))


async def test_of_two_pickers_both_pick_and_one_commands(server):
    await put_fleet(server)
    async with running(Picker(server, settings(), name="one")) as one:
        await until(lambda: one.metric("lorapick_leader") == 1)
        async with running(Picker(server, settings(), name="two")) as two:
            await until(lambda: two.report() and "sql" in two.state.adapters)
            await until(lambda: one.report() and one.control.commands)
            assert one.driver.any_endpoint() == two.driver.any_endpoint() == "10.0.0.1:8000"
            assert two.metric("lorapick_leader") == 0
            assert two.control.commands == []
            assert not two.state.placement.leads
            await until(lambda: "status" in server.get("loraadapters", "sql"))
            assert "holderIdentity" in server.get("leases", "lorapick-llama")["spec"]


async def test_a_leader_that_ends_gives_the_lead_to_the_next(server):
    await put_fleet(server)
    slow = LeaderSettings(duration=600.0, renew_within=500.0, retry=0.1)
    async with running(Picker(server, settings(leader=slow), name="two")) as two:
        await until(lambda: two.cluster.leader.leads)
        async with running(Picker(server, settings(leader=slow), name="one")) as one:
            await until(lambda: one.cluster.leader.holder == two.cluster.leader.identity)
            assert not one.cluster.leader.leads
    async with running(Picker(server, settings(leader=slow), name="three")) as three:
        await until(lambda: three.cluster.leader.leads)


async def test_a_leader_that_cannot_renew_stops_and_the_next_begins(server):
    await put_fleet(server)
    async with running(Picker(server, settings(leader=SHORT), name="one")) as one:
        await until(lambda: one.report() and one.control.commands)
        server.refuse["leases"] = 500
        await until(lambda: not one.state.placement.leads)
        count = len(one.control.commands)
        async with running(Picker(server, settings(leader=SHORT), name="two")) as two:
            await until(lambda: two.report() and one.report())
            assert len(one.control.commands) == count
            assert not two.control.commands
            server.refuse.clear()
            await until(lambda: (two.report() and two.control.commands) or one.state.placement.leads)
        assert one.metric("lorapick_leader_losses_total")


async def test_commands_of_a_core_that_does_not_know_yet_are_held_back(server):
    picker = Picker(server, settings())
    for command in (
        Load(cause=1, pod="p", adapters=("x", "y"), why="pin"),
        Unload(cause=1, pod="p", adapter="x", why="pin"),
        Register(cause=1, pod="p", adapter="x"),
        Touch(cause=1, pod="p", adapter="x"),
    ):
        picker.driver.control.perform(command)
    await asyncio.sleep(0)
    kinds = [type(each) for each in picker.events][1:]
    assert kinds == [LoadFailed, LoadFailed, UnloadFailed, RegisterFailed, TouchFailed]
    assert picker.control.commands == []
    assert picker.metric("lorapick_kubernetes_fenced_total") == 4


async def test_without_an_election_this_replica_leads(server):
    await put_fleet(server)
    async with running(Picker(server, settings(leader=LeaderSettings(enabled=False)))) as picker:
        await until(lambda: picker.report() and picker.control.commands)
        assert picker.metric("lorapick_leader") == 1
    assert not any("leases" in path for _, path in server.requests)
