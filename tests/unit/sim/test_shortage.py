"""How short of memory pods are: their own word, whatever the picker makes of it."""

from msgspec.structs import replace
from sim_helpers import ask, config, world

from lorapick.pod.values import SwapMode
from lorapick.sim.shortage import Shortage, Shortfall

SMALL = {"kv_blocks": 25, "max_model_len": 400}
"""400 tokens of KV."""


def played(pod, *arrivals, until, looks):
    made, _ = world(pod=replace(pod, **SMALL))
    shortage = Shortage(made)
    for t in looks:
        made.kernel.at(t, lambda _: shortage.look(made.kernel.now), priority=3)
    made.run(arrivals, until=until)
    return shortage, made


def test_a_drain_pod_says_how_full_it_is():
    # 0.5 + 0.375 x KV + 0.125 x the one slot: 0.9 with 73 % of the KV blocks.
    pod = config(slots=1)
    shortage, _ = played(pod, ask(0.0, "x", prompt=330, output=50), until=3.0, looks=[0.0, 0.3, 2.0])
    assert shortage.between(0.0, 0.3) == Shortfall(looks=1, tight=1)
    assert shortage.between(0.3, 2.0) == Shortfall(looks=1, tight=0)
    assert shortage.between(0.0, 9.0) == Shortfall(looks=2, tight=1)


def test_an_inline_pod_is_short_when_requests_wait():
    pod = config(slots=1, mode=SwapMode.INLINE)
    one, two = (ask(t, "x", prompt=370, output=20) for t in (0.0, 0.01))
    shortage, _ = played(pod, one, until=3.0, looks=[0.0, 0.2])
    assert shortage.between(0.0, 0.2).tight == 0, "its KV is full and nobody waits"
    shortage, _ = played(pod, one, two, until=3.0, looks=[0.0, 0.2])
    assert shortage.between(0.0, 0.2).tight == 1


def test_preemptions_count_over_restarts():
    pod = config(slots=1, mode=SwapMode.INLINE)
    pair = [ask(t, "x", prompt=100, output=150) for t in (0.0, 0.01)]
    shortage, made = played(pod, *pair, until=9.0, looks=[0.0, 8.0])
    assert shortage.between(0.0, 8.0).preemptions == made.pods["pod-1"].preemptions(9.0) > 0
    before = made.pods["pod-1"].preemptions(9.0)
    made.pods["pod-1"].die(9.0)
    assert made.pods["pod-1"].preemptions(9.0) == before
