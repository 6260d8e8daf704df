import random
from collections import Counter

import pytest
from msgspec import structs

from lorapick.core.placement.plans import Action, by_side
from lorapick.core.placement.solving import solve
from lorapick.model.placement import PlacedAdapter, PlacementProblem, PodRoom, Side


def problem(adapters, pods=4, slots=2, **more):
    fleet = tuple(PodRoom(pod=f"pod-{number:02}", slots=slots, **more) for number in range(pods))
    return PlacementProblem(version=7, pods=fleet, adapters=tuple(adapters))


def many(count, **more):
    return [PlacedAdapter(adapter=f"adapter-{number:03}", replicas=1, **more) for number in range(count)]


def settled(asked):
    """The problem after its plan was carried out."""
    placed = solve(asked).placed
    there = [replace(each, now_on=placed[each.adapter]) for each in asked.adapters]
    return PlacementProblem(version=asked.version + 1, pods=asked.pods, adapters=tuple(there))


def replace(each, **changes):
    return PlacedAdapter(**{name: getattr(each, name) for name in each.__struct_fields__} | changes)


def changed(before, after):
    return sum(len(set(pods) ^ set(after.placed.get(name, ()))) for name, pods in before.items())


@pytest.mark.parametrize("solver", ["flow", "rendezvous"])
def test_a_plan_says_what_it_is(solver):
    plan = solve(problem(many(9)), solver=solver)
    assert (plan.version, plan.solver) == (7, solver)
    assert plan.loads == 8 and plan.short == {"adapter-008": 1}
    assert (plan.costs is None) == (solver == "rendezvous")


def test_what_is_placed_stays():
    asked = settled(problem([replace(each, rate=number) for number, each in enumerate(many(8))]))
    plan = solve(asked)
    assert {move.action for move in plan.moves} == {Action.KEEP}
    assert plan.costs.load == plan.costs.churn == 0.0


def test_the_order_of_pods_does_not_matter():
    asked = settled(problem([replace(each, rank=8 << number % 3) for number, each in enumerate(many(30))], 12, 3))
    asked = PlacementProblem(version=1, pods=asked.pods, adapters=asked.adapters[5:])
    shuffled = list(asked.pods)
    random.Random(3).shuffle(shuffled)
    other = PlacementProblem(version=1, pods=tuple(shuffled), adapters=asked.adapters)
    assert solve(asked) == solve(other) == solve(asked)


@pytest.mark.parametrize("free", [0, 3, 20])
def test_one_more_of_two_hundred_moves_little(free):
    asked = settled(problem([replace(each, rate=200.0 - n) for n, each in enumerate(many(200))], 40, 5))
    before = {each.adapter: each.now_on for each in asked.adapters[: 200 - free]}
    new = PlacedAdapter(adapter="new", replicas=1, rate=500.0)
    plan = solve(PlacementProblem(version=2, pods=asked.pods, adapters=(new, *asked.adapters[: 200 - free])))
    assert len(plan.placed["new"]) == 1
    assert changed(before, plan) <= (2 if free < 20 else 0)


def test_growth_adds_a_pod_and_keeps_the_rest():
    asked = settled(problem([PlacedAdapter(adapter="a", replicas=2), *many(10)], 8, 2))
    before = {each.adapter: set(each.now_on) for each in asked.adapters}
    grown = [replace(each, replicas=3 if each.adapter == "a" else 1) for each in asked.adapters]
    plan = solve(PlacementProblem(version=2, pods=asked.pods, adapters=tuple(grown)))
    assert before["a"] < set(plan.placed["a"]) and len(plan.placed["a"]) == 3
    assert all(set(plan.placed[name]) == pods for name, pods in before.items() if name != "a")


