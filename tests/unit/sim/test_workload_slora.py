"""S-LoRA's grid."""

from collections import Counter

import numpy as np
import pytest

from lorapick.sim.workload.slora import Point, slora, slora_ranks, suites
from lorapick.sim.workload.stream import arrivals


def test_the_grid_covers_the_papers_ranges():
    points = [point for suite in suites() for point in suite.points]
    assert {point.cv for point in points} == {1, 2, 4, 6, 8}
    assert (min(point.rate for point in points), max(point.rate for point in points)) == (1, 10)
    assert (min(point.adapters for point in points), max(point.adapters for point in points)) == (1, 2000)
    assert {point.alpha for point in points} == {0.1, 0.3, 0.6, 1.0}
    names = [(suite.name, suite.setting) for suite in suites()]
    assert len({*names}) == len(names)


def test_a_point_is_the_papers_workload():
    point = Point(adapters=20, alpha=0.3, rate=10.0, cv=2.0, duration=2000.0)
    found = list(arrivals(slora(point), seed=1))
    assert len(found) == 20_000
    gaps = np.diff([each.t for each in found])
    assert gaps.mean() == pytest.approx(0.1, rel=0.05)
    assert gaps.std() / gaps.mean() == pytest.approx(2.0, rel=0.06)
    assert {min(each.prompt_tokens for each in found), max(each.prompt_tokens for each in found)} == {8, 511}
    counts = Counter(each.adapter for each in found)
    assert counts["lora-0000"] / 20_000 == pytest.approx((1 / 20) ** 0.3, abs=0.01)


def test_ranks_go_round():
    assert slora_ranks(Point(adapters=5), "S2") == {
        "lora-0000": 64,
        "lora-0001": 32,
        "lora-0002": 16,
        "lora-0003": 8,
        "lora-0004": 64,
    }


def test_every_suite_runs():
    for suite in suites():
        assert len({*slora_ranks(suite.points[0], suite.setting)}) == suite.points[0].adapters
    large = max((point for suite in suites() for point in suite.points), key=lambda point: point.adapters)
    assert len({each.adapter for each in arrivals(slora(large), seed=1)}) > 800
