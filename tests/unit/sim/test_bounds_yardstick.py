"""Both bounds of a run."""

from lorapick.sim.arrivals import Arrival
from lorapick.sim.bounds.fewest import LoadBound
from lorapick.sim.bounds.yardstick import Yardstick


def arrival(t, adapter):
    return Arrival(t=t, id=f"r{t}", adapter=adapter, prompt_tokens=1, output_tokens=1)


def test_the_two_orders_have_bounds_of_their_own():
    yardstick = Yardstick(1)
    for t, adapter in enumerate(["a", "b", None, "a", "b"]):
        yardstick.arrived(arrival(t, adapter))
    for t, adapter in enumerate("aabb", start=10):
        yardstick.started(adapter, t)
    assert yardstick.arrivals() == LoadBound(slots=1, requests=4, adapters=2, loads=4)
    assert yardstick.served() == LoadBound(slots=1, requests=4, adapters=2, loads=2)


def test_a_warm_up_leaves_anything_in_the_slots():
    yardstick = Yardstick(2, start=5.0)
    for t, adapter in ((1, "x"), (5, "a"), (6, "b"), (7, "c")):
        yardstick.arrived(arrival(t, adapter))
        yardstick.started(adapter, t)
    assert yardstick.served() == yardstick.arrivals() == LoadBound(slots=2, requests=3, adapters=3, loads=1)
