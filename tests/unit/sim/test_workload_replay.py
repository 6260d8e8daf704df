"""Traces played again."""

from collections import Counter, defaultdict
from itertools import count, islice, pairwise

import numpy as np
import pytest

from lorapick.plan.datafiles import data_path, open_lines
from lorapick.sim.workload.popularity import EqualShares, Zipf, shares
from lorapick.sim.workload.replay import replay
from lorapick.sim.workload.spec import Replay, ReplayKey, Reweigh, Split, Weights
from lorapick.wire.traces.reading import trace_rows
from lorapick.wire.traces.rows import TraceError, TraceRow

ADAPTERS = tuple(f"a{number}" for number in range(8))


def row(line, t, **more):
    return TraceRow(line=line, t=t, **{"prompt_tokens": 100, "output_tokens": 10, **more})


def rows_of(name):
    return trace_rows(open_lines(data_path(f"traces/{name}.zst")), name=name)


def test_times_and_sizes_are_the_traces():
    rows = [row(2, 100.0), row(3, 101.0, prompt_tokens=0, output_tokens=0, session="s")]
    found = list(replay(rows, Replay(adapters=("a",), speed=2.0, priority=3), seed=1))
    assert [(each.t, each.prompt_tokens, each.output_tokens) for each in found] == [(0.0, 100, 10), (0.5, 1, 1)]
    assert [(each.id, each.session, each.priority) for each in found] == [("row-2", None, 3), ("row-3", "s", 3)]


def test_a_popularity_law_is_laid_over():
    rows = (row(line, line / 10) for line in range(1, 20_001))
    counts = Counter(each.adapter for each in replay(rows, Replay(adapters=ADAPTERS, popularity=Zipf(1.0)), seed=1))
    for adapter, share in zip(ADAPTERS, shares(Zipf(1.0), 8).tolist(), strict=True):
        assert counts[adapter] / 20_000 == pytest.approx(share, abs=0.015)


@pytest.mark.parametrize(
    ("key", "field"),
    [(ReplayKey.SESSION, "session"), (ReplayKey.MODEL, "model"), (ReplayKey.PREFIX, "hash_ids")],
)
def test_what_belongs_together_keeps_its_adapter(key, field):
    values = {"hash_ids": lambda number: (0, number, number + 1000)}.get(field, str)
    rows = [row(line, line, **{field: values(line % 40)}) for line in range(1, 400)]
    seen = defaultdict(set)
    for each, source in zip(replay(rows, Replay(adapters=ADAPTERS, key=key), seed=1), rows, strict=True):
        seen[getattr(source, field)].add(each.adapter)
    assert all(len(adapters) == 1 for adapters in seen.values())
    assert len(set.union(*seen.values())) > 4
    alone = [row(line, line) for line in range(1, 200)]
    assert len({each.adapter for each in replay(alone, Replay(adapters=ADAPTERS, key=key), seed=1)}) == 8


def test_rows_come_as_they_are_read():
    taken = 0

    def endless():
        nonlocal taken
        for line in count(1):
            taken = line
            yield row(line, float(line))

    stream = replay(endless(), Replay(adapters=ADAPTERS), seed=1)
    assert len(list(islice(stream, 1000))) == 1000
    assert taken < 1000 + 300


def test_a_replay_ends():
    rows = [row(line, float(line)) for line in range(1, 100)]
    assert len(list(replay(rows, Replay(adapters=("a",), until=10.0), seed=1))) == 10
    assert len(list(replay(rows, Replay(adapters=("a",), count=7), seed=1))) == 7
    assert list(replay([], Replay(adapters=("a",)), seed=1)) == []


def test_rows_out_of_order_are_refused():
    with pytest.raises(TraceError, match="line 3: t is 1 s, after a row of 2 s; sort the trace"):
        list(replay([row(2, 2.0), row(3, 1.0)], Replay(adapters=("a",)), seed=1))


