"""Plans against dumber ways: all choices tried, and a textbook flow; and what every plan must hold to."""

import itertools
from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from lorapick.core.placement.candidates import candidates
from lorapick.core.placement.costs import pair_costs
from lorapick.core.placement.flow import LEVELS, SPREAD_AT_MOST, ZONE, choose
from lorapick.core.placement.importance import missing_prices
from lorapick.core.placement.network import Network
from lorapick.core.placement.plans import Action, fits
from lorapick.core.placement.rank_groups import rank_classes
from lorapick.core.placement.solving import solve
from lorapick.model.placement import PlacedAdapter, PlacementProblem, PodRoom

FAR = 10**15


def pod_names(most):
    return st.lists(st.sampled_from([f"pod-{n}" for n in range(most)]), unique=True, max_size=3).map(tuple)


@st.composite
def problems(draw, *, adapters, pods):
    count = draw(st.integers(0, pods))
    rooms = tuple(
        PodRoom(
            pod=f"pod-{number}",
            slots=draw(st.integers(0, 3)),
            base_model=draw(st.sampled_from(["base", "base", "base", "other"])),
            max_rank=draw(st.sampled_from([8, 64])),
            zone=draw(st.sampled_from([None, "x", "y"])),
            load=draw(st.sampled_from([0.0, 1.5, 40.0])),
        )
        for number in range(count)
    )
    wants = tuple(
        PlacedAdapter(
            adapter=f"adapter-{number}",
            replicas=draw(st.integers(0, 3)),
            rank=draw(st.sampled_from([None, 8, 16, 64])),
            rate=draw(st.sampled_from([0.0, 0.5, 1.0, 30.0])),
            load_seconds=draw(st.sampled_from([0.05, 0.7, 20.0])),
            now_on=draw(pod_names(pods)),
            warm_on=draw(pod_names(pods)),
            follows=draw(st.sampled_from([None, None, "adapter-0", "adapter-1"])),
        )
        for number in range(draw(st.integers(0, adapters)))
    )
    return PlacementProblem(version=1, pods=rooms, adapters=wants)


# -- the flow is the cheapest choice


