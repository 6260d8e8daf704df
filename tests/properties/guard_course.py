"""A small busy fleet whose placement policy suggests anything at all; and a judge of what the guard lets through.

In: a `Random`, which may be Hypothesis's. The policy is random targets in place of `core.placement.sources.collect`.
The judge looks at each command as it is given, before anything of it is believed, and keeps its own books: what is in
flight, what pods were told, what they loaded. It shares no rule with `core.placement.guard`.
Not here: how often and with which seeds (see `test_guard_under_any_policy`).
"""

from collections import deque
from math import ceil, inf

import pytest

from lorapick.core.admission.unloading import LONGEST as RELIEF_LASTS
from lorapick.core.placement import giving, pinning, sources
from lorapick.core.placement.commands import LONGEST
from lorapick.core.placement.targets import Target
from lorapick.model import events
from lorapick.model.adapters import Adapter, PinSpec
from lorapick.model.effects import Dispatch, Load, Register, Touch, Unload
from lorapick.model.placement import Why
from lorapick.model.pods import Engine, PodReport, SilentWhy
from lorapick.model.requests import Outcome, Request
from lorapick.model.settings import BudgetSettings, PlacementSettings, Settings
from lorapick.model.tiers import Tier
from lorapick.testing.playbook import Playbook, plain_pod

WHYS = [*Why]
COUNTED = (Why.DEMAND, Why.FORECAST, Why.REBALANCE, Why.RETIRED)
"""Against the churn budget."""
MINUTE = 60.0
LOADS, MOVES = 4, 3
"""Of a pod, and of the fleet for what nobody insists on; in a minute."""
SETTINGS = Settings(
    budgets=BudgetSettings(loads_per_pod_per_minute=LOADS),
    placement=PlacementSettings(moves_per_minute=MOVES, warm_up=10.0, handover=5.0),
)
PODS = [
    plain_pod("one", max_loras=2),
    plain_pod("two", max_loras=3, max_lora_rank=8),
    plain_pod("three", max_loras=2),
    plain_pod("four", max_loras=2, engine=Engine.SGLANG),
    plain_pod("five", max_loras=1),
]
NAMES = [f"adapter-{number}" for number in range(6)]
ADAPTERS = [
    *(Adapter(name=name, declared=True) for name in NAMES),
    Adapter(name="wide", declared=True, rank=64),
    Adapter(name="told", declared=True, source="/adapters/told"),
]


