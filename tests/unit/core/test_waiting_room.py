"""How many bytes of requests may wait, of one priority and of all."""

import pytest

from lorapick.model.bands import Band
from lorapick.model.effects import Reject
from lorapick.model.settings import AdmissionSettings, Settings
from lorapick.testing.playbook import Playbook, plain_pod


def full(**admission):
    """A pod that has no room left."""
    settings = Settings(admission=AdmissionSettings(**admission))
    book = Playbook(pods=[plain_pod("a", max_num_seqs=1, max_queue=1)], adapters=("legal", "code"), settings=settings)
    book.arrive("base", id="runs")
    book.arrive("base", id="queued")
    return book


def waits(book, size, *, model="base", **fields):
    return any("waits" in line for line in book.arrive(model, body_bytes=size, **fields))


def message(book):
    (refused,) = [effect for effect in book.effects if isinstance(effect, Reject)]
    assert (refused.status, refused.reason.value) == (429, "shed")
    return refused.message


def test_requests_of_a_priority_wait_up_to_its_bytes():
    book = full(bands=(Band(priority=1, max_bytes=100), Band(max_bytes=50)))
    assert waits(book, 60, priority=1)
    assert waits(book, 40, priority=1), "to the last byte"
    assert not waits(book, 1, priority=1)
    assert message(book) == (
        "100 bytes of requests wait already, and with its 1 it would be more than 100 (of priority 1, admission.bands)"
    )
    assert [waits(book, 50), waits(book, 1)] == [True, False], "others have their own band"


def test_all_together_up_to_the_bytes_of_all():
    book = full(max_bytes=100, bands=(Band(priority=1, max_bytes=1000),))
    assert [waits(book, 60, priority=1), waits(book, 60), waits(book, 40)] == [True, False, True]
    waits(book, 7)
    assert message(book).endswith("more than 100 (admission.max_bytes)")


def test_one_that_is_larger_than_all_that_may_wait_never_does():
    book = full(max_bytes=100)
    assert not waits(book, 101)
    assert message(book).startswith("0 bytes of requests wait already, and with its 101")


def test_whose_size_nobody_knows_takes_no_room_and_finds_none_where_there_is_none():
    book = full(max_bytes=100)
    assert [waits(book, None), waits(book, 100), waits(book, None)] == [True, True, False]


@pytest.mark.parametrize("gone", ["queue", "load"])
def test_who_goes_gives_its_bytes_back(gone):
    book = full(max_bytes=100)
    assert waits(book, 100, id="q")
    book.end("runs" if gone == "queue" else "q", status=200)
    assert waits(book, 100) is True


def test_followers_of_a_load_count_too():
    settings = Settings(admission=AdmissionSettings(max_bytes=100))
    book = Playbook(pods=[plain_pod("a", max_num_seqs=1, max_queue=1)], adapters=("legal",), settings=settings)
    book.arrive("legal")
    book.arrive("legal")
    assert [waits(book, 80, model="legal"), waits(book, 80, model="legal")] == [True, False]


def test_both_bounds_of_a_band_hold():
    book = full(bands=(Band(max_queued=2, max_bytes=100),))
    assert [waits(book, 10), waits(book, 10), waits(book, 10)] == [True, True, False]
    assert message(book) == "2 requests of priority 0 wait already (admission.bands)"
