"""Statistics at a moment, and invariants that say what is wrong."""

import pytest
from pod_helpers import MS, ask, pod, warm

from lorapick.model.tiers import Tier


def busy():
    """A pod with requests running and waiting, and its machine."""
    engine = pod(slots=1, seqs=4)
    now = warm(engine, "a")
    engine.submit(ask("r", "a", prompt=40, output=50, blocks=(11, 12)), now)
    engine.submit(ask("s", "b"), now)
    engine.advance(now + 25 * MS)
    engine.check()
    return engine, engine._machine, now + 25 * MS


def test_statistics_are_those_of_the_moment():
    engine, _, now = busy()
    stats = engine.stats(now)
    assert (stats.running, stats.waiting, stats.deferred) == (1, 1, 1)
    assert (stats.on_gpu, stats.in_flight, stats.loading) == (("a",), ("a",), ())
    assert stats.output_tokens == 1 + 2
    assert stats.kv_usage == 3 / 18_875
    assert engine.residency()["a"] is Tier.GPU_SERVING
    assert engine.stats(now + 70 * MS).kv_usage == 4 / 18_875  # at 49 tokens


def test_a_glance_agrees_with_the_statistics():
    engine, _, now = busy()
    for later in (now, now + 70 * MS, now + 9.0):
        stats, glance = engine.stats(later), engine.glance(later)
        for name in ("running", "waiting", "deferred", "kv_usage", "loads", "preemptions", "in_flight"):
            assert getattr(stats, name) == getattr(glance, name)
        assert glance.busy == pytest.approx(later - stats.time.idle)


def test_the_next_end_is_the_next_change_but_for_first_tokens():
    engine = busy()[0]
    assert engine.next_change() == engine.next_end()
    fresh = engine._now + 10.0
    engine.advance(fresh)
    engine.submit(ask("t", output=5), fresh)
    engine.advance(fresh)
    assert (engine.next_change(), engine.next_end()) == pytest.approx((fresh + 10 * MS, fresh + 50 * MS))


@pytest.mark.parametrize(
    ("break_it", "story"),
    [
        (lambda machine: machine.levels.host.clear(), "a holds a slot and is not in host memory"),
        (
            lambda machine: setattr(next(iter(machine.levels.gpu)), "on_gpu", False),
            "does not know that it holds a slot",
        ),
        (lambda machine: setattr(next(iter(machine.levels.gpu)), "seats", 7), "a counts 7 running requests of 1"),
        (lambda machine: machine.levels.gpu.clear(), "is wrong about holding"),
        (lambda machine: setattr(machine.batch, "active", 2), "1 adapters run"),
        (lambda machine: setattr(machine.batch, "steps", 99), "request r runs with"),
        (lambda machine: machine.kv.held.add(5), "blocks counted|blocks with ids"),
        (lambda machine: machine.kv.idle.add([*machine.kv.held]), "both held and free"),
        (lambda machine: machine.jobs.pop("s"), "in flight"),
        (lambda machine: setattr(machine, "due", float("inf")), "nothing will ever happen"),
        (lambda machine: setattr(machine.ledger, "idle", 9.0), "s are accounted for"),
    ],
)
def test_a_broken_invariant_tells_its_story(break_it, story):
    engine, machine, _ = busy()
    break_it(machine)
    with pytest.raises(AssertionError, match=story):
        engine.check()
