"""All flows together."""

import tracemalloc
from itertools import islice

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lorapick.sim.workload.spec import (
    Burst,
    FixedLength,
    Flow,
    Gamma,
    Hawkes,
    MarkovModulated,
    Poisson,
    Replay,
    Sessions,
    Sizes,
    Split,
    State,
    UniformLength,
    Workload,
    Zipf,
)
from lorapick.sim.workload.stream import adapter_names, arrivals, undeclared_names

SIZES = Sizes(UniformLength(8, 512), FixedLength(7))


def flow(name, process, *adapters, **more):
    return Flow(name=name, adapters=adapters or (name,), process=process, sizes=SIZES, **more)


def test_flows_are_merged_in_order_of_time():
    flows = tuple(flow(f"a{number}", Poisson(1.0 + number)) for number in range(20))
    found = list(arrivals(Workload(flows=flows, until=50.0), seed=1))
    assert [each.t for each in found] == sorted(each.t for each in found)
    for each in flows:
        count = sum(arrival.adapter == each.name for arrival in found)
        assert count == pytest.approx(each.process.rate * 50, abs=5 * (each.process.rate * 50) ** 0.5)


def test_another_flow_changes_no_other():
    first, second = flow("a", Gamma(5.0, 3.0)), flow("b", Hawkes(5.0, 0.5, 2.0))
    alone = list(arrivals(Workload(flows=(first,), until=100.0), seed=1))
    both = list(arrivals(Workload(flows=(second, first), until=100.0), seed=1))
    assert [each for each in both if each.adapter == "a"] == alone


def test_a_workload_ends():
    workload = Workload(flows=(flow("a", Poisson(10.0)), flow("b", Burst(10, 5.0))), count=77)
    assert len(list(arrivals(workload, seed=1))) == 77
    assert list(arrivals(Workload(flows=()), seed=1)) == []
    burst = Workload(flows=(flow("b", Burst(10, 5.0)),))
    assert [each.t for each in arrivals(burst, seed=1)] == [5.0] * 10


def test_same_seed_same_bytes():
    workload = Workload(flows=(flow("a", Gamma(5.0, 3.0), "x", "y"), flow("b", Hawkes(5.0, 0.5, 2.0))), count=2000)
    encoded = [msgspec.json.encode(list(arrivals(workload, seed=seed))) for seed in (1, 1, 2)]
    assert encoded[0] == encoded[1]
    assert encoded[0] != encoded[2]


@pytest.mark.parametrize(
    ("endless", "count"),
    [
        # Batches are at their largest after some 8,000.
        (flow("a", Poisson(50.0), *map(str, range(40)), popularity=Zipf(1.0), shared_prefix=200), 12_000),
        (flow("a", Hawkes(50.0, 0.6, 2.0), "x", "y"), 12_000),
        (flow("a", MarkovModulated((State(10.0, 5.0), State(90.0, 5.0)))), 12_000),
        (flow("a", Poisson(50.0), "x", "y", sessions=Sessions(3.0, 1.0)), 3000),
    ],
)
def test_memory_does_not_grow(endless, count):
    stream = arrivals(Workload(flows=(endless,)), seed=1)
    tracemalloc.start()
    try:
        for _ in islice(stream, count):
            pass
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        for _ in islice(stream, 2 * count):
            pass
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak - before < 2_000_000


def test_all_adapters_are_named():
    changes = (Split(5.0, 1, 0.5),)
    workload = Workload(flows=(flow("f", Poisson(1.0), "a", None, "b", changes=changes), flow("b", Poisson(1.0))))
    assert adapter_names(workload) == ("a", "b", "a-experiment")
    assert adapter_names(Replay(adapters=("a", "b"), changes=changes)) == ("a", "b", "a-experiment")


def test_adapters_that_nobody_declared_are_those_that_only_such_splits_make():
    hidden = Split(5.0, 1, 0.5, into="{name}-x", declared=False)
    workload = Workload(flows=(flow("f", Poisson(1.0), "a", "b", changes=(Split(5.0, 1, 0.5), hidden)),))
    assert undeclared_names(workload, known=["c"]) == ("a-x",)
    with pytest.raises(ValueError, match="declared: false makes a-x, which is declared"):
        undeclared_names(workload, known=["a-x"])


@settings(max_examples=25)
@given(st.lists(st.floats(0, 30), min_size=1, max_size=5), st.integers(), st.floats(0, 30))
def test_arrivals_are_in_order_and_unique(rates, seed, until):
    flows = tuple(flow(f"f{number}", Poisson(rate), "a", "b") for number, rate in enumerate(rates))
    found = list(arrivals(Workload(flows=flows, until=until), seed=seed))
    assert [each.t for each in found] == sorted(each.t for each in found)
    assert all(0 <= each.t < until for each in found)
    assert len({each.id for each in found}) == len(found)
