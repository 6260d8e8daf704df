"""The problem of what to keep, and that only proven answers are taken."""

import msgspec
import pytest

from lorapick.sim.bounds.keeping import Kept, NotProven, best_saving, keeping, most_saving

# a b c a b: between its requests a could stay beside b and c, b beside c and a; there is one lane.
PROBLEM = keeping([0, 1, 2, 0, 1], 1, saves=[5, 3, 9])
KEEPS_A = Kept(kept=[True, False], prices=[0, 4, 0])


def test_intervals_lie_between_requests_for_the_same_adapter():
    assert (list(PROBLEM.begins), list(PROBLEM.ends), list(PROBLEM.saves)) == ([0, 1], [2, 3], [5, 3])
    assert (PROBLEM.lanes, PROBLEM.points) == (1, 4)


def test_points_at_which_nothing_happens_are_left_out():
    problem = keeping([0, 1, 2, 3, 4, 0], 1, saves=[7] * 5)
    assert (list(problem.begins), list(problem.ends), problem.points) == ([0], [1], 2)


def test_a_proven_answer_tells_what_it_saves():
    assert best_saving(PROBLEM, KEEPS_A) == 5
    nothing = keeping([0, 1, 2], 1, saves=[1, 1, 1])
    assert best_saving(nothing, Kept(kept=[], prices=[])) == 0


def test_prices_prove_what_nobody_can_pass():
    assert most_saving(PROBLEM, [0, 0, 0]) == 8
    assert most_saving(PROBLEM, [0, 4, 0]) == 5
    assert most_saving(PROBLEM, [1, 5, 1]) == 7


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"kept": [False, True]}, "the answer saves 3, and its prices only prove that none saves more than 5"),
        ({"prices": [0, 0, 0]}, "the answer saves 5, and its prices only prove that none saves more than 8"),
        ({"kept": [True, True]}, "2 intervals are kept side by side where 1 may be"),
        ({"prices": [0, 4, -1]}, "a price is negative"),
        ({"kept": [True]}, "the answer is to another problem"),
        ({"prices": [4]}, "the answer is to another problem"),
    ],
)
def test_other_answers_are_refused(change, why):
    with pytest.raises(NotProven, match=why):
        best_saving(PROBLEM, msgspec.structs.replace(KEEPS_A, **change))


def test_neighbours_must_differ():
    with pytest.raises(AssertionError, match="adapter 1 stands at 1 and at 2"):
        keeping([0, 1, 1], 1, saves=[1, 1])
