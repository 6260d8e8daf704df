"""Bounds against slow twins, and against what policies do in the simulated world."""

import random

from bounds_twin import any_contents, belady, cheapest
from hypothesis import given, settings
from hypothesis import strategies as st

from lorapick.core.picking.policies import POLICIES
from lorapick.model.adapters import Adapter
from lorapick.model.pods import Pod, PodLimits
from lorapick.model.settings import PickingSettings, Settings
from lorapick.plan.flow_bound import solve_keeping
from lorapick.pod.values import AdapterSpec, PodConfig, SwapEnded, SwapMode
from lorapick.sim.arrivals import Arrival
from lorapick.sim.bounds.fewest import FewestLoads
from lorapick.sim.bounds.keeping import best_saving, keeping
from lorapick.sim.bounds.least_cost import Changes, LoadCost, least_cost, load_cost
from lorapick.sim.bounds.yardstick import Yardstick
from lorapick.sim.kernel import Priority
from lorapick.sim.tally import Tally
from lorapick.sim.world import Setup, World

NAMES = "abcdef"
ONE = dict.fromkeys(NAMES, 1)
REQUESTS = st.lists(st.sampled_from(NAMES), max_size=14)
SLOTS = st.integers(1, 5)


def fewest(requests, slots, **start):
    counted = FewestLoads(slots, **start)
    for adapter in requests:
        counted.add(adapter)
    return counted.loads


# -- twins


@given(REQUESTS, SLOTS)
def test_no_eviction_does_better(requests, slots):
    assert fewest(requests, slots) == cheapest(requests, slots, first=ONE, again=ONE)


@given(st.lists(st.integers(0, 30).map(str), max_size=200), st.integers(1, 32))
def test_it_is_what_beladys_rule_comes_to(requests, slots):
    assert fewest(requests, slots) == belady(requests, slots)


@given(REQUESTS, st.integers(1, 4))
def test_no_content_to_begin_with_does_better(requests, slots):
    best = cheapest(requests, slots, first=ONE, again=ONE, contents=any_contents(NAMES, slots))
    assert fewest(requests, slots, begins_empty=False) == best


@given(REQUESTS, SLOTS)
def test_after_every_request_it_is_the_bound_for_what_came(requests, slots):
    counted = FewestLoads(slots)
    for position, adapter in enumerate(requests, start=1):
        counted.add(adapter)
        assert counted.loads == fewest(requests[:position], slots)
        assert counted.adapters <= counted.loads <= counted.requests


@given(st.lists(st.integers(0, 9).map(str), max_size=80), st.integers(1, 9))
def test_more_slots_never_need_more_loads(requests, slots):
    assert fewest(requests, slots + 1) <= fewest(requests, slots)


COSTS = st.fixed_dictionaries({name: st.tuples(st.integers(0, 20), st.integers(0, 20)).map(sorted) for name in NAMES})


@settings(max_examples=60)
@given(REQUESTS, SLOTS, COSTS)
def test_no_eviction_is_cheaper_than_the_exact_bound(requests, slots, costs):
    first = {name: most for name, (_, most) in costs.items()}
    again = {name: least for name, (least, _) in costs.items()}
    found = least_cost(
        Changes(requests), slots, cost=lambda name: LoadCost(first[name], again[name]), solve=solve_keeping
    )
    assert found.microseconds == cheapest(requests, slots, first=first, again=again)


@settings(max_examples=40)
@given(st.lists(st.integers(0, 15).map(str), max_size=150), st.integers(2, 12))
def test_with_unit_costs_the_flow_is_the_fewest_loads(requests, slots):
    changes = Changes(requests)
    problem = keeping(changes.sequence, slots - 1, saves=[1] * len(changes.names))
    saved = best_saving(problem, solve_keeping(problem))
    assert len(changes.sequence) - saved == fewest(requests, slots)


# -- policies


class Ordered(Yardstick):
    """A yardstick that also keeps the order of service."""

    def __init__(self, slots, *, start):
        super().__init__(slots, start=start)
        self.order = []

    def started(self, adapter, t):
        super().started(adapter, t)
        self.order.append(adapter)


class Watch(Tally):
    """A tally that also keeps what loads cost."""

    def __init__(self, yardstick, *, start):
        super().__init__(start=start, window=60.0, yardstick=yardstick)
        self.load_microseconds = 0.0
        self.ended_loads = 0

    def happened(self, pod, event):
        super().happened(pod, event)
        if isinstance(event, SwapEnded):
            self.ended_loads += 1
            self.load_microseconds += (event.transfer + event.initialisation + event.warm_up) * 1e6


