"""Mooncake traces."""

from contextlib import suppress
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorapick.plan.datafiles import data_path, open_lines
from lorapick.wire.traces.mooncake import mooncake_rows
from lorapick.wire.traces.rows import TraceError

GOOD = b'{"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46, 47]}\n'


def test_a_line_becomes_a_row():
    (row,) = mooncake_rows([b"\n", GOOD])
    assert (row.line, row.t, row.prompt_tokens, row.output_tokens) == (2, 27.482, 6955, 52)
    assert (row.hash_ids, row.hash_tokens) == ((46, 47), 512)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{", "m:2: Input data was truncated"),
        (b"[]", "m:2: Expected `object`"),
        (b'{"timestamp": 0, "input_length": 1}', "m:2: Object missing required field `output_length`"),
        (b'{"timestamp": -1, "input_length": 1, "output_length": 1}', r"\$.timestamp"),
        (b'{"timestamp": 0, "input_length": "1", "output_length": 1}', r"\$.input_length"),
        (b'{"timestamp": 0, "input_length": 1, "output_length": 1e99}', r"\$.output_length"),
        (b'{"timestamp": 0, "input_length": 1, "output_length": 1, "hash_ids": [1.5]}', r"\$.hash_ids\[0\]"),
    ],
)
def test_a_bad_line_is_named(line, message):
    with pytest.raises(TraceError, match=message):
        list(mooncake_rows([GOOD, line], name="m"))


@given(
    st.binary(max_size=60) | st.lists(st.sampled_from([b"{", b"}", b'"timestamp":', b"1", b",", b"NaN"])).map(b"".join)
)
def test_any_bytes_give_rows_or_a_trace_error(line):
    with suppress(TraceError):
        assert len(list(mooncake_rows([line]))) <= 1


def test_the_published_trace():
    rows = list(mooncake_rows(open_lines(data_path("traces/mooncake_conversation_trace.jsonl.zst"))))
    assert len(rows) == 12_031
    assert rows[-1].t == pytest.approx(3536.999)
    assert sum(len(row.hash_ids) for row in rows) == 288_500
    assert all(len(row.hash_ids) == -(-row.prompt_tokens // 512) for row in rows)
    assert all(before.t <= after.t for before, after in pairwise(rows))
