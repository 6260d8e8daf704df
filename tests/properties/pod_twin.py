"""A slow pod: one step at a time, plain lists, every decision from scratch. What `PodEngine` must agree with.

Shares only the values with it. An activity is a step or a load; inputs at time t are taken after every activity that
ends at or before t, and nothing is decided before an activity ends.
"""

from lorapick.model.tiers import Tier
from lorapick.pod.values import (
    AdapterEvicted,
    AdapterMerged,
    AdapterSpec,
    AdapterUnloaded,
    AdapterUnmerged,
    FirstToken,
    Kernel,
    KvExpired,
    Memory,
    Merging,
    PodConfig,
    PodRequest,
    PodStats,
    RequestFailed,
    RequestFinished,
    RequestStarted,
    SwapEnded,
    SwapFailed,
    SwapMode,
    SwapStarted,
    TimeSpent,
)

COUNTERS = [
    "swaps",
    "loads",
    "load_failures",
    "evictions",
    "preemptions",
    "prompt_tokens",
    "output_tokens",
    "cached_tokens",
    "queried_tokens",
    "finished",
    "hits",
    "misses",
]
TIMES = ["prefill", "decode", "drain", "deallocation", "transfer", "initialisation", "warm_up", "idle", "merge"]
LOADING_TIMES = ("deallocation", "transfer", "initialisation", "warm_up")


class Weights:
    """One copy of an adapter's weights."""

    def __init__(self, spec):
        self.spec = spec
        self.name = spec.name
        self.register_when_loaded = False


