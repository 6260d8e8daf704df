from math import log1p

import pytest

from lorapick.core.retention.demand import Demand, cells_of

WINDOW = 600.0
SPAN = 10.0


def rates(adapter, times, *, at, window=WINDOW):
    demand = Demand(window)
    for now in times:
        demand.add(adapter, now)
    return demand.rate(adapter, at)


@pytest.mark.parametrize("per_second", [0.1, 0.5, 2.0, 20.0])
def test_a_steady_rate_counts_in_full(per_second):
    times = [i / per_second for i in range(int(3600 * per_second))]
    assert rates("a", times, at=3599.9) == pytest.approx(per_second, rel=0.02)


def test_a_batch_of_200_in_two_seconds_counts_like_eight_requests_apart():
    blip = rates("rare", [100.0 + i / 100 for i in range(200)], at=102.0)
    apart = rates("rare", [30.0 + SPAN * i for i in range(8)], at=102.0)
    assert blip == pytest.approx(apart, rel=0.15)
    assert 200 / log1p(200) > 30


def test_a_batch_is_far_below_a_popular_adapter():
    popular = rates("popular", [12.0 * i for i in range(50)], at=600.0)
    for begin in (590.0, 599.0):  # within one span, and over the border of two
        assert rates("rare", [begin + i / 100 for i in range(200)], at=begin + 2) < 0.6 * popular


def test_an_old_rate_fades_to_nothing():
    times = [i * 1.0 for i in range(600)]
    now, later, much_later = (rates("a", times, at=at) for at in (600.0, 1200.0, 86_400.0))
    assert now > 4 * later > 0
    assert much_later < 1e-9


def test_a_span_counts_the_same_while_it_lasts_and_when_it_is_over():
    demand = Demand(WINDOW)
    for i in range(5):
        demand.add("a", 10.0 + i)
    lasting = demand.rate("a", 19.9)
    assert demand.rate("a", 20.0) == pytest.approx(lasting, rel=0.05)
    assert demand.rate("a", 20.0) < lasting


def test_years_do_not_overflow():
    demand = Demand(1.0)
    for day in range(0, 700, 7):
        now = day * 86_400.0
        for i in range(40):
            demand.add("a", now + (i + 0.5) / 60)
        assert demand.rate("a", now + 0.65) == pytest.approx(
            rates("a", [(i + 0.5) / 60 for i in range(40)], at=0.65, window=1.0)
        )


def test_units_are_renewed_on_the_way():
    # A fifth of a second per span of a window of 12 s: the unit passes its limit every 36 minutes.
    demand = Demand(12.0)
    times = [0.1 * i for i in range(60_000)]
    for now in times:
        demand.add("a", now)
    assert demand.rate("a", 5999.99) == pytest.approx(10.0, rel=0.05)
    assert demand._unit < 1e150


def test_strangers_cost_no_memory_and_hardly_disturb():
    demand = Demand(WINDOW)
    for i in range(600):
        demand.add(f"once-{i}", float(i))
        if i % 12 == 0:
            demand.add("popular", float(i))
    assert len(demand._lately) <= 12
    alone = rates("popular", [12.0 * i for i in range(50)], at=600.0)
    assert alone <= demand.rate("popular", 600.0) <= 1.05 * alone
    strangers = [demand.rate(f"new-{i}", 600.0) for i in range(1000)]
    assert sum(rate > 0 for rate in strangers) < 30


def test_a_name_has_a_cell_in_each_row():
    found = [cells_of(f"adapter-{i}") for i in range(1000)]
    assert all([cell // 2048 for cell in cells] == [0, 1, 2, 3] for cells in found)
    assert len({*found}) == 1000
