"""One vLLM pod under an argument clock: its front end.

In: requests, aborts, loads, and the time. Out: events, statistics, token counts at any time.
Not here: what happens between changes (`machine`, whose docstring says how the pod behaves), HTTP, clocks, chance
(`draw` is handed in).

Time moves only through the `now` of the calls, from one change of the batch to the next; how often `advance` is called
makes no difference. What is submitted at `now` comes after everything that the pod did up to and at `now`: an idle pod
begins with it at once, a busy one looks at it when the step that is running ends.
"""

from collections.abc import Callable, Iterable, Sequence
from math import inf

from lorapick.model.retention import Retention
from lorapick.model.tiers import Tier
from lorapick.model.units import AdapterName, RequestId, Seconds, Tokens
from lorapick.pod import views
from lorapick.pod.batch import Job
from lorapick.pod.checks import check_config
from lorapick.pod.errors import (
    AdapterTooLarge,
    BadRequest,
    ClockWentBack,
    PromptTooLong,
    RankTooLarge,
    UnknownAdapter,
    UnknownRequest,
)
from lorapick.pod.handover import HeldKv, check_handover
from lorapick.pod.lru import AdapterCopy
from lorapick.pod.machine import STEPPING, Machine
from lorapick.pod.unified import pages_for
from lorapick.pod.values import AdapterSpec, Memory, PodConfig, PodEvent, PodRequest, PodStats

_SALT = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1


