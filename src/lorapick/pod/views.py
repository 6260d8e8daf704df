"""What can be seen of a pod at a moment: statistics, and the invariants that must hold.

In: a machine that has run up to `now`. Out: values. Not here: changes of any kind.
"""

from math import inf, isclose
from typing import NamedTuple

from lorapick.model.units import AdapterName, Ratio, Seconds
from lorapick.pod.ledger import Ledger
from lorapick.pod.lru import AdapterCopy
from lorapick.pod.machine import IDLE, MERGING, STEPPING, Machine
from lorapick.pod.values import PodStats, TimeSpent


def stats_of(machine: Machine, now: Seconds) -> PodStats:
    """Everything a scrape would see."""
    batch, levels, ledger = machine.batch, machine.levels, machine.ledger
    return PodStats(
        running=len(batch.running),
        waiting=len(machine.queue),
        deferred=machine.seating.deferred(),
        kv_usage=_kv_usage(machine, now),
        on_gpu=tuple(adapter.name for adapter in levels.gpu),
        on_cpu=tuple(adapter.name for adapter in levels.host),
        loading=tuple(adapter.name for adapter in _loading(machine)),
        in_flight=_in_flight(machine, now),
        swaps=ledger.swaps,
        loads=ledger.loads,
        load_failures=ledger.load_failures,
        evictions=ledger.evictions,
        preemptions=ledger.preemptions,
        prompt_tokens=ledger.prompt_tokens,
        output_tokens=ledger.output_tokens + steps_done(machine, now) * len(batch.running),
        cached_tokens=ledger.cached_tokens,
        queried_tokens=ledger.queried_tokens,
        finished=ledger.finished,
        hits=ledger.hits,
        misses=ledger.misses,
        time=_time(machine, now),
        merged=_merged(machine),
        kv_held=len(machine.handover.held),
    )


def _merged(machine: Machine) -> AdapterName | None:
    folding = machine.folding
    return None if folding is None or folding.folded is None else folding.folded.name


class Glance(NamedTuple):
    """The part of `PodStats` that a scrape of every second needs; made at a third of the cost."""

    running: int
    waiting: int
    deferred: int
    kv_usage: Ratio
    loads: int
    preemptions: int
    in_flight: tuple[AdapterName, ...]
    on_gpu: int
    """Adapters in slots, without the one on its way."""
    busy: Seconds
    """All time since the start that was not idle."""


def glance_of(machine: Machine, now: Seconds) -> Glance:
    """What `stats_of` says of these figures."""
    ledger = machine.ledger
    idle = ledger.idle
    if machine.phase is IDLE:
        idle += now - machine.since
    return Glance(
        len(machine.batch.running),
        len(machine.queue),
        machine.seating.deferred(),
        _kv_usage(machine, now),
        ledger.loads,
        ledger.preemptions,
        _in_flight(machine, now),
        len(machine.levels.gpu),
        now - machine.born - idle,
    )


def _in_flight(machine: Machine, now: Seconds) -> tuple[AdapterName, ...]:
    if not machine.jobs:
        return ()
    steps = machine.batch.steps + steps_done(machine, now)
    return tuple(
        dict.fromkeys(
            [
                job.adapter.name
                for job in machine.jobs.values()
                if job.adapter is not None and (steps > job.offset if job.order else job.out)
            ]
        )
    )


def _loading(machine: Machine) -> list[AdapterCopy]:
    loader = machine.loader
    return [] if loader.load is None else [loader.load.adapter, *loader.queue]


def steps_done(machine: Machine, now: Seconds) -> int:
    """Steps of the current span that have ended at `now`."""
    return machine.span.done(now) if machine.phase is STEPPING else 0


def _kv_usage(machine: Machine, now: Seconds) -> Ratio:
    blocks = machine.kv.used(machine.batch.steps + steps_done(machine, now))
    if machine.loader.pages is not None:
        # Idle adapters are like cached blocks: in memory, and not in use.
        idle = sum(copy.pages for copy in machine.levels.idle())
        blocks += machine.config.kv_blocks - machine.kv.blocks - idle
    return blocks / machine.config.kv_blocks


def _time(machine: Machine, now: Seconds) -> TimeSpent:
    ledger = machine.ledger.copy_time()
    if machine.phase is IDLE:
        ledger.idle += now - machine.since
    elif machine.folding is not None and machine.phase is MERGING:
        ledger.merge += now - machine.folding.since
    elif machine.loader.load is not None:
        ledger.charge_load(machine.loader.load, now)
    else:
        _charge_span(machine, ledger, now)
    return ledger.time()


def _charge_span(machine: Machine, ledger: Ledger, now: Seconds) -> None:
    span = machine.span
    ledger.prefill += min(now, span.origin) - span.start
    ledger.charge_steps(max(0.0, now - span.origin), machine.drain.empty_share if machine.drain is not None else 0.0)


