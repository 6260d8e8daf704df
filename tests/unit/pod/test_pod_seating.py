"""Who joins the batch, who leaves it, and who is urgent."""

from pod_helpers import ask

from lorapick.pod.batch import Batch, Job
from lorapick.pod.kv import KvPool
from lorapick.pod.ledger import Ledger
from lorapick.pod.lru import AdapterCopy, Levels
from lorapick.pod.seating import Seating
from lorapick.pod.values import AdapterSpec


def seating(*, seats=4, slots=1, blocks=100, gpu=()):
    levels = Levels(slots, slots)
    levels.gpu.update(dict.fromkeys(gpu))
    return Seating(Batch(), KvPool(blocks, 16), levels=levels, seats=seats, slots=slots, ledger=Ledger())


def add(made, adapters, **sizes):
    jobs = [Job(ask(f"{adapter and adapter.name}{index}", **sizes), adapter, ()) for index, adapter in adapters]
    for job in jobs:
        made.queue.add(job)
    return jobs


def copies(names):
    return [AdapterCopy(AdapterSpec(name=name), index) for index, name in enumerate(names)]


def joined(made):
    made.admit(0.0)
    names = [job.id for job in made.joiners]
    made.joiners = []
    return names


def test_seats_and_slots_bound_who_joins():
    a, b = copies("ab")
    made = seating(seats=3, gpu=[a])
    jobs = add(made, enumerate([a, b, a, None, a]))
    assert joined(made) == ["a0", "a2", "None3"]
    assert (made.blocked, made.deferred()) == (True, 1)
    made.leave(jobs[0])
    assert not made.blocked
    assert joined(made) == ["a4"]
    for index in (2, 4):
        made.leave(jobs[index])
    assert joined(made) == ["b1"]
    assert (len(made.queue), made.blocked) == (0, False)


def test_a_blocked_queue_is_not_looked_at_again():
    made = seating(blocks=2)
    add(made, enumerate([None, None]), prompt=32)
    assert joined(made) == ["None0"]
    add(made, [(9, None)], prompt=1)
    assert joined(made) == []


def test_only_who_could_join_is_urgent():
    a, b = copies("ab")
    made = seating(seats=2)
    add(made, [(0, a)])
    joined(made)
    urgent = [made.is_urgent(Job(ask("r"), adapter, ())) for adapter in (a, b, None)]
    assert urgent == [True, False, True]
    add(made, [(1, a)])
    joined(made)
    assert not made.is_urgent(Job(ask("r"), a, ()))
    made.blocked = True
    assert not made.is_urgent(Job(ask("r"), None, ()))


def test_memory_sends_the_youngest_back():
    made = seating(blocks=4)
    add(made, enumerate([None, None]), prompt=32, output=50)
    assert joined(made) == ["None0", "None1"]
    assert not made.preempt(0.0)
    made.batch.steps = 1
    assert made.preempt(0.0)
    assert ([job.id for job in made.batch.running], [job.id for job in made.queue]) == (["None0"], ["None1"])
    assert made.blocked


def test_who_waits_for_a_load_that_failed_leaves_joiners_first():
    a, b = copies("ab")
    made = seating(slots=2, seats=3)
    add(made, enumerate([a, b, None, a]))
    made.admit(0.0)
    assert made.absent_of_joiners() == [a, b]
    assert [job.id for job in made.drop_failed(a)] == ["a0", "a3"]
    assert ([job.id for job in made.joiners], len(made.queue)) == (["b1", "None2"], 0)


def test_the_aborted_leave_together():
    made = seating()
    add(made, enumerate([None, None]), output=9)
    made.admit(0.0)
    made.aborted = [made.joiners[0]]
    made.batch.steps = 1
    made.drop_aborted()
    assert [job.id for job in made.batch.running] == ["None1"]
    assert (made.aborted, made.stale) == ([], True)
