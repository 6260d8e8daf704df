"""ServeGen's windows of demand."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorapick.plan.datafiles import data_path, open_lines
from lorapick.wire.traces.rows import TraceError
from lorapick.wire.traces.servegen import all_windows, client_windows

BUSY = b"600,62.49,1.0389,Gamma,0.92,0.017\r\n"
IDLE = b"1200,0,0,,0,0\r\n"


def test_one_clients_file():
    busy, idle = client_windows([BUSY, IDLE], client="12")
    assert (busy.client, busy.start, busy.rate, busy.cv) == ("12", 600.0, 62.49, 1.0389)
    assert (busy.family, busy.shape, busy.scale) == ("Gamma", 0.92, 0.017)
    assert (idle.rate, idle.cv, idle.family, idle.shape, idle.scale) == (0.0, None, None, None, None)


def test_the_joined_file():
    windows = list(all_windows([b"12," + BUSY, b"13,0,1,5.3,Weibull,0.4,0.03\n"]))
    assert [(each.client, each.start) for each in windows] == [("12", 600.0), ("13", 0.0)]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"600,1,1,Gamma,1\n", "s:2: 5 fields of a window; start,rate,cv,family,shape,scale are needed"),
        (b"900,x,1,Gamma,1,1\n", "s:2: rate is 'x'; a number from 0 to 1e\\+09 is needed"),
        (b"900,1,1,Pareto,1,1\n", "s:2: family is 'Pareto'; Gamma or Weibull is needed where the rate is not 0"),
        (b"900,1,-1,Gamma,1,1\n", "s:2: cv is '-1'"),
        (b"600,1,1,Gamma,1,1\n", "s:2: start is 600, not after the last window's 600"),
    ],
)
def test_a_bad_line_is_named(line, message):
    with pytest.raises(TraceError, match=message):
        list(client_windows([BUSY, line], client="1", name="s"))


@given(st.lists(st.binary(max_size=40) | st.text("0123456789.,GamWeibul", max_size=40).map(str.encode), max_size=4))
def test_any_bytes_give_windows_or_a_trace_error(lines):
    for read in (client_windows(lines, client="1"), all_windows(lines)):
        try:
            windows = list(read)
        except TraceError:
            continue
        assert all((each.cv is None) == (each.rate == 0) for each in windows)


def test_the_published_clients():
    counts = Counter(window.client for window in all_windows(open_lines(data_path("traces/servegen_m_small.csv.zst"))))
    assert len(counts) == 43
    assert {*counts.values()} == {2016}  # fourteen days of ten minutes