def check(machine: Machine, now: Seconds) -> None:
    """Raise AssertionError, saying what is wrong with what, when an invariant does not hold."""
    _check_levels(machine)
    _check_batch(machine)
    _check_memory(machine, now)
    _check_queue(machine)
    time = _time(machine, now)
    total = sum(getattr(time, field) for field in time.__struct_fields__)
    alive = now - machine.born
    assert isclose(total, alive, rel_tol=1e-9, abs_tol=1e-9), f"{total} s are accounted for, {alive} s passed: {time}"


def _check_levels(machine: Machine) -> None:
    levels, limits = machine.levels, machine.config.limits
    gpu, host = list(levels.gpu), list(levels.host)
    slots = len(gpu) + (levels.loading is not None)
    if machine.loader.pages is not None:
        pages = sum(copy.pages for copy in [*gpu, *_loading(machine)])
        left = machine.config.kv_blocks - machine.kv.blocks
        assert pages == left, f"adapters hold {pages} pages, {left} are missing from the KV pool"
    assert slots <= machine.slots, f"{slots} slots taken of {machine.slots}: {[copy.name for copy in gpu]}"
    assert len(host) <= limits.max_cpu_loras, f"{len(host)} adapters in host memory of {limits.max_cpu_loras}"
    for copy in gpu:
        assert copy in levels.host, f"{copy.name} holds a slot and is not in host memory"
        assert copy.on_gpu and copy.on_host, f"{copy.name} does not know that it holds a slot"
    for copy in host:
        assert copy.on_gpu == (copy in levels.gpu), f"{copy.name} is wrong about holding a slot"
        assert copy.on_host or copy.loading, f"{copy.name} does not know that it is in host memory"


def _check_batch(machine: Machine) -> None:
    batch, limits = machine.batch, machine.config.limits
    running = list(batch.running)
    assert len(running) <= limits.max_num_seqs, f"{len(running)} requests run, {limits.max_num_seqs} may"
    adapters = {id(job.adapter): job.adapter for job in running if job.adapter is not None}
    assert len(adapters) == batch.active <= machine.slots, f"{len(adapters)} adapters run, {machine.slots} may"
    coming = [job.adapter for job in machine.seating.joiners]
    for adapter in adapters.values():
        seats = sum(job.adapter is adapter for job in running)
        assert adapter.seats == seats, f"{adapter.name} counts {adapter.seats} running requests of {seats}"
        assert adapter.on_gpu or adapter in coming, f"{adapter.name} runs without a slot"
    for job in running:
        out = batch.steps - job.offset
        assert 0 <= out < job.output, f"request {job.id} runs with {out} of {job.output} tokens"


def _check_memory(machine: Machine, now: Seconds) -> None:
    kv, batch = machine.kv, machine.batch
    steps = batch.steps + steps_done(machine, now)
    own = sum(-(-(job.prompt + steps - job.offset) // kv.size) - len(job.keys) for job in batch.running)
    kept = machine.handover.all()
    own += sum(-(-each.tokens // kv.size) - len(each.keys) for each in kept)
    used = kv.used(steps)
    assert used == own + len(kv.held), f"{used} blocks counted, {own} + {len(kv.held)} in use"
    assert used <= kv.blocks, f"{used} blocks in use of {kv.blocks}"
    keys = [key for job in batch.running for key in job.keys] + [key for each in kept for key in each.keys]
    assert set(keys) == kv.held, f"{len(set(keys))} blocks with ids are held, {len(kv.held)} counted"
    shares = len(kv.held) + sum(kv.extra.values())
    assert shares == len(keys), f"{len(keys)} shares in blocks with ids, {shares} counted"
    assert kv.held.isdisjoint(kv.idle), "a block is both held and free"


def _check_queue(machine: Machine) -> None:
    queue = machine.queue
    assert len(queue) == len([*queue]), f"{len(queue)} requests counted in the queue, {len([*queue])} there"
    stand = len(queue.arrived) + len(queue.returned) + queue.parked
    assert len(queue) == stand, f"{len(queue)} requests counted in the queue, {stand} by where they stand"
    places = [job.place for job in queue]
    assert places == sorted(places), f"the queue is out of order: {places}"
    for copy in dict.fromkeys(job.adapter for job in queue):
        count = sum(job.adapter is copy for job in queue)
        queued = queue.base if copy is None else copy.queued
        assert queued == count, f"{queued} requests counted that wait for {copy and copy.name}, {count} do"
    present = {job.id for job in [*machine.batch.running, *queue] if not job.aborted}
    assert present == machine.jobs.keys(), f"in flight {sorted(machine.jobs)}, in the pod {sorted(present)}"
    busy = bool(machine.batch.running or queue or machine.loader.orders)
    assert not busy or machine.due < inf, "there is work and nothing will ever happen"
