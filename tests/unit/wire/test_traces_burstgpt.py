"""BurstGPT's shape (no copy comes with the project)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorapick.wire.traces.burstgpt import burstgpt_rows
from lorapick.wire.traces.rows import TraceError

OLD = b"Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
NEW = b"Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n"


def test_both_shapes():
    (row,) = burstgpt_rows([OLD, b"5,ChatGPT,472,18,490,Conversation log\n"])
    assert (row.t, row.model, row.session, row.prompt_tokens, row.output_tokens) == (5.0, "ChatGPT", None, 472, 18)
    rows = list(burstgpt_rows([NEW, b"5.5,17,1.2,GPT-4,472,0,472,API log\n", b"6,,1.2,,1,2,3,\n"]))
    assert [(row.t, row.model, row.session) for row in rows] == [(5.5, "GPT-4", "17"), (6.0, None, None)]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"-5,ChatGPT,472,18,490,x\n", "b:2: Timestamp is '-5'; a number from 0 to 1e\\+12 is needed"),
        (b"nan,ChatGPT,472,18,490,x\n", "Timestamp is 'nan'"),
        (b"1_0,ChatGPT,472,18,490,x\n", "Timestamp is '1_0'"),
        (b"x,ChatGPT,472,18,490,x\n", "Timestamp is 'x'"),
        (b"5,ChatGPT,four,18,490,x\n", "b:2: Request tokens is 'four'"),
        ("5,ChatGPT,٣,18,490,x\n".encode(), "Request tokens is '٣'"),
    ],
)
def test_a_bad_line_is_named(line, message):
    with pytest.raises(TraceError, match=message):
        list(burstgpt_rows([OLD, line], name="b"))


@given(st.lists(st.binary(max_size=40) | st.text("0123456789.,eE+-infa", max_size=40).map(str.encode), max_size=4))
def test_any_bytes_give_rows_or_a_trace_error(lines):
    try:
        rows = list(burstgpt_rows([OLD, *lines]))
    except TraceError:
        return
    assert all(row.t >= 0 for row in rows)
