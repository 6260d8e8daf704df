"""One flow's arrivals."""

from collections import Counter

import numpy as np
import pytest

from lorapick.sim.workload.flows import flow_arrivals
from lorapick.sim.workload.spec import (
    FixedLength,
    Flow,
    Poisson,
    Scale,
    Sizes,
    Split,
    UniformLength,
    Weights,
    Workload,
    Zipf,
)

SIZES = Sizes(UniformLength(8, 512), FixedLength(7))


def run(flow, seed=1, **more):
    return list(flow_arrivals(flow, Workload(flows=(flow,), **more), seed=seed))


def test_a_flow_is_what_it_says():
    flow = Flow(
        name="f",
        adapters=("a", "b", "c", None),
        process=Poisson(100.0),
        sizes=SIZES,
        popularity=Zipf(1.0),
        priority=2,
        tenant="tenant of {adapter}",
        until=200.0,
    )
    found = run(flow)
    assert len(found) == pytest.approx(20_000, rel=0.03)
    assert [each.id for each in found] == [f"f-{number}" for number in range(1, len(found) + 1)]
    assert [each.t for each in found] == sorted(each.t for each in found)
    counts = Counter(each.adapter for each in found)
    for adapter, share in (("a", 12 / 25), ("b", 6 / 25), ("c", 4 / 25), (None, 3 / 25)):
        assert counts[adapter] / len(found) == pytest.approx(share, abs=0.015)
    assert np.mean([each.prompt_tokens for each in found]) == pytest.approx(260, rel=0.02)
    assert {each.output_tokens for each in found} == {7}
    assert {each.priority for each in found} == {2}
    assert all(each.tenant == f"tenant of {each.adapter or ''}" for each in found)
    assert {each.blocks for each in found} == {()}


def test_a_flow_begins_and_ends():
    found = run(Flow(name="f", adapters=("a",), process=Poisson(50.0), sizes=SIZES, start=10.0, until=20.0))
    assert found[0].t >= 10.0
    assert found[-1].t < 20.0
    whole = run(Flow(name="f", adapters=("a",), process=Poisson(50.0), sizes=SIZES), until=20.0)
    assert [each.t for each in whole if each.t >= 10.0] == [each.t for each in found]


def test_a_shared_prefix_begins_every_prompt_of_an_adapter():
    flow = Flow(name="f", adapters=("a", "b"), process=Poisson(50.0), sizes=SIZES, shared_prefix=100, until=10.0)
    found = run(flow)
    assert min(each.prompt_tokens for each in found) >= 108
    blocks = {each.adapter: each.blocks for each in found}
    assert all(each.blocks == blocks[each.adapter] for each in found)
    assert len(blocks["a"]) == 6  # whole blocks of 16 tokens
    assert not {*blocks["a"]} & {*blocks["b"]}
    assert len(run(flow, block_tokens=32)[0].blocks) == 3
    # The system prompt is the adapter's, not the run's.
    assert {each.adapter: each.blocks for each in run(flow, seed=9)} == blocks


def test_planned_changes_come_at_their_time():
    flow = Flow(
        name="f",
        adapters=("a", "b"),
        process=Poisson(100.0),
        sizes=SIZES,
        popularity=Weights((0.8, 0.2)),
        changes=(Split(100.0, 1, 0.5, over=100.0), Scale(200.0, 2.0)),
        until=300.0,
    )
    counts = [Counter(), Counter(), Counter()]
    for each in run(flow):
        counts[int(each.t // 100)][each.adapter] += 1
    assert counts[0]["a-experiment"] == 0
    assert counts[1]["a-experiment"] / counts[1].total() == pytest.approx(0.8 * 0.25, abs=0.015)
    assert counts[2]["a-experiment"] / counts[2].total() == pytest.approx(0.8 * 0.5, abs=0.015)
    assert counts[2].total() / counts[1].total() == pytest.approx(2.0, rel=0.05)


def test_a_change_of_the_rate_changes_no_draw():
    plain = Flow(name="f", adapters=("a", "b"), process=Poisson(50.0), sizes=SIZES, until=50.0)
    faster = Flow(name="f", adapters=("a", "b"), process=Poisson(50.0), sizes=SIZES, until=50.0, changes=(Scale(0, 2),))
    few, many = run(plain), run(faster)
    assert len(many) > len(few)
    for one, other in zip(few, many, strict=False):
        assert (one.adapter, one.prompt_tokens, one.id) == (other.adapter, other.prompt_tokens, other.id)
        assert other.t == pytest.approx(one.t / 2)
