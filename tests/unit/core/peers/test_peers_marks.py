"""Marks of peers: counts between scrapes, pins put together, silence."""

from lorapick.core.peers.marks import MOST_PEERS, InFlight, Marks, higher
from lorapick.model.adapters import PinSpec


def test_a_scrape_counts_what_was_there_when_it_was_sent():
    there = InFlight(5)
    assert there.since_scrape == 0  # the last scrape may have seen all five
    there.told(7, now=1.0)
    there.told(6, now=2.0)
    assert (there.count, there.since_scrape) == (6, 1)
    there.scraped(1.0)
    assert there.since_scrape == -1
    there.scraped(2.0)
    assert (there.count, there.since_scrape) == (6, 0)


def test_counts_of_all_peers_are_added():
    marks = Marks(2.0)
    one, two = marks.hear("one", now=0.0), marks.hear("two", now=0.0)
    assert marks.count(one, {"a": 2, "b": 1}, now=0.0, first=True) == ["a", "b"]
    assert marks.count(two, {"a": 1}, now=0.0, first=False) == ["a"]
    assert (marks.on("a"), marks.on("b"), marks.on("c")) == ((3, 1), (1, 0), (0, 0))
    assert marks.count(one, {"a": 2}, now=1.0, first=False) == ["b"]
    assert marks.on("b") == (0, -1)
    marks.scraped("b", since=1.0)
    assert "b" not in one.in_flight


def test_silence_is_noticed_in_time():
    marks = Marks(2.0)
    marks.hear("one", now=0.0)
    marks.hear("two", now=1.0)
    assert marks.next_due == 2.0 and marks.stale(1.9) == [] and marks.stale(2.0) == ["one"]
    marks.forget("one")
    assert marks.next_due == 3.0


def test_no_more_peers_are_heard_than_are_remembered():
    marks = Marks(2.0)
    assert all(marks.hear(f"p{number}", now=0.0) for number in range(MOST_PEERS))
    assert marks.hear("one more", now=0.0) is None and marks.unheard == 1


def test_the_higher_pin_counts_and_says_whose_it_is():
    marks = Marks(2.0)
    marks.hear("one", now=0.0).pins = {"x": PinSpec(replicas=1)}
    marks.hear("two", now=0.0).pins = {"x": PinSpec(replicas=3), "y": PinSpec(pods=("a",))}
    assert marks.pin() and not marks.pin()
    assert marks.pins == {"x": PinSpec(replicas=3), "y": PinSpec(pods=("a",))}
    assert marks.pinned_by == {"x": "two", "y": "two"}
    assert marks.with_own({"x": PinSpec(replicas=4)})["x"] == PinSpec(replicas=4)
    assert higher(PinSpec(pods=("a",)), PinSpec(pods=("b",), reserve=True)) == PinSpec(pods=("a", "b"), reserve=True)
    assert higher(PinSpec(selector={"zone": "west"}), PinSpec(replicas=9)) == PinSpec(selector={"zone": "west"})
