"""Mean residency x swap rate = slots in use."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lorapick.core.ledger.conservation import Occupied, Watched, conservation
from lorapick.model.ledger import ResidencyRow


def stay(since: float, until: float | None) -> ResidencyRow:
    return ResidencyRow(id=1, pod="a", adapter="x", since=since, until=until)


def test_stays_are_cut_at_both_edges() -> None:
    stays = [stay(0.0, 15.0), stay(15.0, None), stay(0.0, 5.0), stay(12.0, 14.0)]
    held = conservation(stays, [], watched=[Watched(0.0, 30.0)], since=10.0, until=20.0)
    assert (held.stays, held.at_start, held.seconds) == (3, 1, 10.0)
    assert (held.mean_residency, held.per_second, held.slots_in_use) == (4.0, 0.3, pytest.approx(1.2))


def test_times_without_a_picker_do_not_count() -> None:
    watched = [Watched(0.0, 12.0), Watched(18.0, 19.0)]
    held = conservation([stay(0.0, 12.0), stay(18.0, 19.0)], [], watched=watched, since=10.0, until=20.0)
    assert (held.seconds, held.slots_in_use) == (3.0, 1.0)


def test_nothing_is_known_of_an_empty_time() -> None:
    held = conservation([], [], watched=[], since=0.0, until=1.0)
    assert (held.mean_residency, held.per_second, held.slots_in_use, held.counted) == (None, None, None, None)


def test_counts_are_cut_and_never_go_from_one_run_to_the_next() -> None:
    counts = [
        Occupied(1, 0.0, 2, 0.0),
        Occupied(1, 10.0, 2, 20.0),
        Occupied(2, 20.0, 0, 0.0),
        Occupied(2, 30.0, 4, 40.0),
    ]
    held = conservation([], counts, watched=[], since=5.0, until=25.0)
    assert held.counted == pytest.approx((2 * 5 + 4 * 5) / 10)


@settings(max_examples=50)
@given(
    edges=st.lists(st.tuples(st.integers(0, 50), st.integers(0, 30)), max_size=12),
    since=st.integers(0, 40),
    length=st.integers(1, 40),
)
def test_the_product_is_the_time_in_slots(edges: list[tuple[int, int]], since: int, length: int) -> None:
    """Counted second by second."""
    until = since + length
    used = sum(first <= at < first + long for at in range(since, until) for first, long in edges)
    stays = [stay(first, first + long) for first, long in edges]
    held = conservation(stays, [], watched=[Watched(0.0, 100.0)], since=since, until=until)
    assert (held.slots_in_use or 0.0) == pytest.approx(used / length)
