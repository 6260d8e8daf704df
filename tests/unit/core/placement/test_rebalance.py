import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorapick.core.placement.plans import Action, fits
from lorapick.core.placement.rebalance import RebalanceRules, rebalance
from lorapick.model.placement import PlacedAdapter, PlacementProblem, PodRoom


def problem(loads, adapters, slots=4, **more):
    pods = tuple(PodRoom(pod=f"pod-{n}", slots=slots, load=load, **more) for n, load in enumerate(loads))
    return PlacementProblem(version=1, pods=pods, adapters=tuple(adapters))


def held(adapter, *rows, rate=1.0, **more):
    return PlacedAdapter(
        adapter=adapter, replicas=1, rate=rate, now_on=tuple(f"pod-{row}" for row in rows), load_seconds=0.5, **more
    )


def told(found):
    return [(move.adapter, move.source, move.pod) for move in found]


BUSY = [held("a", 0, rate=3.0), held("b", 0, rate=2.0), held("c", 0, rate=1.0), held("d", 1)]


def test_what_evens_the_load_best_moves():
    found = rebalance(problem([60.0, 2.0], BUSY), budget=1)
    assert told(found) == [("a", "pod-0", "pod-1")]
    assert found[0].action is Action.LOAD
    assert found[0].why == (
        "pod-0 has 60 requests and pod-1 2: 30 of them there save 472 s of waiting in 60 s, for 3.5 s"
    )


def test_one_adapter_alone_gets_a_second_copy():
    found = rebalance(problem([60.0, 2.0], [held("a", 0)]), budget=3)
    assert told(found) == [("a", None, "pod-1")]


def test_equal_loads_stay():
    assert rebalance(problem([20.0, 20.0, 21.0], BUSY), budget=9) == []


def test_small_differences_do_not_pay():
    assert rebalance(problem([6.0, 1.0], [held("a", 0), held("b", 0)]), budget=9) == []


def test_a_load_that_takes_long_does_not_pay():
    slow = [PlacedAdapter(adapter="a", replicas=1, rate=1.0, now_on=("pod-0",), load_seconds=300.0)]
    assert rebalance(problem([60.0, 2.0], slow), budget=9) == []
    warm = [PlacedAdapter(adapter="a", replicas=1, rate=1.0, now_on=("pod-0",), load_seconds=300.0, warm_on=("pod-1",))]
    assert len(rebalance(problem([60.0, 2.0], warm), budget=9)) == 1


def test_only_to_pods_with_a_slot_that_can_serve_it():
    full = [held("a", 0), held("b", 1)]
    assert rebalance(problem([60.0, 0.0], full, slots=1), budget=9) == []
    assert rebalance(problem([60.0, 0.0], [held("a", 0, rank=32)], max_rank=16), budget=9) == []


def test_no_more_than_the_budget_and_none_without():
    many = [held(f"adapter-{number}", 0) for number in range(12)]
    crowded = problem([120.0, 0.0, 0.0, 0.0], many, slots=12)
    assert len(rebalance(crowded, budget=2)) == 2
    assert rebalance(crowded, budget=0) == []
    assert 3 <= len(rebalance(crowded, budget=99)) <= 12


def test_fixed_copies_stay_and_may_get_company():
    found = rebalance(problem([60.0, 2.0], [held("a", 0)]), budget=3, fixed={("a", "pod-0")})
    assert told(found) == [("a", None, "pod-1")]
    pair = [held("a", 0), held("b", 0)]
    assert told(rebalance(problem([60.0, 2.0], pair), budget=1, fixed={("a", "pod-0")})) == [("b", "pod-0", "pod-1")]


def test_rates_say_whose_the_load_is():
    pair = [held("a", 0), held("b", 0, 1)]
    rates = {("a", "pod-0"): 0.1, ("b", "pod-0"): 9.0}
    found = rebalance(problem([60.0, 2.0, 2.0], pair), budget=1, rates=rates)
    assert found[0].adapter == "b"


def test_nobody_and_nowhere():
    assert rebalance(problem([], []), budget=3) == []
    assert rebalance(problem([50.0, 0.0], []), budget=3) == []
    assert rebalance(problem([50.0], [held("a", 0)]), budget=3) == []


