"""What the pod does from one change to the next.

In: a queue of requests, orders to load adapters, and the time. Out: events, and `due`, the time of the next change.
Not here: names and refusals (`engine`), values at arbitrary times (`views`).

A pod is always in one of three phases: idle, loading (one load after another), stepping (a span of equal steps).
At the end of a span or of an operation of loads it *schedules*: requests that are over leave, the youngest are
preempted when KV memory ends, and waiting requests join, first come first served. The first step of a span also
computes the prompts of those that joined: it is longer by `prefill_per_token` for each of their tokens that is not in
the prefix cache. A request has its first token at the end of its first step, and one more after each further step.
A span ends when a request is over, when KV memory ends, or, because something arrived, with the step that is running.

*inline*: loads happen in the step, before the prompts, and hold up the whole batch. A waiting request whose adapter
would be one too many beside those in the batch is passed over and later ones may join.
*drain*: nobody new joins while the first in the queue needs an adapter that holds no slot; when the batch is empty,
the adapters of the queue's first requests are loaded one after another, as many as there are slots.
"""

from collections.abc import Callable
from enum import Enum
from itertools import chain
from math import inf

from lorapick.model.units import RequestId, Seconds, Tokens
from lorapick.pod.batch import Batch, Job, Span, step_seconds
from lorapick.pod.kv import KvPool
from lorapick.pod.ledger import Ledger
from lorapick.pod.loader import LOAD_FAILED, Loader
from lorapick.pod.lru import AdapterCopy
from lorapick.pod.values import (
    FirstToken,
    PodConfig,
    PodEvent,
    RequestFailed,
    RequestFinished,
    RequestStarted,
    SwapMode,
)


class Phase(Enum):
    """What the pod is doing."""

    IDLE = "idle"
    LOADING = "loading"
    STEPPING = "stepping"