def test_equal_times_are_spread_but_not_beyond_the_next():
    rows = [row(line, 3.0 * (line // 10)) for line in range(1000)]
    spread = Replay(adapters=("a",), spread=5.0)
    found = [each.t for each in replay(rows, spread, seed=1)]
    assert found == sorted(found)
    assert all(3.0 * (line // 10) <= t < 3.0 * (line // 10) + 3.0 for line, t in enumerate(found[:-10]))
    assert np.mean(np.array(found[:-10]) % 3.0) == pytest.approx(1.5, abs=0.15)
    assert max(found) < 297 + 5
    assert [each.id for each in replay(rows, spread, seed=1)] == [f"row-{line}" for line in range(1000)]


def test_changes_move_keys_once():
    rows = [row(line, line / 10, session=str(line % 50)) for line in range(4000)]
    changes = (Split(100.0, 8, 0.5, over=200.0), Reweigh(200.0, Weights((0.0,) * 7 + (1.0,)), over=50.0))
    spec = Replay(adapters=ADAPTERS, popularity=EqualShares(), key=ReplayKey.SESSION, changes=changes)
    seen = defaultdict(list)
    for each in replay(rows, spec, seed=1):
        if not seen[each.session] or seen[each.session][-1] != each.adapter:
            seen[each.session].append(each.adapter)
    assert all(len(adapters) <= 3 for adapters in seen.values())
    last = Counter(adapters[-1] for adapters in seen.values())
    assert {*last} == {"a7", "a7-experiment"}
    assert last["a7-experiment"] == pytest.approx(25, abs=12)


def test_blocks_are_the_traces_in_the_pods_size():
    rows = [
        row(1, 0.0, prompt_tokens=1100, hash_ids=(0, 7, 8)),
        row(2, 1.0, prompt_tokens=1030, hash_ids=(0, 7, 9)),
        row(3, 2.0, prompt_tokens=500, hash_ids=(0,)),
    ]
    one, two, three = (each.blocks for each in replay(rows, Replay(adapters=("a",)), seed=1))
    assert [len(each) for each in (one, two, three)] == [1100 // 16, 1030 // 16, 500 // 16]
    assert one[:64] == two[:64]
    assert three == one[:31]
    other = next(replay(rows, Replay(adapters=("b",)), seed=1)).blocks
    assert not {*one} & {*other}
    (large, *_) = replay(rows, Replay(adapters=("a",), block_tokens=512), seed=1)
    assert len(large.blocks) == 2
    with pytest.raises(ValueError, match="block_tokens is 24; a divisor of the trace's 512"):
        list(replay(rows, Replay(adapters=("a",), block_tokens=24), seed=1))


def test_the_azure_trace():
    found = list(replay(rows_of("AzureLLMInferenceTrace_2023_conv.csv"), Replay(adapters=ADAPTERS), seed=1))
    assert len(found) == 19_366
    gaps = np.diff([each.t for each in found])
    assert 1 / gaps.mean() == pytest.approx(5.53, abs=0.01)
    assert gaps.std() / gaps.mean() == pytest.approx(1.09, abs=0.01)


def test_the_mooncake_trace():
    spec = Replay(adapters=ADAPTERS, popularity=Zipf(1.0), key=ReplayKey.PREFIX, spread=3.0, block_tokens=512)
    found = list(replay(rows_of("mooncake_conversation_trace.jsonl"), spec, seed=1))
    assert len(found) == 12_031
    assert all(before.t <= after.t for before, after in pairwise(found))
    # Steps of the clock are gone: half of the gaps would be 0.
    assert np.median(np.diff([each.t for each in found])) > 0.1
    blocks = [block for each in found for block in each.blocks]
    # Blocks seen before: adapters do not share the first block, which all of the trace's prompts begin with.
    assert 1 - len({*blocks}) / len(blocks) == pytest.approx(0.38, abs=0.03)
