"""Adapters of traces."""

import json
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorapick.model.settings import Settings
from lorapick.wire.eventlog import LineEncoder, header_of
from lorapick.wire.traces.adapters import adapter_names, begins_event_log
from lorapick.wire.traces.rows import TraceError

NAMES = st.none() | st.text(string.ascii_letters + string.digits + "-_@. ü\"'\\", min_size=1)


def read(*lines: bytes) -> list[str | None]:
    return list(adapter_names(lines, name="t"))


def test_json_lines_with_whatever_else():
    assert read(b'{"adapter": "a"}\n', b"\n", b'{"t": 1, "adapter": null, "x": []}\n', b'{"adapter":"b"}') == [
        "a",
        None,
        "b",
    ]


def test_a_column_among_others():
    assert read(b"t,adapter\r\n", b"1,a\r\n", b'2,"b"\r\n', b"3,\r\n") == ["a", "b", None]


def test_a_byte_order_mark_says_nothing():
    assert read(b'\xef\xbb\xbf{"adapter": "a"}\n') == read(b"\xef\xbb\xbfadapter\n", b"a\n") == ["a"]


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ([b'{"adapter": "a"}\n', b'{"adaptor": "b"}\n'], r"t:2: .*required field `adapter`; '\{\"adaptor\": \"b\"\}'"),
        ([b'{"adapter": 7}'], r"t:1: Expected `str \| null`, got `int`"),
        ([b'{"adapter": ""}'], "t:1: adapter is ''; a name is needed, or null"),
        ([b'{"adapter": "a"}', b"adapter"], "t:2: .*malformed.*'adapter' should be an object"),
        ([b"name,t\n"], "t:1: the header lacks adapter"),
        ([b"adapter,t\n", b"a\n"], "t:2: 1 fields where the header has 2"),
        ([], "t:1: the header lacks adapter"),
        ([b"\x28\xb5\x2f\xfd"], "t:1: not UTF-8 text .* is the file compressed"),
        ([b'{"adapter":' + b"[" * 100_000], "t:1: "),
    ],
)
def test_lines_without_an_adapter_are_named(lines, why):
    with pytest.raises(TraceError, match=why):
        read(*lines)


@given(st.lists(NAMES, min_size=1))
def test_what_is_written_is_read(names):
    assert read(*(json.dumps({"adapter": name}).encode() for name in names)) == names


@given(st.lists(st.binary(max_size=40) | st.sampled_from([b"adapter", b"a", b'{"adapter":"a"}', b""])))
def test_anything_is_read_or_refused_by_line(lines):
    names = adapter_names(lines, name="t")
    try:
        for name in names:
            assert name is None or name
    except TraceError as error:
        told = str(error)
    else:
        told = "t:"
    assert told.startswith("t:")


def test_event_logs_are_told_by_their_header():
    assert begins_event_log(LineEncoder().header(header_of(Settings(), seed=1, epoch=0.0)))
    for line in (b"", b"adapter\n", b'{"adapter": "a"}', b'{"version": 1}', b"[" * 100_000):
        assert not begins_event_log(line)
