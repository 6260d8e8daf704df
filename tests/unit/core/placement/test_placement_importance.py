from lorapick.core.placement.importance import by_importance, missing_prices
from lorapick.model.placement import PlacedAdapter


def rows(*adapters):
    """Adapters of the units from the most important down."""
    prices = missing_prices(adapters, dearest=10)
    units = [(price, each.adapter) for each, own in zip(adapters, prices, strict=True) for price in own]
    return "".join(name for _, name in sorted(units, reverse=True))


def want(adapter, replicas=1, rate=0.0, held=0):
    return PlacedAdapter(adapter=adapter, replicas=replicas, rate=rate, now_on=tuple(map(str, range(held))))


def test_without_rates_the_order_counts_first_copies_first():
    assert rows(want("a", 2), want("b"), want("c", 3)) == "abcacc"


def test_what_a_slot_serves_counts():
    assert rows(want("a", 4, rate=8.0), want("b", rate=1.5)) == "abaaa"
    assert rows(want("a", 4, rate=8.0), want("b", rate=0.5)) == "aaaab"


def test_nobody_is_worth_less_than_one_behind():
    assert rows(want("a"), want("b", rate=5.0)) == "ab"


def test_like_rates_do_not_push_out_what_is_held():
    assert rows(want("a", rate=1.2), want("b", rate=1.0, held=1)) == "ba"
    assert rows(want("a", rate=2.1), want("b", rate=1.0, held=1)) == "ab"


def test_the_order_may_leave_out_what_is_held():
    pair = [want("a", rate=1.2), want("b", rate=1.0, held=1)]
    assert by_importance(pair) == [1, 0]
    assert by_importance(pair, held=1.0) == [0, 1]


def test_prices_rise_and_no_cost_outweighs_a_place():
    prices = missing_prices([want("a", 3, rate=3.0), want("b", rate=1.0)], dearest=700)
    assert all(own == sorted(own) for own in prices)
    flat = sorted(price for own in prices for price in own)
    assert all(later - earlier > 700 for earlier, later in zip([0, *flat], flat, strict=False))


def test_nobody_has_no_prices():
    assert missing_prices([], dearest=0) == []
    assert missing_prices([want("a", 0)], dearest=0) == [[]]
