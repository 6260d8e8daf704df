"""Residencies of one pod: conservation, what counts as an eviction and what does not."""

from random import Random

from lorapick.core.signals.stays import PodStays
from lorapick.model.signals import Change
from lorapick.model.tiers import Tier

LOADING, IDLE, CPU, DISK = Tier.LOADING, Tier.GPU_IDLE, Tier.CPU, Tier.DISK


def change(t, name, before, after, *, since=0.0, restart=False, waited=True):
    return Change(t, "a", name, before, after, since, DISK, waited, restart=restart)


def test_a_residency_begins_with_its_load_and_ends_with_its_eviction():
    stays = PodStays()
    assert stays.take(change(10.0, "x", DISK, LOADING)) is None
    assert stays.take(change(10.5, "x", LOADING, IDLE, since=10.0)) is None
    stays.used("x", now=30.0)
    assert stays.take(change(40.0, "x", IDLE, CPU, since=10.5)) == 30.0
    assert stays.evictions_per_second(40.0, watched=100.0) == 1 / 100
    assert abs(stays.unused.quantile(0.5, now=40.0) - 10.0) < 0.6


def test_failed_loads_and_restarts_are_no_evictions():
    stays = PodStays()
    stays.take(change(1.0, "x", DISK, LOADING))
    assert stays.take(change(2.0, "x", LOADING, DISK, since=1.0)) is None
    stays.take(change(3.0, "y", CPU, LOADING))
    stays.take(change(4.0, "y", LOADING, IDLE, since=3.0))
    assert stays.take(change(5.0, "y", IDLE, DISK, since=4.0, restart=True)) is None
    assert stays.evictions.total(5.0) == 0 and not stays.begun
    assert stays.loads.total(5.0) == 2 and stays.swaps.total(5.0) == 2


def test_residencies_add_up_to_slots_in_use_times_time():
    chance, stays, now = Random(5), PodStays(), 0.0
    held, ended, area = {}, 0.0, 0.0
    for _ in range(500):
        step = chance.expovariate(1.0)
        area += len(held) * step
        now += step
        name = f"n{chance.randrange(9)}"
        if name in held:
            ended += stays.take(change(now, name, IDLE, DISK, since=held.pop(name)))
        elif len(held) < 4:
            stays.take(change(now, name, DISK, IDLE))
            held[name] = now
    still = sum(now - begun for begun in stays.begun.values())
    assert stays.begun == held
    assert abs(ended + still - area) < 1e-6