def test_a_pod_that_leaves_moves_only_its_own():
    asked = settled(problem(many(20), 10, 3))
    left = PlacementProblem(version=2, pods=asked.pods[1:], adapters=asked.adapters)
    plan = solve(left)
    for each in asked.adapters:
        assert plan.placed[each.adapter] == each.now_on or each.now_on == ("pod-00",)


def test_followers_go_where_their_leader_will_be():
    chain = [
        PlacedAdapter(adapter="first", replicas=1),
        PlacedAdapter(adapter="second", replicas=1, follows="first"),
        PlacedAdapter(adapter="third", replicas=1, follows="second"),
    ]
    plan = solve(problem([*chain, *many(6)], 12, 4))
    assert plan.placed["first"] == plan.placed["second"] == plan.placed["third"]


def test_those_who_follow_each_other_or_nobody_known_are_placed():
    ring = [PlacedAdapter(adapter="a", replicas=1, follows="b"), PlacedAdapter(adapter="b", replicas=1, follows="a")]
    plan = solve(problem([*ring, PlacedAdapter(adapter="c", replicas=1, follows="nobody")]))
    assert all(len(pods) == 1 for pods in plan.placed.values())


def test_large_ranks_come_together():
    mixed = [replace(each, rank=64 if number % 4 == 0 else 8, rate=1.0) for number, each in enumerate(many(48))]
    plan = solve(problem(mixed, 12, 4, load=2.0))
    of_large = {plan.placed[each.adapter] for each in mixed if each.rank == 64}
    assert len(of_large) == 3
    assert plan.costs.rank == 0.0


def test_a_pod_far_down_the_order_is_found_when_it_is_the_only_free_one():
    pods = [PodRoom(pod=f"pod-{number:02}", slots=int(number == 33)) for number in range(60)]
    for number in range(5):
        adapter = PlacedAdapter(adapter=f"adapter-{number}", replicas=1)
        plan = solve(PlacementProblem(version=1, pods=tuple(pods), adapters=(adapter,)))
        assert plan.placed == {adapter.adapter: ("pod-33",)}


def test_nothing_raises_for_want_of_room():
    assert solve(problem([])).placed == {}
    assert solve(problem(many(2), pods=0)).short == {"adapter-000": 1, "adapter-001": 1}
    assert solve(problem([PlacedAdapter(adapter="a", replicas=9)])).short == {"a": 5}
    assert solve(problem([PlacedAdapter(adapter="a", replicas=0, now_on=("pod-00",))])).moves[0].action is Action.DROP


def two_sides():
    """Four pods of each side; three adapters, wanted on both."""
    decode, prefill = problem(many(3), 4, 1).pods, problem([], 4, 1).pods
    pods = [*decode, *(structs.replace(each, pod=f"first-{each.pod}", side=Side.PREFILL) for each in prefill)]
    wanted = [replace(each, replicas=count) for count, each in enumerate(many(3), start=1)]
    adapters = [*wanted, *(replace(each, replicas=1, side=Side.PREFILL) for each in wanted)]
    return PlacementProblem(version=7, pods=tuple(pods), adapters=tuple(adapters))


@pytest.mark.parametrize("solver", ["flow", "rendezvous"])
def test_each_side_is_solved_by_itself_and_both_are_one_plan(solver):
    asked = two_sides()
    plan = solve(asked, solver=solver)
    counts = {name: Counter(pod.startswith("first") for pod in pods) for name, pods in plan.placed.items()}
    assert sum(each[True] for each in counts.values()) == 3 and {each[True] for each in counts.values()} == {1}
    assert sum(each[False] for each in counts.values()) == 4  # of six that are wanted: there are four slots
    assert sum(plan.short.values()) == 2 and len(plan.moves) == 7
    for part in by_side(asked):
        alone = solve(part, solver=solver)
        mine = {pod.pod for pod in part.pods}
        assert alone.placed == {name: tuple(pod for pod in pods if pod in mine) for name, pods in plan.placed.items()}
    assert (plan.costs is None) == (solver == "rendezvous")
