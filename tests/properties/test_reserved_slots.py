"""A slot that waits for its request's prefill elsewhere is never the victim of another load, whatever happens.

The engines are played here by a least-recently-used cache of a few lines, which knows only what it is sent: requests,
touches, loads and unloads, by whomever they were wanted (pins, operators, triggers, the placement by load).

What is held is a slot that the fleet counts on. After a touch that failed nobody knows what the pod has: a reservation
of an adapter that is not believed to be there has no slot yet, and its load begins when its request comes. Loads are
answered before anything else happens to their pod; touches and unloads later, in any order.
"""

from collections import OrderedDict
from typing import Any, NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from lorapick.core.fleet import Fleet
from lorapick.core.placement.plans import PlacementPlan
from lorapick.core.placement.solving import RENDEZVOUS, solve
from lorapick.model.adapters import Adapter, PinSpec, Trigger
from lorapick.model.disaggregation import Decide, DisaggregationSettings
from lorapick.model.effects import Dispatch, Effect, Load, Register, Solve, Touch, Unload
from lorapick.model.events import (
    By,
    Event,
    LoadAsked,
    LoadFailed,
    LoadSucceeded,
    MoveAsked,
    PinCleared,
    PinSet,
    PlacementComputed,
    PodAppeared,
    PodGone,
    PodReported,
    PrefillEnded,
    Registered,
    RegisterFailed,
    RequestArrived,
    RequestDispatched,
    RequestEnded,
    ResponseStarted,
    Ticked,
    Touched,
    TouchFailed,
    TriggerFired,
    UnloadAsked,
    Unloaded,
    UnloadFailed,
)
from lorapick.model.picks import Pick
from lorapick.model.pods import Pod, PodLimits, PodReport, Role
from lorapick.model.requests import Outcome, Request, Target
from lorapick.model.settings import BudgetSettings, PlacementSettings, Settings
from lorapick.model.tiers import Tier

NAMES = [f"tenant-{number}" for number in range(5)]
ROLES = {"p-1": Role.PREFILL, "d-1": Role.DECODE, "b-1": Role.BOTH}
SLOTS = 2
PINS = [
    PinSpec(replicas=1),
    PinSpec(replicas=2, prefill_replicas=0),
    PinSpec(prefill_replicas=1),
    PinSpec(pods=("d-1",)),
]
WANTS = ["pin", "unpin", "load", "load", "load", "unload", "move", "event"]
Command = Load | Register | Touch | Unload


class Engine:
    """Slots of one pod: the least recently used idle adapter makes room; who finds no idle one waits."""

    def __init__(self) -> None:
        self.slots: OrderedDict[str, None] = OrderedDict()
        self.running: dict[str, int] = {}
        self.waiting: list[str] = []
        self.names = dict.fromkeys(NAMES)
        """That it accepts."""

    def use(self, name: str) -> str | None:
        """Run something with it; return who was thrown out."""
        victim = None
        if name not in self.slots and len(self.slots) >= SLOTS:
            victim = next((held for held in self.slots if not self.running.get(held)), None)
            if victim is None:
                self.waiting.append(name)
                return None
            del self.slots[victim]
        self.slots[name] = None
        self.slots.move_to_end(name)
        return victim


class Sent(NamedTuple):
    """A request that is being prefilled."""

    prefill: str
    decode: str
    adapter: str
    others: tuple[str, ...] = ()
    """Pods that may decode instead."""


class Told(NamedTuple):
    """A command that a pod has carried out, or not, and will answer."""

    command: Command
    ok: bool

    @property
    def adapter(self) -> str:
        return self.command.adapters[0] if isinstance(self.command, Load) else self.command.adapter

    def answer(self) -> tuple[type[Event], dict[str, Any]]:
        """The event that says so."""
        of: dict[str, Any] = {"pod": self.command.pod, "adapter": self.adapter}
        failed = {**of, "why": "HTTP 500"}
        match self.command:
            case Load():
                return (
                    (LoadSucceeded, {**of, "by": By.CONTROLLER})
                    if self.ok
                    else (LoadFailed, {**failed, "by": By.CONTROLLER})
                )
            case Register():
                return (Registered, of) if self.ok else (RegisterFailed, failed)
            case Unload():
                return (Unloaded, of) if self.ok else (UnloadFailed, failed)
            case Touch():
                return (Touched, of) if self.ok else (TouchFailed, failed)


