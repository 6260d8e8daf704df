"""The lease of several pickers: whatever a store delays, two never lead at once, and somebody does soon."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lorapick.live.peers import leading
from lorapick.live.peers.leading import LASTS, RENEW_WITHIN, StoreLeader


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


class Lease:
    """One lease of a store, by the store's clock; answers come `late`."""

    def __init__(self, clock):
        self.clock = clock
        self.holder, self.until = None, 0.0
        self.late = (0.0, 0.0)

    def of(self, name):
        return _Store(self, name)

    def take(self, name, lasts):
        if self.holder in (None, name) or self.clock.now >= self.until:
            self.holder, self.until = name, self.clock.now + lasts
        return self.holder


class _Store:
    def __init__(self, lease, name):
        self.lease, self.name = lease, name

    async def lead(self, *, lasts):
        there, back = self.lease.late
        self.lease.clock.now += there
        holder = self.lease.take(self.name, lasts)
        self.lease.clock.now += back
        return holder

    async def follow(self):
        if self.lease.holder == self.name:
            self.lease.holder = None


def candidates(*names):
    clock = Clock()
    lease = Lease(clock)
    return lease, [StoreLeader(lease.of(name), me=name, clock=clock) for name in names]


async def test_a_lead_ends_by_itself_before_the_store_gives_it_to_another():
    lease, (one, other) = candidates("one", "other")
    await one.attempt()
    assert one.leads and one.holder == "one"
    await other.attempt()
    assert not other.leads and other.holder == "one"
    lease.clock.now = RENEW_WITHIN
    assert not one.leads
    await other.attempt()
    assert not other.leads, "the store keeps it for longer"
    lease.clock.now = LASTS
    await other.attempt()
    assert other.leads and not one.leads
    await one.release()
    await other.release()


async def test_it_counts_from_before_it_was_asked_for():
    lease, (one,) = candidates("one")
    lease.late = (1.0, 0.5)
    await one.attempt()
    assert one.leads
    lease.clock.now = RENEW_WITHIN - 0.1
    assert one.leads
    lease.clock.now = RENEW_WITHIN
    assert not one.leads, "an answer that takes its time lengthens nothing"
    await one.release()


async def test_who_leads_renews_and_who_gives_it_back_is_followed_at_once():
    lease, (one, other) = candidates("one", "other")
    told = []
    one.on_change = told.append
    for _ in range(20):
        await one.attempt()
        lease.clock.now += 1.0
        assert one.leads
    assert told == [True]
    await one.release()
    assert told == [True, False] and not one.leads and one.losses == 0
    await other.attempt()
    assert other.leads
    await other.release()


async def test_a_candidate_tries_every_second(monkeypatch):
    lease, (one,) = candidates("one")
    slept = []

    async def sleep(seconds):
        slept.append(seconds)
        lease.clock.now += seconds
        if len(slept) == 10:
            raise asyncio.CancelledError

    monkeypatch.setattr(leading.asyncio, "sleep", sleep)
    with pytest.raises(asyncio.CancelledError):
        await one.run()
    assert one.leads and sum(slept) / len(slept) < RENEW_WITHIN / 2, "one lost attempt costs nobody the lead"
    one.tell()
    one._timer.cancel()


STEPS = st.tuples(
    st.integers(0, 2), st.sampled_from([0.0, 0.3, 1.0]), st.sampled_from([0.0, 0.3, 3.0]), st.floats(0.0, 3.0)
)


@settings(max_examples=200, deadline=None)
@given(steps=st.lists(STEPS, max_size=40))
def test_two_never_lead(steps):
    async def play():
        lease, all_of_them = candidates("a", "b", "c")
        for who, there, back, wait in steps:
            lease.late = (there, back)
            await all_of_them[who].attempt()
            assert sum(each.leads for each in all_of_them) <= 1
            lease.clock.now += wait
            assert sum(each.leads for each in all_of_them) <= 1
        for each in all_of_them:
            await each.release()

    asyncio.run(play())