class Machine:
    """The state of one pod since its start."""

    def __init__(self, config: PodConfig, now: Seconds, draw: Callable[[], float] | None) -> None:
        self.config = config
        self.seats = config.limits.max_num_seqs
        self.slots = config.limits.max_loras
        self.draining_mode = config.mode is SwapMode.DRAIN
        self.batch = Batch()
        self.kv = KvPool(config.kv_blocks, config.block_size)
        self.ledger = Ledger()
        self.events: list[PodEvent] = []
        self.loader = Loader(config, draw, ledger=self.ledger, events=self.events)
        self.levels = self.loader.levels
        self.born = now

        self.jobs: dict[RequestId, Job] = {}
        """In flight, and not aborted."""
        self.waiting: list[Job] = []
        self.ended: dict[RequestId, Tokens] = {}
        """Output of requests whose end is among `events`."""

        self.phase = Phase.IDLE
        self.since = now
        """Begin of the idle phase."""
        self.due: Seconds = inf
        self.span = Span(now, origin=now, step=1.0, count=0)
        self.joiners: list[Job] = []
        """Joined the batch at this scheduling; their prefill has not begun."""
        self.firsts: list[Job] = []
        """Running, their first token comes with the span's first step."""

        self.scanned = 0
        """The first so many waiting requests can not join until somebody leaves."""
        self.blocked = False
        """Nobody can join until somebody leaves."""
        self.aborted: list[Job] = []
        """Running requests that leave at the next scheduling."""
        self.drain_since: Seconds | None = None
        self.drain_width = 0
        """Size of the batch when the drain began."""

    # ---- what happens when time has come ----

    def run(self, now: Seconds) -> None:
        """Do everything that is due up to `now`."""
        while self.due <= now:
            if self.phase is Phase.LOADING:
                self._end_load(self.due)
            elif self.firsts:
                self._give_first_tokens(self.due)
            else:
                self._end_span(self.due)

    def wake(self, now: Seconds, *, urgent: bool = True) -> None:
        """Something arrived: an idle pod begins at once; `urgent` ends a span with the step that is running."""
        if self.phase is Phase.IDLE:
            self.ledger.idle += now - self.since
            self._schedule(now)
        elif urgent and self.phase is Phase.STEPPING:
            self.span.cut(now)
            if not self.firsts:
                self.due = self.span.end

    def is_urgent(self, job: Job) -> bool:
        """Whether scheduling could do something for a request that just arrived before anybody leaves the batch."""
        adapter = job.adapter
        if self.blocked or self.draining_mode:
            return not self.blocked  # it joins, or the drain for it begins
        if len(self.batch.running) >= self.seats:
            return False
        return adapter is None or adapter.seats > 0 or self.batch.active < self.slots

    def reopen(self) -> None:
        """Somebody left: everybody who waits is to be looked at again."""
        self.scanned = 0
        self.blocked = False

    def _give_first_tokens(self, t: Seconds) -> None:
        for job in self.firsts:
            if not job.aborted:
                self.events.append(FirstToken(t=t, request_id=job.id))
                self.ledger.prompt_tokens += job.prompt
        self.firsts = []
        self.due = self.span.end

    def _end_span(self, t: Seconds) -> None:
        span, batch, ledger = self.span, self.batch, self.ledger
        ledger.prefill += span.origin - span.start
        if self.drain_since is None:
            ledger.decode += t - span.origin
        else:
            ledger.charge_steps(t - span.origin, self.empty_share())
        ledger.output_tokens += span.count * len(batch.running) - len(self.aborted)
        batch.steps += span.count
        if batch.ends_now():
            self.kv.trim(batch.steps - 1)
        self._drop_aborted()
        while (job := batch.next_ended()) is not None:
            self._leave(job)
            del self.jobs[job.id]
            self.ended[job.id] = job.out
            ledger.finished += 1
            self.events.append(
                RequestFinished(
                    t=t,
                    request_id=job.id,
                    output_tokens=job.out,
                    cached_tokens=job.cached,
                    waited_for_load=job.waited,
                )
            )
        self._schedule(t)

    def empty_share(self) -> float:
        """Share of the seats taken when the drain began that are empty now; 0 outside a drain."""
        if self.drain_since is None:
            return 0.0
        return max(0.0, 1.0 - len(self.batch.running) / self.drain_width)

    # ---- scheduling ----

    def _schedule(self, t: Seconds) -> None:
        self._drop_aborted()
        preempted = self._preempt()
        if self.loader.open_orders() and self._follow_orders(t):
            return
        if preempted:
            # What the last of them gave up, and a block more, is what it lacks: nobody joins until somebody leaves.
            self.blocked = True
        else:
            self._admit()
        if self.draining_mode and self._drain(t):
            return
        if self.joiners and (absent := self._absent_of_joiners()):
            self._begin_operation(absent, t)
        elif self.batch.running:
            self._begin_span(t)
        else:
            self._rest(t)

    def _rest(self, t: Seconds) -> None:
        self.phase = Phase.IDLE
        self.since = t
        self.due = inf

    def _leave(self, job: Job) -> None:
        start = job.prompt - job.offset
        self.batch.leave(job)
        self.kv.leave(job.keys, start)
        adapter = job.adapter
        if adapter is not None and adapter.on_gpu:
            self.levels.touch(adapter)
        self.reopen()

    def _drop_aborted(self) -> None:
        if self.aborted:
            self.kv.trim(self.batch.steps - 1)
            for job in self.aborted:
                self._leave(job)
            self.aborted = []

    def _preempt(self) -> bool:
        """Send the youngest back to the queue's front until the others have memory for a step."""
        batch, kv = self.batch, self.kv
        preempted = False
        while not kv.fits(batch.steps):
            kv.trim(batch.steps)
            job = batch.youngest()
            self._leave(job)
            self.waiting.insert(0, job)
            self.ledger.preemptions += 1
            preempted = True
        return preempted

    def _admit(self) -> None:
        waiting, index = self.waiting, self.scanned
        self.blocked = False
        while index < len(waiting):
            job = waiting[index]
            adapter = job.adapter
            if self.draining_mode:
                if not job.started and (self.loader.orders or (adapter is not None and not adapter.on_gpu)):
                    break
            elif adapter is not None and not adapter.seats and self.batch.active >= self.slots:
                index += 1
                continue
            if not self._seat(job):
                self.blocked = True
                break
            del waiting[index]
            self.joiners.append(job)
        self.scanned = index

    def _seat(self, job: Job) -> bool:
        """Let a request join if there is a seat and memory for it."""
        batch, kv = self.batch, self.kv
        if len(batch.running) >= self.seats:
            return False
        shared, hits = kv.find(job.keys, batch.steps)
        tokens = job.prompt + job.out
        if not kv.has_room(tokens, shared, batch.steps):
            return False
        batch.join(job)
        kv.join(job.keys, shared=shared, hits=hits, start=job.prompt - job.offset)
        # The last token is always computed: its output is the next token.
        job.reused = min(hits, (tokens - 1) // kv.size) * kv.size
        if job.adapter is not None and job.adapter.on_gpu:
            self.levels.touch(job.adapter)
        return True

    def _absent_of_joiners(self) -> list[AdapterCopy]:
        absent: list[AdapterCopy] = []
        for job in self.joiners:
            adapter = job.adapter
            if adapter is not None and not adapter.on_gpu and adapter not in absent:
                absent.append(adapter)
        return absent

    # ---- spans ----

    def _begin_span(self, t: Seconds) -> None:
        batch, config = self.batch, self.config
        tokens = 0
        for job in self.joiners:
            tokens += job.prompt + job.out - job.reused
            if not job.aborted:
                self._start(job, t)
        self.joiners = []
        count = 1 if self._is_overdue() else self.kv.lasts(batch.steps, batch.steps_to_end())
        step = step_seconds(config.step, requests=len(batch.running), adapters=batch.active)
        self.span = Span(t, origin=t + tokens * config.prefill_per_token, step=step, count=count)
        self.phase = Phase.STEPPING
        self.due = self.span.at(1 if self.firsts else count)

    def _is_overdue(self) -> bool:
        """Whether the next scheduling has something to do already: somebody left, or came during a load."""
        if self.aborted or (not self.blocked and len(self.waiting) > self.scanned):
            return True
        return bool(self.loader.orders) and not self.draining_mode and self.batch.active < self.slots

    def _start(self, job: Job, t: Seconds) -> None:
        adapter = job.adapter
        if adapter is not None and adapter.loads != job.loads_seen:
            job.waited = True
        if job.started:
            return
        job.started = True
        job.cached = job.reused
        self.firsts.append(job)
        ledger = self.ledger
        ledger.queried_tokens += job.prompt
        ledger.cached_tokens += job.cached
        if job.waited:
            ledger.misses += 1
        else:
            ledger.hits += 1
        self.events.append(RequestStarted(t=t, request_id=job.id, hit=not job.waited, cached_tokens=job.cached))

    # ---- loads ----

    def _follow_orders(self, t: Seconds) -> bool:
        """Inline: begin the explicit loads for which a slot is free or idle. True: an operation began."""
        if self.draining_mode:
            return False
        orders = self.loader.take_orders(self.slots - self.batch.active)
        if orders:
            self._begin_operation(orders, t)
        return bool(orders)

    def _drain(self, t: Seconds) -> bool:
        """Drain: keep the queue out while its front needs a load, or one is ordered. True: an operation began."""
        front = self.waiting[0] if self.waiting else None
        if not self.loader.orders:
            if front is not None and front.started:
                return False  # preempted: part of the batch that is being finished
            if front is None or front.adapter is None or front.adapter.on_gpu:
                self.drain_since = None
                return False
        self.blocked = True
        if self.batch.running:
            if self.drain_since is None:
                self.drain_since = t
                self.drain_width = len(self.batch.running)
            return False
        self._begin_operation(self._first_wanted(), t)
        return True

    def _first_wanted(self) -> list[AdapterCopy]:
        """Take the adapters of one drained operation: those ordered, then the queue's, up to the slots."""
        slots = self.slots
        wanted = self.loader.take_orders(slots)
        for job in self.waiting:
            if len(wanted) >= slots:
                break
            if job.adapter is not None and job.adapter not in wanted:
                wanted.append(job.adapter)
        return wanted

    def _begin_operation(self, adapters: list[AdapterCopy], t: Seconds) -> None:
        drained = 0.0 if self.drain_since is None else t - self.drain_since
        self.drain_since = None
        self.phase = Phase.LOADING
        self.due = self.loader.begin(adapters, t, waited=self._is_waited_for, drained=drained).end

    def _is_waited_for(self, adapter: AdapterCopy) -> bool:
        """Whether a request waits for an adapter."""
        return any(job.adapter is adapter and not job.aborted for job in chain(self.joiners, self.waiting))

    def _end_load(self, t: Seconds) -> None:
        load = self.loader.end_load(t)
        if load.fails:
            self._fail_waiters(load.adapter, t)
        if self.loader.queue:
            self.due = self.loader.begin_load(t, waited=self._is_waited_for).end
            return
        self.loader.end()
        # Inline loads are part of a step that has been scheduled: it goes on with whoever of its joiners is left.
        if self.joiners:
            self._begin_span(t)
        else:
            self._schedule(t)

    def _fail_waiters(self, adapter: AdapterCopy, t: Seconds) -> None:
        """Fail whoever waits for an adapter, joiners first."""
        joined = [job for job in self.joiners if job.adapter is adapter]
        self.kv.trim(self.batch.steps)
        for job in joined:
            self.joiners.remove(job)
            if job.aborted:
                self.aborted.remove(job)
            self._leave(job)
        queued = [job for job in self.waiting if job.adapter is adapter]
        self.waiting = [job for job in self.waiting if job.adapter is not adapter]
        for job in joined + queued:
            if job.aborted:
                continue
            del self.jobs[job.id]
            self.ended[job.id] = job.out
            self.events.append(RequestFailed(t=t, request_id=job.id, why=LOAD_FAILED))
        self.reopen()
