"""The search: by a rule on all kinds of ranges, and on real runs beside the whole grid played out."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sizing_kit import sizing

from lorapick.plan.fleet_size.choice import cheapest, frontier, nearest
from lorapick.plan.fleet_size.guess import guessed_pods, settled_latency, traffic_of
from lorapick.plan.fleet_size.search import Found, Point, Span, least_kept, sized
from lorapick.plan.fleet_size.size import size
from lorapick.plan.fleet_size.trial import Limits, Outcome, tried
from lorapick.sim.build import pod_config


@given(least=st.integers(1, 40), width=st.integers(0, 60), edge=st.integers(0, 120), guess=st.integers(0, 120))
def test_the_edge_is_found_from_any_guess_and_its_neighbour_was_tried(least, width, edge, guess):
    span, played = Span(least, least + width), []

    def keeps(pods):
        played.append(pods)
        return pods >= edge

    found = least_kept(keeps, span, guess=guess)
    wanted = max(edge, least)
    assert found == (wanted if wanted <= span.most else None)
    assert len(played) == len(dict.fromkeys(played)) <= 2 * (width + 1).bit_length() + 1
    assert all(span.least <= each <= span.most for each in played)
    if found is not None and found > least:
        assert found - 1 in played


def test_a_good_guess_needs_two_tries():
    played = []
    assert least_kept(lambda pods: played.append(pods) or pods >= 9, Span(1, 1000), guess=9) == 9
    assert played == [9, 8]


def test_the_cheapest_is_that_of_the_whole_grid(tmp_path):
    asked = sizing(tmp_path)
    grid = {}
    for pods in (1, 2, 3):
        for slots in asked.slots:
            fleet = sized(asked.scenario, pods=pods, slots=slots, kv_blocks=asked.memory.blocks(slots))
            grid[pods, slots] = tried(fleet, policy=asked.policy, seed=1)
    enough = [(pods, each.p95, slots) for (pods, slots), each in grid.items() if each.keeps(asked.limits)]
    assert 0 < len(enough) < len(grid), "the limit tells the points apart"
    found = size(asked, workers=1)
    best = cheapest(found.found)
    assert (best.pods, best.p95, best.slots) == min(enough)
    for one in found.found:
        least = min((pods for pods, _, slots in enough if slots == one.slots), default=None)
        assert (one.best.pods if one.best else None) == least
        assert all(each.outcomes[0] == grid[each.pods, each.slots] for each in one.tried)


def test_two_workers_find_what_one_finds_and_progress_reaches_its_end(tmp_path):
    asked, alone, together = sizing(tmp_path, slots=(1, 6), seeds=2), [], []
    assert size(asked, workers=1, progress=alone.append) == size(asked, workers=2, progress=together.append)
    for told in (alone, together):
        assert told[-1] == pytest.approx(1.0)
        assert all(before <= after + 1e-9 for before, after in pairwise(told)) and told[0] >= 0


def test_the_worst_seed_counts(tmp_path):
    asked = sizing(tmp_path, pods=(1, 1), slots=(2,), seeds=3)
    (point,) = size(asked, workers=1).found[0].tried
    assert [each.p95 for each in point.outcomes] == [
        tried(
            sized(asked.scenario, pods=1, slots=2, kv_blocks=asked.memory.blocks(2)), policy="weighted", seed=seed
        ).p95
        for seed in (1, 2, 3)
    ]
    assert point.p95 == max(each.p95 for each in point.outcomes)
    assert point.kept is all(each.p95 <= asked.limits.p95 for each in point.outcomes)


def test_slots_take_kv_memory_from_the_simulated_pod(tmp_path):
    asked = sizing(tmp_path)
    small, large = (
        pod_config(sized(asked.scenario, pods=1, slots=slots, kv_blocks=asked.memory.blocks(slots)))
        for slots in (4, 16)
    )
    assert small.kv_blocks - large.kv_blocks == pytest.approx(12 * asked.memory.slot / (16 * 131_072), abs=1)
    assert (small.limits.max_loras, large.limits.max_loras, large.limits.max_cpu_loras) == (4, 16, 16)


def test_what_is_lost_is_not_fast():
    limits = Limits(p95=1.0, lost=0.01)
    assert Outcome(arrivals=100, rate=1.0, p95=1.0, lost=0.01).keeps(limits)
    assert not Outcome(arrivals=100, rate=1.0, p95=0.1, lost=0.02).keeps(limits)
    assert not Outcome(arrivals=100, rate=1.0, p95=1.01, lost=0.0).keeps(limits)
    assert not Outcome(arrivals=100, rate=1.0, p95=None, lost=0.0).keeps(limits)


def test_a_guess_grows_with_the_rate_and_knows_what_cannot_keep_up(tmp_path):
    asked = sizing(tmp_path, slots=(6,))
    traffic = traffic_of(asked.scenario)
    fleet = sized(asked.scenario, pods=1, slots=6, kv_blocks=asked.memory.blocks(6))
    assert [each.adapter for each in traffic.demand][:2] == ["adapter-1", "adapter-2"]
    assert (traffic.prompt, 4 <= traffic.output <= 12) == (200.0, True)

    def guess(times, limit=0.5):
        more = [type(each)(adapter=each.adapter, rate=times * each.rate) for each in traffic.demand]
        busy = type(traffic)(demand=tuple(more), rate=times * traffic.rate, prompt=200.0, output=traffic.output)
        return guessed_pods(fleet, busy, policy="weighted", limit=limit, most=64)

    assert 1 <= guess(1) < guess(20) <= guess(40) <= 64
    assert guess(1, limit=0.001) == 64, "no number is enough: the highest is tried first"
    config = pod_config(fleet)
    assert settled_latency(config, traffic, pods=8) < settled_latency(config, traffic, pods=1)
    drowned = type(traffic)(demand=traffic.demand, rate=1e4, prompt=200.0, output=8.0)
    assert settled_latency(config, drowned, pods=1) is None


# -- choosing


def point(pods, slots, *, blocks, p95=0.5, lost=0.0, kept=True):
    outcome = Outcome(arrivals=100, rate=1.0, p95=p95, lost=lost)
    return Point(pods=pods, slots=slots, kv_blocks=blocks, outcomes=(outcome,), kept=kept)


def found(*points):
    return [
        Found(slots=each.slots, kv_blocks=each.kv_blocks, guess=1, best=each if each.kept else None, tried=(each,))
        for each in points
    ]


def test_the_frontier_leaves_out_what_something_beats():
    few, roomy = point(2, 16, blocks=500), point(4, 2, blocks=900)
    beaten = point(4, 8, blocks=700)
    assert frontier([roomy, few, point(3, 4, blocks=800), beaten]) == (few, point(3, 4, blocks=800), roomy)


@given(
    many=st.lists(st.tuples(st.integers(1, 4), st.sampled_from((0.1, 0.2, 0.3))), min_size=1, max_size=8),
    unified=st.booleans(),
)
def test_the_cheapest_is_on_the_frontier(many, unified):
    answers = [
        point(pods, slots, blocks=900 if unified else 900 - slots, p95=p95)
        for slots, (pods, p95) in enumerate(many, start=1)
    ]
    assert cheapest(found(*answers)) in frontier(answers)


def test_a_lower_p95_is_worth_a_place_on_the_frontier():
    roomy, fast, slow = point(1, 4, blocks=900, p95=0.6), point(1, 8, blocks=800, p95=0.5), point(1, 16, blocks=700)
    assert frontier([roomy, fast, slow]) == (fast, roomy)
    assert cheapest(found(roomy, fast, slow)) == fast


def test_the_cheapest_has_fewest_pods_then_the_lowest_p95_then_the_fewest_slots():
    assert cheapest(found(point(3, 4, blocks=1, p95=0.1), point(2, 8, blocks=1, p95=0.9))).pods == 2
    assert cheapest(found(point(2, 4, blocks=2, p95=0.9), point(2, 8, blocks=1, p95=0.4))).slots == 8
    assert cheapest(found(point(2, 8, blocks=1), point(2, 4, blocks=2))).slots == 4
    assert cheapest(found(point(2, 8, blocks=1, kept=False))) is None


def test_the_nearest_miss_is_that_with_the_smallest_excess():
    late, lossy = point(2, 4, blocks=2, p95=1.2, kept=False), point(2, 8, blocks=1, lost=0.05, kept=False)
    silent = point(1, 2, blocks=3, p95=None, kept=False)
    assert nearest(found(silent, lossy, late), Limits(p95=1.0, lost=0.01)) == late
    assert nearest(found(silent, late, lossy), Limits(p95=0.1, lost=0.04)) == lossy
    assert nearest(found(lossy, late), Limits(p95=1.0, lost=0.0)) == late
