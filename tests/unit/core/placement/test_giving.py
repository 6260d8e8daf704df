"""Commands to pods, and what is believed of them until and after they are answered."""

from placement_kit import ask, failed, fleet, loaded, notes, pin, placement, tick, told

from lorapick.core.placement.commands import LONGEST
from lorapick.model import events
from lorapick.model.pods import Engine
from lorapick.testing.playbook import plain_pod


def sglang(**settings):
    return fleet(plain_pod("a", engine=Engine.SGLANG), **settings)


def test_a_load_is_believed_as_it_begins_and_unbelieved_when_it_fails():
    book = fleet("a")
    assert ask(book, "x", "a") == [("Load", "a", "x")]
    assert book.tier("a", "x") == "loading"
    failed(book, "a", "x")
    assert book.tier("a", "x") == "disk"


def test_a_load_of_which_nothing_is_heard_is_not_believed_however_long_ago_it_should_be_over():
    book = fleet("a")
    pin(book, "x", pods=("a",))
    seen = [tick(book) for _ in range(int(LONGEST) - 1)]
    assert not any(seen) and book.tier("a", "x") == "gpu_idle", "it should be over"
    assert tick(book) + tick(book) == [("Load", "a", "x")]


def test_a_lost_command_is_told_of():
    book = fleet("a")
    ask(book, "x", "a", lasts=500.0)
    book.now += LONGEST
    book.apply(events.Ticked)
    assert "command_lost" in notes(book)


def test_an_answer_of_the_pod_beats_a_lost_command():
    book = fleet("a")
    pin(book, "x", pods=("a",))
    book.use("x", "a")
    for _ in range(int(LONGEST) + 2):
        assert tick(book) == []
    assert book.tier("a", "x") == "gpu_idle"


def test_where_loads_end_in_host_memory_a_touch_brings_it_on_and_both_are_one_move():
    book = sglang(replicas="auto", moves_per_minute=1.0)
    placement(book).asked_version = 1
    book.apply(events.PlacementComputed, plan={"x": ("a",)}, version=1)
    assert told(book) == [("Load", "a", "x")]
    assert [*loaded(book, "a", "x"), *tick(book)] == [("Touch", "a", "x")]
    book.apply(events.Touched, pod="a", adapter="x")
    assert book.tier("a", "x") == "gpu_idle"


def test_a_touch_that_was_to_bring_it_and_failed_leaves_it_where_it_was():
    book = sglang()
    pin(book, "x", pods=("a",))
    loaded(book, "a", "x")
    assert tick(book) == [("Touch", "a", "x")]
    tick(book, 5.0)
    assert book.tier("a", "x") == "gpu_idle", "it should be there by now"
    book.apply(events.TouchFailed, pod="a", adapter="x", why="HTTP 500")
    assert book.tier("a", "x") == "cpu"


def test_a_touch_that_was_to_keep_it_and_failed_changes_nothing():
    book = fleet(plain_pod("a", max_loras=2))
    pin(book, "x", pods=("a",))
    loaded(book, "a", "x")
    book.arrive("y", id="one")
    book.start("one")
    book.end("one")
    assert tick(book) == [("Touch", "a", "x")]
    book.apply(events.TouchFailed, pod="a", adapter="x", why="HTTP 500")
    assert book.tier("a", "x") == "gpu_idle"
    assert tick(book) == [], "not at once"
    assert tick(book, 5.0) == [("Touch", "a", "x")], "and it is tried again"


def test_answers_that_come_twice_change_nothing():
    book = fleet("a")
    pin(book, "x", pods=("a",))
    assert loaded(book, "a", "x") == loaded(book, "a", "x") == []
    assert book.tier("a", "x") == "gpu_idle"