class PodEngine:
    """A pod. Every method that takes `now` first lets the pod live up to `now`; `now` never goes back."""

    def __init__(
        self,
        config: PodConfig,
        adapters: Iterable[AdapterSpec] = (),
        *,
        now: Seconds,
        draw: Callable[[], float] | None = None,
        retention: Callable[[], Retention] | None = None,
    ) -> None:
        """Start a pod with `adapters` registered and none of them in memory.

        `draw` gives numbers in [0, 1), one per load; needed when `load_failure_share` > 0. `retention` makes the policy
        that says who leaves memory, anew for each process of the pod; None: LRU, as in vLLM. Raises BadPodConfig.
        """
        check_config(config, draw)
        self.config = config
        self.max_tokens: Tokens = min(config.max_model_len, config.kv_blocks * config.block_size)
        """Prompt and output of one request at most: the model's limit, or what KV memory holds. (Unified memory: a
        request's own adapter takes its pages from that.)"""
        self._unified = config.memory is Memory.UNIFIED
        self._static = tuple(adapters)
        self._draw = draw
        self._retention = retention
        self._now = now
        self._start(now)

    def _start(self, now: Seconds) -> None:
        retention = self._retention() if self._retention is not None else None
        self._machine = Machine(self.config, now, self._draw, retention=retention)
        self._registry: dict[AdapterName, AdapterCopy] = {}
        self._salts: dict[AdapterName, int] = {}
        for spec in self._static:
            self.register(spec)

    # ---- names ----

    @property
    def registered(self) -> tuple[AdapterName, ...]:
        """Names that the front end accepts, in registration order."""
        return tuple(self._registry)

    def register(self, spec: AdapterSpec) -> None:
        """Make a name known; loads nothing. A known name keeps its weights unless its spec differs."""
        known = self._registry.get(spec.name)
        if known is None or known.spec != spec:
            self._registry[spec.name] = self._new_copy(spec)

    def unregister(self, name: AdapterName) -> None:
        """Forget a name; frees nothing in memory, and requests in flight go on. Raises UnknownAdapter."""
        if name not in self._registry:
            raise UnknownAdapter(name)
        del self._registry[name]

    def _new_copy(self, spec: AdapterSpec) -> AdapterCopy:
        # By name, as vLLM does it: KV computed before an unload is found again after the next load.
        salt = self._salts.setdefault(spec.name, (len(self._salts) + 1) * _SALT & _MASK)
        return AdapterCopy(spec, salt)

    # ---- what comes in ----

    def submit(self, request: PodRequest, now: Seconds) -> None:
        """Queue a request.

        Raises UnknownAdapter, PromptTooLong, RankTooLarge, AdapterTooLarge, BadRequest (id in use, sizes < 1, what
        `handover.check_handover` refuses), KvMismatch.
        """
        self._run(now)
        machine = self._machine
        adapter = self._adapter_of(request)
        job = Job(request, adapter, self._keys_of(request, adapter), now)
        if adapter is not None:
            # One less while it loads: this request, too, waits for that load.
            job.loads_seen = adapter.loads - adapter.loading
        machine.arrive(job, now)

    def _keys_of(self, request: PodRequest, adapter: AdapterCopy | None) -> Sequence[int]:
        keys: Sequence[int] = request.blocks
        if not keys:
            return keys
        keys = keys[: request.prompt_tokens // self.config.block_size]
        if adapter is None:
            return keys
        salt = adapter.salt
        return [salt ^ block for block in keys]

    def _adapter_of(self, request: PodRequest) -> AdapterCopy | None:
        """The copy that will serve a request that may be served."""
        if request.id in self._machine.jobs or request.id in self._machine.handover.held:
            raise BadRequest(f"request id {request.id} is in flight: choose another")
        if request.prefill_only or request.kv is not None:
            check_handover(request, self.config)
        if request.prompt_tokens < 1 or request.output_tokens < 1:
            raise BadRequest(
                f"{request.prompt_tokens} prompt and {request.output_tokens} output tokens: both must be at least 1"
            )
        adapter = None
        if request.adapter is not None:
            adapter = self._registry.get(request.adapter)
            if adapter is None:
                raise UnknownAdapter(request.adapter)
            if adapter.spec.rank > self.config.limits.max_lora_rank:
                self._check_rank(adapter.spec)
            if self._unified:
                self._check_pages(adapter.spec)
        tokens = request.prompt_tokens + request.output_tokens
        if tokens > self.max_tokens or (self._unified and tokens > self._max_tokens_beside(adapter)):
            raise PromptTooLong(request.prompt_tokens, request.output_tokens, self._max_tokens_beside(adapter))
        return adapter

    def _max_tokens_beside(self, adapter: AdapterCopy | None) -> Tokens:
        if adapter is None or not self._unified:
            return self.max_tokens
        blocks = self.config.kv_blocks - pages_for(adapter.spec.size, self.config)
        return min(self.max_tokens, blocks * self.config.block_size)

    def _check_rank(self, spec: AdapterSpec) -> None:
        limit = self.config.limits.max_lora_rank
        if spec.rank > limit:
            raise RankTooLarge(spec.name, spec.rank, limit)

    def _check_pages(self, spec: AdapterSpec) -> None:
        pages = pages_for(spec.size, self.config)
        if self._unified and pages >= self.config.kv_blocks:
            raise AdapterTooLarge(spec.name, pages, self.config.kv_blocks)

    def abort(self, request_id: RequestId, now: Seconds) -> None:
        """Forget a request whose client went away; no event follows for it. No-op when unknown.

        A running one keeps its place until the step that is running ends.
        """
        self._run(now)
        machine = self._machine
        job = machine.jobs.get(request_id)
        if job is None:
            return
        del machine.jobs[request_id]
        if job.order:
            job.aborted = True
            machine.seating.aborted.append(job)
        else:
            machine.queue.remove(job)
            machine.seating.reopen()
        machine.wake(now)

    def release_kv(self, request_id: RequestId, now: Seconds) -> bool:
        """Another pod has fetched the KV of a request of which only the prompt was wanted, or nobody will.

        False: none is held, or no longer. A busy pod frees the blocks when the step that is running ends.
        """
        self._run(now)
        released = self._machine.handover.release(request_id)
        if released:
            self._machine.wake(now)
        return released

    def held_kv(self, request_id: RequestId, now: Seconds) -> HeldKv | None:
        """What is held for another pod under a request's id; None: nothing, or no longer."""
        self._run(now)
        return self._machine.handover.held.get(request_id)

    def cached_tokens(self, request: PodRequest, now: Seconds) -> Tokens:
        """Prompt tokens that a request would find in the prefix cache if it joined now."""
        self._run(now)
        adapter = self._registry.get(request.adapter) if request.adapter is not None else None
        if adapter is None and request.adapter is not None:
            return 0
        machine, size = self._machine, self.config.block_size
        steps = machine.batch.steps + views.steps_done(machine, now)
        _, hits = machine.kv.find(self._keys_of(request, adapter), steps)
        return min(hits, (request.prompt_tokens - 1) // size) * size

    def load(self, adapter: AdapterSpec | AdapterName, now: Seconds) -> None:
        """Queue an activation; ends with SwapEnded or SwapFailed. No event when it already holds a slot.

        A name that is not registered yet becomes so when its load ends well (vLLM does the same); a known name with
        another spec stands for the new weights from then on. Begins when a slot is free or idle (in drain mode: when
        the batch has drained). Raises UnknownAdapter (a bare name that is not registered), RankTooLarge.
        """
        self._run(now)
        loader = self._machine.loader
        copy = self._copy_to_load(adapter)
        if copy.on_gpu:
            loader.levels.touch(copy)
        elif copy not in loader.pending():
            loader.orders.append(copy)
            self._machine.wake(now)

    def fetch(self, spec: AdapterSpec, now: Seconds) -> None:
        """What SGLang's load does: make a name known, and bring its weights into host memory.

        Takes no time and no slot. (SGLang reads the disk meanwhile; how long that takes is not modelled.) The weights
        stay on disk when adapters in slots take all the room. Raises RankTooLarge, AdapterTooLarge.
        """
        self._run(now)
        self._check_rank(spec)
        self._check_pages(spec)
        self.register(spec)
        self._machine.loader.fetch(self._registry[spec.name], now)

    def _copy_to_load(self, adapter: AdapterSpec | AdapterName) -> AdapterCopy:
        if not isinstance(adapter, AdapterSpec):
            if adapter not in self._registry:
                raise UnknownAdapter(adapter)
            self._check_pages(self._registry[adapter].spec)
            return self._registry[adapter]
        self._check_rank(adapter)
        self._check_pages(adapter)
        known = self._registry.get(adapter.name)
        if known is not None and known.spec == adapter:
            return known
        for copy in self._machine.loader.pending():
            if copy.unnamed and copy.spec == adapter:
                return copy
        copy = self._new_copy(adapter)
        copy.unnamed = True
        return copy

    def unload(self, name: AdapterName, now: Seconds) -> None:
        """What vLLM's unload does: `unregister`, at `now`. Raises UnknownAdapter.

        With `unload_frees` what SGLang's does besides: when the last request of the adapter has ended its weights go,
        and AdapterUnloaded comes. A busy pod looks at it when the step that is running ends.
        """
        self._run(now)
        copy = self._registry.get(name)
        self.unregister(name)
        if copy is not None and self.config.unload_frees:
            self._machine.loader.leaving.append(copy)
            self._machine.wake(now)

    def restart(self, now: Seconds) -> tuple[RequestId, ...]:
        """Lose everything in flight (returned), both memory levels, the prefix cache and all statistics.

        Afterwards the adapters given at construction are registered again, and no others.
        """
        self._run(now)
        lost = tuple(self._machine.jobs)
        events = self._machine.events
        self._start(now)
        self._machine.events.extend(events)
        return lost

    # ---- what comes out ----

    def advance(self, now: Seconds) -> list[PodEvent]:
        """Everything that happened up to `now` and was not yet handed out, in time order. Raises ClockWentBack."""
        self._run(now)
        machine = self._machine
        if not machine.events:
            return []
        events = machine.events.copy()
        machine.events.clear()
        machine.ended.clear()
        return events

    def next_change(self) -> Seconds | None:
        """When `advance` has something to say; None: never, unless something is submitted."""
        machine = self._machine
        if machine.events:
            return self._now
        return None if machine.due == inf else machine.due

    def next_end(self) -> Seconds | None:
        """As `next_change`, but for callers who can wait: what only begins comes with what ends next.

        That saves half of the calls: a first token, or a load that starts, changes nothing outside.
        """
        machine = self._machine
        if machine.ended:
            return self._now
        if machine.phase is STEPPING:
            span = machine.span
            return span.origin + span.count * span.step
        return None if machine.due == inf else machine.due

    def tokens_out(self, request_id: RequestId, now: Seconds) -> Tokens:
        """Output tokens that exist at `now`. Works until the event that ended the request was handed out.

        Raises UnknownRequest.
        """
        self._run(now)
        machine = self._machine
        job = machine.jobs.get(request_id)
        if job is None:
            if request_id not in machine.ended:
                raise UnknownRequest(request_id)
            return machine.ended[request_id]
        if not job.order:
            return job.out
        return machine.batch.steps - job.offset + views.steps_done(machine, now)

    def next_token_at(self, request_id: RequestId, now: Seconds) -> Seconds | None:
        """When the next token after `now` comes; None: not known yet (waits or loads): ask again at `next_change`.

        Raises UnknownRequest.
        """
        self._run(now)
        machine = self._machine
        job = machine.jobs.get(request_id)
        if job is None:
            raise UnknownRequest(request_id)
        if not job.order or machine.phase is not STEPPING:
            return None
        return machine.span.at(machine.span.done(now) + 1)

    def stats(self, now: Seconds) -> PodStats:
        """Counters, levels and gauges at `now`."""
        self._run(now)
        return views.stats_of(self._machine, now)

    def glance(self, now: Seconds) -> views.Glance:
        """The few figures of `stats` that are asked for often."""
        self._run(now)
        return views.glance_of(self._machine, now)

    def residency(self) -> dict[AdapterName, Tier]:
        """Tier of every registered adapter as of the last `now`."""
        queue = self._machine.loader.queue
        return {name: Tier.LOADING if copy in queue else copy.tier for name, copy in self._registry.items()}

    @property
    def slots_used(self) -> int:
        """Adapters on the GPU, and the one that is on its way, as of the last `now`."""
        levels = self._machine.levels
        return len(levels.gpu) + (levels.loading is not None)

    def check(self) -> None:
        """Raise AssertionError with a readable story when an invariant does not hold."""
        views.check(self._machine, self._now)

    def _run(self, now: Seconds) -> None:
        if now < self._now:
            raise ClockWentBack(now, self._now)
        machine = self._machine
        if machine.due <= now:
            machine.run(now)
            if machine.loader.arrived:
                self._register_arrived()
        self._now = now

    def _register_arrived(self) -> None:
        arrived = self._machine.loader.arrived
        for copy in arrived:
            copy.unnamed = False
            self._registry[copy.name] = copy
        arrived.clear()
