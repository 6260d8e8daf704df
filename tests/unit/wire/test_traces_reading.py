"""A trace's format is told by its first line."""

import pytest

from lorapick.wire.traces.reading import trace_rows
from lorapick.wire.traces.rows import TraceError


@pytest.mark.parametrize(
    "lines",
    [
        [b"TIMESTAMP,ContextTokens,GeneratedTokens\r\n", b"2023-11-16 18:15:46,10,4\n"],
        [b'{"timestamp": 0, "input_length": 10, "output_length": 4, "hash_ids": []}\n'],
        [b"\xef\xbb\xbfTimestamp,Model,Request tokens,Response tokens\n", b"5,GPT-4,10,4\n"],
    ],
)
def test_the_right_reader_is_taken(lines):
    assert [(row.prompt_tokens, row.output_tokens) for row in trace_rows(lines)] == [(10, 4)]


def test_other_formats_are_refused():
    with pytest.raises(TraceError, match=r"t:1: the first line is 'a,b'; JSON lines \(Mooncake\), or a header"):
        trace_rows([b"a,b\n"], name="t")
    with pytest.raises(TraceError, match="t:1: the first line is ''"):
        trace_rows([], name="t")
