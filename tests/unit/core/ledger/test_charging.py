"""Charges from rows add up to what the rows say."""

import pytest

from lorapick.core.ledger.charging import Charge, LoadIndex, charges
from lorapick.model.ledger import LoadRow, RequestRow
from lorapick.model.requests import Outcome


def load(number: int, adapter: str, begun: float | None, over: float | None, *, pod: str = "a") -> LoadRow:
    return LoadRow(id=number, pod=pod, adapter=adapter, begun=begun, over=over, tier="disk", caused_by="request")


def request(**fields: object) -> RequestRow:
    given = {"id": "r", "arrived": 0.0, "ended": 10.0, "model": "x", "adapter": "x", "pod": "a", "dispatched": 2.0}
    return RequestRow(outcome=Outcome.SERVED, **(given | fields))


def test_each_load_is_charged_its_part() -> None:
    loads = [load(1, "x", 1.0, 3.0), load(2, "y", 4.0, 6.0), load(3, "z", 5.0, 6.0), load(4, "y", 0.0, 9.0, pod="b")]
    found = [*charges(request(load_wait=1.0, drain=2.0), LoadIndex(loads))]
    assert found == [Charge(1, 1.0, waited=True), Charge(2, 1.5, waited=False), Charge(3, 0.5, waited=False)]


def test_the_wait_at_the_picker_goes_to_the_load_that_it_followed() -> None:
    row = request(load_wait=2.5, load_wait_held=1.5, load=1)
    assert [*charges(row, LoadIndex([load(1, "x", 0.0, 3.0)]))] == [Charge(1, 1.5, True), Charge(1, 1.0, True)]


def test_who_waited_for_nothing_is_not_looked_at() -> None:
    assert [*charges(request(), LoadIndex([load(1, "x", 0.0, 9.0)]))] == []
    assert [*charges(request(pod=None, dispatched=None, drain=1.0), LoadIndex([]))] == []


@pytest.mark.parametrize("over", [None, 50.0])
def test_a_long_load_among_short_ones_is_found(over: float | None) -> None:
    loads = [load(n, "z", 20.0 + n, 20.5 + n) for n in range(10)] + [load(99, "y", 5.0, over), load(98, "w", None, 5.0)]
    spans = LoadIndex(loads).spans("a", "x", since=2.0, until=10.0)
    assert [span.load for span in spans] == [99]
    assert LoadIndex(loads).spans("nowhere", "x", since=2.0, until=10.0) == []
