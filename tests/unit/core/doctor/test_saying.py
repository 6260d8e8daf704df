"""Figures in words."""

import pytest

from lorapick.core.doctor import saying
from lorapick.core.doctor.picture import Picture


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0 ms"), (0.35, "350 ms"), (2.25, "2.25 s"), (40, "40 s"), (300, "300 s"), (900, "15 min"), (9000, "2.5 h")],
)
def test_times(value, text):
    assert saying.seconds(value) == text


def test_shares_sizes_numbers():
    assert [saying.share(value) for value in (0.0012, 0.02, 0.15, 1.0)] == ["0.12 %", "2 %", "15 %", "100 %"]
    assert (saying.size(503e6), saying.size(2e9)) == ("503 MB", "2 GB")
    assert [saying.number(value) for value in (1.8, 2.0, 1234.5, 0.0213)] == ["1.8", "2", "1234", "0.0213"]
    assert (saying.plural(1, "pod"), saying.plural(0, "pod")) == ("1 pod", "0 pods")


def test_lists_end_with_how_many_more():
    assert saying.names(["a", "b"]) == "a, b"
    assert saying.names(["a", "b", "c"], 2) == "a, b and 1 more"


def test_times_of_day_are_utc():
    assert saying.clock(Picture(now=100.0, wall=86_400.0 + 3_700.0), 0.0) == "01:00 UTC"
    assert saying.clock(Picture(now=100.0), 60.0) == "40 s ago"
    assert saying.clock(Picture(), 60.0) == "some time ago"
