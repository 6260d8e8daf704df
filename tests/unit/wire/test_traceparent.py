"""The W3C header, held against OpenTelemetry's own reader."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry import trace
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from lorapick.wire.traceparent import HEADER, Parent, read, write

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


def theirs(header: str) -> Parent | None:
    context = TraceContextTextMapPropagator().extract({HEADER: header})
    found = trace.get_current_span(context).get_span_context()
    return Parent(found.trace_id, found.span_id, found.trace_flags.sampled) if found.is_valid else None


@pytest.mark.parametrize(
    ("header", "sampled"),
    [
        (f"00-{TRACE}-{SPAN}-01", True),
        (f"00-{TRACE}-{SPAN}-00", False),
        (f"00-{TRACE}-{SPAN}-03", True),
        (f" 00-{TRACE}-{SPAN}-01\t", True),
        (f"cc-{TRACE}-{SPAN}-01-what-comes-later", True),
    ],
)
def test_good_ones(header: str, sampled: bool) -> None:
    assert read(header) == Parent(int(TRACE, 16), int(SPAN, 16), sampled) == theirs(header)


@pytest.mark.parametrize(
    "header",
    [
        None, "", "00", "00-aa-bb-01", f"00-{TRACE}-{SPAN}", f"00-{TRACE}-{SPAN}-01-more", f"ff-{TRACE}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01", f"00-{TRACE}-{'0' * 16}-01", f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{TRACE[:-1]}g-{SPAN}-01", f"00-{TRACE}-{SPAN}-1", f"00-{TRACE}-{SPAN}-01\n00",
        f"cc-{TRACE}-{SPAN}-01-{'x' * 1000}",
    ],
)  # fmt: skip
def test_broken_ones_are_no_callers(header: str | None) -> None:
    assert read(header) is None


@settings(max_examples=50)
@given(st.text() | st.from_regex(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-.{0,9})?", fullmatch=True))
def test_read_as_opentelemetry_reads(header: str) -> None:
    if "\n" not in header:  # no HTTP header has one
        assert read(header) == theirs(header)


@settings(max_examples=50)
@given(st.integers(1, 2**128 - 1), st.integers(1, 2**64 - 1))
def test_what_is_written_is_read(trace_id: int, span_id: int) -> None:
    assert read(write(trace_id, span_id)) == Parent(trace_id, span_id, True)
