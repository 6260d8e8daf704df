"""Looks at pods: who holds which slot, and nothing lost between looks."""

from sim_helpers import ask, config, world

from lorapick.sim.measures import GpuTime
from lorapick.sim.sampling import COLUMNS, Sampler


def test_slots_keep_their_rows():
    made, tally = world(pods=1, pod=config(slots=2))
    sampler = Sampler(made, tally, start=0.0, end=6.0, window=1.0)
    # x and y fill the slots; z pushes out y, which was used longest ago.
    made.run([ask(0.1, "y"), ask(1.1, "x"), ask(3.1, "z")], until=6.0)
    timeline = sampler.timeline(6.0)
    assert (timeline.pods, timeline.slots, timeline.every) == (("pod-1",), 2, 1.0)
    seen = [(each.slot, timeline.adapters[each.adapter], each.start, each.end) for each in timeline.held]
    assert seen == [(0, "y", 1.0, 4.0), (0, "z", 4.0, 6.0), (1, "x", 2.0, 6.0)]


def test_samples_add_up():
    made, tally = world(pods=2)
    sampler = Sampler(made, tally, start=1.0, end=4.5, window=1.0)
    made.run([ask(0.0, "x"), ask(2.0, "y")], until=4.5)
    assert [sample.t for sample in sampler.samples] == [1.0, 2.0, 3.0, 4.0, 4.5]
    whole, slot_seconds = sampler.between(1.0, 4.5)
    assert round(whole.total, 9) == 7.0
    assert round(slot_seconds, 9) == 3.5 + 2.5
    parts = [sampler.between(t, t + 1.0)[0] for t in (1.0, 2.0)]
    assert sum((each.total for each in parts), 0.0) == 4.0
    assert parts[0].less(parts[0]) == GpuTime()


def test_a_dead_pod_holds_nothing():
    made, tally = world()
    sampler = Sampler(made, tally, start=0.0, end=4.0, window=1.0)
    made.kernel.at(1.5, lambda _: made.restart_pod("pod-1", down=10.0), priority=3)
    made.run([ask(0.1, "x")], until=4.0)
    assert [(each.start, each.end) for each in sampler.timeline(4.0).held] == [(1.0, 2.0)]


def test_a_long_run_is_looked_at_rarely():
    made, tally = world()
    sampler = Sampler(made, tally, start=0.0, end=1000.0, window=1.0)
    made.run([], until=1000.0)
    assert len(sampler.samples) == 1001
    assert 1000.0 / sampler.every <= COLUMNS
