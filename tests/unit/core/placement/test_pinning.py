"""Pins and pods brought together: places, bits, how long one was missing."""

from placement_kit import fleet, loaded, notes, pin, placement, row, tick, told

from lorapick.model import events
from lorapick.model.adapters import PinSpec
from lorapick.model.settings import PlacementSettings, Settings
from lorapick.testing.playbook import plain_pod


def test_a_pin_by_count_stays_where_it_is_and_moves_when_its_pod_goes():
    book = fleet("a", "b", "c")
    [(_, first, _)] = pin(book, "x", replicas=1)
    loaded(book, first, "x")
    assert tick(book) == []
    book.gone(first)
    [(kind, second, name)] = tick(book)
    assert (kind, name) == ("Load", "x") and second != first


def test_a_row_that_another_pod_got_is_no_place_of_a_pin():
    book = fleet("a", "b")
    pin(book, "x", pods=("a",))
    book.gone("a")
    book.appear("c")
    assert row(book, "c") == 0, "it has the row"
    assert tick(book) == [] and placement(book).pinned.rows["x"] == ()
    assert not placement(book).keeps


def test_for_how_long_a_pin_was_missing():
    book = fleet("a")
    pin(book, "x", pods=("a",))
    book.now += 0.25
    loaded(book, "a", "x")
    tick(book)
    assert placement(book).missing_since == {}
    book.apply(events.Evicted, pod="a", adapter="x", tier=0)
    tick(book)
    assert [*placement(book).missing_since] == [(0, "x")]
    tick(book, 3.0)
    loaded(book, "a", "x")
    tick(book)
    assert 3.0 <= placement(book).longest_missing <= 5.0


def test_a_name_that_the_pod_does_not_accept_is_not_there():
    book = fleet("a")
    pin(book, "x", pods=("a",))
    loaded(book, "a", "x")
    tick(book)
    book.apply(events.Unloaded, pod="a", adapter="x")  # somebody else's doing
    tick(book)
    assert [*placement(book).missing_since] == [(0, "x")]


def test_pins_that_no_longer_fit_are_told_of_once():
    book = fleet(plain_pod("a", max_loras=2))
    pin(book, "x", pods=("a",))
    pin(book, "y", pods=("a",))
    book.change(plain_pod("a", max_loras=1))
    tick(book)
    assert placement(book).pinned.problems == {"y": "pod a: it has 1 slot for 2 pins: x, y"}
    told = [kind for _ in range(3) for kind in (tick(book), notes(book))[1]]
    assert "pin_does_not_fit" not in told


def test_without_placement_pins_are_marks_for_the_score_alone():
    book = fleet("a", settings=Settings(placement=PlacementSettings(enabled=False)))
    assert pin(book, "x", pods=("a",)) == []
    assert book.fleet.state.residency.home(0).cells["x"].pinned and not placement(book).keeps


def test_a_pin_may_be_for_pods_that_are_to_come():
    book = fleet("a")
    book.apply(events.PinSet, adapter="x", pin=PinSpec(selector={"zone": "east"}))
    assert "pin_refused" not in notes(book)
    book.appear(plain_pod("b", zone="east"))
    book.report("b")
    assert told(book) == [("Load", "b", "x")]
