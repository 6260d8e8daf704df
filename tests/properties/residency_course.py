"""Measures beliefs: the picker's core beside emulated pods, and how often a tier that a decision relied on was true.

In: a `Course` (sizes, rates, what goes wrong) and a seed. Out: a `Score`. Pods are `pod.PodEngine`s; the picker hears
what a live one would: ends of its own requests, headers, scrapes that may be lost, answers to its own loads and
unloads. It does not hear of traffic that bypasses it. The shadow and the pod's caches share no code.

What is true: the pod's own word, except that an adapter which is not on the GPU and has a request waiting in the pod is
`loading`: a follower would share that load. A name that the pod does not accept is `unregistered`, wherever weights of
it may lie. Places are compared (GPU, loading, host memory, disk, nowhere).
"""

import heapq
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from random import Random

from msgspec.structs import replace

from lorapick.core.columns import SOURCE_SHIFT, SOURCES, TIER_BITS
from lorapick.core.fleet import Fleet
from lorapick.core.retention.policies import EVICTIONS
from lorapick.model import events
from lorapick.model.adapters import Adapter
from lorapick.model.effects import Dispatch, Reject
from lorapick.model.pods import Pod, PodLimits
from lorapick.model.requests import Outcome, Request
from lorapick.model.retention import RetentionFacts
from lorapick.model.settings import AdmissionSettings, BudgetSettings, PlacementSettings, RetentionSettings, Settings
from lorapick.model.tiers import Source, Tier
from lorapick.pod.engine import PodEngine
from lorapick.pod.values import (
    AdapterSpec,
    FirstToken,
    PodConfig,
    PodRequest,
    RequestFailed,
    RequestFinished,
    RequestStarted,
    SwapEnded,
    SwapMode,
    SwapStarted,
)
from lorapick.sim.scrapes import Scrape


@dataclass(frozen=True, kw_only=True)
class Course:
    """What happens. Rates are per second over the fleet, shares of requests or scrapes."""

    requests: int = 4000
    rate: float = 6.0
    pods: int = 2
    slots: int = 4
    cpu_slots: int = 10
    adapters: int = 24
    zipf: float = 0.7
    mode: SwapMode = SwapMode.INLINE
    eviction: str | None = None
    """Pods evict by a policy of `core.retention.policies`, and the picker is told; None: by their own LRU."""
    reports: bool = False
    """Pods say what they hold (`vllm:lora_adapter_loaded`)."""
    activity: bool = True
    """Pages keep the series of every set of adapters that ever ran together (`vllm:lora_requests_info`)."""
    kv_events: bool = False
    """Pods say what they compute."""
    bypass: float = 0.0
    streams: float = 0.5
    abandoned: float = 0.02
    lost_scrapes: float = 0.2
    commands: float = 0.05
    """Loads that the picker asks for; and as many unloads, each followed by a load of the same adapter there."""
    unloaded_for: float = 20.0
    """Mean seconds from an unload to the load that follows it."""
    restarts: float = 0.005
    output: tuple[int, int] = (1, 60)
    prefix: int = 3


@dataclass
class Score:
    """Counts. `changed`: decisions on adapters whose tier had changed since the last decision on them there."""

    decisions: int = 0
    right: int = 0
    changed: int = 0
    changed_right: int = 0
    weighed: int = 0
    """As `changed`, over all pods that a decision weighed, the winner or not."""
    weighed_right: int = 0
    rejected: int = 0
    misses: int = 0
    unloads: int = 0
    unregistered: int = 0
    """Of `weighed`, those where the pod did not accept the name, or the picker thought so."""
    unregistered_right: int = 0
    served: int = 0
    reported: int = 0
    """Decisions among `changed` that relied on what the pod itself had reported, with nothing known since."""
    reported_right: int = 0
    compared: int = 0
    """Adapters on pods right after a report, but for those under way."""
    compared_right: int = 0
    ran: int = 0
    """Decisions among `changed` whose request ran."""
    ran_right: int = 0
    """Of these, where the tier was what the request met when it ran."""
    missed: Counter[str] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)
    """Wrong ones of `weighed`, as `believed -> true`."""

    @property
    def accuracy(self) -> float:
        """Share of `changed` that was right."""
        return self.changed_right / self.changed if self.changed else 1.0

    @property
    def ran_accuracy(self) -> float:
        """Share of `ran` that was right."""
        return self.ran_right / self.ran if self.ran else 1.0

    @property
    def weighed_accuracy(self) -> float:
        """Share of `weighed` that was right."""
        return self.weighed_right / self.weighed if self.weighed else 1.0

    @property
    def miss_share(self) -> float:
        """Share of the served requests that did not find their adapter on the GPU."""
        return self.misses / self.served if self.served else 0.0


