"""Which evictions made a time slow: worked examples."""

import pytest

from lorapick.core.ledger.conservation import Watched
from lorapick.core.ledger.report import Asked, Rows, make_report, quantile
from lorapick.model.ledger import LoadRow, RequestRow, ResidencyRow
from lorapick.model.ledger_report import LedgerReport
from lorapick.model.requests import Outcome


def request(number: int, seconds: float, **fields: object) -> RequestRow:
    given = {"arrived": 100.0 - seconds, "ended": 100.0, "model": "x", "adapter": "x", "outcome": Outcome.SERVED}
    given |= {"pod": "a", "dispatched": 100.0 - seconds, "served": seconds, "hit": True}
    return RequestRow(id=f"r{number}", **(given | fields))


def load(number: int, adapter: str, begun: float, over: float, *, after: int | None = None) -> LoadRow:
    return LoadRow(
        id=number, pod="a", adapter=adapter, begun=begun, over=over, tier="disk", caused_by="request", after_stay=after
    )


EVICTED = ResidencyRow(id=7, pod="a", adapter="x", since=0.0, until=90.0, why="capacity", evicted_by="y")
FAST = [request(number, 1.0) for number in range(18)]
SLOW = request(98, 9.0, load_wait=6.0, served=3.0, hit=False)
DRAINED = request(99, 8.0, adapter="z", drain=5.0, served=3.0)


def report(requests: list[RequestRow], loads: list[LoadRow], **fields: object) -> LedgerReport:
    rows = Rows(
        requests=requests,
        before=[request(number, 0.5) for number in range(4)],
        loads=loads,
        made_necessary_by={7: EVICTED},
        stays=[EVICTED],
        counts=(),
        watched=[Watched(50.0, 100.0)],
        watched_since=50.0,
        rows_lost=3,
    )
    return make_report(rows, Asked(80.0, 101.0, **fields))


def test_the_reload_is_charged_to_the_eviction() -> None:
    found = report([*FAST, SLOW, DRAINED], [load(1, "x", 91.0, 97.0, after=7)])
    assert (found.window.served, found.window.p50, found.window.p95) == (20, 1.0, 8.0)
    assert (found.before.served, found.before.p95) == (4, 0.5)
    assert found.window.hit_ratio == pytest.approx(19 / 20)
    (cost,) = found.evictions
    assert (cost.adapter, cost.pod, cost.by, cost.why) == ("x", "a", "y", "capacity")
    assert (cost.evictions, cost.reloads, cost.requests) == (1, 1, 2)
    assert (cost.waited, cost.drained, cost.seconds, cost.beyond) == (6.0, 5.0, 11.0, 11.0)
    assert (found.groups, found.evictions_seconds, found.rows_lost) == (1, 11.0, 3)


def test_without_it_p95_would_have_been_lower() -> None:
    found = report([*FAST, SLOW, DRAINED], [load(1, "x", 91.0, 97.0, after=7)])
    assert [(each.evictions, each.p95) for each in found.without] == [(1, 3.0), (None, 3.0)]


def test_requests_beyond_p95_beside_the_others() -> None:
    found = report([*FAST, SLOW, DRAINED], [load(1, "x", 91.0, 97.0, after=7)])
    assert found.beyond is not None and found.rest is not None
    assert (found.beyond.requests, found.beyond.latency, found.beyond.load_wait, found.beyond.drain) == (
        2,
        8.5,
        3.0,
        2.5,
    )
    assert (found.rest.requests, found.rest.latency, found.rest.prefill) == (18, 1.0, None)


def test_first_loads_follow_no_eviction() -> None:
    found = report([*FAST, SLOW, DRAINED], [load(1, "x", 91.0, 97.0)])
    assert (found.evictions, found.groups) == ((), 0)
    assert (found.other_loads.loads, found.other_loads.waited, found.other_loads.drained) == (1, 6.0, 5.0)


def test_an_empty_time_has_no_figures() -> None:
    found = report([], [])
    assert (found.window.p95, found.beyond, found.without, found.evictions) == (None, None, (), ())


def test_only_the_costliest_are_listed() -> None:
    found = report([*FAST, SLOW], [load(1, "x", 91.0, 97.0, after=7)], most=0)
    assert (found.evictions, found.groups, found.evictions_seconds) == ((), 1, 6.0)


def test_quantiles_are_values_that_occurred() -> None:
    assert quantile([], 0.95) is None
    assert [quantile([3.0, 1.0, 2.0], share) for share in (0.0, 0.33, 0.34, 0.95, 1.0)] == [1.0, 1.0, 2.0, 3.0, 3.0]
