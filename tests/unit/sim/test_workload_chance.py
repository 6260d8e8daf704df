"""Random numbers by purpose."""

import os
import subprocess
import sys
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorapick.sim.workload.chance import batch_sizes, block_ids, chance, one_by_one, unit


def test_a_purpose_has_its_own_numbers():
    assert chance(1, "a").random(5).tolist() == chance(1, "a").random(5).tolist()
    streams = [chance(1, "a"), chance(2, "a"), chance(1, "b"), chance(1, "a", "b"), chance(-1, "a")]
    assert len({stream.random() for stream in streams}) == 5


@pytest.mark.parametrize("draw", ["random", "standard_exponential", "normal", "gamma"])
def test_how_many_are_drawn_at_a_time_changes_nothing(draw):
    def numbers(random):
        return {"gamma": lambda size: random.standard_gamma(0.3, size)}.get(draw) or (
            lambda size: getattr(random, draw)(size=size)
        )

    singly = [float(numbers(single)(1)[0]) for single in [chance(3, draw)] for _ in range(300)]
    assert list(islice(one_by_one(numbers(chance(3, draw))), 300)) == singly


def test_batches_grow_to_a_bound():
    assert list(islice(batch_sizes(), 8)) == [64, 128, 256, 512, 1024, 2048, 4096, 4096]


@given(st.integers(), st.text())
def test_a_key_has_its_number(seed, key):
    key = key.encode("utf-8", "replace").decode()
    assert 0 <= unit(seed, key) < 1
    assert unit(seed, key) == unit(seed, key)


def test_numbers_of_keys_are_uniform():
    found = np.sort([unit(7, str(key)) for key in range(20_000)])
    # Kolmogorov-Smirnov at the level of 1 in 1000.
    assert np.abs(found - np.arange(20_000) / 20_000).max() < 1.95 / np.sqrt(20_000)


@given(st.integers(0, 2**64 - 1), st.integers(0, 500), st.integers(0, 50))
def test_blocks_of_a_text_are_told_by_their_place(seed, first, count):
    ids = block_ids(seed, first, count)
    assert ids == block_ids(seed, 0, first + count)[first:]
    assert all(0 <= each < 2**64 for each in ids)


def test_blocks_of_different_texts_differ():
    ids = [each for seed in range(300) for each in block_ids(seed, 0, 300)]
    assert len({*ids}) == len(ids)


def test_one_known_number():
    # splitmix64 seeded with 0, as published.
    assert block_ids(0, 0, 2) == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4]


def test_the_hash_seed_of_strings_changes_nothing():
    program = """if True:
        from hashlib import sha256
        from lorapick.sim.workload.spec import *
        from lorapick.sim.workload.stream import arrivals
        import msgspec
        sizes = Sizes(LogNormalLength(200, 1), UniformLength(4, 12))
        flow = Flow(name="a", adapters=("x", "y", "z"), process=Gamma(50, 3), sizes=sizes, popularity=Zipf(1),
                    changes=(Split(10, 2, 0.5, over=5), Scale(5, 2)))
        talk = Flow(name="b", adapters=("x", None), process=Hawkes(9, 0.5, 3), sizes=sizes, sessions=Sessions(4, 5))
        work = Workload(flows=(flow, talk), follows=(Follow(first="x", then="y", after=After.ARRIVAL),), count=3000)
        print(sha256(msgspec.json.encode(list(arrivals(work, seed=4)))).hexdigest())
    """
    seen = [
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert len(seen[0]) == 65
    assert seen[0] == seen[1]
