"""Queue depth and the GPU stand-in between two scrapes."""

import pytest

from lorapick.core.podload import MOST_RECENT, PodLoad
from lorapick.model.pods import GpuSource, PodLimits, PodReport
from lorapick.testing.playbook import Playbook, plain_pod


def loaded(**report):
    load = PodLoad(PodLimits(max_num_seqs=8, max_queue=8))
    load.reported(PodReport(**{"waiting": 0, "running": 0, **report}), since=0.0, now=0.0)
    return load


def test_never_scraped_the_queue_is_what_passes_the_batch():
    load = PodLoad(PodLimits(max_num_seqs=2))
    depths = []
    for _ in range(4):
        load.dispatched(0.0)
        depths.append(load.queue_depth())
    assert depths == [0.0, 0.0, 1.0, 2.0]


def test_a_page_without_a_waiting_count_is_like_no_scrape():
    load = loaded(waiting=None, running=None)
    for _ in range(9):
        load.dispatched(1.0)
    assert load.queue_depth() == 1.0


def test_dispatches_after_a_scrape_fill_the_batch_first():
    load = loaded(running=6)
    depths = []
    for _ in range(4):
        load.dispatched(1.0)
        depths.append(load.queue_depth())
    assert depths == [0.0, 0.0, 1.0, 2.0]


def test_ends_after_a_scrape_let_waiting_requests_run():
    load = loaded(waiting=2, running=8)
    depths = []
    for _ in range(4):
        load.ended(1.0)
        depths.append(load.queue_depth())
    assert depths == [1.0, 0.0, 0.0, 0.0]


def test_a_late_scrape_does_not_know_what_was_sent_after_it():
    load = loaded()
    for second in (1.0, 2.0, 3.0):
        load.dispatched(second)
    load.reported(PodReport(waiting=1, running=8), since=1.0, now=3.5)
    assert load.queue_depth() == 3.0
    load.reported(PodReport(waiting=1, running=8), since=3.0, now=4.0)
    assert load.queue_depth() == 1.0


def test_a_first_scrape_that_comes_late_does_not_either():
    load = PodLoad(PodLimits(max_num_seqs=1))
    load.dispatched(1.0)
    load.dispatched(2.0)
    load.dispatched(3.0)
    load.reported(PodReport(waiting=0, running=1), since=1.5, now=3.5)
    assert load.queue_depth() == 2.0


def test_those_who_waited_for_a_load_wait_no_longer():
    load = loaded(waiting=5, running=1)
    load.load_ended(3, 1.0)
    assert load.queue_depth() == 2.0
    load.reported(PodReport(waiting=5, running=1), since=0.9, now=1.1)
    assert load.queue_depth() == 2.0, "the scrape was sent before the load ended"
    load.reported(PodReport(waiting=5, running=1), since=1.0, now=1.2)
    assert load.queue_depth() == 5.0


def test_a_restart_forgets_numbers_and_keeps_count():
    load = loaded(waiting=5, running=8, gpu_utilization=0.5, kv_usage=0.5)
    load.dispatched(1.0)
    load.load_ended(1, 1.0)
    load.restarted()
    assert (load.in_flight, load.queue_depth(), load.restarts) == (1, 0.0, 1)
    assert load.gpu_utilization() == (0.125, GpuSource.STAND_IN)


def test_the_stand_in_counts_our_own_and_never_passes_one():
    load = loaded(running=6)
    for _ in range(20):
        load.dispatched(1.0)
    assert load.gpu_utilization() == (1.0, GpuSource.STAND_IN)
    for _ in range(40):
        load.ended(2.0)
    assert load.gpu_utilization() == (0.0, GpuSource.STAND_IN)


def test_memory_is_bounded_when_scrapes_stop():
    load = loaded()
    for turn in range(MOST_RECENT):
        load.dispatched(float(turn))
        load.ended(float(turn))
        load.load_ended(0, float(turn))
    assert len(load.recent) == len(load.ended_loads) == MOST_RECENT
    assert (load.delta, load.queue_depth()) == (0, 0.0)


@pytest.mark.parametrize(("corrected", "dispatched"), [(True, 16), (False, 8)])
def test_why_the_batch_room_counts(corrected, dispatched):
    """ADR 0004 by computation: the literal formula fills a queue of eight after eight requests on an idle pod."""
    book = Playbook(pods=[plain_pod("a", max_num_seqs=8, max_queue=8)])
    book.report("a")
    load = book.fleet.state.loads[0]
    sent = 0
    while (load.queue_depth() if corrected else load.waiting + load.delta) < load.limits.max_queue:
        book.arrive("base")
        sent += 1
    assert sent == dispatched


def test_load_is_what_was_reported_and_what_we_sent_since():
    load = loaded(waiting=2, running=5)
    totals = []
    for count in (load.dispatched, load.dispatched, load.ended, load.ended, load.ended):
        count(1.0)
        totals.append(load.total())
    assert totals == [8.0, 9.0, 8.0, 7.0, 6.0]


def test_load_is_never_less_than_our_own():
    load = PodLoad(PodLimits(max_num_seqs=8))
    for _ in range(3):
        load.dispatched(1.0)
    assert load.total() == 3.0, "never scraped"
    load.reported(PodReport(waiting=0, running=1), since=2.0, now=2.0)
    assert load.total() == 3.0, "two were on their way when the page was made"
    load.restarted()
    assert load.total() == 3.0
    for _ in range(3):
        load.ended(3.0)
    assert load.total() == 0.0


def test_requests_of_others_are_load_too():
    assert loaded(waiting=None, running=7).total() == 7.0
    assert loaded(waiting=-4, running=7).total() == 7.0
