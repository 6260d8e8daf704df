"""Tables of lengths."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorapick.plan.datafiles import data_path
from lorapick.wire.traces.cdf import cdf_points
from lorapick.wire.traces.rows import TraceError


def test_points_are_read():
    assert cdf_points(b"[[64, 0.25], [128, 0.25], [256, 1]]") == ((64, 0.25), (128, 0.25), (256, 1.0))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[]", "c: the last share is None; it must be 1"),
        (b"[[64, 0.5]]", "c: the last share is 0.5; it must be 1"),
        (b"[[64, 0.5], [64, 1]]", r"c: \[64, 1.0\] after \[64, 0.5\]; tokens must rise"),
        (b"[[64, 0.5], [65, 0.4], [66, 1]]", "shares not fall"),
        (b"[[0, 1]]", r"c: Expected `int` >= 1"),
        (b"[[64, 1.5]]", r"Expected `float` <= 1"),
        (b"{}", "a list of .tokens, cumulative share. is needed"),
    ],
)
def test_what_is_no_distribution_is_refused(content, message):
    with pytest.raises(TraceError, match=message):
        cdf_points(content, name="c")


@given(st.binary(max_size=60))
def test_any_bytes_give_points_or_a_trace_error(content):
    with suppress(TraceError):
        assert cdf_points(content)[-1][1] == 1


@pytest.mark.parametrize(("name", "first"), [("azure", 0.00837), ("lmsys_multiturn", 0.13144)])
def test_the_published_tables(name, first):
    points = cdf_points(data_path(f"traces/fleetsim_{name}_cdf.json").read_bytes())
    assert (points[0][0], points[0][1]) == (64, pytest.approx(first, abs=1e-5))
    assert points[-1] == (65_536, 1.0)