class Course:
    """One fleet and what happens to it."""

    def __init__(self, random, patch: pytest.MonkeyPatch) -> None:
        self.random = random
        self.judge = Judge()
        self.suggested: list[Target] = []
        self.started = dict.fromkeys((pod.name for pod in PODS), 0.0)
        """When the process of each pod began."""
        patch.setattr(sources, "collect", self.collect)
        self.judge.listen(patch)
        self.book = Playbook(pods=PODS, adapters=ADAPTERS, settings=SETTINGS)
        self.judge.took_note(self.book.effects, now=self.book.now)
        for pod in PODS:
            self.scrape(pod.name)

    @property
    def state(self):
        return self.book.fleet.state

    def collect(self, state, *, now, cause, effects):
        """A policy out of its mind; half of the time it knows of the pins."""
        del now, cause, effects
        pins = pinning.targets(state) if self.random.random() < 0.5 else []
        self.judge.wanted = [*pins, *(target for target in self.suggested if target.row in state.loads)]
        return self.judge.wanted

    def do(self, kind, **fields):
        self.book.apply(kind, **fields)
        self.judge.took_note(self.book.effects, now=self.book.now)

    def play(self, steps):
        for _ in range(steps):
            self.random.choice(STEPS)(self)

    # -- what may happen

    def suggest(self):
        rows = [0, 4, *range(len(PODS))]
        names = [*NAMES[:2] * 2, *(adapter.name for adapter in ADAPTERS)]
        count = self.random.randrange(1, 7)
        choose = self.random.choice
        self.suggested = [Target(choose(rows), choose(names), choose([*WHYS, *COUNTED])) for _ in range(count)]
        self.pass_time()

    def pass_time(self):
        self.book.now += self.random.choice([0.2, 1.0, 1.0, 3.0])
        if self.random.random() < 0.5:
            self.scrape_all()
        self.do(events.Ticked)

    def scrape_all(self):
        for row, pod in [*self.state.columns.live()]:
            if not self.state.loads[row].circuit_open and not self.state.loads[row].pressure_tier:
                self.scrape(pod.name)

    def idle(self):
        self.book.now += self.random.choice([7.0, 7.0, 70.0])
        self.scrape_all()

    def arrive(self):
        name = self.random.choice(NAMES[:4])
        self.do(events.RequestArrived, request=Request(id=f"r{len(self.book.events)}", model=name))

    def end(self):
        if self.judge.flights:
            request_id = self.random.choice([*self.judge.flights])
            del self.judge.flights[request_id]
            self.do(events.ResponseStarted, request_id=request_id, status=200)
            self.do(events.RequestEnded, request_id=request_id, outcome=Outcome.SERVED, status=200)

    def scrape(self, pod, **fields):
        fields = {"registered": ("wide", *NAMES), "process_start": self.started[pod], **fields}
        report = PodReport(waiting=0, running=0, **fields)
        self.do(events.PodReported, pod=pod, report=report)

    def squeeze(self):
        pod = self.random.choice(PODS).name
        self.scrape(pod, memory_pressure=self.random.choice([0.86, 0.92, 0.97, 0.1, 0.1]))

    def restart(self):
        pod = self.random.choice(PODS).name
        self.judge.forget(pod)
        self.started[pod] += 10.0
        self.scrape(pod)

    def leave(self):
        pod = self.random.choice(PODS)
        match self.random.randrange(6):
            case 0:
                self.do(events.PodDraining, pod=pod.name)
            case 1:
                self.do(events.PodSilent, pod=pod.name, why=SilentWhy.REFUSED)
            case 2:
                self.judge.forget(pod.name)
                self.do(events.PodGone, pod=pod.name)
            case _:
                for each in PODS:
                    self.do(events.PodAppeared, pod=each)
                    self.scrape(each.name)

    def answer(self):
        """Most pods that were told something say that they have done it, or have not."""
        for pod in [*self.judge.told]:
            if pod in self.judge.told and self.random.random() < 0.7:
                self.say(pod, done=self.random.random() < 0.8)

    def say(self, pod, *, done):
        effect, _ = self.judge.told.pop(pod)
        match effect:
            case Load(adapters=(name,)):
                more = {} if done else {"why": "HTTP 500"}
                kind = events.LoadSucceeded if done else events.LoadFailed
                self.do(kind, pod=pod, adapter=name, by=events.By.CONTROLLER, **more)
            case Register(adapter=name) if done:
                self.do(events.Registered, pod=pod, adapter=name)
            case Register(adapter=name):
                self.do(events.RegisterFailed, pod=pod, adapter=name, why="HTTP 500")
            case Unload(adapter=name) if done:
                self.do(events.Unloaded, pod=pod, adapter=name)
            case Unload(adapter=name):
                self.do(events.UnloadFailed, pod=pod, adapter=name, why="HTTP 500")

    def evict(self):
        """An engine says that it threw somebody out who is not in use; the policy wants it back."""
        row = self.random.choice([*self.state.loads])
        home = self.state.residency.home(row)
        idle = [name for name in home.shadow.gpu if name not in home.in_use]
        if idle:
            name = self.random.choice(idle)
            self.do(events.Evicted, pod=home.name, adapter=name, tier=Tier.DISK)
            self.suggested = [Target(row, name, self.random.choice(COUNTED))]
            self.pass_time()

    def touched(self):
        if self.judge.touches:
            pod, (name, _) = self.judge.touches.popitem()
            self.do(events.Touched, pod=pod, adapter=name)

    def pin(self):
        name, pods = self.random.choice(NAMES), self.random.choice(PODS[:4])
        if self.random.random() < 0.7:
            self.do(events.PinSet, adapter=name, pin=PinSpec(pods=(pods.name,)))
        else:
            self.do(events.PinCleared, adapter=name)

    def unload(self):
        self.do(events.UnloadAsked, adapter=self.random.choice([*NAMES, "told"]))


