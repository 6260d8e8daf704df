"""No instant of a request's time is charged twice, and each goes to whom it belongs."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lorapick.core.ledger.sharing import Span, shares


def test_nobody_loads() -> None:
    assert shares([], 0.0, until=10.0) == ({}, {})


def test_the_own_load_comes_before_others() -> None:
    cost = shares([Span(1, True, -5.0, 3.0), Span(2, False, 1.0, 4.0)], 0.0, until=10.0)
    assert cost == ({1: 3.0}, {2: 1.0})


def test_others_at_once_share_evenly() -> None:
    cost = shares([Span(1, False, 0.0, 4.0), Span(2, False, 2.0, 99.0)], 0.0, until=6.0)
    assert cost.others == {1: 3.0, 2: 3.0}
    assert (cost.waited, cost.drained) == (0.0, 6.0)


def test_what_touches_an_edge_costs_nothing() -> None:
    assert shares([Span(1, True, 0.0, 1.0), Span(2, False, 5.0, 6.0)], 1.0, until=5.0) == ({}, {})


def test_who_took_no_time_is_not_named() -> None:
    assert shares([Span(1, False, 3.0, 3.0), Span(2, True, 4.0, 4.0)], 0.0, until=9.0) == ({}, {})


SPANS = st.lists(
    st.tuples(st.booleans(), st.integers(0, 20), st.integers(0, 10)).map(lambda s: (s[0], s[1], s[1] + s[2])),
    max_size=6,
)


@settings(max_examples=50)
@given(spans=SPANS, since=st.integers(0, 20), length=st.integers(0, 20))
def test_second_by_second_it_is_the_same(spans: list[tuple[bool, int, int]], since: int, length: int) -> None:
    until = since + length
    waited = drained = 0
    for at in range(since, until):
        own = [mine for mine, begun, over in spans if begun <= at < over]
        waited += any(own)
        drained += bool(own) and not any(own)
    cost = shares([Span(n, *span) for n, span in enumerate(spans)], since, until=until)
    assert (cost.waited, cost.drained) == (pytest.approx(waited), pytest.approx(drained))
