"""The solver behind the exact bound."""

import random

import highspy
import pytest

from lorapick.plan import flow_bound
from lorapick.plan.flow_bound import solve_keeping
from lorapick.sim.bounds.keeping import Kept, NotProven, best_saving, keeping
from lorapick.sim.bounds.least_cost import Changes, LoadCost, least_cost


def test_it_keeps_what_is_dear():
    answer = solve_keeping(keeping([0, 1, 2, 0, 1], 1, saves=[3, 5, 9]))
    assert list(answer.kept) == [False, True]


def test_nothing_to_keep():
    assert solve_keeping(keeping([0, 1, 2], 1, saves=[1, 1, 1])) == Kept(kept=[], prices=[])


@pytest.mark.parametrize("largest", [1, 10, 10**6, 10**10])
def test_answers_are_proven_whatever_loads_cost(largest):
    draw = random.Random(largest)
    for slots in (2, 5, 11):
        costs = {str(number): LoadCost(largest, draw.randint(0, largest)) for number in range(12)}
        requests = Changes(str(draw.randrange(12)) for _ in range(400))
        found = least_cost(requests, slots, cost=costs.__getitem__, solve=solve_keeping)
        assert found.microseconds >= 12 * largest


def test_equal_costs_are_proven_too():
    draw = random.Random(4)
    sequence = [0]
    for _ in range(500):
        sequence.append(draw.choice([number for number in range(9) if number != sequence[-1]]))
    problem = keeping(sequence, 3, saves=[1] * 9)
    assert best_saving(problem, solve_keeping(problem)) > 0


def test_the_solver_says_nothing_of_its_own(capfd):
    solve_keeping(keeping([0, 1, 0], 1, saves=[1, 1]))
    assert capfd.readouterr() == ("", "")


def test_no_answer_is_an_error(monkeypatch):
    class Hurried(highspy.Highs):
        def run(self):
            self.setOptionValue("time_limit", 0.0)
            self.setOptionValue("simplex_iteration_limit", 0)
            return super().run()

    monkeypatch.setattr(flow_bound, "_new_solver", Hurried)
    with pytest.raises(NotProven, match="HiGHS ended with"):
        solve_keeping(keeping([0, 1, 2, 0, 1, 2], 1, saves=[3, 5, 9]))
