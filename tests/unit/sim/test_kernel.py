"""The virtual clock: order, and no way back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorapick.sim.kernel import Kernel, Priority


def test_calls_come_in_order_of_time_priority_and_sequence():
    kernel, said = Kernel(), []
    kernel.at(2.0, said.append, argument="late", priority=Priority.POD)
    kernel.at(1.0, said.append, argument="arrival", priority=Priority.ARRIVAL)
    kernel.at(1.0, said.append, argument="pod", priority=Priority.POD)
    kernel.at(1.0, said.append, argument="pod again", priority=Priority.POD)
    kernel.run(1.5)
    assert (said, kernel.now, kernel.next_time) == (["pod", "pod again", "arrival"], 1.5, 2.0)
    kernel.run(2.0)
    assert (said[-1], kernel.next_time, kernel.handled) == ("late", None, 4)


def test_a_call_may_schedule_the_next_one_for_the_same_moment():
    kernel, said = Kernel(), []

    def again(left: int) -> None:
        said.append((kernel.now, left))
        if left:
            kernel.at(kernel.now, again, argument=left - 1, priority=Priority.TICK)

    kernel.at(1.0, again, argument=2, priority=Priority.TICK)
    while kernel.step():
        pass
    assert said == [(1.0, 2), (1.0, 1), (1.0, 0)]


def test_the_past_is_refused():
    kernel = Kernel(start=5.0)
    with pytest.raises(ValueError, match=r"cannot schedule at 4\.0: the clock stands at 5\.0"):
        kernel.at(4.0, print, priority=Priority.POD)


@given(st.lists(st.tuples(st.floats(0, 10), st.sampled_from(Priority)), max_size=30))
def test_any_order_in_comes_out_sorted(calls):
    kernel, said = Kernel(), []
    for number, (time, priority) in enumerate(calls):
        kernel.at(time, said.append, argument=(time, priority, number), priority=priority)
    kernel.run(10.0)
    assert said == sorted(said)
    assert len(said) == len(calls)
