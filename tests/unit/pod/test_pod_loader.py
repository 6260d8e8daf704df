"""Operations of several loads, and where their time is kept."""

import pytest
from pod_helpers import MS, config

from lorapick.model.tiers import Tier
from lorapick.pod.ledger import Ledger
from lorapick.pod.loader import Loader
from lorapick.pod.lru import AdapterCopy
from lorapick.pod.values import AdapterEvicted, AdapterSpec, SwapEnded, SwapFailed, SwapStarted


def loader(*, share=0.0, draws=(), slots=2):
    events, ledger = [], Ledger()
    remaining = iter(draws)
    made = Loader(
        config(slots=slots, load_failure_share=share), slots, lambda: next(remaining), ledger=ledger, events=events
    )
    return made, ledger, events


def copies(names):
    return [AdapterCopy(AdapterSpec(name=name, size=50_000_000), index) for index, name in enumerate(names)]


def run(made, adapters, *, start=0.0, waited=lambda _: True, drained=0.0):
    """One operation, to its end; returns when it ended."""
    load = made.begin(adapters, start, waited=waited, drained=drained)
    while True:
        end = load.end
        made.end_load(end)
        if not made.queue:
            made.end()
            return end
        load = made.begin_load(end, waited=waited)


def test_loads_follow_one_another_and_the_drain_belongs_to_the_first():
    made, ledger, events = loader()
    a, b = copies("ab")
    assert run(made, [a, b], drained=30 * MS, waited=lambda adapter: adapter is a) == pytest.approx(216 * MS)
    ends = [event for event in events if isinstance(event, SwapEnded)]
    assert [(event.adapter, event.drain, event.waited) for event in ends] == [("a", 30 * MS, True), ("b", 0.0, False)]
    assert (ledger.loads, ledger.swaps) == (2, 1)
    assert (ledger.transfer, ledger.warm_up) == pytest.approx((26 * MS, 150 * MS))


def test_what_the_operation_wants_is_kept_while_it_loads():
    made, _, events = loader()
    a, b, c = copies("abc")
    run(made, [a, b])
    run(made, [a, c])  # a is the least recently used, and wanted
    assert [event.adapter for event in events if isinstance(event, AdapterEvicted)] == ["b"]
    assert not a.wanted


def test_a_failure_is_drawn_per_load():
    made, ledger, events = loader(share=0.5, draws=[0.4, 0.5])
    a, b = copies("ab")
    run(made, [a, b])
    assert [event.adapter for event in events if isinstance(event, SwapFailed)] == ["a"]
    assert [event.tier_from for event in events if isinstance(event, SwapStarted)] == [Tier.DISK, Tier.DISK]
    assert (ledger.loads, ledger.load_failures) == (1, 1)


def test_only_ordered_copies_without_a_name_are_reported_to_the_front_end():
    made, _, _ = loader()
    a, b = copies("ab")
    b.unnamed = True
    made.orders = [a, b]
    assert made.pending() == [a, b]
    run(made, made.take_orders(5))
    assert (made.orders, made.arrived) == ([], [b])


def test_orders_that_a_request_has_served_meanwhile_are_dropped():
    made, _, _ = loader()
    a, b = copies("ab")
    run(made, [a])
    made.orders = [a, b]
    assert made.open_orders()
    assert made.orders == [b]