class ReservedSlots(RuleBasedStateMachine):
    """Requests come, are prefilled, decoded, and end, in any order."""

    def __init__(self) -> None:
        super().__init__()
        split = DisaggregationSettings(decide=Decide.TOKENS, uncached_tokens=500)
        adapters = tuple(Adapter(name=each, source=f"/adapters/{each}", declared=True) for each in NAMES)
        self.fleet = Fleet(
            Settings(
                disaggregation=split,
                adapters=adapters,
                budgets=BudgetSettings(pods_loading_share=1.0, loads_per_pod_per_minute=1000),  # nothing else saves it
                placement=PlacementSettings(replicas="auto", solve_every=1.0, warm_up=0.0, moves_per_minute=1000),
                triggers=(Trigger(event="login", preload="{who}", lasts=30.0),),
            ),
            seed=3,
        )
        self.now, self.count = 0.0, 0
        self.prefilling: dict[str, Sent] = {}
        self.running: dict[str, tuple[str, str]] = {}
        self.told: list[Told] = []
        self.failing = False
        """Whether pods fail to do what they are told."""
        self.plan: PlacementPlan | None = None
        self.counted_on: dict[tuple[str, str], None] = {}
        """`believed` before the event."""
        self.victims = 0
        self.engines: dict[str, Engine] = {}

    @initialize(names=st.sampled_from([("p-1", "d-1"), ("p-1", "b-1"), ("p-1", "d-1", "b-1"), ("d-1", "b-1")]))
    def appear(self, names: tuple[str, ...]) -> None:
        """Pods of several roles."""
        self.engines = {name: Engine() for name in names}
        for name in names:
            self.appear_one(name)
        self.report()

    def appear_one(self, name: str) -> None:
        """Discovery finds a pod."""
        limits = PodLimits(max_loras=SLOTS, max_cpu_loras=8, max_queue=32)
        pod = Pod(name=name, address=f"10.0.0.1:{8000 + self.count}", role=ROLES[name], limits=limits)
        self.apply(PodAppeared, pod=pod)

    def apply(self, kind: type[Event], **values: Any) -> None:
        """One event, and what follows from it."""
        self.count += 1
        self.counted_on = self.believed()
        for effect in self.fleet.apply(kind(t=self.now, id=self.count, **values), self.now):
            self.perform(effect)
        self.fleet.check()
        loads = [told for told in self.told if isinstance(told.command, Load | Register)]
        self.told = [told for told in self.told if told not in loads]
        for told in loads:
            answer, facts = told.answer()
            self.apply(answer, **facts)

    def perform(self, effect: Effect) -> None:
        """Send it to the engines."""
        match effect:
            case Dispatch(prefill=None, target=target, pick=Pick(adapter=str(adapter))):
                self.come(target.pod, effect.request_id, adapter=adapter)
            case Dispatch(prefill=Target(pod=first), target=target, pick=Pick(adapter=str(adapter))):
                others = tuple(each.pod for each in effect.fallbacks)
                leaving = [each for each in self.told if isinstance(each.command, Unload)]
                assert (target.pod, adapter) not in [(each.command.pod, each.adapter) for each in leaving]
                self.prefilling[effect.request_id] = Sent(first, target.pod, adapter, others)
                self.use(first, adapter)
                self.engines[first].running[adapter] = self.engines[first].running.get(adapter, 0) + 1
            case Load() | Register() | Touch() | Unload():
                self.obey(effect)
            case Solve():
                self.plan = solve(effect.problem, solver=RENDEZVOUS)
            case _:
                pass

    def obey(self, command: Command) -> None:
        """A pod does what it is told, or does not; its answer comes later."""
        told = Told(command, not self.failing)
        self.told.append(told)
        if isinstance(command, Unload):
            assert told.adapter not in self.reserved(command.pod), f"{command.pod} is to forget {told.adapter}"
            if told.ok:
                self.engines[command.pod].names.pop(told.adapter, None)
        elif told.ok:
            self.engines[command.pod].names[told.adapter] = None
            self.use(command.pod, told.adapter)

    def reserved(self, pod: str) -> list[str]:
        """Adapters whose requests are prefilled elsewhere now, and come to this pod."""
        return [each.adapter for each in self.prefilling.values() if each.decode == pod]

    def believed(self) -> dict[tuple[str, str], None]:
        """Reserved adapters that the fleet takes to be in a slot, or on their way into one."""
        state = self.fleet.state
        homes = {name: state.residency.home(state.columns.row_of[name]) for name in state.columns.row_of}
        return {
            (pod, name): None
            for pod, home in homes.items()
            for name in home.reserved
            if home.cells[name].tier >= Tier.LOADING
        }

    def come(self, pod: str, request_id: str, *, adapter: str) -> None:
        """A request is at the pod that decodes it."""
        self.use(pod, adapter)
        self.engines[pod].running[adapter] = self.engines[pod].running.get(adapter, 0) + 1
        self.running[request_id] = (pod, adapter)

    def use(self, pod: str, adapter: str) -> None:
        """An engine uses an adapter; whom that throws out had no reservation."""
        victim = self.engines[pod].use(adapter)
        self.victims += victim is not None
        assert (pod, victim) not in self.counted_on or victim not in self.reserved(pod), (
            f"{pod}: {adapter} throws out {victim}, whose request is being prefilled"
        )

    def report(self) -> None:
        """Every pod says that it is well."""
        for name, engine in self.engines.items():
            self.apply(PodReported, pod=name, report=PodReport(waiting=0, running=0, registered=tuple(engine.names)))

    @rule(name=st.sampled_from(NAMES), long=st.booleans())
    def arrive(self, name: str, long: bool) -> None:
        """A request comes; a long prompt is prefilled elsewhere, if anywhere."""
        request = Request(id=f"r{self.count}", model=name, prompt_tokens=2000 if long else 20, stream=True)
        self.apply(RequestArrived, request=request)

    @rule(names=st.permutations(NAMES))
    def crowd(self, names: list[str]) -> None:
        """Some come at a time: one that is prefilled elsewhere, and others who want slots where it is decoded."""
        for name, long in zip(names, (True, False, True), strict=False):
            self.arrive(name, long)

    @rule(names=st.permutations(NAMES))
    def served(self, names: list[str]) -> None:
        """Two short requests are served at once: slots are taken, and idle."""
        for name in names[:2]:
            request_id = f"r{self.count}"
            self.arrive(name, long=False)
            if request_id in self.running:
                pod, adapter = self.running.pop(request_id)
                self.leave(pod, adapter)
                self.apply(ResponseStarted, request_id=request_id, status=200)
                self.apply(RequestEnded, request_id=request_id, outcome=Outcome.SERVED, status=200)

    @precondition(lambda self: self.prefilling)
    @rule(data=st.data(), ok=st.booleans())
    def prefilled(self, data: st.DataObject, ok: bool) -> None:
        """A prefill ends, well or badly; the pod that decodes has the request."""
        request_id = data.draw(st.sampled_from(sorted(self.prefilling)))
        sent = self.prefilling.pop(request_id)
        self.leave(sent.prefill, sent.adapter)
        self.come(sent.decode, request_id, adapter=sent.adapter)
        self.apply(PrefillEnded, request_id=request_id, ok=ok)

    @precondition(lambda self: self.prefilling)
    @rule(data=st.data())
    def given_up(self, data: st.DataObject) -> None:
        """A client goes away during the prefill."""
        request_id = data.draw(st.sampled_from(sorted(self.prefilling)))
        sent = self.prefilling.pop(request_id)
        self.leave(sent.prefill, sent.adapter)
        self.apply(RequestEnded, request_id=request_id, outcome=Outcome.ABANDONED)

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def answered(self, data: st.DataObject) -> None:
        """A decode ends."""
        request_id = data.draw(st.sampled_from(sorted(self.running)))
        pod, adapter = self.running.pop(request_id)
        self.leave(pod, adapter)
        self.apply(ResponseStarted, request_id=request_id, status=200)
        self.apply(RequestEnded, request_id=request_id, outcome=Outcome.SERVED, status=200)

    def leave(self, pod: str, adapter: str) -> None:
        """One request less; a slot may be idle now, for who waits."""
        engine = self.engines[pod]
        engine.running[adapter] -= 1
        engine.use(adapter)  # its last step
        waiting, engine.waiting = engine.waiting, []
        for name in waiting:
            self.use(pod, name)

    @precondition(lambda self: self.told)
    @rule(data=st.data())
    def command_answered(self, data: st.DataObject) -> None:
        """A pod answers a command, in whatever order."""
        told = self.told.pop(data.draw(st.integers(0, len(self.told) - 1)))
        kind, values = told.answer()
        self.apply(kind, **values)

    @rule(what=st.sampled_from(["fail", "mend", "fallback", "restart"]), data=st.data())
    def trouble(self, what: str, data: st.DataObject) -> None:
        """Pods do not do what they are told from now on, or do again; or do not answer; or are lost."""
        self.failing = what == "fail" or (self.failing and what != "mend")
        if what == "fallback":
            self.fallback(data)
        elif what == "restart":
            self.restart(data.draw(st.sampled_from(sorted(self.engines))))

    def fallback(self, data: st.DataObject) -> None:
        """The pod that was to decode does not answer: another one has the request, and it is prefilled for that one."""
        ways = sorted((request_id, pod) for request_id, sent in self.prefilling.items() for pod in sent.others)
        if not ways:
            return
        request_id, pod = data.draw(st.sampled_from(ways))
        sent = self.prefilling.pop(request_id)
        if pod == sent.prefill:
            self.leave(sent.prefill, sent.adapter)
            self.come(pod, request_id, adapter=sent.adapter)
        else:
            self.prefilling[request_id] = sent._replace(decode=pod, others=())
        self.apply(RequestDispatched, request_id=request_id, pod=pod)

    def restart(self, name: str) -> None:
        """A pod goes, with all that it has, and comes again."""
        self.told = [each for each in self.told if each.command.pod != name]
        self.apply(PodGone, pod=name)
        for request_id, sent in [*self.prefilling.items()]:
            if sent.decode == name:
                del self.prefilling[request_id]
                self.apply(RequestEnded, request_id=request_id, outcome=Outcome.FAILED)
                if sent.prefill != name:
                    self.leave(sent.prefill, sent.adapter)
            elif sent.prefill == name:
                del self.prefilling[request_id]
                self.come(sent.decode, request_id, adapter=sent.adapter)
        for request_id, (pod, _) in [*self.running.items()]:
            if pod == name:
                del self.running[request_id]
                self.apply(RequestEnded, request_id=request_id, outcome=Outcome.FAILED)
        self.engines[name] = Engine()
        self.appear_one(name)
        self.report()

    # -- what operators and others want

    @rule(name=st.sampled_from(NAMES), what=st.sampled_from(WANTS), data=st.data())
    def want(self, name: str, what: str, data: st.DataObject) -> None:
        """An operator or an event says what should be where."""
        pods = sorted(self.engines)
        match what:
            case "pin":
                self.apply(PinSet, adapter=name, pin=data.draw(st.sampled_from(PINS)))
            case "unpin":
                self.apply(PinCleared, adapter=name)
            case "load":
                self.apply(LoadAsked, adapter=name, pods=data.draw(st.sampled_from([(), *((pod,) for pod in pods)])))
            case "unload":
                self.apply(UnloadAsked, adapter=name, pods=())
            case "move":
                source, target, *_ = data.draw(st.permutations(pods))
                self.apply(MoveAsked, adapter=name, source=source, target=target)
            case _:
                self.apply(TriggerFired, name="login", attributes={"who": name})

    @precondition(lambda self: self.plan is not None)
    @rule()
    def planned(self) -> None:
        """The solver answers."""
        plan, self.plan = self.plan, None
        assert plan is not None
        self.apply(PlacementComputed, plan=dict(plan.placed), version=plan.version)

    @rule(seconds=st.sampled_from([0.001, 0.05, 0.3, 1.0]))
    def time_passes(self, seconds: float) -> None:
        """Time passes; pods are well."""
        self.now += seconds
        self.report()
        self.apply(Ticked)

    @invariant()
    def reserved_slots_are_believed(self) -> None:
        """What is reserved by our book is reserved by the fleet's."""
        state = self.fleet.state
        for sent in self.prefilling.values():
            row = state.columns.row_of[sent.decode]
            assert sent.adapter in state.residency.home(row).reserved


ReservedSlots.TestCase.settings = settings(max_examples=60, stateful_step_count=60, deadline=None)
test_reserved_slots_are_no_victims = ReservedSlots.TestCase
