"""The batch and its spans of equal steps."""

from pod_helpers import ask

from lorapick.pod.batch import Batch, Job, Span
from lorapick.pod.lru import AdapterCopy
from lorapick.pod.values import AdapterSpec


def test_ends_come_in_order_of_joining_and_early_leavers_are_skipped():
    batch = Batch()
    adapter = AdapterCopy(AdapterSpec(name="a"), 1)
    jobs = [Job(ask(name, output=output), adapter, ()) for name, output in [("r", 3), ("s", 2), ("t", 3)]]
    for job in jobs:
        batch.join(job)
    assert (batch.active, adapter.seats, batch.youngest().id) == (1, 3, "t")
    batch.leave(jobs[1])
    assert batch.steps_to_end() == 3
    batch.steps += 3
    assert batch.take_ended() == [jobs[0], jobs[2]]
    for job in (jobs[0], jobs[2]):
        batch.leave(job)
        assert job.out == 3
    assert batch.take_ended() == []
    assert (batch.active, adapter.seats) == (0, 0)


def test_a_request_that_joins_again_goes_on_counting():
    batch = Batch()
    job = Job(ask("r", output=10), None, ())
    batch.join(job)
    batch.steps += 4
    batch.leave(job)
    batch.steps += 100
    batch.join(job)
    assert (job.out, batch.steps_to_end()) == (4, 6)


def test_steps_done_agree_with_the_times_of_their_ends():
    span = Span(0.1, origin=0.1, step=0.1, count=1000)
    for index in range(1, 1000):
        end = span.at(index)
        assert span.done(end) == index
        assert span.done(end - 1e-9) == index - 1


def test_a_span_is_cut_after_the_step_that_runs():
    span = Span(0.0, origin=1.0, step=0.5, count=9)
    span.cut(0.2)
    assert (span.count, span.end) == (1, 1.5)
    span = Span(0.0, origin=1.0, step=0.5, count=9)
    span.cut(1.5)  # the first step has just ended
    assert (span.count, span.end) == (2, 2.0)
