"""Promises."""

import pytest

from lorapick.sim.windows import Promise


@pytest.mark.parametrize(
    ("promise", "kept"),
    [
        (Promise(), True),
        (Promise(ttft=0.5), True),
        (Promise(ttft=0.4), False),
        (Promise(latency=2.0), True),
        (Promise(ttft=1.0, latency=1.9), False),
    ],
)
def test_an_answer_keeps_all_that_was_promised(promise, kept):
    assert promise.kept(ttft=0.5, latency=2.0) is kept
