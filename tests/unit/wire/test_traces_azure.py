"""Azure LLM inference traces."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorapick.plan.datafiles import data_path, open_lines
from lorapick.wire.traces.azure import azure_rows
from lorapick.wire.traces.rows import TraceError

HEADER = b"TIMESTAMP,ContextTokens,GeneratedTokens\r\n"


def read(*lines: bytes):
    return [(row.line, row.t, row.prompt_tokens, row.output_tokens) for row in azure_rows([HEADER, *lines], name="a")]


def test_time_counts_from_the_first_row():
    rows = read(b"2023-11-16 18:15:46.6805900,374,44\r\n", b"2023-11-16 18:15:50.9951690,396,109")
    assert rows == [(2, 0.0, 374, 44), (3, pytest.approx(4.314579), 396, 109)]


def test_the_2024_files_have_an_offset():
    rows = read(b"2024-05-10 00:00:00.009930+00:00,2162,5\n", b"2024-05-10 00:00:01+00:00,1,0\n")
    assert rows == [(2, 0.0, 2162, 5), (3, pytest.approx(0.99007), 1, 0)]


def test_columns_may_come_in_another_order_and_with_others():
    lines = [b"\xef\xbb\xbfGeneratedTokens, TIMESTAMP,x,ContextTokens\n", b"7,2023-11-16 18:15:46,?,9\n", b"\n"]
    (row,) = azure_rows(lines)
    assert (row.prompt_tokens, row.output_tokens) == (9, 7)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"yesterday,1,1\n", "a:2: TIMESTAMP is 'yesterday'; a date and time such as \"2023-11-16"),
        (b"2023-11-16 18:15:46,-1,1\n", "a:2: ContextTokens is '-1'; a whole number from 0 to 10,000,000"),
        (b"2023-11-16 18:15:46,1,1e3\n", "a:2: GeneratedTokens is '1e3'"),
        (b"2023-11-16 18:15:46,1," + b"9" * 99 + b"\n", "GeneratedTokens is '" + "9" * 60 + "...'"),
        (b"2023-11-16 18:15:46,1\n", "a:2: 2 fields where the header has 3"),
        (b"2023-11-16 18:15:46,1,1,1\n", "a:2: 4 fields where the header has 3"),
        (b"2023-11-16 18:15:46,\xff,1\n", r"a:2: not UTF-8 text \(byte 20\)"),
        (b'2023-11-16 18:15:46,"1,1\n', "a:2: not comma-separated"),
    ],
)
def test_a_bad_line_is_named(line, message):
    with pytest.raises(TraceError, match=message):
        read(line)


def test_a_row_before_the_first_is_refused():
    with pytest.raises(TraceError, match=r"a:3: TIMESTAMP is .*, before the first row's"):
        read(b"2023-11-16 18:15:46,1,1\n", b"2023-11-16 18:15:45,1,1\n")
    with pytest.raises(TraceError, match="a:3"):
        read(b"9999-12-31 23:59:59-14:00,1,1\n", b"0001-01-01 00:00:00+14:00,1,1\n")


def test_a_header_is_needed():
    with pytest.raises(TraceError, match=r"a:1: the header lacks TIMESTAMP, ContextTokens, GeneratedTokens"):
        list(azure_rows([], name="a"))
    with pytest.raises(TraceError, match=r"lacks ContextTokens; it has 'TIMESTAMP,GeneratedTokens'"):
        list(azure_rows([b"TIMESTAMP,GeneratedTokens\n"]))


def test_rows_come_as_lines_do():
    def lines():
        yield HEADER
        yield b"2023-11-16 18:15:46,1,1\n"
        raise AssertionError("nobody asked for this line")

    assert next(azure_rows(lines())).prompt_tokens == 1


@given(st.lists(st.binary(max_size=40) | st.text("0123456789-: .,T+Z\"'", max_size=40).map(str.encode), max_size=4))
def test_any_bytes_give_rows_or_a_trace_error(lines):
    try:
        rows = list(azure_rows([HEADER, *lines]))
    except TraceError:
        return
    assert all(row.t >= 0 and row.prompt_tokens >= 0 for row in rows)


def test_the_published_trace():
    rows = list(azure_rows(open_lines(data_path("traces/AzureLLMInferenceTrace_2023_conv.csv.zst"))))
    assert len(rows) == 19_366
    assert (rows[0].prompt_tokens, rows[0].output_tokens) == (374, 44)
    assert rows[-1].t == pytest.approx(3501.72, abs=0.01)
    assert max(row.prompt_tokens for row in rows) == 14_050
    assert all(before.t <= after.t for before, after in pairwise(rows))
