"""Which adapter a request is for, and how that changes."""

import numpy as np
import pytest

from lorapick.sim.workload.chance import chance
from lorapick.sim.workload.changes import Reweigh, Scale, Split, progress
from lorapick.sim.workload.mix import Mix
from lorapick.sim.workload.popularity import EqualShares, Weights, Zipf, shares

MANY = 100_000


def pick(mix, times):
    random = chance(1, "mix")
    choices = [random.random(len(times)) for _ in mix.steps]
    return np.bincount(mix.pick(times, random.random(len(times)), choices), minlength=len(mix.names)) / len(times)


def test_adapters_have_their_shares():
    mix = Mix([f"a{number}" for number in range(20)], Zipf(1.2))
    assert pick(mix, np.zeros(MANY)) == pytest.approx(shares(Zipf(1.2), 20), abs=0.005)


def test_an_adapter_without_share_is_never_picked():
    mix = Mix(["a", "b", "c", "d"], Weights((0.0, 1.0, 1e-9, 0.0)))
    uniform = np.array([0.0, 0.5, np.nextafter(1, 0)])
    assert mix.pick(np.zeros(3), uniform, []).tolist() == [1, 1, 2]


def test_how_much_of_a_change_holds():
    times = np.array([0.0, 10.0, 15.0, 20.0, 30.0])
    assert progress(Scale(10.0, 2.0), times).tolist() == [0, 1, 1, 1, 1]
    assert progress(Scale(10.0, 2.0, over=10.0), times).tolist() == [0, 0, 0.5, 1, 1]


def test_a_split_grows_to_its_share():
    mix = Mix(["a", "b", "c"], Weights((0.5, 0.3, 0.2)), [Split(100.0, 2, 0.5, over=100.0)])
    assert mix.names == ["a", "b", "c", "a-experiment", "b-experiment"]
    for time, share in ((0.0, 0.0), (150.0, 0.25), (200.0, 0.5), (900.0, 0.5)):
        found = pick(mix, np.full(MANY, time))
        expected = [0.5 * (1 - share), 0.3 * (1 - share), 0.2, 0.5 * share, 0.3 * share]
        assert found == pytest.approx(np.array(expected), abs=0.006)


def test_a_second_split_takes_of_what_the_first_left():
    mix = Mix(["a"], EqualShares(), [Split(2.0, 1, 0.5, into="{name}@3"), Split(1.0, 1, 0.5, into="{name}@2")])
    assert mix.names == ["a", "a@2", "a@3"]
    assert pick(mix, np.full(MANY, 3.0)) == pytest.approx(np.array([0.25, 0.5, 0.25]), abs=0.006)


def test_another_popularity_takes_over():
    mix = Mix(["a", "b"], Weights((1.0, 0.0)), [Reweigh(10.0, Weights((0.0, 1.0)), over=10.0)])
    assert pick(mix, np.full(MANY, 5.0)).tolist() == [1.0, 0.0]
    assert pick(mix, np.full(MANY, 15.0)) == pytest.approx(0.5, abs=0.006)
    assert pick(mix, np.full(MANY, 25.0)).tolist() == [0.0, 1.0]


def test_variants_go_with_the_new_popularity():
    changes = [Split(0.0, 2, 0.5), Reweigh(0.0, Weights((0.0, 1.0)))]
    mix = Mix(["a", "b"], Weights((1.0, 0.0)), changes)
    assert pick(mix, np.full(MANY, 5.0)) == pytest.approx(np.array([0, 0.5, 0, 0.5]), abs=0.006)


def test_a_rate_is_no_matter_of_the_mix():
    assert Mix(["a"], EqualShares(), [Scale(0.0, 2.0)]).steps == []