def waits(load, rules):
    return load * load / (load + rules.doubles)


LOADS = st.lists(st.floats(0.0, 300.0), min_size=1, max_size=6)


@st.composite
def fleets(draw):
    loads = draw(LOADS)
    count = draw(st.integers(0, 8))
    adapters = [
        held(
            f"adapter-{number}",
            *draw(st.lists(st.integers(0, len(loads)), unique=True, max_size=3)),
            rate=draw(st.sampled_from([0.0, 0.1, 1.0, 30.0])),
            rank=draw(st.sampled_from([None, 8, 128])),
        )
        for number in range(count)
    ]
    return problem(loads, adapters, slots=draw(st.integers(1, 8)))


def shares(asked):
    """Requests by adapter and pod, when each adapter's rate is spread evenly."""
    pods = {pod.pod: pod for pod in asked.pods}
    rates = {}
    for each in asked.adapters:
        there = [pod for pod in each.now_on if pod in pods]
        rates |= {(each.adapter, pod): each.rate / len(there) for pod in there if each.rate}
    totals = {pod: sum(rate for (_, at), rate in rates.items() if at == pod) for pod in pods}
    return {(name, pod): pods[pod].load * rate / totals[pod] for (name, pod), rate in rates.items()}


@given(fleets(), st.integers(0, 6))
def test_moves_pay_and_never_raise_the_longest_wait(asked, budget):
    rules = RebalanceRules()
    found = rebalance(asked, budget=budget, rules=rules)
    assert len(found) <= budget
    assert len({move.adapter for move in found}) == len(found)
    pods, adapters = {pod.pod: pod for pod in asked.pods}, {each.adapter: each for each in asked.adapters}
    load, own = {pod.pod: pod.load for pod in asked.pods}, shares(asked)
    held_on = {each.adapter: {pod for pod in each.now_on if pod in pods} for each in asked.adapters}
    for move in found:
        assert fits(adapters[move.adapter], pods[move.pod]) and move.pod not in held_on[move.adapter]
        sources = [move.source] if move.source else sorted(held_on[move.adapter])
        steps = []
        for source in sources:
            part = own.get((move.adapter, source), 0.0) * (1.0 if move.source else 0.5)
            after = load | {source: load[source] - part, move.pod: load[move.pod] + part}
            steps.append((sum(waits(each, rules) for each in after.values()), source, after))
        total, source, after = min(steps)
        assert total < sum(waits(each, rules) for each in load.values())
        assert max(after.values()) <= max(load.values())
        load = after
        held_on[move.adapter].add(move.pod)
        if move.source:
            held_on[move.adapter].remove(move.source)
        assert sum(move.pod in rows for rows in held_on.values()) <= pods[move.pod].slots


@given(st.floats(20.0, 300.0), st.integers(2, 6))
def test_carried_out_it_comes_to_rest(load, pods):
    adapters = [held(f"adapter-{number}", 0, rate=1.0 + number) for number in range(6)]
    asked = problem([load, *[0.0] * (pods - 1)], adapters, slots=6)
    for _ in range(30):
        found = rebalance(asked, budget=1)
        if not found:
            return
        asked = carried_out(asked, found[0])
    pytest.fail(f"still moving: {found}")


def carried_out(asked, move):
    """The problem afterwards, when requests follow evenly."""
    own, load = shares(asked), {pod.pod: pod.load for pod in asked.pods}
    adapters = []
    for each in asked.adapters:
        if each.adapter != move.adapter:
            adapters.append(each)
            continue
        stay = [pod for pod in each.now_on if pod != move.source]
        total = sum(own.get((each.adapter, pod), 0.0) for pod in each.now_on)
        for pod in each.now_on:
            load[pod] -= own.get((each.adapter, pod), 0.0)
        rows = [*stay, move.pod]
        for pod in rows:
            load[pod] += total / len(rows)
        adapters.append(held(each.adapter, *[int(pod[4:]) for pod in rows], rate=each.rate))
    return problem([max(0.0, load[pod.pod]) for pod in asked.pods], adapters, slots=6)
