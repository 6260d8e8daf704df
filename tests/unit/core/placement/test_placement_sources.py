"""What each source of wants makes of a tick: orders, calendars, triggers, groups, pods that warm up."""

from placement_kit import ask, fleet, loaded, notes, pin, placement, row, tick, told

from lorapick.core.placement.sources import ORDER_LASTS
from lorapick.model import events
from lorapick.model.adapters import AffinityGroup, Schedule, Trigger
from lorapick.model.placement import Why
from lorapick.model.settings import Settings
from lorapick.testing.playbook import plain_pod

MIDNIGHT = 1_760_054_400.0
"""2025-10-10 00:00 UTC, a Friday."""


def settled(book):
    """Answer loads until none is given."""
    found = []
    while True:
        more = [each for each in (*told(book), *tick(book)) if each[0] == "Load"]
        if not more:
            return found
        for _, pod, adapter in more:
            loaded(book, pod, adapter)
        found += more


def test_an_order_is_done_when_it_is_loaded_where_it_was_asked_for():
    book = fleet("a", "b")
    assert sorted(ask(book, "x", "a", "b")) == [("Load", "a", "x"), ("Load", "b", "x")]
    loaded(book, "a", "x")
    tick(book)
    assert placement(book).orders
    loaded(book, "b", "x")
    tick(book)
    assert placement(book).orders == []


def test_an_order_that_lasts_is_loaded_again_until_it_is_over():
    book = fleet("a")
    ask(book, "x", "a", lasts=60.0)
    loaded(book, "a", "x")
    tick(book)
    book.apply(events.Evicted, pod="a", adapter="x", tier=0)
    assert tick(book) == [("Load", "a", "x")]
    loaded(book, "a", "x")
    tick(book, 60.0)
    assert placement(book).orders == []
    book.apply(events.Evicted, pod="a", adapter="x", tier=0)
    assert tick(book) == []


def test_an_order_that_cannot_be_carried_out_is_dropped_with_a_note():
    book = fleet("a")
    book.report("a", registered=("y",))
    ask(book, "x", "a")
    book.now += ORDER_LASTS
    book.apply(events.Ticked)
    assert "order_dropped" in notes(book) and placement(book).orders == []


def test_a_move_loads_first_and_then_unloads():
    book = fleet("a", "b")
    ask(book, "x", "a")
    loaded(book, "a", "x")
    book.apply(events.MoveAsked, adapter="x", source="a", target="b")
    assert told(book) == [("Load", "b", "x")]
    assert [*loaded(book, "b", "x"), *tick(book)] == [("Unload", "a", "x")]


def test_a_trigger_loads_for_a_while():
    book = fleet("a", settings=Settings(triggers=(Trigger(event="login", preload="{tenant}", lasts=20.0),)))
    book.apply(events.TriggerFired, name="login", attributes={"tenant": "x"})
    assert tick(book, 0.1) == [("Load", "a", "x")], "one tick for all that come within a tenth of a second"
    assert placement(book).wanted == {0: {"x": Why.TRIGGER}}
    loaded(book, "a", "x")
    tick(book, 20.0)
    assert placement(book).wanted == {}


def test_a_schedule_loads_at_its_time():
    schedule = Schedule(adapters=("x",), cron="1 0 * * *", timezone="UTC", lasts=600.0)
    book = fleet("a", settings=Settings(schedules=(schedule,)))
    book.apply(events.Ticked, wall=MIDNIGHT)
    assert told(book) == []
    book.now += 60.0
    book.report("a")
    assert told(book) == [("Load", "a", "x")]


def test_the_first_call_of_a_group_loads_the_followers_beside_it():
    group = AffinityGroup(name="chain", first="x", then=("y", "z"))
    book = fleet("a", "b", settings=Settings(groups=(group,)))
    book.arrive("x", id="one")
    book.start("one")
    found = [*told(book), *settled(book)]
    pod = book.fleet.state.flights["one"].pod
    assert found == [("Load", pod, "y"), ("Load", pod, "z")]


def test_a_pod_that_comes_gets_its_pins_and_who_is_asked_for_before_it_takes_traffic():
    book = fleet("a", warm_up=30.0)
    for name in ("x", "y", "y"):
        book.use(name, "a")
    pin(book, "z", selector={"zone": "east"})
    book.appear(plain_pod("b", max_loras=2, zone="east"))
    assert book.arrive("y", id="one")[0].startswith("one -> a")
    book.report("b")
    assert settled(book) == [("Load", "b", "z"), ("Load", "b", "y")]
    assert row(book, "b") not in placement(book).warming and not book.fleet.state.columns.gate[row(book, "b")]