class Work:
    """One request."""

    def __init__(self, request, weights, size, came):
        self.came = came
        self.request = request
        self.id = request.id
        self.weights = weights
        self.blocks = [(request.adapter, block) for block in request.blocks[: request.prompt_tokens // size]]
        self.tokens = 0
        self.started = False
        self.first_given = False
        self.waited = False
        self.gone = False
        self.gone_at = 0
        self.cached = 0
        self.received = request.kv is not None


class Load:
    def __init__(self, weights, tier, start, waited, drain):
        self.weights, self.tier, self.start, self.waited, self.drain = weights, tier, start, waited, drain
        self.phases = {}
        self.fails = False
        self.end = start


class Step:
    def __init__(self, start, prefill, length, empty):
        self.start, self.prefill, self.empty = start, prefill, empty
        self.end = start + prefill + length


class Merge:
    def __init__(self, weights, start, end):
        self.weights, self.start, self.end = weights, start, end


class Kept:
    """KV that waits to be fetched."""

    def __init__(self, work, until):
        self.work, self.until, self.released_as = work, until, None


class PodTwin:
    def __init__(self, config: PodConfig, adapters, *, now, draw=None):
        self.config, self.static, self.draw = config, list(adapters), draw
        self.events = []
        self.releases = self.receptions = 0
        self.start(now)

    def start(self, now):
        self.drains = self.config.mode is SwapMode.DRAIN
        self.count = dict.fromkeys(COUNTERS, 0)
        self.time = dict.fromkeys(TIMES, 0.0)
        self.names = {spec.name: Weights(spec) for spec in self.static}
        self.gpu, self.host = [], []
        self.running, self.waiting, self.joiners, self.arrival_order = [], [], [], []
        self.cache = []
        self.departures = 0
        self.orders, self.to_load, self.protected = [], [], []
        self.leaving = []
        self.activity = None
        self.idle_since = now
        self.drain_since, self.drain_width = None, 0
        self.unified = self.config.memory is Memory.UNIFIED
        limits = self.config.limits
        self.most = limits.max_cpu_loras if self.unified else limits.max_loras
        self.sent_for = []
        self.blocked, self.short, self.debt = False, False, 0
        self.folded, self.heading_for, self.just_there, self.only = None, [], False, None
        self.kept = []

    # ---- inputs ----

    def do(self, action, argument, now):
        """Perform one input; False when it is refused."""
        self.run(now)
        return getattr(self, action)(argument, now) is not False

    def run(self, now):
        self.run_activities(now)
        while self.activity is None and self.kept and min(each.until for each in self.kept) <= now:
            self.wake(min(each.until for each in self.kept))
            self.run_activities(now)

    def run_activities(self, now):
        while self.activity is not None and self.activity.end <= now:
            done, self.activity = self.activity, None
            if isinstance(done, Load):
                self.load_done(done)
            elif isinstance(done, Merge):
                self.merge_done(done)
            else:
                self.step_done(done)

    def wake(self, now):
        if self.activity is None:
            self.time["idle"] += now - self.idle_since
            self.decide(now)

    def submit(self, request: PodRequest, now):
        config = self.config
        weights = self.names.get(request.adapter)
        blocks = config.kv_blocks - (self.pages([weights]) if self.unified and weights else 0)
        limit = min(config.max_model_len, blocks * config.block_size)
        if any(work.id == request.id for work in self.in_flight()) or request.id in self.waiting_for_fetch():
            return False
        if request.kv is not None and (request.kv.adapter != request.adapter or request.prefill_only):
            return False
        if request.prefill_only and (
            request.output_tokens != 1 or self.unified or config.merging.mode is not Merging.NEVER
        ):
            return False
        if request.adapter is not None and request.adapter not in self.names:
            return False
        if request.prompt_tokens + request.output_tokens > limit:
            return False
        if weights is not None and weights.spec.rank > config.limits.max_lora_rank:
            return False
        work = Work(request, weights, config.block_size, now)
        work.waited = isinstance(self.activity, Load) and self.activity.weights is weights
        self.waiting.append(work)
        self.arrival_order.append(work)
        self.wake(now)
        return True

    def release_kv(self, request_id, now):
        for each in self.kept:
            if each.work.id == request_id and each.released_as is None:
                each.released_as = self.next_release()
                self.releases += 1
                self.wake(now)
                return

    def abort(self, request_id, now):
        for work in self.in_flight():
            if work.id == request_id:
                self.done(work)
                self.blocked = self.blocked and work not in self.waiting
        self.waiting = [work for work in self.waiting if not work.gone]

    def load(self, what, now):
        if isinstance(what, AdapterSpec):
            if what.rank > self.config.limits.max_lora_rank or self.is_too_large(what):
                return False
            weights = self.names.get(what.name)
            if weights is None or weights.spec != what:
                same = [w for w in self.pending() if w.register_when_loaded and w.spec == what]
                weights = same[0] if same else Weights(what)
                weights.register_when_loaded = True
        elif what in self.names and not self.is_too_large(self.names[what].spec):
            weights = self.names[what]
        else:
            return False
        if weights in self.gpu:
            self.use(weights)
        elif weights not in self.pending():
            self.orders.append(weights)
            self.wake(now)
        return True

    def unload(self, name, now):
        weights = self.names.pop(name, None)
        if weights is not None and self.config.unload_frees:
            self.leaving.append(weights)
            self.wake(now)
        return weights is not None

    def register(self, spec, now):
        if spec.name not in self.names or self.names[spec.name].spec != spec:
            self.names[spec.name] = Weights(spec)

    def restart(self, _, now):
        self.start(now)

    # ---- small questions ----

    def in_flight(self):
        return [work for work in self.arrival_order if not work.gone]

    def waiting_for_fetch(self):
        return {each.work.id for each in self.kept if each.released_as is None}

    def pending(self):
        loading = [self.activity.weights] if isinstance(self.activity, Load) else []
        return self.orders + loading + self.to_load

    def active(self):
        active = []
        for work in self.running:
            if work.weights is not None and work.weights not in active:
                active.append(work.weights)
        return active

    def blocks_of(self, work):
        """Blocks needed to compute the next token."""
        return -(-(work.request.prompt_tokens + work.tokens) // self.config.block_size)

    def holders(self):
        return self.running + [each.work for each in self.kept]

    def held(self):
        return {block for work in self.holders() for block in work.blocks}

    def used(self):
        kept = sum(-(-each.work.request.prompt_tokens // self.config.block_size) for each in self.kept)
        own = sum(self.blocks_of(work) for work in self.running) + kept
        return len(self.held()) + own - sum(len(work.blocks) for work in self.holders())

    def evict_cached(self):
        while self.cache and self.used() + len(self.cache) > self.capacity():
            self.cache.pop(0)

    def pages(self, weights):
        page = self.config.kv_bytes_per_token * self.config.block_size
        return sum(-(-each.spec.size // page) for each in weights)

    def is_too_large(self, spec):
        return self.unified and self.pages([Weights(spec)]) >= self.config.kv_blocks

    def capacity(self):
        """Blocks that adapters leave to requests."""
        return self.config.kv_blocks - (self.pages(self.gpu + self.sent_for) if self.unified else 0)

    def idle(self):
        kept = [*self.active(), *self.protected, self.folded]
        return [weights for weights in self.gpu if weights not in kept]

    def evict_idle(self, weights, t):
        self.gpu.remove(weights)
        self.count["evictions"] += 1
        self.events.append(AdapterEvicted(t=t, adapter=weights.name, tier=Tier.CPU))

    def find_pages(self, weights, new, t):
        """Unified: evict idle adapters for an adapter and `new` blocks; False: impossible."""
        absent = [] if weights is None or weights in self.gpu + self.sent_for else [weights]
        idle = [each for each in self.idle() if each is not weights]
        needed = self.used() + new + self.pages(absent)
        if needed > self.capacity() + self.pages(idle):
            return False
        while needed > self.capacity():
            self.evict_idle(idle.pop(0), t)
        self.sent_for += absent
        return True

    def use(self, weights):
        if weights in self.gpu:
            for level in (self.gpu, self.host):
                level.remove(weights)
                level.append(weights)

    def leave(self, work):
        self.running.remove(work)
        self.free(work)
        self.use(work.weights)

    def free(self, work):
        held = self.held()
        self.cache += [block for block in reversed(work.blocks) if block not in held]

    def let_kept_go(self, t):
        for each in self.kept:
            if each.released_as is None and each.until <= t:
                each.released_as = self.next_release()
                self.events.append(KvExpired(t=t, request_id=each.work.id))
        released = [each for each in self.kept if each.released_as is not None]
        for each in sorted(released, key=lambda each: each.released_as):
            self.kept.remove(each)
            self.free(each.work)

    def next_release(self):
        return sum(each.released_as is not None for each in self.kept)

    def done(self, work):
        work.gone = True
        self.departures += 1
        work.gone_at = self.departures

    # ---- steps ----

    def charge_step(self, step, now):
        """Times of a step up to `now`."""
        time = dict.fromkeys(TIMES, 0.0)
        time["prefill"] = min(now - step.start, step.prefill)
        decoded = now - step.start - time["prefill"]
        time["drain"] = decoded * step.empty
        time["decode"] = decoded - time["drain"]
        return time

    def step_done(self, step):
        t = step.end
        for key, seconds in self.charge_step(step, t).items():
            self.time[key] += seconds
        alive = [work for work in self.running if not work.gone]
        for work in alive:
            work.tokens += 1
            self.count["output_tokens"] += 1
        for work in alive:
            if not work.first_given:
                work.first_given = True
                self.count["prompt_tokens"] += work.request.prompt_tokens
                self.events.append(FirstToken(t=t, request_id=work.id))
        self.drop_aborted()
        for work in alive:
            if work.tokens == work.request.output_tokens:
                if work.request.prefill_only:
                    self.kept.append(Kept(work, t + self.config.kv_hold))
                self.leave(work)
                self.done(work)
                self.count["finished"] += 1
                self.events.append(
                    RequestFinished(
                        t=t,
                        request_id=work.id,
                        output_tokens=work.tokens,
                        cached_tokens=work.cached,
                        waited_for_load=work.waited,
                    )
                )
        self.decide(t)

    def drop_aborted(self):
        # In the order in which their clients left, which the order of leaving notes.
        for work in sorted((work for work in self.running if work.gone), key=lambda work: work.gone_at):
            self.leave(work)

    def let_go(self, t):
        for weights in [*self.leaving]:
            wanted = any(work.weights is weights for work in self.running + self.waiting)
            if wanted or weights in [*self.protected, *self.pending(), self.folded]:
                continue
            self.leaving.remove(weights)
            if weights in self.gpu:
                self.evict_idle(weights, t)
            if weights in self.host:
                self.host.remove(weights)
                self.events.append(AdapterEvicted(t=t, adapter=weights.name, tier=Tier.DISK))
            self.events.append(AdapterUnloaded(t=t, adapter=weights.name))

    def decide(self, t):
        config = self.config
        self.drop_aborted()
        self.let_go(t)
        self.let_kept_go(t)
        preempted = False
        while self.used() > self.capacity():
            self.evict_cached()
            if self.unified and self.idle():
                self.evict_idle(self.idle()[0], t)
                continue
            youngest = self.running[-1]
            self.leave(youngest)
            self.waiting.insert(0, youngest)
            self.count["preemptions"] += 1
            preempted = True
        self.orders = [weights for weights in self.orders if weights not in self.gpu]
        busy = self.active() + [self.folded] * (self.folded is not None and self.folded not in self.active())
        room = max(0, self.most - len(busy))
        if not self.drains and self.orders[:room]:
            if self.unified:
                self.evict_cached()
            ready = []
            for weights in self.orders[:room]:
                if self.unified and not self.find_pages(weights, 0, t):
                    break
                self.evict_cached()
                ready.append(weights)
            if ready:
                self.protected, self.to_load = list(ready), ready
                self.orders = self.orders[len(ready) :]
                self.next_load(t)
                return
        if config.merging.mode is not Merging.NEVER and self.merge(t):
            return
        self.short = False
        self.debt = self.debt if self.running else 0
        self.tokens_left = (config.max_batched_tokens or 10**9) - len(self.running) - self.debt
        self.blocked = preempted or not self.admit(t)
        self.debt = max(0, -self.tokens_left)
        self.evict_cached()
        if self.drains and self.drain(t):
            return
        self.to_load = []
        for work in self.joiners:
            if work.weights is not None and work.weights not in self.gpu and work.weights not in self.to_load:
                self.to_load.append(work.weights)
        if self.to_load:
            self.protected = list(self.to_load)
            self.next_load(t)
        else:
            self.next_step(t)

    def admit(self, t):
        """False: somebody was kept out by a lack of seats or memory."""
        for work in list(self.waiting):
            weights = work.weights
            if self.only is not None and weights not in self.only:
                continue
            if self.drains:
                absent = weights is not None and weights not in self.gpu
                if absent or (self.orders and not work.started):
                    return True
            elif weights not in [None, *self.active()] and len(self.active()) >= self.most:
                continue
            if self.tokens_left <= 0:
                self.short = True
                return True
            if not self.join(work, t):
                return False
            self.tokens_left -= max(1, work.request.prompt_tokens + work.tokens - work.reused)
        return True

    def join(self, work, t):
        config = self.config
        if len(self.running) >= config.limits.max_num_seqs:
            return False
        self.evict_cached()
        hits = 0
        for block in work.blocks:
            if block not in self.cache and block not in self.held():
                break
            hits += 1
        new = self.blocks_of(work) - len([block for block in work.blocks if block in self.held()])
        if self.unified and not self.find_pages(work.weights, new, t):
            return False
        if self.used() + new > self.capacity():
            return False
        tokens = work.request.prompt_tokens + work.tokens
        work.reused = min(hits, (tokens - 1) // config.block_size) * config.block_size
        if not work.started:
            work.cached = work.reused
        if work.received:
            work.received, work.reused = False, tokens
            self.receptions += 1
        self.cache = [block for block in self.cache if block not in work.blocks]
        self.waiting.remove(work)
        self.running.append(work)
        self.joiners.append(work)
        self.use(work.weights)
        return True

    def next_step(self, t):
        config = self.config
        if not self.running:
            self.idle_since = t
            self.debt = 0
            return
        prefill = 0
        for work in self.joiners:
            prefill += work.request.prompt_tokens + work.tokens - work.reused
            if not work.gone and not work.started:
                work.started = True
                self.count["queried_tokens"] += work.request.prompt_tokens
                self.count["cached_tokens"] += work.cached
                self.count["misses" if work.waited else "hits"] += 1
                self.events.append(
                    RequestStarted(t=t, request_id=work.id, hit=not work.waited, cached_tokens=work.cached)
                )
        self.joiners = []
        requests, length = len(self.running), self.step_length()
        if config.step.scan and not self.drains and not self.blocked and not self.short:
            length += config.step.scan * self.kept_out()
        empty = 0.0 if self.drain_since is None else max(0.0, 1.0 - requests / self.drain_width)
        self.activity = Step(t, prefill * config.prefill_per_token, length, empty)

    def step_length(self):
        costs, requests, active = self.config.step, len(self.running), self.active()
        adapters, kernel = len(active), self.config.kernel
        length = costs.a + costs.b * requests
        if self.folded is not None or self.config.merging.mode is Merging.ALWAYS:
            return length
        length += costs.slot * self.config.limits.max_loras
        if kernel is Kernel.SEGMENTED:
            each = [work.weights.spec.rank for work in self.running if work.weights is not None]
            ranks = costs.c * sum(weights.spec.rank for weights in active) + costs.d * sum(each)
            return length + ranks / costs.reference_rank
        padding = 1.0
        if kernel is Kernel.PADDED and active:
            over = max(weights.spec.rank for weights in active) / costs.reference_rank - 1
            padding += costs.rank_slope * over
        return length + costs.c * padding * adapters + costs.d * requests * adapters

    def kept_out(self):
        """How many wait whose adapter would be one too many."""
        active = self.active()
        if len(active) < self.most:
            return 0
        return len([work for work in self.waiting if work.weights is not None and work.weights not in active])

    # ---- merged weights ----

    def merge(self, t):
        """True: the weights are being changed, or the adapter for it is being loaded."""
        policy = self.config.merging
        mine = [work for work in self.running + self.waiting if work.weights is self.folded]
        if self.folded is not None and self.orders and not mine:
            return self.change(self.folded, t)
        if policy.mode is Merging.ALWAYS:
            return self.merge_always(policy, t)
        if self.folded is not None:
            self.only = [self.folded]
            other = self.waiting_longest(self.folded)
            if other and (not mine or t - other[0].came >= policy.patience):
                return self.change(self.folded, t)
            return False
        self.only = None
        present = [work.weights for work in self.in_flight() if work.weights is not None]
        if not present:
            return False
        # Of those with most requests, the one with the oldest.
        leader = max(dict.fromkeys(present), key=present.count)
        other = self.waiting_longest(leader)
        if present.count(leader) < policy.share * len(self.in_flight()):
            return False
        if other and t - other[0].came >= policy.patience:
            return False
        self.only = [leader]
        if self.running and all(work.weights is leader for work in self.running):
            return self.change(leader, t)
        return False

    def merge_always(self, policy, t):
        def waits(weights):
            return any(work.weights is weights for work in self.waiting)

        fresh = False
        if self.heading_for:
            fresh = self.heading_for[0] is self.folded
            if fresh or not waits(self.heading_for[0]):
                self.heading_for = []
        if not self.heading_for:
            other = self.waiting_longest(self.folded)
            mine = waits(self.folded)
            impatient = other and (t - other[0].came >= policy.patience or not (mine or self.running))
            if impatient and not (fresh and mine):
                self.heading_for = [other[0].weights]
        self.only = [] if self.heading_for else [self.folded]
        if not self.heading_for or self.running:
            return False
        return self.change(self.folded or self.heading_for[0], t)

    def waiting_longest(self, but):
        others = [work for work in self.waiting if work.weights is not but]
        return sorted(others, key=lambda work: work.came)[:1]

    def change(self, weights, t):
        if weights in self.gpu:
            self.activity = Merge(weights, t, t + self.config.merging.seconds)
            return True
        if self.unified:
            assert self.find_pages(weights, 0, t)
            self.evict_cached()
        self.protected, self.to_load = [weights], [weights]
        self.next_load(t)
        return True

    def merge_done(self, merge):
        t = merge.end
        self.time["merge"] += t - merge.start
        out = self.folded is merge.weights
        self.folded = None if out else merge.weights
        self.events.append((AdapterUnmerged if out else AdapterMerged)(t=t, adapter=merge.weights.name))
        self.decide(t)

    # ---- loads ----

    def drain(self, t):
        """True when an operation begins; the batch is drained."""
        front = self.waiting[0] if self.waiting else None
        if not self.orders:
            absent = front is not None and front.weights is not None and front.weights not in self.gpu
            if not absent and front is not None and front.started:
                return False
            if not absent:
                self.drain_since = None
                return False
        if self.running:
            if self.drain_since is None:
                self.drain_since, self.drain_width = t, len(self.running)
            return False
        slots = self.config.limits.max_loras
        wanted, self.orders = self.orders[:slots], self.orders[slots:]
        for work in self.waiting:
            if work.weights is not None and work.weights not in wanted and len(wanted) < slots:
                wanted.append(work.weights)
        self.protected = wanted
        self.to_load = [weights for weights in wanted if weights not in self.gpu]
        self.next_load(t)
        return True

    def next_load(self, t):
        config, costs = self.config, self.config.swap
        weights = self.to_load.pop(0)
        concerned = [work for work in self.waiting + self.joiners if work.weights is weights]
        waited = any(not work.gone for work in concerned)
        for work in concerned:
            work.waited = True
        tier = Tier.CPU if weights in self.host else Tier.DISK
        drain = 0.0 if self.drain_since is None else t - self.drain_since
        self.drain_since = None
        load = Load(weights, tier, t, waited, drain)
        self.events.append(SwapStarted(t=t, adapter=weights.name, tier_from=tier, waited=waited))
        freeing = 0.0
        if len(self.gpu) == self.most:
            victim = self.idle()[0]
            self.evict_idle(victim, t)
            if not self.unified:
                freeing = costs.deallocation
                if victim.spec.size != weights.spec.size:
                    freeing += costs.fragmentation
        if weights not in self.host:
            if len(self.host) == config.limits.max_cpu_loras:
                out = next(w for w in self.host if w not in self.gpu)
                self.host.remove(out)
                self.events.append(AdapterEvicted(t=t, adapter=out.name, tier=Tier.DISK))
            self.host.append(weights)
        moving = weights.spec.size / costs.cpu_bandwidth
        if tier == Tier.DISK:
            moving += weights.spec.size / costs.disk_bandwidth
        load.fails = config.load_failure_share > 0 and self.draw() < config.load_failure_share
        after = (0.0, 0.0) if load.fails else (costs.initialisation, costs.warm_up)
        load.phases = dict(zip(LOADING_TIMES, (freeing, moving, *after), strict=True))
        load.end = t + sum(load.phases.values())
        self.activity = load

    def charge_load(self, load, now):
        """Times of a load up to `now`."""
        time, begin = dict.fromkeys(TIMES, 0.0), load.start
        for phase, length in load.phases.items():
            time[phase] = max(0.0, min(now, begin + length) - begin)
            begin += length
        return time

    def load_done(self, load):
        t, weights = load.end, load.weights
        self.sent_for = [each for each in self.sent_for if each is not weights]
        for key, seconds in self.charge_load(load, t).items():
            self.time[key] += seconds
        if load.fails:
            self.load_failed(load)
        else:
            self.host.remove(weights)
            self.host.append(weights)
            self.gpu.append(weights)
            if weights.register_when_loaded:
                weights.register_when_loaded = False
                self.names[weights.name] = weights
            self.count["loads"] += 1
            self.count["swaps"] += load.waited
            self.events.append(
                SwapEnded(
                    t=t,
                    adapter=weights.name,
                    tier_from=load.tier,
                    waited=load.waited,
                    drain=load.drain,
                    **load.phases,
                )
            )
        if self.to_load:
            self.next_load(t)
            return
        self.protected = []
        if self.joiners:
            self.next_step(t)
        else:
            self.decide(t)

    def load_failed(self, load):
        if load.tier == Tier.DISK:
            self.host.remove(load.weights)
        self.count["load_failures"] += 1
        self.blocked = False
        why = "the adapter's weights could not be loaded"
        self.events.append(SwapFailed(t=load.end, adapter=load.weights.name, why=why))
        for work in self.joiners + self.waiting:
            if work.weights is not load.weights:
                continue
            if work in self.joiners:
                self.leave(work)
            if not work.gone:
                self.done(work)
                self.events.append(RequestFailed(t=load.end, request_id=work.id, why=why))
        self.joiners = [work for work in self.joiners if work.weights is not load.weights]
        self.waiting = [work for work in self.waiting if work.weights is not load.weights]

    # ---- what can be seen ----

    def stats(self, now):
        self.run(now)
        time = dict(self.time)
        passing = {"idle": now - self.idle_since} if self.activity is None else {}
        if isinstance(self.activity, Step):
            passing = self.charge_step(self.activity, now)
        if isinstance(self.activity, Load):
            passing = self.charge_load(self.activity, now)
        if isinstance(self.activity, Merge):
            passing = {"merge": now - self.activity.start}
        in_use = self.used()
        if self.unified:
            in_use += self.pages([w for w in self.gpu + self.sent_for if w not in self.idle()])
        for key, seconds in passing.items():
            time[key] += seconds
        names = []
        for work in self.in_flight():
            if work.tokens and work.weights is not None and work.weights.name not in names:
                names.append(work.weights.name)
        return PodStats(
            running=len(self.running),
            waiting=len(self.waiting),
            deferred=self.kept_out(),
            kv_usage=in_use / self.config.kv_blocks,
            on_gpu=tuple(weights.name for weights in self.gpu),
            on_cpu=tuple(weights.name for weights in self.host),
            loading=tuple(w.name for w in self.pending()[len(self.orders) :]),
            in_flight=tuple(names),
            time=TimeSpent(**time),
            merged=self.folded.name if self.folded is not None else None,
            kv_held=len(self.waiting_for_fetch()),
            **self.count,
        )
