"""Memory levels under a retention policy."""

import random

import pytest
from pod_helpers import MB, MS, ask, config, pod, rest, serve, told, warm

from lorapick.core.retention.policies import RETENTIONS
from lorapick.model.retention import RetentionFacts
from lorapick.model.settings import RetentionSettings
from lorapick.model.tiers import Tier
from lorapick.pod.engine import PodEngine
from lorapick.pod.values import AdapterSpec, Memory, SwapMode


class Told:
    """A policy that notes what it hears, and names who leaves."""

    name = "told"

    def __init__(self, *leave):
        self.heard = []
        self.asked = []
        self.leave = list(leave)

    def used(self, adapter, now):
        self.heard.append((round(now / MS, 3), "used", adapter))

    def touched(self, adapter, now):
        self.heard.append((round(now / MS, 3), "touched", adapter))

    def loaded(self, adapter, now):
        self.heard.append((round(now / MS, 3), "loaded", adapter))

    def removed(self, adapter, now):
        self.heard.append((round(now / MS, 3), "removed", adapter))

    def least(self, candidates, *, now, leaves_for=Tier.CPU):
        self.asked.append((tuple(candidates), leaves_for))
        return next(name for name in self.leave if name in candidates)


def kept(policy, mode=SwapMode.INLINE, **more):
    adapters = [AdapterSpec(name=name, size=50 * MB) for name in "abcdef"]
    retention = policy if callable(policy) else lambda: policy
    return PodEngine(config(mode, **more), adapters, now=0.0, retention=retention)


def made(name):
    return lambda: RETENTIONS[name](RetentionSettings(), lambda _: RetentionFacts())


def test_the_policy_hears_what_happens_and_when():
    policy = Told("a", "b")
    engine = kept(policy, slots=1, host=1)
    serve(engine, ask("1", "a"), 0.0)
    serve(engine, ask("2", "b"), 1.0)
    # From disk into a free slot a load takes 13 + 20 + 75 ms, into a full one 5 more; a step takes 10.
    assert policy.heard == [
        (108.0, "loaded", "a"),
        (108.0, "used", "a"),
        (118.0, "touched", "a"),
        (1000.0, "removed", "a"),
        (1113.0, "loaded", "b"),
        (1113.0, "used", "b"),
        (1123.0, "touched", "b"),
    ]
    assert policy.asked == [(("a",), Tier.CPU), (("a",), Tier.DISK)]


def test_the_policy_says_who_leaves():
    engine = kept(Told("b", "c", "a"), slots=2, host=2)
    now = serve(engine, ask("c", "c"), warm(engine, "a", "b"))
    # LRU would have let a go.
    assert engine.stats(now).on_gpu == ("a", "c")


def test_nobody_is_asked_about_who_runs():
    policy = Told("a", "b")
    engine = kept(policy, slots=2, host=4)
    now = warm(engine, "a", "b")
    engine.submit(ask("long", "a", output=50), now)
    engine.submit(ask("c", "c"), now + 15 * MS)
    rest(engine)
    assert policy.asked == [(("b",), Tier.CPU)]


def test_a_new_process_has_a_new_policy():
    policies = []
    engine = kept(lambda: policies.append(Told("a", "b")) or policies[-1], slots=1)
    serve(engine, ask("1", "a"), 0.0)
    engine.restart(1.0)
    serve(engine, ask("2", "b"), 1.0)
    assert [[name for _, what, name in each.heard if what == "loaded"] for each in policies] == [["a"], ["b"]]


@pytest.mark.parametrize("mode", SwapMode)
@pytest.mark.parametrize("seed", range(5))
def test_lru_is_what_pods_do_by_themselves(mode, seed):
    """Handing LRU in changes nothing, whatever comes."""

    def play(engine):
        draw, now, events = random.Random(seed), 0.0, []
        for number in range(150):
            now += draw.expovariate(8.0)
            events += engine.advance(now)
            adapter = draw.choice("aaabbcdef")
            engine.submit(ask(str(number), adapter, output=draw.randrange(1, 12)), now)
            if number % 20 == 7:
                engine.load(draw.choice("def"), now)
            engine.check()
        return told(events + rest(engine))

    assert play(kept(made("lru"), mode, slots=2, host=4)) == play(pod(mode, slots=2, host=4))


def test_a_unified_pool_asks_too():
    # Each adapter takes 24 pages of 2 MiB; there is room for two of them.
    adapters = [AdapterSpec(name=name, size=50 * MB) for name in "abc"]
    more = {"memory": Memory.UNIFIED, "kv_blocks": 60, "host": 3}
    engine = PodEngine(config(**more), adapters, now=0.0, retention=lambda: Told("b", "a", "c"))
    now = serve(engine, ask("c", "c"), warm(engine, "a", "b"))
    assert engine.stats(now).on_gpu == ("a", "c")


@pytest.mark.parametrize("name", RETENTIONS)
def test_every_policy_keeps_the_invariants(name):
    engine, draw, now = kept(made(name), slots=2, host=3), random.Random(3), 0.0
    for number in range(200):
        now += draw.expovariate(10.0)
        engine.submit(ask(str(number), draw.choice("aaabbcdef"), output=draw.randrange(1, 8)), now)
        engine.check()
    rest(engine)
