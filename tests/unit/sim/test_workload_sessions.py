"""Conversations."""

from collections import defaultdict
from itertools import pairwise

import numpy as np
import pytest

from lorapick.sim.workload.spec import FixedLength, Flow, Poisson, Sessions, Sizes, UniformLength, Workload, Zipf
from lorapick.sim.workload.stream import arrivals


def flow(**more):
    values = {
        "name": "f",
        "adapters": ("a", "b", "c"),
        "process": Poisson(20.0),
        "sizes": Sizes(UniformLength(20, 60), FixedLength(30)),
        "popularity": Zipf(1.0),
        "shared_prefix": 100,
        "sessions": Sessions(turns=5.0, think=20.0, most_prompt_tokens=600),
        "until": 3000.0,
    }
    return Flow(**{**values, **more})


@pytest.fixture(scope="module")
def found():
    return run()


def run(seed=1, **more):
    return list(arrivals(Workload(flows=(flow(**more),)), seed=seed))


def by_session(found):
    talks = defaultdict(list)
    for each in found:
        talks[each.session].append(each)
    return talks


def test_the_rate_is_that_of_requests(found):
    later = [each for each in found if each.t > 500]
    assert len(later) / 2500 == pytest.approx(20.0, rel=0.05)
    assert [each.t for each in found] == sorted(each.t for each in found)
    assert len({each.id for each in found}) == len(found)


def test_turns_are_geometric_and_think_times_exponential(found):
    talks = [each for each in by_session(found).values() if each[0].t < 2000]
    turns = np.array([len(each) for each in talks])
    assert turns.mean() == pytest.approx(5.0, rel=0.05)
    assert turns.std() == pytest.approx(np.sqrt(5 * 4), rel=0.1)
    gaps = np.array([after.t - before.t for talk in talks for before, after in pairwise(talk)])
    assert gaps.mean() == pytest.approx(20.0, rel=0.05)
    assert gaps.std() == pytest.approx(20.0, rel=0.07)


def test_a_conversation_keeps_its_adapter_and_its_prefix_grows(found):
    grown = 0
    for talk in by_session(found).values():
        assert len({each.adapter for each in talk}) == 1
        for before, after in pairwise(talk):
            assert len(after.blocks) == after.prompt_tokens // 16
            if after.prompt_tokens > before.prompt_tokens:
                # All that was said before, the answer, and 20 to 60 new tokens.
                assert 20 <= after.prompt_tokens - before.prompt_tokens - 30 <= 60
                assert after.blocks[: len(before.blocks)] == before.blocks
                grown += 1
    assert grown > 1000


def test_a_prompt_stays_within_its_bound_and_begins_anew(found):
    assert max(each.prompt_tokens for each in found) <= 600
    anew = 0
    for talk in by_session(found).values():
        for before, after in pairwise(talk):
            if after.prompt_tokens < before.prompt_tokens:
                anew += 1
                assert after.blocks[:6] == before.blocks[:6]  # the system prompt
                assert not {*after.blocks[6:]} & {*before.blocks[6:]}
    assert anew > 100


def test_conversations_share_the_system_prompt_and_nothing_else():
    talks = by_session(run(until=200.0))
    longest = {session: max((each.blocks for each in talk), key=len) for session, talk in talks.items()}
    own = [each for blocks in longest.values() for each in blocks[6:]]
    assert len({*own}) == len(own)
    assert len({blocks[:6] for blocks in longest.values()}) == 3


def test_same_seed_same_conversations():
    assert run(until=300.0) == run(until=300.0)
    assert run(until=300.0) != run(until=300.0, seed=2)


def test_nothing_comes_after_the_end():
    assert max(each.t for each in run(until=100.0)) < 100.0
    found = list(arrivals(Workload(flows=(flow(until=None),), until=100.0), seed=1))
    assert found == run(until=100.0)


def test_one_turn_is_a_request():
    found = run(sessions=Sessions(turns=1.0, think=20.0), until=300.0)
    assert len({each.session for each in found}) == len(found)
    assert len(found) / 300 == pytest.approx(20.0, rel=0.05)
