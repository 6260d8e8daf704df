"""Having the next victim used, so that another one leaves."""

from placement_kit import fleet, row

from lorapick.core.placement.targets import Target
from lorapick.core.placement.turning import turn
from lorapick.model import events
from lorapick.model.effects import Note, Touch
from lorapick.model.placement import Why
from lorapick.testing.playbook import plain_pod


def full():
    """A pod of two slots: x would go next, then y; long ago somebody asked for them."""
    book = fleet(plain_pod("a", max_loras=2))
    for name in ("x", "y"):
        book.use(name, "a")
    book.now += 900.0
    book.apply(events.Ticked)
    return book


def turned(book, **wanted):
    """Who is touched for a schedule's sake, and why, while these are wanted there."""
    state = book.fleet.state
    state.placement.wanted[row(book, "a")] = wanted
    effects = turn(state, Target(row(book, "a"), "z", Why.SCHEDULE), now=book.now, cause=1)
    whys = [each.facts["why"] for each in effects if isinstance(each, Note)]
    return [*zip([each.adapter for each in effects if isinstance(each, Touch)], whys, strict=True)]


def test_the_next_victim_is_used_for_the_reason_that_it_is_wanted_for():
    assert turned(full(), x=Why.PIN) == [("x", "pin")]
    assert turned(full()) == [("x", "schedule")]


def test_one_at_a_time():
    book = full()
    assert turned(book, x=Why.PIN) == [("x", "pin")]
    assert turned(book, x=Why.PIN) == []


def test_nobody_is_used_when_no_other_may_go():
    assert turned(full(), x=Why.PIN, y=Why.SCHEDULE) == [], "wanted as much"
    assert turned(full(), x=Why.PIN, y=Why.GROUP) == [("x", "pin")], "wanted less"
    book = full()
    book.arrive("y", id="one")
    assert turned(book, x=Why.PIN) == [], "in use"
    book = full()
    for _ in range(10):
        for name in ("y", "x", "y"):
            book.use(name, "a")
    assert turned(book, x=Why.PIN) == [], "the last copy of what is asked for"


def test_nobody_is_used_where_all_are_in_use():
    book = full()
    for name in ("x", "y"):
        book.arrive(name, id=name)
    assert turned(book) == []
