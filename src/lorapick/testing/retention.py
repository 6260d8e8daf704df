"""Streams of requests that tell retention policies apart, and one cache that plays them.

In: a seed. Out: (time, adapter) in order of time; the loads of a policy, and the fewest that any policy can have. A
cache of equal slots, in which a missing adapter is always loaded, at once, and nothing is ever in use. Not here: pods,
batches, waiting (see `sim`).
"""

from collections.abc import Callable, Iterable, Mapping
from heapq import merge
from typing import TypeAlias

import msgspec
import numpy as np

from lorapick.core.retention.policies import RETENTIONS
from lorapick.model.retention import Retention, RetentionFacts
from lorapick.model.settings import RetentionSettings
from lorapick.model.units import AdapterName, Seconds
from lorapick.sim.bounds.fewest import FewestLoads
from lorapick.sim.workload.chance import chance

Stream: TypeAlias = list[tuple[Seconds, AdapterName]]

SLOTS = 8
MINUTE: Seconds = 60.0
STEADY = 5.0 / MINUTE
"""Rate of the article's popular adapter beside which a batch comes."""
PLAIN = RetentionFacts()


def poisson(seed: int, adapter: AdapterName, *, rate: float, start: Seconds = 0.0, until: Seconds) -> Stream:
    """Requests for one adapter at a steady rate per second."""
    draw = chance(seed, "retention", adapter, str(start))
    return _sorted(adapter, draw.uniform(start, until, int(draw.poisson(rate * (until - start)))))


def burst(seed: int, adapter: AdapterName, *, count: int, start: Seconds, over: Seconds) -> Stream:
    """Exactly so many requests, at random times."""
    return _sorted(adapter, chance(seed, "retention burst", adapter, str(start)).uniform(start, start + over, count))


def _sorted(adapter: AdapterName, times: "np.typing.NDArray[np.float64]") -> Stream:
    return [(t, adapter) for t in np.sort(times).tolist()]


def merged(streams: Iterable[Stream]) -> Stream:
    """All of them in order of time."""
    return [*merge(*streams)]


def tenants(seed: int, *, start: Seconds = 0.0, until: Seconds) -> Stream:
    """Forty adapters, three requests a second with Zipf 1.0; who is popular depends on `start`."""
    order = chance(seed, "retention tenants", str(start)).permutation(40).tolist()
    total = sum(1.0 / rank for rank in range(1, 41))
    return merged(
        poisson(seed, f"tenant-{number:02}", rate=3.0 / rank / total, start=start, until=until)
        for rank, number in enumerate(order, 1)
    )


def zipf(seed: int) -> Stream:
    """Popularity that never changes, for half an hour."""
    return tenants(seed, until=30 * MINUTE)


def blips(seed: int) -> Stream:
    """Eight adapters with five requests a minute each; every two minutes a batch of 200 in 2 s for a rare one."""
    steady = [poisson(seed, f"steady-{i}", rate=STEADY, until=40 * MINUTE) for i in range(SLOTS)]
    rare = [burst(seed, f"rare-{i}", count=200, start=(10 + 2 * i) * MINUTE, over=2.0) for i in range(15)]
    return merged([*steady, *rare])


def ghosts(seed: int) -> Stream:
    """Four adapters with 1,000 requests each in an hour go; then eight others come, five requests a minute each."""
    old = [burst(seed, f"ghost-{i}", count=1000, start=0.0, over=60 * MINUTE) for i in range(4)]
    new = [poisson(seed, f"new-{i}", rate=STEADY, start=60 * MINUTE, until=120 * MINUTE) for i in range(SLOTS)]
    return merged([*old, *new])


def shifts(seed: int) -> Stream:
    """As `zipf`, and every ten minutes others are popular."""
    times = [(part * 10 * MINUTE, (part + 1) * 10 * MINUTE) for part in range(3)]
    return merged(tenants(seed, start=start, until=until) for start, until in times)


def stretches(seed: int) -> Stream:
    """Forty adapters, each asked for every two seconds for about two minutes, and then not for about eight."""
    return merged(_on_and_off(seed, f"tenant-{i:02}", until=20 * MINUTE) for i in range(40))


def _on_and_off(seed: int, adapter: AdapterName, *, until: Seconds) -> Stream:
    draw = chance(seed, "retention stretches", adapter)
    begin = float(draw.uniform(-8 * MINUTE, 2 * MINUTE))
    found: Stream = []
    while begin < until:
        end = begin + float(draw.exponential(2 * MINUTE))
        if end > 0:
            found += poisson(seed, adapter, rate=0.5, start=max(begin, 0.0), until=end)
        begin = end + float(draw.exponential(8 * MINUTE))
    return found


def once(seed: int) -> Stream:
    """Seven adapters with five requests a minute each, and each second one that is never asked for again."""
    steady = [poisson(seed, f"steady-{i}", rate=STEADY, until=30 * MINUTE) for i in range(SLOTS - 1)]
    strangers = [(t, f"once-{i}") for i, (t, _) in enumerate(poisson(seed, "once", rate=1.0, until=30 * MINUTE))]
    return merged([*steady, strangers])


STREAMS: dict[str, Callable[[int], Stream]] = {
    each.__name__: each for each in (zipf, blips, ghosts, shifts, stretches, once)
}


class Played(msgspec.Struct, frozen=True, kw_only=True):
    """What a stream was for a cache."""

    requests: int
    loads: int
    seconds: Seconds
    """That the loads take, by the facts of their adapters."""

    @property
    def hits(self) -> float:
        """Share of the requests that found their adapter in a slot."""
        return 1.0 - self.loads / self.requests


def play(policy: str, stream: Stream, *, facts: Mapping[AdapterName, RetentionFacts] | None = None) -> Played:
    """The stream through a cache of `SLOTS` under a policy of `RETENTIONS` with default settings."""
    known = facts or {}
    retention: Retention = RETENTIONS[policy](RetentionSettings(), lambda adapter: known.get(adapter, PLAIN))
    slots: dict[AdapterName, None] = {}
    loads, seconds = 0, 0.0
    for now, adapter in stream:
        retention.used(adapter, now)
        if adapter in slots:
            continue
        if len(slots) >= SLOTS:
            gone = retention.least([*slots], now=now)
            del slots[gone]
            retention.removed(gone, now)
        slots[adapter] = None
        retention.loaded(adapter, now)
        loads += 1
        seconds += known.get(adapter, PLAIN).from_cpu
    return Played(requests=len(stream), loads=loads, seconds=seconds)


def fewest_loads(stream: Stream) -> int:
    """Loads of Belady's rule, which knows the future: no policy has fewer."""
    fewest = FewestLoads(SLOTS)
    for _, adapter in stream:
        fewest.add(adapter)
    return fewest.loads
