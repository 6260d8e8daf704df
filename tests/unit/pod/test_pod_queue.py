"""The waiting requests: order, lanes of those that are passed over, and who is next."""

import random

from pod_helpers import ask

from lorapick.pod.batch import Job
from lorapick.pod.lru import AdapterCopy
from lorapick.pod.queue import Queue
from lorapick.pod.values import AdapterSpec


def copies(names):
    return [AdapterCopy(AdapterSpec(name=name), index) for index, name in enumerate(names)]


def fill(queue, adapters):
    jobs = [Job(ask(f"r{index}"), adapter, ()) for index, adapter in enumerate(adapters)]
    for job in jobs:
        queue.add(job)
    return jobs


def names(queue):
    return [job.id for job in queue]


def take_next(queue, *, room):
    job = queue.next(room=room)
    if job is None:
        return None
    if job.adapter is not None:
        job.adapter.seats += 1
    queue.take(job)
    return job.id


def test_first_come_first_served():
    queue, (a,) = Queue(), copies("a")
    fill(queue, [a, None, a])
    assert [take_next(queue, room=True) for _ in range(4)] == ["r0", "r1", "r2", None]
    assert (len(queue), a.queued, queue.base) == (0, 0, 0)


def test_who_needs_one_adapter_too_many_is_passed_over_and_keeps_its_place():
    queue, (a, b, c) = Queue(), copies("abc")
    a.seats = 1
    fill(queue, [b, c, a, b, None])
    assert [take_next(queue, room=False) for _ in range(3)] == ["r2", "r4", None]
    assert (names(queue), queue.parked, b.queued) == (["r0", "r1", "r3"], 3, 2)
    assert take_next(queue, room=True) == "r0"
    # b runs now: the rest of its lane may follow, c still may not
    assert [take_next(queue, room=False) for _ in range(2)] == ["r3", None]
    b.seats = 0
    assert take_next(queue, room=True) == "r1"


def test_those_sent_back_come_first_in_their_order():
    queue, (a, b) = Queue(), copies("ab")
    jobs = fill(queue, [a, b, a, b])
    for job in jobs[:3]:
        queue.take(job)
    for job in (jobs[2], jobs[1]):  # the youngest is sent back first
        queue.send_back(job)
    assert names(queue) == ["r1", "r2", "r3"]
    a.seats = 1
    assert queue.next(room=False) is jobs[2]  # b is passed over
    assert queue.parked == 1
    queue.take(jobs[2])
    assert queue.next(room=False) is None
    assert names(queue) == ["r1", "r3"]
    assert take_next(queue, room=True) == "r1"


def test_a_request_may_leave_from_anywhere():
    queue, (a, b) = Queue(), copies("ab")
    jobs = fill(queue, [a, b, b, None, a])
    b.seats = 1
    assert queue.next(room=False) is jobs[1]
    for job in (jobs[0], jobs[3], jobs[1]):
        queue.remove(job)
    assert (names(queue), queue.base, a.queued, b.queued) == (["r2", "r4"], 0, 1, 1)
    assert [job.id for job in queue.remove_all(b)] == ["r2"]
    assert queue.remove_all(b) == []


def test_front_is_the_first_of_all():
    queue, (a,) = Queue(), copies("a")
    assert queue.front() is None
    first, second = fill(queue, [a, a])
    assert queue.front() is first
    queue.take(first)
    queue.send_back(first)
    assert queue.front() is first
    assert names(queue) == ["r0", "r1"]
    assert second.place > 0 > first.place


def test_next_is_what_a_scan_from_the_front_would_find():
    rng = random.Random(7)
    for _ in range(300):
        queue, adapters = Queue(), copies("abcd")
        waiting, running = [], []
        for index in range(60):
            kind = rng.random()
            if kind < 0.45:
                job = Job(ask(f"r{index}"), rng.choice([None, *adapters]), ())
                queue.add(job)
                waiting.append(job)
            elif kind < 0.6 and running:
                job = running.pop(rng.randrange(len(running)))
                if job.adapter is not None:
                    job.adapter.seats -= 1
                if rng.random() < 0.5:
                    queue.send_back(job)
                    waiting.insert(0, job)
            elif kind < 0.65 and waiting:
                job = waiting.pop(rng.randrange(len(waiting)))
                queue.remove(job)
            else:
                room = sum(adapter.seats > 0 for adapter in adapters) < 2
                may = [job for job in waiting if room or job.adapter is None or job.adapter.seats]
                job = queue.next(room=room)
                assert job is (may[0] if may else None)
                if job is not None and rng.random() < 0.8:
                    if job.adapter is not None:
                        job.adapter.seats += 1
                    queue.take(job)
                    waiting.remove(job)
                    running.append(job)
            assert [*queue] == waiting
            assert len(queue) == len(waiting)
