"""Requests that wait: order, bounds, and who is next."""

from hypothesis import given
from hypothesis import strategies as st

from lorapick.core.admission.holds import Holds


def test_order_of_arrival_by_pod():
    holds = Holds()
    for request_id, row in [("a", 0), ("b", 1), ("c", 0)]:
        holds.add(request_id, row, until=1.0)
    assert holds.waiting_for(0) == ["a", "c"]
    assert holds.waiting_for(1) == ["b"]
    assert holds.waiting_for(2) == []
    assert (holds.any_for(1), holds.any_for(2)) == (True, False)
    holds.remove("a")
    holds.remove("a")
    assert holds.waiting_for(0) == ["c"]
    assert ("a" in holds, "c" in holds, len(holds)) == (False, True, 2)


def test_a_request_moves_to_another_pod():
    holds = Holds()
    holds.add("a", 0, until=1.0)
    holds.add("a", 1, until=2.0)
    assert (holds.row_of("a"), holds.row_of("b")) == (1, -1)
    assert not holds.any_for(0)
    assert holds.next_due() == 2.0


def test_due_ones_are_named_oldest_first():
    holds = Holds()
    for request_id, until in [("a", 3.0), ("b", 1.0), ("c", 2.0)]:
        holds.add(request_id, 0, until=until)
    assert holds.due(0.5) == []
    assert holds.due(2.0) == ["b", "c"]
    assert holds.due(9.0) == ["a", "b", "c"]


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2), st.integers(0, 9) | st.none()), max_size=30))
def test_the_next_bound_is_that_of_a_search(steps):
    holds, model = Holds(), {}
    for request, row, until in steps:
        if until is None:
            holds.remove(f"r{request}")
            model.pop(f"r{request}", None)
        else:
            holds.add(f"r{request}", row, until=float(until))
            model.pop(f"r{request}", None)
            model[f"r{request}"] = (float(until), row)
        assert holds.next_due() == min((until for until, _ in model.values()), default=None)
        assert [holds.waiting_for(row) for row in range(3)] == [
            [request_id for request_id, (_, where) in model.items() if where == row] for row in range(3)
        ]