STEPS = (
    *[Course.suggest] * 6,
    *[Course.answer] * 7,
    *[Course.arrive] * 4,
    *[Course.end] * 3,
    *[Course.touched] * 2,
    Course.pass_time,
    Course.idle,
    *[Course.evict] * 2,
    Course.squeeze,
    Course.restart,
    Course.leave,
    Course.pin,
    Course.unload,
)


class Judge:
    """What was told to whom, and whether that was allowed."""

    def __init__(self) -> None:
        self.told: dict[str, tuple[Load | Register | Unload, float]] = {}
        """What each pod was told and has not answered, and when."""
        self.touches: dict[str, tuple[str, float]] = {}
        self.flights: dict[str, None] = {}
        self.wanted: list[Target] = []
        """What the policy suggested last."""
        self.loads: dict[str, deque[float]] = {pod.name: deque() for pod in PODS}
        self.moves: deque[float] = deque()
        self.brought: dict[tuple[str, str], float] = {}
        self.half: set[tuple[str, str]] = set()
        self.commands = 0

    def listen(self, patch):
        """Be asked before each command of the controller's."""
        for what in ("load", "register", "touch", "unload"):
            patch.setattr(giving, what, self.before(what, getattr(giving, what)))

    def before(self, what, give):
        def given(state, target, *, now, cause):
            if what in ("load", "register"):
                home = state.residency.home(target.row)
                to_host = home.caches.loads_to_host and (what == "register" or target.adapter not in home.shadow.cpu)
                self.may_load(state, target, now=now, to_host=to_host)
            elif what == "unload":
                self.may_unload(state, target)
            effects = give(state, target, now=now, cause=cause)
            if effects and what == "load":
                self.note_load(home.name, target, now=now, to_host=to_host)
            elif effects and what == "register" and not to_host:
                self.loads[home.name].append(now)
            return effects

        return given

    # -- the rules

    def may_load(self, state, target, *, now, to_host):
        pod, home = state.columns.pods[target.row], state.residency.home(target.row)
        self.pod_takes_loads(state, target, now=now)
        self.adapter_fits(state, target)
        self.nothing_under_way(state, target.row)
        if target.row not in state.placement.warming and state.loads[target.row].in_flight:
            others = self.loading(state) - {pod.name}
            most = max(1, ceil(SETTINGS.budgets.pods_loading_share * len(state.loads)))
            assert len(others) < most, f"{pod.name}: {others} load already"
        assert within(self.loads[pod.name], now) < LOADS, f"{pod.name}: too many loads in a minute"
        if not to_host:
            self.victim_may_go(state, home, target=target, now=now)
        pair = (pod.name, target.adapter)
        if target.why in COUNTED and (to_host or pair not in self.half):
            assert within(self.moves, now) < MOVES, "too many moves in a minute"
            assert now - self.brought.get(pair, -inf) >= MINUTE, f"{pair}: was brought there just now"

    def note_load(self, pod, target, *, now, to_host):
        self.commands += 1
        pair = (pod, target.adapter)
        if target.why in COUNTED and (to_host or pair not in self.half):
            self.moves.append(now)
        self.loads[pod].append(now)
        self.brought[pair] = now
        (self.half.add if to_host else self.half.discard)(pair)

    def pod_takes_loads(self, state, target, *, now):
        load = state.loads[target.row]
        assert not load.draining and not load.circuit_open and load.last_report is not None
        assert state.columns.fresh_until[target.row] >= now
        assert not load.pressure_tier, "under pressure"

    def adapter_fits(self, state, target):
        pod = state.columns.pods[target.row]
        adapter = next(each for each in ADAPTERS if each.name == target.adapter)
        assert (adapter.rank or 0) <= pod.limits.max_lora_rank, f"{adapter.name} does not fit {pod.name}"

    def nothing_under_way(self, state, row):
        pod = state.columns.pods[row].name
        assert not self.waits(pod, now=state.now), f"{pod} was told {self.told.get(pod)} and has not answered"
        cells = state.residency.home(row).cells
        assert not any(cell.tier is Tier.LOADING for cell in cells.values()), f"{pod} loads"

    def loading(self, state):
        """Pods that load or were told to, but for those that take no traffic yet."""
        found = set()
        for row, pod in state.columns.live():
            cells = state.residency.home(row).cells.values()
            under_way = self.waits(pod.name, now=state.now) or any(cell.tier is Tier.LOADING for cell in cells)
            if under_way and row not in state.placement.warming:
                found.add(pod.name)
        return found

    def victim_may_go(self, state, home, *, target, now):
        row, pod = target.row, home.name
        if len(home.shadow.gpu) < home.shadow.gpu_slots or target.adapter in home.shadow.gpu:
            return  # in the latter case only its name is missing
        used = {flight.adapter_name for flight in state.flights.values() if flight.row == row}
        idle = [name for name in home.shadow.gpu if name not in used and home.cells[name].tier is not Tier.LOADING]
        assert idle, f"{pod}: all slots are in use"
        kept = [name for name in idle if self.kept(state, target, name)]
        expected = target.why in (Why.SCHEDULE, Why.TRIGGER, Why.GROUP, Why.REGISTER)
        last = [name for name in idle if self.last_copy(state, row, name, now=now, asked=4.0 if expected else 1.0)]
        assert idle[0] not in kept, f"{pod}: {idle[0]} is pinned or wanted more than {target}"
        if target.why is Why.REGISTER and not state.residency.registry.accepting(target.adapter):
            return  # nobody can serve it at all
        if idle[0] in last:
            assert target.why in (Why.PIN, Why.OPERATOR), f"{pod}: {idle[0]} is a last copy, for {target}"
            assert all(name in kept or name in last for name in idle), f"{pod}: others than {idle[0]} may go"

    def kept(self, state, target, name):
        if target.row in state.placement.pinned.rows.get(name, ()):
            return True
        wanted = [each.why for each in self.wanted if each.row == target.row and each.adapter == name]
        if target.why is Why.REGISTER:
            return bool(wanted) and wanted[0] in (Why.OPERATOR, Why.SCHEDULE, Why.TRIGGER)
        return bool(wanted) and WHYS.index(wanted[0]) <= WHYS.index(target.why)

    def last_copy(self, state, row, name, *, now, asked):
        if state.prices.demand.rate(name, now=now) * 60.0 < asked or not state.residency.registry.accepts(row, name):
            return False
        for other in state.loads:
            cell = state.residency.home(other).cells.get(name)
            there = cell is not None and cell.tier >= Tier.LOADING and state.residency.registry.accepts(other, name)
            if other != row and there and not state.loads[other].draining:
                return False
        return True

    def may_unload(self, state, target):
        row, name = target.row, target.adapter
        in_flight = [flight for flight in state.flights.values() if flight.row == row and flight.adapter_name == name]
        assert not in_flight, f"{name} is in flight there"
        assert row not in state.placement.pinned.rows.get(name, ()), f"{name} is pinned"
        pod = state.columns.pods[row].name
        assert not self.waits(pod, now=state.now), f"{pod} was told {self.told.get(pod)} and has not answered"

    # -- the books

    def waits(self, pod, *, now):
        """Whether it has been told something; what was told long ago is lost."""
        if pod not in self.told:
            return False
        effect, when = self.told[pod]
        relieves = isinstance(effect, Load | Unload) and effect.why not in WHYS
        return now - when < (RELIEF_LASTS if relieves else LONGEST)

    def forget(self, pod):
        """Its process is new, or it is gone."""
        self.told.pop(pod, None)
        self.touches.pop(pod, None)
        self.loads[pod].clear()
        self.half = {pair for pair in self.half if pair[0] != pod}
        self.brought = {pair: when for pair, when in self.brought.items() if pair[0] != pod}

    def took_note(self, effects, *, now):
        """Take note of what the core said, in its order."""
        for effect in effects:
            match effect:
                case Dispatch(target=target, pick=pick):
                    self.flights[effect.request_id] = None
                    if pick.tier < Tier.LOADING:
                        self.loads[target.pod].append(now)
                case Load() | Unload() | Register():
                    self.told[effect.pod] = (effect, now)
                case Touch(pod=pod):
                    assert pod not in self.touches or now - self.touches[pod][1] >= LONGEST, f"{pod} is touched already"
                    self.touches[pod] = (effect.adapter, now)


def within(times, now):
    """How many are of the last minute."""
    return sum(now - when < MINUTE for when in times)
