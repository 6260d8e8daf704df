"""Workloads as values."""

import msgspec
import pytest

from lorapick.sim.workload.spec import (
    After,
    Burst,
    Flow,
    Follow,
    Gamma,
    Hawkes,
    LogNormalLength,
    PowerLaw,
    Replay,
    Reweigh,
    Scale,
    Sessions,
    SizePairs,
    Sizes,
    Split,
    TopShare,
    UniformLength,
    Weights,
    Window,
    Windows,
    Workload,
)

SIZES = Sizes(UniformLength(8, 512), LogNormalLength(100.0, 1.0))
FLOW = Flow(name="f", adapters=("a", "b", None), process=Gamma(2.0, 4.0), sizes=SIZES)


def test_a_workload_survives_a_file():
    flow = msgspec.structs.replace(
        FLOW,
        popularity=TopShare(1, 0.7),
        sessions=Sessions(3.0, 10.0),
        changes=(Scale(5.0, 1.05), Split(10.0, 2, 0.5), Reweigh(20.0, PowerLaw(0.5))),
    )
    other = Flow(name="g", adapters=("c",), process=Windows((Window(0, 1, 2.0),)), sizes=SizePairs(((1, 2),)))
    workload = Workload(
        flows=(flow, other), follows=(Follow(first="a", then="b", after=After.ARRIVAL),), until=9.0, count=5
    )
    assert msgspec.convert(msgspec.to_builtins(workload), Workload) == workload
    assert msgspec.json.decode(msgspec.json.encode(workload), type=Workload) == workload
    replay = Replay(adapters=("a", None), changes=(Split(1.0, 1, 0.5),))
    assert msgspec.json.decode(msgspec.json.encode(replay), type=Replay) == replay


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"adapters": []}, r"adapters is \(\); at least one is needed"),
        ({"adapters": ["a", "a"]}, "each only once"),
        ({"process": {"type": "gamma", "rate": -1, "cv": 1}}, r"rate is -1.0; requests per second, 0 or more.*process"),
        ({"process": {"type": "gamma", "rate": 1, "cv": 2000}}, "cv is 2000.0; a coefficient of variation from 0"),
        ({"process": {"type": "hawkes", "rate": 1, "branching": 1, "decay": 1}}, "at 1 the crowd never ends"),
        ({"process": {"type": "mmpp", "states": [{"rate": 1, "dwell": 1}]}}, "number of states is 1; at least 2"),
        ({"process": {"type": "mmpp", "states": [{"rate": 0, "dwell": 1}] * 2}}, "one must be above 0"),
        ({"process": {"type": "profile", "rates": []}}, "at least one must be above 0"),
        ({"process": {"type": "diurnal", "rate": 1, "ratio": 0.5}}, "ratio is 0.5; highest through lowest"),
        ({"process": {"type": "flash", "rate": 1, "at": 0, "factor": 2, "decay": 0}}, "decay is 0.0; seconds, more"),
        (
            {"process": {"type": "windows", "windows": [{"start": 0, "end": 2, "rate": 1}] * 2}},
            "start is 0.0; not before the end of the last, 2.0",
        ),
        ({"process": {"type": "windows", "windows": [{"start": 2, "end": 2, "rate": 1}]}}, "after the start, 2.0"),
        ({"process": {"type": "chaos"}}, "Invalid value 'chaos'"),
        ({"popularity": {"type": "weights", "values": [1, 2]}}, "number of weights is 2; one per adapter: 3"),
        ({"changes": [{"type": "reweigh", "at": 0, "popularity": {"type": "top", "top": 4, "share": 1}}]}, "top is 4"),
        ({"changes": [{"type": "split", "at": 0, "top": 4, "share": 1}]}, "top is 4; at most the number of adapters"),
        ({"changes": [{"type": "split", "at": 0, "top": 3, "share": 1}]}, "the base model cannot be split"),
        ({"changes": [{"type": "split", "at": 0, "top": 1, "share": 1, "into": "x"}]}, "into is 'x'; it must contain"),
        ({"changes": [{"type": "scale", "at": -1, "factor": 1}]}, "at is -1.0; seconds, 0 or more"),
        ({"sessions": {"turns": 0.5, "think": 1}}, "turns is 0.5; a mean of 1"),
        ({"sessions": {"turns": 2, "think": 1}, "process": {"type": "burst", "count": 2, "at": 0}}, "have none"),
        (
            {"changes": [{"type": "scale", "at": 1, "factor": 2}], "process": {"type": "burst", "count": 2, "at": 0}},
            "a burst has a count and no rate",
        ),
    ],
)
def test_what_is_no_flow_is_refused(change, message):
    with pytest.raises(msgspec.ValidationError, match=message):
        msgspec.convert({**msgspec.to_builtins(FLOW), **change}, Flow)


def test_flows_have_names_of_their_own():
    with pytest.raises(ValueError, match=r"names of the flows is \['f', 'f'\]; each only once"):
        Workload(flows=(FLOW, FLOW))


def test_a_pipeline_may_not_turn_round():
    def edge(first, then):
        return Follow(first=first, then=then)

    Workload(flows=(FLOW,), follows=(edge("a", "b"), edge("b", "c"), edge("a", "c")))
    with pytest.raises(ValueError, match="pipeline is a -> b, b -> c, c -> a; it may not come back"):
        Workload(flows=(FLOW,), follows=(edge("a", "b"), edge("b", "c"), edge("c", "a"), edge("c", "d")))
    with pytest.raises(ValueError, match="pipeline is a -> a"):
        Workload(flows=(FLOW,), follows=(edge("a", "a"),))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"speed": 0}, "speed is 0; more than 0"),
        ({"prefix_blocks": 0}, "prefix_blocks is 0; at least 1"),
        ({"popularity": Weights((1.0,))}, "number of weights is 1"),
        ({"spread": -1.0}, "spread is -1.0"),
        ({"block_tokens": 0}, "block_tokens is 0"),
    ],
)
def test_what_is_no_replay_is_refused(values, message):
    with pytest.raises(ValueError, match=message):
        Replay(adapters=("a", "b"), **values)


def test_delays_and_counts_are_checked():
    with pytest.raises(ValueError, match=r"delay is \(2, 1\); shortest and longest"):
        Follow(first="a", then="b", delay=(2, 1))
    with pytest.raises(ValueError, match="count is -1"):
        Burst(-1, 0.0)
    with pytest.raises(ValueError, match="count is -1; requests, 0 or more"):
        Workload(flows=(), count=-1)
    with pytest.raises(ValueError, match="count is -1; requests, 0 or more"):
        Replay(adapters=("a",), count=-1)
    assert Hawkes(1.0, 0.5, 1.0).branching == 0.5
