"""Who is in the batch: requests join, leave, and are sent back to the queue when memory ends.

In: the queue, the batch, the memory of a pod. Out: the requests that joined at this scheduling.
Not here: when that happens and what follows from it (`machine`), loads.
"""

from itertools import chain
from math import inf

from lorapick.model.units import Seconds, Tokens
from lorapick.pod.batch import Batch, Job
from lorapick.pod.draining import Drain
from lorapick.pod.folding import Folding
from lorapick.pod.kv import KvPool
from lorapick.pod.ledger import Ledger
from lorapick.pod.lru import AdapterCopy, Levels
from lorapick.pod.queue import Queue
from lorapick.pod.unified import Pages


class Seating:
    """The seats of one pod. `seats` requests and `slots` distinct adapters may run."""

    __slots__ = (
        "_ledger",
        "_levels",
        "aborted",
        "batch",
        "blocked",
        "debt",
        "drain",
        "folding",
        "joiners",
        "kv",
        "pages",
        "queue",
        "seats",
        "short",
        "slots",
        "stale",
        "step_tokens",
    )

    def __init__(self, batch: Batch, kv: KvPool, *, levels: Levels, seats: int, slots: int, ledger: Ledger) -> None:
        self.batch = batch
        self.kv = kv
        self.seats = seats
        self.slots = slots
        self.queue = Queue()
        self.pages: Pages | None = None
        """None: memory is in slots."""
        self.drain: Drain | None = None
        """None: loads are inline."""
        self.folding: Folding | None = None
        """None: weights are never merged."""
        self.joiners: list[Job] = []
        """Joined at this scheduling; their prefill has not begun."""
        self.aborted: list[Job] = []
        """Running requests that leave at the next scheduling."""
        self.stale = False
        """Somebody came or left since the queue was looked at."""
        self.blocked = False
        """Somebody could run but for a seat or memory: nobody joins until somebody leaves."""
        self.step_tokens: Tokens | None = None
        """Tokens computed in one step at most; None: no limit."""
        self.debt: Tokens = 0
        """Tokens by which the last to join exceeded that; the next steps have so many less."""
        self.short = False
        """Somebody could join but for `step_tokens`: in the next step."""
        self._levels = levels
        self._ledger = ledger

    def is_urgent(self, job: Job) -> bool:
        """Whether scheduling could do something for a request that just came before anybody leaves."""
        if self.blocked:
            return False
        if self.drain is not None:
            return True  # it joins, or the drain for it begins
        batch, adapter = self.batch, job.adapter
        if len(batch.running) >= self.seats:
            return False
        return adapter is None or adapter.seats > 0 or batch.active < self.slots

    def deferred(self) -> int:
        """Waiting requests whose adapter would be one too many."""
        queue = self.queue
        if self.batch.active < self.slots or not queue.count:
            return 0
        running = chain(self._levels.gpu, self.absent_of_joiners())
        return len(queue) - queue.base - sum(copy.queued for copy in running if copy.seats)

    def reopen(self) -> None:
        """Somebody left: everybody who waits is to be looked at again."""
        self.stale = True
        self.blocked = False

    def leave(self, job: Job, *, keep: bool = False) -> None:
        """A running request is over, or is sent back; `keep`: the blocks of its prompt stay in use."""
        start = job.prompt - job.offset
        self.batch.leave(job)
        if keep:
            self.kv.keep(start, tokens=job.prompt)
        else:
            self.kv.leave(job.keys, start)
        adapter = job.adapter
        if adapter is not None and adapter.on_gpu:
            self._levels.touch(adapter)
        self.stale = True
        self.blocked = False

    def drop_aborted(self) -> None:
        """Those leave whose clients have gone."""
        if self.aborted:
            self.kv.trim(self.batch.steps - 1)
            for job in self.aborted:
                self.leave(job)
            self.aborted = []

    def drop_failed(self, adapter: AdapterCopy) -> list[Job]:
        """Everybody leaves who waits for an adapter; returns them, joiners first."""
        joined = [job for job in self.joiners if job.adapter is adapter]
        self.kv.trim(self.batch.steps)
        for job in joined:
            self.joiners.remove(job)
            if job.aborted:
                self.aborted.remove(job)
            self.leave(job)
        self.reopen()
        return joined + self.queue.remove_all(adapter)

    def preempt(self, t: Seconds) -> bool:
        """Send the youngest back to the queue's front until the others have memory for a step.

        Idle adapters leave a unified pool first. True: somebody was sent back.
        """
        batch, kv = self.batch, self.kv
        preempted = False
        while not kv.fits(batch.steps):
            kv.trim(batch.steps)
            if self.pages is not None and self.pages.evict_idle(t):
                continue
            job = batch.youngest()
            self.leave(job)
            self.queue.send_back(job)
            self._ledger.preemptions += 1
            preempted = True
        if preempted:
            # What the last of them gave up, and a block more, is what it lacks.
            self.blocked = True
        return preempted

    def repay(self, steps: int = 1) -> None:
        """So many steps are made in which nobody joins."""
        if self.step_tokens is not None:
            self.debt = max(0, self.debt - steps * (self.step_tokens - len(self.batch.running)))

    def admit(self, t: Seconds) -> None:
        """Let those join who may, for a step that is made now."""
        folding, drain = self.folding, self.drain
        left = inf if self.step_tokens is None else self.step_tokens - len(self.batch.running) - self.debt
        if not self.batch.running:
            left += self.debt  # nothing that could have been put off is left
        if folding is not None and folding.only is not None:
            left = self._admit_only(folding.only, t, left=left)
        elif not self.blocked or drain is not None or folding is not None:
            left = self._admit_in_turn(drain, t, left=left)
        if left < inf:
            self.debt = max(0, -int(left))

    def _admit_in_turn(self, drain: Drain | None, t: Seconds, *, left: float) -> float:
        """First come first served; returns what is left of the tokens `left` for this step."""
        queue, batch = self.queue, self.batch
        self.blocked = False
        while queue.count:
            job = queue.next(room=batch.active < self.slots) if drain is None else drain.next(queue)
            if job is None:
                return left
            if left <= 0:
                self.short = True
                return left
            if not self._seat(job, t):
                self.blocked = True
                return left
            queue.take(job)
            left -= (job.prompt + job.out - job.reused) or 1
        return left

    def _admit_only(self, only: tuple[AdapterCopy | None, ...], t: Seconds, *, left: float) -> float:
        """As `_admit_in_turn`, for those who want what is merged into the weights, or is to be."""
        self.blocked = False
        for job in [job for job in self.queue if job.adapter in only]:
            adapter = job.adapter
            if adapter is not None and not adapter.seats and self.batch.active >= self.slots:
                continue
            if left <= 0:
                self.short = True
                return left
            if not self._seat(job, t):
                self.blocked = True
                return left
            self.queue.remove(job)
            left -= (job.prompt + job.out - job.reused) or 1
        return left

    def _seat(self, job: Job, t: Seconds) -> bool:
        """Let a request join if there is a seat and memory for it."""
        batch, kv = self.batch, self.kv
        if len(batch.running) >= self.seats:
            return False
        adapter, steps = job.adapter, batch.steps
        tokens = job.prompt + job.out
        if self.pages is not None and not self.pages.make_room(adapter, kv.lack(job.keys, tokens, steps), t):
            return False
        hits = kv.join(job.keys, tokens, steps)
        if hits < 0:
            return False
        if self.pages is not None:
            self.pages.claim(adapter)
        batch.join(job)
        # The last token is always computed: its output is the next token.
        job.reused = min(hits, (tokens - 1) // kv.size) * kv.size if hits else 0
        if not job.started:
            job.cached = job.reused
            if job.received:
                job.reused = tokens  # that last token is a decode step's
        if adapter is not None and adapter.on_gpu:
            self._levels.touch(adapter)
        self.joiners.append(job)
        return True

    def claim_for_load(self, adapter: AdapterCopy, t: Seconds) -> bool:
        """Take a unified pool's pages for a load that was ordered; False: there are not enough."""
        if self.pages is None:
            return True
        fits = self.pages.make_room(adapter, self.kv.lack((), 0, self.batch.steps), t)
        if fits:
            self.pages.claim(adapter)
        return fits

    def absent_of_joiners(self) -> list[AdapterCopy]:
        """Adapters that have to be loaded for those who joined."""
        absent: list[AdapterCopy] = []
        for job in self.joiners:
            adapter = job.adapter
            if adapter is not None and not adapter.on_gpu and adapter not in absent:
                absent.append(adapter)
        return absent