class Choices:
    """Everything that a choice of pairs costs, by the words of the modules and not by their arcs."""

    def __init__(self, problem):
        self.adapters, self.pods = problem.adapters, sorted(problem.pods, key=lambda pod: pod.pod)
        self.pairs = candidates(self.adapters, self.pods, leaders={})
        classes = rank_classes(self.adapters, self.pods)
        self.costs = pair_costs(self.adapters, self.pods, pairs=self.pairs, classes=classes).total
        dearest = int(self.costs.max(initial=0)) + ZONE * 4
        self.prices = missing_prices(self.adapters, dearest=dearest)
        self.listed = [*zip(self.pairs.adapter.tolist(), self.pairs.pod.tolist(), strict=True)]

    def cost(self, mask):
        """None: a pod or an adapter has too many."""
        taken = [pair for pair, chosen in zip(self.listed, mask, strict=True) if chosen]
        copies, used = Counter(a for a, _ in taken), Counter(p for _, p in taken)
        if any(self.pods[pod].slots < count for pod, count in used.items()):
            return None
        if any(self.adapters[adapter].replicas < count for adapter, count in copies.items()):
            return None
        total = sum(int(cost) for cost, chosen in zip(self.costs, mask, strict=True) if chosen)
        for row, each in enumerate(self.adapters):
            total += sum(self.prices[row][: each.replicas - copies[row]])
        return total + self.zones(taken) + self.spread(taken)

    def zones(self, taken):
        total = 0
        if len({pod.zone for pod in self.pods if pod.zone}) < 2:
            return 0
        for row, each in enumerate(self.adapters):
            reach = {self.pods[p].zone for a, p in self.listed if a == row and self.pods[p].zone}
            share = -(-each.replicas // max(1, len(reach)))
            counts = Counter(self.pods[p].zone for a, p in taken if a == row and self.pods[p].zone)
            total += sum(ZONE * extra for count in counts.values() for extra in range(1, count - share + 1))
        return total

    def spread(self, taken):
        wanted = sum(each.replicas for each in self.adapters)
        mean = sum(each.rate for each in self.adapters) / max(1, wanted)
        total = 0
        for level, (least, weight) in enumerate(LEVELS):
            if level and mean == 0.0:
                continue
            counts = Counter(p for a, p in taken if self.rate(a) >= least * mean)
            for pod, count in counts.items():
                per = max(1, self.pods[pod].slots) if level == 0 else 1
                total += sum(min(SPREAD_AT_MOST, weight * before // per) for before in range(count))
        return total

    def rate(self, row):
        return self.adapters[row].rate / max(1, self.adapters[row].replicas)

    def best(self):
        masks = itertools.product((False, True), repeat=len(self.listed))
        return min(cost for mask in masks if (cost := self.cost(mask)) is not None)


@settings(max_examples=60, deadline=None)
@given(problems(adapters=3, pods=3))
def test_no_choice_is_cheaper(problem):
    choices = Choices(problem)
    found = choose(choices.adapters, choices.pods, pairs=choices.pairs, costs=choices.costs)
    assert choices.cost(found.pairs.tolist()) == choices.best()


def textbook(columns, sends):
    """Cost of the cheapest flow: unit by unit along shortest ways (Bellman and Ford)."""
    left = [[int(t), int(h), int(c), int(u)] for t, h, c, u in zip(*columns, strict=True)]
    arcs = [side for t, h, c, u in left for side in ([t, h, c, u], [h, t, -c, 0])]
    sink, total = len(sends), 0
    for source in (node for node, count in enumerate(sends) for _ in range(count)):
        far, came = {source: 0}, {}
        changed = True
        while changed:
            changed = False
            for number, (t, h, c, u) in enumerate(arcs):
                if u and t in far and far[t] + c < far.get(h, FAR):
                    far[h], came[h], changed = far[t] + c, number, True
        node = sink
        while node != source:
            number = came[node]
            arcs[number][3] -= 1
            arcs[number ^ 1][3] += 1
            node = arcs[number][0]
        total += far[sink]
    return total


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_the_solver_finds_what_a_textbook_finds(data):
    nodes = data.draw(st.integers(2, 7))
    sends = data.draw(st.lists(st.integers(0, 3), min_size=nodes - 1, max_size=nodes - 1))
    node = st.integers(0, nodes - 1)
    rows = data.draw(
        st.lists(st.tuples(node, node, st.integers(0, 10**9), st.integers(0, 3)).filter(lambda r: r[0] != r[1]))
    )
    rows += [(tail, nodes - 1, 10**9 + tail, count) for tail, count in enumerate(sends)]
    table = np.array(rows, dtype=np.int64).reshape(-1, 4)
    network = Network()
    network.add(table[:, 0], table[:, 1], costs=table[:, 2], capacities=table[:, 3])
    flow = network.flow(np.array([*sends, -sum(sends)]))
    assert int(flow @ table[:, 2]) == textbook(table.T, sends)


# -- what every plan holds to


def check(problem, plan):
    pods = {pod.pod: pod for pod in problem.pods}
    used = Counter(pod for own in plan.placed.values() for pod in own)
    assert all(used[name] <= pod.slots for name, pod in pods.items())
    assert list(plan.placed) == [each.adapter for each in problem.adapters]
    free = [pod for pod in problem.pods if used[pod.pod] < pod.slots]
    for each in problem.adapters:
        own = plan.placed[each.adapter]
        assert len(set(own)) == len(own) <= each.replicas
        assert all(fits(each, pods[pod]) for pod in own)
        assert plan.short.get(each.adapter, 0) == each.replicas - len(own)
        if len(own) < each.replicas:
            assert not [pod for pod in free if fits(each, pod) and pod.pod not in own]


def check_moves(problem, plan):
    """Moves lead from what is there to the plan."""
    for each in problem.adapters:
        there = {pod for pod in each.now_on if pod in {room.pod for room in problem.pods}}
        told = [move for move in plan.moves if move.adapter == each.adapter]
        by = {action: {move.pod for move in told if move.action is action} for action in Action}
        assert there - by[Action.DROP] | by[Action.LOAD] == set(plan.placed[each.adapter])
        assert by[Action.KEEP] == there & set(plan.placed[each.adapter])
        assert by[Action.DROP] <= there and not by[Action.LOAD] & there
        assert {move.source for move in told if move.source} <= by[Action.DROP]


@settings(max_examples=100, deadline=None)
@given(problems(adapters=12, pods=6), st.sampled_from(["flow", "rendezvous"]), st.randoms(use_true_random=False))
def test_every_plan_is_valid_and_the_same_in_whatever_order_pods_come(problem, solver, chance):
    plan = solve(problem, solver=solver)
    check(problem, plan)
    check_moves(problem, plan)
    pods = list(problem.pods)
    chance.shuffle(pods)
    assert solve(PlacementProblem(version=1, pods=tuple(pods), adapters=problem.adapters), solver=solver) == plan


def carried_out(problem, plan):
    there = tuple(
        PlacedAdapter(
            **{name: getattr(each, name) for name in each.__struct_fields__} | {"now_on": plan.placed[each.adapter]}
        )
        for each in problem.adapters
    )
    return PlacementProblem(version=2, pods=problem.pods, adapters=there)


@settings(max_examples=50, deadline=None)
@given(problems(adapters=12, pods=6))
def test_plans_settle(problem):
    """Carried out, a plan is asked for again: soon, nothing moves."""
    for _ in range(6):
        plan = solve(problem)
        if plan.loads == 0:
            return
        problem = carried_out(problem, plan)
    raise AssertionError(plan.moves)