@st.composite
def worlds(draw):
    slots = draw(st.integers(1, 3))
    limits = PodLimits(
        max_loras=slots,
        max_cpu_loras=slots + draw(st.integers(0, 3)),
        max_num_seqs=draw(st.integers(1, 6)),
        max_queue=draw(st.sampled_from([2, 100])),
    )
    config = PodConfig(
        limits=limits, mode=draw(st.sampled_from(SwapMode)), load_failure_share=draw(st.sampled_from([0.0, 0.3]))
    )
    specs = [
        AdapterSpec(name=name, size=draw(st.sampled_from([10**6, 10**8])))
        for name in NAMES[: draw(st.integers(1, len(NAMES)))]
    ]
    names = [
        Pod(name=f"p{number}", address=f"10.0.0.{number}:80", limits=limits)
        for number in range(draw(st.integers(1, 3)))
    ]
    setup = Setup(
        settings=Settings(
            adapters=tuple(Adapter(name=spec.name, declared=True) for spec in specs),
            picking=PickingSettings(policy=draw(st.sampled_from([*POLICIES]))),
        ),
        pods=[(pod, config) for pod in names],
        adapters=specs,
        draws=lambda name: random.Random(name).random,
    )
    t, arrivals = 0.0, []
    for number in range(draw(st.integers(0, 40))):
        t += draw(st.sampled_from([0.0, 0.01, 0.1, 1.0]))
        adapter = draw(st.sampled_from([None, *(spec.name for spec in specs)]))
        tokens = draw(st.sampled_from([1, 5, 40]))
        arrivals.append(Arrival(t=t, id=f"r{number}", adapter=adapter, prompt_tokens=20, output_tokens=tokens))
    restart = draw(st.none() | st.floats(0.0, 5.0))
    return setup, arrivals, restart


def play(setup, arrivals, *, restart=None, start=0.0):
    slots = sum(config.limits.max_loras for _, config in setup.pods)
    watch = Watch(Ordered(slots, start=start), start=start)
    world = World(setup, observer=watch, seed=1)
    if restart is not None:
        world.kernel.at(restart, lambda _: world.restart_pod("p0", down=0.5), priority=Priority.CHANGE)
    world.run(arrivals)
    return watch, slots


@settings(max_examples=60)
@given(worlds())
def test_no_policy_has_fewer_loads_than_the_bound_for_its_order_of_service(made):
    setup, arrivals, restart = made
    watch, slots = play(setup, arrivals, restart=restart)
    bound = watch.yardstick.served()
    assert bound.requests == len(watch.yardstick.order)
    assert bound.loads == fewest(watch.yardstick.order, slots)
    # Loads that failed served nobody: those that ended well are enough for the bound, and fewer than those begun.
    assert bound.loads <= watch.ended_loads <= watch.loads.total()
    assert watch.yardstick.arrivals().requests == sum(each.adapter is not None for each in arrivals)


@settings(max_examples=25)
@given(worlds())
def test_no_policy_loads_in_less_time_than_the_exact_bound(made):
    setup, arrivals, restart = made
    watch, slots = play(setup, arrivals, restart=restart)
    swap = setup.pods[0][1].swap
    costs = {spec.name: load_cost(spec.size, swap) for spec in setup.adapters}
    least = least_cost(Changes(watch.yardstick.order), slots, cost=costs.__getitem__, solve=solve_keeping)
    assert least.microseconds <= watch.load_microseconds + 1e-3


@settings(max_examples=40)
@given(worlds(), st.floats(0.01, 5.0))
def test_no_policy_has_fewer_loads_after_its_warm_up(made, start):
    setup, arrivals, restart = made
    watch, _ = play(setup, arrivals, restart=restart, start=start)
    assert watch.yardstick.served().loads <= watch.loads.total()


def test_a_pod_that_lets_requests_pass_one_another_beats_the_order_of_arrival():
    limits = PodLimits(max_loras=1, max_queue=100)
    setup = Setup(
        settings=Settings(adapters=tuple(Adapter(name=name, declared=True) for name in "ab")),
        pods=[(Pod(name="p0", address="10.0.0.1:80", limits=limits), PodConfig(limits=limits))],
        adapters=[AdapterSpec(name=name) for name in "ab"],
    )
    arrivals = [
        Arrival(t=number / 100, id=f"r{number}", adapter="ab"[number % 2], prompt_tokens=20, output_tokens=40)
        for number in range(10)
    ]
    watch, _ = play(setup, arrivals)
    assert watch.yardstick.order == [*"aaaaabbbbb"]
    assert watch.loads.total() == watch.yardstick.served().loads == 2
    assert watch.yardstick.arrivals().loads == 10
