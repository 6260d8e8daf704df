"""Slots that wait for requests which are prefilled elsewhere."""

from lorapick.testing.playbook import Playbook, plain_pod


def order(book):
    """Who goes next, first: what the shadow of the engine says."""
    return [*book.fleet.state.residency.home(0).shadow.gpu]


def reserved_oldest():
    """A pod with two adapters, the older of which is reserved."""
    book = Playbook(pods=[plain_pod("pod", max_loras=2, max_cpu_loras=3)], adapters=("a", "b", "c"))
    for adapter in ("a", "b"):
        book.use(adapter, "pod")
    residency = book.fleet.state.residency
    residency.reserve(0, "a")
    assert order(book) == ["a", "b"]
    return book, residency


def test_a_request_that_never_came_has_used_nothing():
    book, residency = reserved_oldest()
    residency.ended(0, "a", now=book.now, load_failed=False, reserved=True)
    assert order(book) == ["a", "b"]


def test_a_request_that_came_has_used_its_adapter():
    book, residency = reserved_oldest()
    assert not residency.claimed(0, "a", now=book.now)
    assert order(book) == ["b", "a"]


def test_a_request_that_came_takes_a_slot_if_its_adapter_lost_it():
    book, residency = reserved_oldest()
    residency.dispatched(0, "c", now=book.now)
    residency.ran(0, "c", now=book.now)
    residency.ended(0, "c", now=book.now, load_failed=False)
    assert order(book) == ["b", "c"]
    assert residency.claimed(0, "a", now=book.now)
    assert order(book) == ["c", "a"] and book.tier("pod", "a") == "loading"


def test_a_request_that_comes_before_its_adapter_begins_a_load_and_keeps_its_reservation():
    book, residency = reserved_oldest()
    assert not residency.comes(0, "a", now=book.now), "it is there"
    residency.reserve(0, "c")
    home = residency.home(0)
    assert [*home.absent] == ["c"] and [*residency.rows_absent] == [0]
    assert residency.comes(0, "c", now=book.now)
    assert not home.absent and not residency.rows_absent and "c" in home.reserved
    book.now += 100.0
    residency.expire(book.now)
    assert "c" in home.shadow.unsure, "who is to use it may wait for a seat"


def test_whose_reservation_ends_is_awaited_no_more():
    book, residency = reserved_oldest()
    residency.reserve(0, "c")
    residency.ended(0, "c", now=book.now, load_failed=False, reserved=True)
    assert not residency.home(0).absent and not residency.rows_absent
