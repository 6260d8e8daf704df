"""What the pod does from one change to the next.

In: a queue of requests, orders to load adapters, and the time. Out: events, and `due`, the time of the next change.
Not here: names and refusals (`engine`), values at arbitrary times (`views`).

A pod is always in one of four phases: idle, loading (one load after another), stepping (a span of equal steps),
merging (see `folding`). At the end of a span or of an operation of loads it *schedules*: requests that are over leave,
the youngest are preempted when KV memory ends, and waiting requests join, first come first served. The first step of a
span also computes the prompts of those that joined: it is longer by `prefill_per_token` for each of their tokens that
is not in the prefix cache. A request has its first token at the end of its first step, and one more after each further
step. A span ends when a request is over, when KV memory ends, or, because something arrived, with the step that is
running.

*inline*: loads happen in the step, before the prompts, and hold up the whole batch. A waiting request whose adapter
would be one too many beside those in the batch is passed over and later ones may join.
*drain*: nobody new joins while the first in the queue needs an adapter that holds no slot; when the batch is empty,
the adapters of the queue's first requests are loaded one after another, as many as there are slots (see `draining`).
"""

from collections.abc import Callable
from enum import Enum
from math import inf

from lorapick.model.retention import Retention
from lorapick.model.units import RequestId, Seconds, Tokens
from lorapick.pod.batch import Job, Span
from lorapick.pod.draining import Drain
from lorapick.pod.folding import Folding
from lorapick.pod.handover import Handover
from lorapick.pod.kernels import batch_and_timer
from lorapick.pod.kv import KvPool
from lorapick.pod.ledger import Ledger
from lorapick.pod.loader import LOAD_FAILED, Loader
from lorapick.pod.lru import AdapterCopy
from lorapick.pod.retained import RetainedLevels
from lorapick.pod.seating import Seating
from lorapick.pod.unified import Pages
from lorapick.pod.values import (
    AdapterMerged,
    AdapterUnmerged,
    FirstToken,
    Memory,
    Merging,
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
    MERGING = "merging"


IDLE, LOADING, STEPPING, MERGING = Phase
"""Names that are found faster."""


class Machine:
    """The state of one pod since its start."""

    def __init__(
        self,
        config: PodConfig,
        now: Seconds,
        draw: Callable[[], float] | None,
        *,
        retention: Retention | None = None,
    ) -> None:
        """`retention` says who leaves a memory level; None: the least recently used, as in vLLM."""
        self.config = config
        limits = config.limits
        unified = config.memory is Memory.UNIFIED
        self.slots = limits.max_cpu_loras if unified else limits.max_loras
        """Adapters on the GPU at most."""
        self.batch, self.timer = batch_and_timer(config)
        self.kv = KvPool(config.kv_blocks, config.block_size)
        self.ledger = Ledger()
        self.events: list[PodEvent] = []
        self.loader = Loader(config, self.slots, draw, ledger=self.ledger, events=self.events)
        self.retained: RetainedLevels | None = None
        """The levels, when a policy says who leaves them."""
        if retention is not None:
            self.retained = RetainedLevels(self.slots, limits.max_cpu_loras, retention=retention, now=now)
            self.loader.levels = self.retained
        self.levels = self.loader.levels
        self.seating = Seating(
            self.batch,
            self.kv,
            levels=self.levels,
            seats=limits.max_num_seqs,
            slots=self.slots,
            ledger=self.ledger,
        )
        self.seating.step_tokens = config.max_batched_tokens
        self.queue = self.seating.queue
        self.handover = Handover(self.kv, self.batch, hold=config.kv_hold, events=self.events)
        self.drain = self.seating.drain = Drain(self.loader, self.batch) if config.mode is SwapMode.DRAIN else None
        self.folding = self.seating.folding = (
            Folding(config.merging) if config.merging.mode is not Merging.NEVER else None
        )
        if unified:
            self.seating.pages = self.loader.pages = Pages(
                config, self.levels, kv=self.kv, batch=self.batch, ledger=self.ledger, events=self.events
            )
        self.scan = config.step.scan if self.drain is None else 0.0  # a drain passes over nobody
        self.watchful = self.scan > 0 or self.folding is not None
        """Every arrival may change the next step, whether or not it can join."""
        self.born = now
        self.jobs: dict[RequestId, Job] = {}
        """In flight, and not aborted."""
        self.ended: dict[RequestId, Tokens] = {}
        """Output of requests whose end is among `events`."""

        self.phase = IDLE
        self.since = now
        """Begin of the idle phase."""
        self.due: Seconds = inf
        self.span = Span(now, origin=now, step=1.0, count=0)
        self.firsts: list[Job] = []
        """Running, their first token comes with the span's first step."""

    # ---- what happens when time has come ----

    def run(self, now: Seconds) -> None:
        """Do everything that is due up to `now`."""
        retained = self.retained
        while self.due <= now:
            if retained is not None:
                retained.now = self.due
            if self.phase is STEPPING:
                if self.firsts:
                    self._give_first_tokens(self.due)
                else:
                    self._end_span(self.due)
            elif self.phase is LOADING:
                self._end_load(self.due)
            elif self.phase is IDLE:
                self._end_idle(self.due)
            else:
                self._end_merge(self.due)

    def arrive(self, job: Job, now: Seconds) -> None:
        """Queue a request: an idle pod begins at once, a busy one when its step ends, if it can do something for it."""
        self.jobs[job.id] = job
        self.queue.add(job)
        self.seating.stale = True
        if self.phase is not STEPPING or self.watchful or self.seating.is_urgent(job):
            self.wake(now)

    def wake(self, now: Seconds) -> None:
        """Something is to be done: an idle pod begins at once, a span ends with the step that is running."""
        if self.retained is not None:
            self.retained.now = now
        if self.phase is STEPPING:
            self.span.cut(now)
            if not self.firsts:
                self.due = self.span.end
        elif self.phase is IDLE:
            self._end_idle(now)

    def _end_idle(self, t: Seconds) -> None:
        self.ledger.idle += t - self.since
        self._schedule(t)

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
        if self.drain is None or self.drain.since is None:
            ledger.decode += t - span.origin
        else:
            ledger.charge_steps(t - span.origin, self.drain.empty_share)
        ledger.output_tokens += span.count * len(batch.running) - len(self.seating.aborted)
        batch.steps += span.count
        if self.seating.debt:
            self.seating.repay(span.count - 1)
        if batch.ends and batch.ends[0][0] <= batch.steps:
            if self.kv.idle.where:
                self.kv.trim(batch.steps - 1)
            if self.seating.aborted:
                self.seating.drop_aborted()
            for job in batch.take_ended():
                self._finish(job, t)
        self._schedule(t)

    def _finish(self, job: Job, t: Seconds) -> None:
        self.seating.leave(job, keep=job.keeps)
        if job.keeps:
            self.handover.keep(job, t)
        del self.jobs[job.id]
        self.ended[job.id] = job.out
        self.ledger.finished += 1
        self.events.append(
            RequestFinished(
                t=t,
                request_id=job.id,
                output_tokens=job.out,
                cached_tokens=job.cached,
                waited_for_load=job.waited,
            )
        )

    # ---- scheduling ----

    def _schedule(self, t: Seconds) -> None:
        seating = self.seating
        if seating.aborted:
            seating.drop_aborted()
        if self.loader.leaving:
            self.loader.let_go(t)
        if (self.handover.held or self.handover.released) and self.handover.let_go(t):
            seating.reopen()
        steps = self.batch.steps
        preempted = steps > self.kv.calm and not self.kv.fits(steps) and seating.preempt(t)
        if self.loader.orders and self._follow_orders(t):
            return
        if self.folding is not None and self._merge(self.folding, t):
            return
        seating.short = False
        if self.queue.count and not preempted:
            seating.admit(t)
        elif seating.debt:
            seating.repay()
        # Merging decides by who runs and who waits, and being sent back changes that.
        seating.stale = preempted
        if self.drain is not None and self._drain(self.drain, t):
            return
        if seating.joiners and (absent := seating.absent_of_joiners()):
            self._load(absent, t)
        elif self.batch.running:
            self._begin_span(t)
        else:
            self.phase = IDLE
            self.since = t
            self.due = self.handover.due
            seating.debt = 0

    # ---- spans ----

    def _begin_span(self, t: Seconds) -> None:
        batch, span, folding, seating = self.batch, self.span, self.folding, self.seating
        tokens, joined = 0, bool(seating.joiners)
        if joined:
            for job in seating.joiners:
                tokens += job.prompt + job.out - job.reused
                if not job.aborted:
                    self._start(job, t)
            seating.joiners = []
        step = self.timer.seconds() if folding is None or not folding.bare else self.timer.merged_seconds()
        if self.scan and not seating.blocked and not seating.short:
            step += self.scan * seating.deferred()
        if self._is_overdue():
            count = 1
        else:
            count = batch.steps_to_end()
            if batch.steps + count - 1 > self.kv.calm:
                count = self.kv.lasts(batch.steps, count)
        span.begin(t, origin=t + tokens * self.config.prefill_per_token, step=step, count=count)
        if folding is not None:
            # Who joined counts in the next decision.
            span.count = 1 if joined else folding.last_step(span)
        if self.handover.held and self.handover.due < span.end:
            span.count = span.first_at(self.handover.due)
        self.phase = STEPPING
        self.due = span.origin + (1 if self.firsts else span.count) * step

    def _is_overdue(self) -> bool:
        """Whether the next scheduling has something to do already: somebody left, or came during a load."""
        seating = self.seating
        if (
            seating.short
            or seating.aborted
            or (seating.stale and self.queue.count and (self.watchful or not seating.blocked))
        ):
            return True
        if self.handover.released or (self.loader.leaving and self.loader.unused()):
            return True
        return bool(self.loader.orders) and self.drain is None and self.batch.active < self.slots

    def _start(self, job: Job, t: Seconds) -> None:
        adapter = job.adapter
        if adapter is not None and adapter.loads != job.loads_seen:
            job.waited = True
        if job.started:
            return
        job.started = True
        self.firsts.append(job)
        if self.retained is not None and adapter is not None:
            self.retained.used(adapter)
        self.ledger.began(job.prompt, cached=job.cached, hit=not job.waited)
        self.events.append(RequestStarted(t=t, request_id=job.id, hit=not job.waited, cached_tokens=job.cached))

    # ---- loads ----

    def _follow_orders(self, t: Seconds) -> bool:
        """Inline: begin the explicit loads for which there is room. True: an operation began."""
        loader, folding = self.loader, self.folding
        if not loader.open_orders() or self.drain is not None:
            return False
        kept = folding is not None and folding.folded is not None and not folding.folded.seats
        orders = loader.take_orders(self.slots - self.batch.active - kept)
        fitting = 0
        while fitting < len(orders) and self.seating.claim_for_load(orders[fitting], t):
            fitting += 1
        loader.orders[:0] = orders[fitting:]
        orders = orders[:fitting]
        if orders:
            self._load(orders, t)
        return bool(orders)

    def _drain(self, drain: Drain, t: Seconds) -> bool:
        """Keep the queue out while its front needs a load, or one is ordered. True: an operation began."""
        if not self.queue.count and not self.loader.orders:
            drain.since = None
            return False
        if not drain.is_due(self.queue):
            return False
        self.seating.blocked = True
        if self.batch.running:
            drain.begin(t)
            return False
        self._load(drain.first_wanted(self.queue, self.slots), t, drained=drain.end(t))
        return True

    def _load(self, adapters: list[AdapterCopy], t: Seconds, drained: Seconds = 0.0) -> None:
        self.phase = LOADING
        self.due = self.loader.begin(adapters, t, waited=self._is_waited_for, drained=drained).end

    def _is_waited_for(self, adapter: AdapterCopy) -> bool:
        """Whether a request waits for an adapter."""
        return adapter.queued > 0 or any(job.adapter is adapter and not job.aborted for job in self.seating.joiners)

    def _end_load(self, t: Seconds) -> None:
        load = self.loader.end_load(t)
        if load.fails:
            for job in self.seating.drop_failed(load.adapter):
                self._fail(job, t)
        if self.loader.queue:
            self.due = self.loader.begin_load(t, waited=self._is_waited_for).end
            return
        self.loader.end()
        # Inline loads are part of a step that has been scheduled: it goes on with whoever of its joiners is left.
        if self.seating.joiners:
            self._begin_span(t)
        else:
            self._schedule(t)

    def _fail(self, job: Job, t: Seconds) -> None:
        if not job.aborted:
            del self.jobs[job.id]
            self.ended[job.id] = job.out
            self.events.append(RequestFailed(t=t, request_id=job.id, why=LOAD_FAILED))

    # ---- merged weights ----

    def _merge(self, folding: Folding, t: Seconds) -> bool:
        """Change the weights if it is time to. True: that began, or the load that it needs."""
        if self.loader.orders and folding.makes_way(self.batch):
            adapter = folding.folded
        else:
            adapter = folding.decide(t, self.queue, self.batch, self.jobs)
        if adapter is None:
            return False
        if adapter.on_gpu:
            self.phase = MERGING
            self.due = folding.begin(adapter, t)
            return True
        # The batch is empty, and the front end lets nobody in who does not fit beside his adapter.
        fits = self.seating.claim_for_load(adapter, t)
        assert fits, f"{adapter.name} does not fit into an empty pool"
        self._load([adapter], t)
        return True

    def _end_merge(self, t: Seconds) -> None:
        folding = self.folding
        assert folding is not None
        self.ledger.merge += t - folding.since
        adapter = folding.end()
        kind = AdapterMerged if adapter.folded else AdapterUnmerged
        self.events.append(kind(t=t, adapter=adapter.name))
        self._schedule(t)