class Run:
    """One play."""

    def __init__(self, course: Course, *, seed: int) -> None:
        self.course, self.rng, self.score = course, Random(seed), Score()
        self.names = [f"adapter-{number:02d}" for number in range(course.adapters)]
        self.specs = {name: AdapterSpec(name=name) for name in self.names}
        self.weights = [1.0 / (rank + 1) ** course.zipf for rank in range(course.adapters)]
        self.now, self.ids = 0.0, count(1)
        self.fleet = Fleet(
            Settings(
                adapters=tuple(Adapter(name=name, declared=True) for name in self.names),
                # Nobody holds requests back, so that pods meet more adapters than they have slots.
                admission=AdmissionSettings(slot_budget=False, max_wait=0.0),
                budgets=BudgetSettings(loads_at_once=99, pods_loading_share=1.0),
                # The course commands loads by itself and carries out no others: pods that restart would never be warm.
                placement=PlacementSettings(enabled=False),
            ),
            seed=seed,
            journal=False,
        )
        self.heap: list[tuple[float, int, Callable[[], None]]] = []
        self.order = count()
        self.tick_at: float | None = None
        self.engines: dict[str, PodEngine] = {}
        self.scrapes: dict[str, Scrape] = {}
        self.waiting: dict[str, Counter[str]] = {}
        self.adapter_of: dict[str, tuple[str, str]] = {}
        """Request id to pod and adapter, while the request has not begun; bypassing ones too."""
        self.ran: dict[str, tuple[str, str]] = {}
        """Requests in a batch: pod and adapter."""
        self.ours: dict[str, str] = {}
        """Our requests in flight at pods, and where."""
        self.commanded: dict[str, set[str]] = {}
        self.relied: dict[str, tuple[Tier, bool]] = {}
        self.came_from: dict[tuple[str, str], Tier] = {}
        self.due: dict[str, float] = {}
        self.last: dict[tuple[str, str], int] = {}
        self.moves: dict[tuple[str, str], int] = {}
        self.last_step: dict[str, dict[str, float]] = {}
        self.running: dict[str, Counter[str]] = {}
        self.looked: dict[str, float] = {}
        self.place: dict[tuple[str, str], int] = {}
        for number in range(course.pods):
            self.add_pod(f"pod-{number}", address=f"10.0.0.{number + 1}:8000")

    # -- the play

    def play(self) -> Score:
        """Everything, to the end."""
        course, rng = self.course, self.rng
        at = 0.0
        for number in range(course.requests):
            at += rng.expovariate(course.rate)
            name = rng.choices(self.names, self.weights)[0]
            if rng.random() < course.bypass:
                self.at(at, lambda name=name, number=number: self.bypass(name, f"other-{number}"))
            else:
                self.at(at, lambda name=name, number=number: self.arrive(name, f"ours-{number}"))
        acts = ((course.commands, self.command), (course.commands, self.unload), (course.restarts, self.restart))
        for rate, act in acts:
            begun = 0.0
            while rate and (begun := begun + rng.expovariate(rate)) < at:
                self.at(begun, act)
        for name in self.engines:
            for second in range(1, int(at)):
                self.at(second + rng.random() * 0.2, lambda name=name: self.scrape(name))
        while self.heap:
            self.now, _, act = heapq.heappop(self.heap)
            for name in self.engines:
                self.advance(name)
            act()
        return self.score

    def at(self, when: float, act: Callable[[], None]) -> None:
        """Later."""
        heapq.heappush(self.heap, (max(when, self.now), next(self.order), act))

    # -- pods

    def add_pod(self, name: str, *, address: str) -> None:
        """A pod appears, empty."""
        course = self.course
        limits = PodLimits(max_loras=course.slots, max_cpu_loras=course.cpu_slots, max_num_seqs=16, max_queue=32)
        config = PodConfig(limits=limits, mode=course.mode)
        eviction = course.eviction or "lru"
        policy = EVICTIONS[eviction]
        retention = (lambda: policy(RetentionSettings(), lambda _: RetentionFacts())) if course.eviction else None
        self.engines[name] = PodEngine(config, self.specs.values(), now=0.0, retention=retention)
        self.waiting[name], self.commanded[name] = Counter(), set()
        self.new_process(name)
        self.tell(events.PodAppeared, pod=Pod(name=name, address=address, limits=limits, eviction=eviction))
        self.scrape(name, sure=True)

    def new_process(self, name: str) -> None:
        """What scrapes say begins anew."""
        self.last_step[name], self.running[name], self.looked[name] = {}, Counter(), -1.0
        self.scrapes[name] = Scrape(
            started=self.now,
            registered=tuple(self.names),
            slots=self.course.slots,
            reports_loaded=self.course.reports,
        )

    def advance(self, name: str) -> None:
        """Let a pod live up to now, and tell the picker what it would see of that."""
        engine = self.engines[name]
        for event in engine.advance(self.now):
            self.heard(name, event)
        self.wake(name)

    def wake(self, name: str) -> None:
        """Look again when something changes there."""
        due = self.engines[name].next_change()
        if due is not None and due > self.now and due != self.due.get(name):
            self.due[name] = due
            self.at(due, lambda: None)

    def heard(self, name: str, event: object) -> None:
        """One event of a pod."""
        if isinstance(event, FirstToken):
            return
        if isinstance(event, RequestStarted):
            pod, adapter = self.adapter_of.pop(event.request_id)
            self.waiting[pod][adapter] -= 1
            self.ran[event.request_id] = (pod, adapter)
            self.running[pod][adapter] += 1
            self.score.served += 1
            self.score.misses += not event.hit
            self.judge_run(event, name, adapter)
            if self.course.kv_events:
                self.tell(events.KvStored, pod=name, adapter=adapter, blocks=())
        elif isinstance(event, RequestFinished):
            self.ended(event.request_id, Outcome.SERVED, status=200)
        elif isinstance(event, RequestFailed):
            self.ended(event.request_id, Outcome.FAILED, status=500)
        elif isinstance(event, SwapStarted):
            self.came_from[name, event.adapter] = event.tier_from
        elif isinstance(event, SwapEnded) and event.adapter in self.commanded[name]:
            self.commanded[name].discard(event.adapter)
            self.tell(events.LoadSucceeded, pod=name, adapter=event.adapter, by=events.By.CONTROLLER)
        self.note_moves(name)

    def ended(self, request_id: str, outcome: Outcome, *, status: int | None) -> None:
        """A request is over at its pod."""
        self.relied.pop(request_id, None)
        if (ran := self.ran.pop(request_id, None)) is not None:
            self.running[ran[0]][ran[1]] -= 1
            self.last_step[ran[0]][ran[1]] = self.now
        began = self.adapter_of.pop(request_id, None)
        if began is not None:
            self.waiting[began[0]][began[1]] -= 1
        if self.ours.pop(request_id, None) is not None:
            self.tell(events.RequestEnded, request_id=request_id, outcome=outcome, status=status)

    def scrape(self, name: str, *, sure: bool = False) -> None:
        """The picker looks, or the answer is lost."""
        if not sure and self.rng.random() < self.course.lost_scrapes:
            self.tell(events.PodSilent, pod=name, why=events.SilentWhy.TIMEOUT)
        else:
            report = self.scrapes[name].report(self.engines[name], self.now)
            if report.registered is not None:  # the first list of a process that arrives; others may have been lost
                report = replace(report, registered=self.engines[name].registered)
            if self.course.activity:
                report = replace(report, used=self.used_since_last(name))
            self.tell(events.PodReported, pod=name, report=report)
            if self.course.reports:
                self.compare_all(name)

    def used_since_last(self, name: str) -> tuple[str, ...]:
        """Whom the pod ran since the last page that arrived, oldest first, as the times of the series tell."""
        steps = self.last_step[name]
        steps.update({adapter: self.now for adapter, count in self.running[name].items() if count > 0})
        used = sorted((when, adapter) for adapter, when in steps.items() if when > self.looked[name])
        self.looked[name] = self.now
        return tuple(adapter for _, adapter in used)

    def restart(self) -> None:
        """A pod's process dies and is back at once; the picker sees its streams break, then scrapes."""
        name = self.rng.choice([*self.engines])
        for request_id in self.engines[name].restart(self.now):
            if request_id in self.ours:
                self.tell(events.ResponseStarted, request_id=request_id, status=200)
            self.ended(request_id, Outcome.FAILED, status=502)
        self.commanded[name].clear()
        self.new_process(name)
        self.note_moves(name)
        self.scrape(name)

    def command(self) -> None:
        """The picker asks for a load."""
        self.load(self.rng.choice([*self.engines]), self.rng.choice(self.names))

    def load(self, name: str, adapter: str) -> None:
        """Of an adapter on a pod; one whose name the pod forgot is accepted again when the load has ended."""
        engine = self.engines[name]
        self.commanded[name].add(adapter)
        self.tell(events.LoadStarted, pod=name, adapters=(adapter,), by=events.By.CONTROLLER)
        engine.load(self.specs[adapter], self.now)
        if self.place_of(name, adapter).on_gpu:
            self.commanded[name].discard(adapter)
            self.tell(events.LoadSucceeded, pod=name, adapter=adapter, by=events.By.CONTROLLER)
        self.note_moves(name)
        self.wake(name)

    def unload(self) -> None:
        """The picker unloads an idle adapter, which frees no memory, and loads it again some time later."""
        name = self.rng.choice([*self.engines])
        idle = [adapter for adapter in self.engines[name].registered if self.idle(name, adapter)]
        if not idle:
            return
        adapter = self.rng.choice(idle)
        self.engines[name].unload(adapter, self.now)
        self.tell(events.Unloaded, pod=name, adapter=adapter)
        self.score.unloads += 1
        self.note_moves(name)
        self.wake(name)
        back = self.now + self.rng.expovariate(1.0 / self.course.unloaded_for)
        self.at(back, lambda: self.load(name, adapter))

    def idle(self, name: str, adapter: str) -> bool:
        """Nobody runs it there, waits for it, or has asked for a load of it."""
        return not (self.waiting[name][adapter] or self.running[name][adapter] > 0 or adapter in self.commanded[name])

    # -- requests

    def arrive(self, adapter: str, request_id: str) -> None:
        """A request for the picker."""
        stream = self.rng.random() < self.course.streams
        request = Request(id=request_id, model=adapter, stream=stream)
        self.tell(events.RequestArrived, request=request)

    def bypass(self, adapter: str, request_id: str) -> None:
        """A request that somebody else sends to a pod, which is one that accepts the name."""
        pods = [name for name in self.engines if self.place_of(name, adapter) is not Tier.UNREGISTERED]
        if pods:
            self.submit(self.rng.choice(pods), adapter, request_id=request_id)

    def submit(self, name: str, adapter: str, *, request_id: str) -> None:
        """To the pod, which raises when it does not accept the name: the picker has been told of each unload."""
        tokens = self.rng.randint(*self.course.output)
        self.adapter_of[request_id] = (name, adapter)
        self.waiting[name][adapter] += 1
        request = PodRequest(id=request_id, adapter=adapter, prompt_tokens=200, output_tokens=tokens)
        self.engines[name].submit(request, self.now)
        self.note_moves(name)
        self.wake(name)

    def tell(self, kind: type[events.Event], **fields: object) -> None:
        """An event for the picker, and what it says to that."""
        before, sources = {}, {}
        if kind is events.RequestArrived:
            before, sources = self.beliefs(fields["request"].model)
        for effect in self.fleet.apply(kind(t=self.now, id=next(self.ids), **fields), self.now):
            if isinstance(effect, Dispatch):
                self.dispatched(effect, before, sources)
            self.score.rejected += isinstance(effect, Reject)
        due = self.fleet.next_wakeup()
        if due is not None and due < float("inf") and (self.tick_at is None or due < self.tick_at):
            self.tick_at = due
            self.at(due, self.tick)

    def tick(self) -> None:
        """The picker's clock."""
        self.tick_at = None
        self.tell(events.Ticked)

    def dispatched(self, effect: Dispatch, beliefs: dict[str, Tier], sources: dict[str, Source]) -> None:
        """Score the decision, then send the request."""
        pick, name = effect.pick, effect.target.pod
        assert pick.adapter is not None and pick.tier is not None
        beliefs = {**beliefs, name: pick.tier}
        follows = self.truth(name, pick.adapter) is Tier.LOADING
        if self.moves.get((name, pick.adapter), 0) != self.last.get((name, pick.adapter), 0):
            self.relied[pick.request_id] = (min(pick.tier, Tier.GPU_IDLE), follows)
        for pod, believed in beliefs.items():
            self.judge(pod, pick.adapter, believed=believed, source=sources.get(name) if pod == name else None)
        self.ours[pick.request_id] = name
        self.submit(name, pick.adapter, request_id=pick.request_id)
        if self.rng.random() < self.course.abandoned:
            self.at(self.now + self.rng.random(), lambda: self.abandon(pick.request_id))

    def abandon(self, request_id: str) -> None:
        """A client leaves."""
        name = self.ours.get(request_id)
        if name is not None:
            self.engines[name].abort(request_id, self.now)
            self.ended(request_id, Outcome.ABANDONED, status=None)
            self.wake(name)

    # -- truth

    def beliefs(self, adapter: str) -> tuple[dict[str, Tier], dict[str, Source]]:
        """Believed tier by pod, and how the picker knows."""
        columns = self.fleet.state.columns
        codes = {pod: int(columns.adapter_row(adapter)[row]) for pod, row in columns.row_of.items()}
        tiers = {pod: Tier(code & TIER_BITS) for pod, code in codes.items()}
        return tiers, {pod: SOURCES[(code >> SOURCE_SHIFT) & 3] for pod, code in codes.items()}

    def truth(self, name: str, adapter: str) -> Tier:
        """Where it is."""
        return self.wanted(name, adapter, self.place_of(name, adapter))

    def place_of(self, name: str, adapter: str) -> Tier:
        """The pod's own word."""
        return self.engines[name].residency().get(adapter, Tier.UNREGISTERED)

    def wanted(self, name: str, adapter: str, tier: Tier) -> Tier:
        """The tier, or `loading` for what is not on the GPU and has somebody who waits for it.

        A load that somebody asked for registers a name when it has ended; until then a request would get 404.
        """
        if tier is Tier.UNREGISTERED:
            return tier
        wanted = self.waiting[name][adapter] > 0 or adapter in self.commanded[name]
        return Tier.LOADING if wanted and not tier.on_gpu else tier

    def note_moves(self, name: str) -> None:
        """Count changes of true places."""
        residency = self.engines[name].residency()
        for adapter in self.names:
            tier = residency.get(adapter, Tier.UNREGISTERED)
            place = min(self.wanted(name, adapter, tier), Tier.GPU_IDLE)
            key = (name, adapter)
            if self.place.get(key, Tier.DISK) != place:
                self.place[key] = place
                self.moves[key] = self.moves.get(key, 0) + 1

    def compare_all(self, name: str) -> None:
        """Right after a report, every belief is what the pod said."""
        for adapter in self.names:
            truth, believed = self.truth(name, adapter), self.beliefs(adapter)[0][name]
            if truth is not Tier.LOADING and believed is not Tier.LOADING:
                self.score.compared += 1
                self.score.compared_right += min(truth, Tier.GPU_IDLE) == min(believed, Tier.GPU_IDLE)

    def judge_run(self, event: RequestStarted, name: str, adapter: str) -> None:
        """Compare the tier that a decision relied on with what its request met."""
        relied = self.relied.pop(event.request_id, None)
        if relied is None:
            return
        believed, follows = relied
        met = Tier.GPU_IDLE if event.hit else Tier.LOADING if follows else self.came_from[name, adapter]
        self.score.ran += 1
        self.score.ran_right += met == believed
        if met != believed:
            self.score.missed[f"{believed.word} -> {met.word}"] += 1

    def judge(self, name: str, adapter: str, *, believed: Tier, source: Source | None) -> None:
        """Compare one belief with what is true."""
        score, key = self.score, (name, adapter)
        truth, believed = min(self.truth(name, adapter), Tier.GPU_IDLE), min(believed, Tier.GPU_IDLE)
        changed = self.moves.get(key, 0) != self.last.get(key, 0)
        self.last[key] = self.moves.get(key, 0)
        right, won = truth == believed, source is not None
        if won:
            score.decisions += 1
            score.right += right
            score.changed += changed
            score.changed_right += changed and right
        score.weighed += changed
        score.weighed_right += changed and right
        if changed and Tier.UNREGISTERED in (truth, believed):
            score.unregistered += 1
            score.unregistered_right += right
        if changed and won and source is Source.REPORTED:
            score.reported += 1
            score.reported_right += right
        if changed and not right:
            score.wrong[f"{believed.word} -> {truth.word}{' (winner)' if won else ''}"] += 1
