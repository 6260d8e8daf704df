"""What each policy cures and does not, in loads beside the fewest possible; the figures are in docs/retention.md."""

import pytest

from lorapick.core.retention.policies import RETENTIONS
from lorapick.model.retention import RetentionFacts
from lorapick.testing.retention import PLAIN, STREAMS, fewest_loads, play, zipf

SEEDS = range(1, 7)


def loads(name, seed):
    """Loads of each policy on a stream, as a multiple of the fewest possible."""
    stream = STREAMS[name](seed)
    fewest = fewest_loads(stream)
    return {policy: play(policy, stream).loads / fewest for policy in RETENTIONS}


@pytest.mark.parametrize("seed", SEEDS)
def test_batches(seed):
    found = loads("blips", seed)
    assert 1.0 <= found["cost"] < 1.25
    assert 1.2 * found["cost"] < found["lru"] < 0.3 * found["window"]
    assert found["window"] < found["lfu"]


@pytest.mark.parametrize("seed", SEEDS)
def test_ghosts(seed):
    found = loads("ghosts", seed)
    assert found["lru"] < 1.05
    assert found["cost"] < 4.5
    assert 2 * found["cost"] < found["window"] < 0.25 * found["lfu"]


@pytest.mark.parametrize("seed", SEEDS)
def test_unequal_popularity_that_stays_or_shifts(seed):
    stays, shifts = loads("zipf", seed), loads("shifts", seed)
    assert 1.0 <= stays["window"] < stays["cost"] * 1.02 < stays["window"] * 1.08
    assert stays["cost"] < 0.85 * stays["lru"]
    assert 1.0 <= shifts["cost"] < shifts["window"] < shifts["lru"] < shifts["lfu"]


@pytest.mark.parametrize("seed", SEEDS)
def test_stretches_are_where_lru_is_best(seed):
    found = loads("stretches", seed)
    assert 1.0 <= found["lru"] < found["cost"] < 1.2 * found["lru"]
    assert 1.6 * found["cost"] < found["window"]


@pytest.mark.parametrize("seed", SEEDS)
def test_adapters_that_are_asked_for_once(seed):
    found = loads("once", seed)
    assert 1.0 <= found["cost"] < 1.03
    assert found["lru"] > 1.3


@pytest.mark.parametrize("seed", SEEDS)
def test_only_one_policy_knows_that_loads_differ_in_cost(seed):
    """Every fourth adapter takes seven times as long to load."""
    stream = zipf(seed)
    slow = RetentionFacts(from_cpu=7 * PLAIN.from_cpu)
    facts = {f"tenant-{number:02}": slow for number in range(0, 40, 4)}
    seconds = {policy: play(policy, stream, facts=facts).seconds for policy in RETENTIONS}
    assert seconds["cost"] < 0.9 * min(seconds["lru"], seconds["lfu"], seconds["window"])
