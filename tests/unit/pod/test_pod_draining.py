"""Who keeps whom out while a batch runs dry."""

from pod_helpers import ask, config

from lorapick.pod.batch import Batch, Job
from lorapick.pod.draining import Drain
from lorapick.pod.ledger import Ledger
from lorapick.pod.loader import Loader
from lorapick.pod.lru import AdapterCopy
from lorapick.pod.queue import Queue
from lorapick.pod.values import AdapterSpec, SwapMode


def stage(adapters):
    """A drain, and a queue of requests for adapters of which only a is on the GPU."""
    copies = {name: AdapterCopy(AdapterSpec(name=name), 0) for name in "abc"}
    copies["a"].on_gpu = True
    queue, batch = Queue(), Batch()
    for index, name in enumerate(adapters):
        queue.add(Job(ask(f"r{index}"), copies.get(name), ()))
    loader = Loader(config(SwapMode.DRAIN), 2, None, ledger=Ledger(), events=[])
    return Drain(loader, batch), queue, batch, loader, copies


def test_the_first_in_line_joins_if_it_needs_no_load():
    drain, queue, *_ = stage(["a", None, "b", "a"])
    for expected in ("r0", "r1"):
        job = drain.next(queue)
        assert job.id == expected
        assert not drain.is_due(queue)
        queue.take(job)
    assert drain.next(queue) is None
    assert drain.is_due(queue)


def test_an_ordered_load_keeps_everybody_out_but_those_sent_back():
    drain, queue, _, loader, copies = stage(["a"])
    loader.orders.append(copies["b"])
    assert drain.next(queue) is None
    queue.front().started = True
    assert drain.next(queue) is queue.front()
    assert drain.is_due(queue)
    loader.orders.clear()
    assert not drain.is_due(queue)


def test_what_stays_empty_counts_from_the_begin():
    drain, _, batch, *_ = stage(["b"])
    jobs = [Job(ask(name, output=5), None, ()) for name in "rstu"]
    for job in jobs:
        batch.join(job)
    assert drain.empty_share == 0.0
    drain.begin(3.0)
    batch.leave(jobs[0])
    drain.begin(4.0)
    assert (drain.since, drain.empty_share) == (3.0, 0.25)
    assert drain.end(7.5) == 4.5
    assert (drain.end(9.0), drain.empty_share) == (0.0, 0.0)


def test_a_drain_without_cause_ends():
    drain, queue, batch, *_ = stage([])
    batch.join(Job(ask("r"), None, ()))
    drain.begin(3.0)
    assert not drain.is_due(queue)
    assert drain.since is None


def test_one_operation_takes_orders_first_then_the_queue():
    drain, queue, _, loader, copies = stage(["b", None, "b", "a", "c"])
    loader.orders.append(copies["c"])
    assert drain.first_wanted(queue, 2) == [copies["c"], copies["b"]]
    assert drain.first_wanted(queue, 9) == [copies["b"], copies["a"], copies["c"]]
