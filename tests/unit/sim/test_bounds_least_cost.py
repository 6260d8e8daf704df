"""The exact bound around its solver; with the solver see `tests/unit/plan/test_flow_bound.py`."""

import pytest

from lorapick.pod.values import SwapCosts
from lorapick.sim.bounds.keeping import Kept
from lorapick.sim.bounds.least_cost import Changes, LeastCost, LoadCost, TooLarge, least_cost, load_cost


def no_solver(problem):
    raise AssertionError("no solver is needed here")


def cost_of(requests, slots, costs, *, solve=no_solver, **limits):
    return least_cost(Changes(requests), slots, cost=costs.__getitem__, solve=solve, **limits)


def test_costs_follow_from_size_and_tier():
    swap = SwapCosts(cpu_bandwidth=1e9, disk_bandwidth=5e8, initialisation=0.02, warm_up=0.03)
    assert load_cost(100_000_000, swap) == LoadCost(first=350_000, again=150_000)


@pytest.mark.parametrize(("first", "again"), [(1, 2), (-1, -1), (5, -1), (10**10 + 1, 0)])
def test_costs_make_sense(first, again):
    with pytest.raises(ValueError, match=f"loads that cost {first} and then {again} µs"):
        LoadCost(first, again)


def test_immediate_repeats_are_one_change():
    changes = Changes(["x", "x", "y", "x", "x"])
    assert (changes.requests, changes.names, list(changes.sequence)) == (5, ["x", "y"], [0, 1, 0])


EQUAL = {name: LoadCost(10, 4) for name in "abc"}
UNEQUAL = {"a": LoadCost(10, 5), "b": LoadCost(9, 3), "c": LoadCost(9, 9)}


def test_with_equal_costs_it_is_the_fewest_loads():
    found = cost_of("aabcab", 2, EQUAL)
    assert found == LeastCost(slots=2, requests=6, adapters=3, microseconds=3 * 10 + 4, solved=False)


def test_no_solver_is_asked_when_there_is_nothing_to_choose():
    assert cost_of("", 1, UNEQUAL).microseconds == 0
    assert cost_of("abcabc", 3, UNEQUAL).microseconds == 28
    assert cost_of("abcabb", 1, UNEQUAL).microseconds == 28 + 5 + 3


def test_a_solver_is_asked_otherwise():
    def solve(problem):
        assert list(problem.saves) == [5, 3]
        return Kept(kept=[True, False], prices=[0, 4, 0])

    found = cost_of("abcab", 2, UNEQUAL, solve=solve)
    assert (found.microseconds, found.solved) == (28 + 3, True)


def test_too_much_for_a_solver_is_refused():
    with pytest.raises(
        TooLarge, match=r"5 times a request needs another adapter .* takes up to 4: ask about a shorter"
    ):
        cost_of("aabcabb", 2, UNEQUAL, most=4)
    assert cost_of("aabcabb", 2, EQUAL, most=4).solved is False


def test_slots_are_needed():
    with pytest.raises(ValueError, match="0 slots"):
        cost_of("ab", 0, UNEQUAL)
