"""A slot that waits for its request, until the engine has given that a seat, is never the victim of another load.

The engines are played here by a least-recently-used cache of a few lines, which knows only what it is sent: requests,
touches, loads and unloads, by whomever they were wanted (pins, operators, triggers, the placement by load).

What is held is a slot that the fleet counts on: a reservation of an adapter that is not believed to be there has no
slot yet, and its load begins when its request comes at the latest, whoever that throws out. A command that fails may
have been carried out all the same.
Loads are answered before anything else happens to their pod; touches and unloads later, in any order.

By nature a reserved slot can be lost, and only then (`ReservedSlots.excuse`):
- to traffic that does not pass the picker, or that Envoy sends to a fallback: no gate is before those;
- to who waits in the engine itself for a slot, which is since there were more adapters in use than slots: with the slot
  budget off, or through such traffic;
- where policy or settings leave admission to the pods;
- on a pod that has fewer slots than the picker was told, until its engine says how many.
What the fleet can know of it, it says: a note and a count.
"""

from collections import OrderedDict
from typing import Any, NamedTuple

from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from msgspec.structs import replace

from lorapick.core.fleet import Fleet
from lorapick.core.placement.plans import PlacementPlan
from lorapick.core.placement.solving import RENDEZVOUS, solve
from lorapick.model.adapters import Adapter, PinSpec, Trigger
from lorapick.model.disaggregation import Choice, Decide, DisaggregationSettings
from lorapick.model.effects import Dispatch, Effect, Load, Note, Register, Solve, Touch, Unload
from lorapick.model.events import (
    AdapterDeclared,
    AdapterRetired,
    BodyStarted,
    By,
    ConfigChanged,
    Event,
    LoadAsked,
    LoadFailed,
    LoadSucceeded,
    MoveAsked,
    PinCleared,
    PinSet,
    PlacementComputed,
    PodAppeared,
    PodChanged,
    PodDraining,
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
from lorapick.model.pods import Engine as ServerEngine
from lorapick.model.pods import LoadedAdapter, Pod, PodLimits, PodReport, Role
from lorapick.model.requests import Outcome, Request, Target
from lorapick.model.settings import AdmissionSettings, BudgetSettings, PickingSettings, PlacementSettings, Settings
from lorapick.model.tiers import Tier

NAMES = [f"tenant-{number}" for number in range(5)]
ROLES = {"p-1": Role.PREFILL, "d-1": Role.DECODE, "b-1": Role.BOTH, "s-1": Role.DECODE}
ENGINES = {"s-1": ServerEngine.SGLANG}
"""Others are vLLMs. An SGLang's load ends in host memory, and its unload makes room."""
SLOTS = 2
MOMENT = 1e-4
"""Seconds between two events: none are at the same time."""
PINS = [
    PinSpec(replicas=1),
    PinSpec(replicas=2, prefill_replicas=0),
    PinSpec(prefill_replicas=1),
    PinSpec(pods=("d-1",)),
]
SPLIT = DisaggregationSettings(decide=Decide.TOKENS, uncached_tokens=500)
SETTINGS = Settings(
    disaggregation=SPLIT,
    adapters=tuple(Adapter(name=each, source=f"/adapters/{each}", declared=True) for each in NAMES),
    budgets=BudgetSettings(pods_loading_share=1.0, loads_per_pod_per_minute=1000),  # nothing else saves it
    placement=PlacementSettings(replicas="auto", solve_every=1.0, warm_up=0.0, moves_per_minute=1000),
    triggers=(Trigger(event="login", preload="{who}", lasts=30.0),),
)
CONFIGURED = [
    SETTINGS,
    SETTINGS,
    replace(SETTINGS, admission=AdmissionSettings(slot_budget=False)),
    replace(SETTINGS, picking=PickingSettings(policy="round-robin")),
    replace(SETTINGS, disaggregation=replace(SPLIT, choice=Choice.INDEPENDENT)),
    replace(SETTINGS, disaggregation=replace(SPLIT, decide=Decide.COST)),
    replace(SETTINGS, placement=PlacementSettings(enabled=False)),
    replace(SETTINGS, budgets=BudgetSettings(pods_loading_share=1.0, loads_at_once=2)),
    replace(SETTINGS, budgets=BudgetSettings(pods_loading_share=0.1, loads_per_pod_per_minute=1)),
]


def admits(settings: Settings) -> bool:
    """Whether the picker decides who comes into use where."""
    return settings.admission.slot_budget and settings.picking.policy != "round-robin"


FLEETS = [("p-1", "d-1"), ("p-1", "b-1"), ("p-1", "d-1", "b-1"), ("d-1", "b-1"), ("p-1", "s-1")]
CHANGES = ["role", "limits", "drain", "stay", "pressure", "lists", "others", "retire", "declare", "settings"]
WANTS = ["pin", "unpin", "load", "load", "load", "unload", "move", "event"]
Command = Load | Register | Touch | Unload


class Engine:
    """Slots of one pod: the least recently used idle adapter makes room; who finds no idle one waits."""

    def __init__(self, *, size: int = SLOTS) -> None:
        self.size = size
        """Slots that it has, whatever discovery says."""
        self.said = False
        """Whether it has said so."""
        self.lists = False
        """Whether it says which adapters it has."""
        self.pressure = 0.0
        self.waited = False
        """Whether somebody has waited in it for a slot."""
        self.foreign = False
        """Whether it had traffic that the picker did not send there, since its last report."""
        self.slots: OrderedDict[str, None] = OrderedDict()
        self.running: dict[str, int] = {}
        self.waiting: list[str] = []
        self.names = dict.fromkeys(NAMES)
        """That it accepts."""

    def use(self, name: str) -> str | None:
        """Run something with it; return who was thrown out."""
        victim = None
        if name not in self.slots and len(self.slots) >= self.size:
            victim = next((held for held in self.slots if not self.running.get(held)), None)
            if victim is None:
                self.waiting.append(name)
                self.waited = True
                return None
            del self.slots[victim]
        self.slots[name] = None
        self.slots.move_to_end(name)
        return victim


GONE = ""
"""The pod that prefills, if it is not in the list any more and works on: what it does there harms nobody."""


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
    """What it answers: not always what it did."""

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
        self.fleet = Fleet(SETTINGS, seed=3)
        self.now, self.count = 0.0, 0
        self.prefilling: dict[str, Sent] = {}
        self.unseated: dict[str, tuple[str, str]] = {}
        """Requests that are at the pod that decodes, whose engine has not used their adapter for them yet."""
        self.loading_late: dict[str, tuple[str, str]] = {}
        """Of these, the ones whose adapter was not there when they came, so that there was no slot to keep."""
        self.running: dict[str, tuple[str, str]] = {}
        self.told: list[Told] = []
        self.failing = ""
        """How pods answer commands: not at all badly, `fails` (they did nothing), or `lies` (they did it, and fail)."""
        self.excused: dict[str, str] = {}
        """By pod: why its reserved slots may be lost."""
        self.roles = dict(ROLES)
        self.lost: list[tuple[str, str]] = []
        """Reserved slots that were lost, and have to be said to be."""
        self.said_lost: list[tuple[str, str]] = []
        self.plan: PlacementPlan | None = None
        self.counted_on: dict[tuple[str, str], None] = {}
        """`believed` before the event."""
        self.victims = 0
        self.engines: dict[str, Engine] = {}
        self.addresses: dict[str, str] = {}
        self.admits = True
        """Whether settings say that the picker decides who comes into use where."""

    @initialize(names=st.sampled_from(FLEETS), size=st.sampled_from([2, 3, 3]))
    def appear(self, names: tuple[str, ...], size: int) -> None:
        """Pods of several roles."""
        self.engines = {name: Engine(size=size) for name in names}
        for name in names:
            self.appear_one(name, told=size)
        self.apply(BodyStarted, request_id="of somebody before: bodies are looked at")
        self.report()

    def appear_one(self, name: str, *, told: int = SLOTS) -> None:
        """Discovery finds a pod, and says how many slots it has."""
        self.addresses[name] = f"10.0.0.1:{8000 + self.count}"
        if told > self.engines[name].size:
            self.excused[name] = "its engine has fewer slots than the picker was told"
        self.apply(PodAppeared, pod=self.described(name, told=told))

    def described(self, name: str, *, told: int) -> Pod:
        """A pod as discovery has it."""
        limits = PodLimits(max_loras=told, max_cpu_loras=8, max_queue=32)
        return Pod(
            name=name,
            address=self.addresses[name],
            role=self.roles[name],
            engine=ENGINES.get(name, ServerEngine.VLLM),
            limits=limits,
        )

    def apply(self, kind: type[Event], **values: Any) -> None:
        """One event, and what follows from it."""
        self.count += 1
        self.now += MOMENT
        self.counted_on = self.believed()
        before = sum(self.fleet.state.tally.reserved_lost.values())
        effects = self.fleet.apply(kind(t=self.now, id=self.count, **values), self.now)
        said = [each.facts for each in effects if isinstance(each, Note) and each.kind == "reserved_lost"]
        self.said_lost += [(str(facts["pod"]), str(facts["adapter"])) for facts in said]
        assert sum(self.fleet.state.tally.reserved_lost.values()) == before + len(said)
        for facts in said:
            # A fleet that is not certain may take for lost what its pod has still, never the other way.
            kept = facts["adapter"] in self.engines[str(facts["pod"])].slots
            late = (facts["pod"], facts["adapter"]) in self.loading_late.values()
            assert kept or late or facts["pod"] in self.excused, f"{facts}, by {kind.__name__}"
        for effect in effects:
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
        engine, name = self.engines[command.pod], told.adapter
        if isinstance(command, Unload):
            assert name not in self.reserved(command.pod), f"{command.pod} is to forget {name}"
        if self.failing == "fails":
            return
        if isinstance(command, Unload):
            engine.names.pop(name, None)
            if command.pod in ENGINES and not engine.running.get(name):
                engine.slots.pop(name, None)
        else:
            engine.names[name] = None
            if isinstance(command, Touch) or command.pod not in ENGINES:
                self.use(command.pod, name)

    def reserved(self, pod: str) -> list[str]:
        """Adapters whose requests are prefilled elsewhere now, and come to this pod, or wait for a seat there."""
        coming = [each.adapter for each in self.prefilling.values() if each.decode == pod]
        return coming + [
            adapter
            for request_id, (where, adapter) in self.unseated.items()
            if where == pod and request_id not in self.loading_late
        ]

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
        engine = self.engines[pod]
        victim = engine.use(adapter)
        self.victims += victim is not None
        if victim is None or (pod, victim) not in self.counted_on or victim not in self.reserved(pod):
            return
        known = pod in self.excused or (pod, adapter) in self.loading_late.values()
        assert known, f"{pod}: {adapter} throws out {victim}, whose request is being prefilled"
        self.lost.append((pod, victim))

    def report(self) -> None:
        """Every pod says that it is well, and some what they have."""
        for name, engine in self.engines.items():
            loaded = tuple(LoadedAdapter(name=each, on_gpu=True) for each in engine.slots) if engine.lists else None
            report = PodReport(
                waiting=0,
                running=0,
                registered=tuple(engine.names),
                loaded=loaded,
                max_loras=engine.size,
                memory_pressure=engine.pressure,
            )
            self.apply(PodReported, pod=name, report=report)
            home = self.fleet.state.residency.home(self.fleet.state.columns.row_of[name])
            assert home.shadow.gpu_slots == engine.size, "the engine's own word counts"
            if loaded is not None:
                self.lists_are_believed(name)
            self.may_be_sure_again(name)

    def lists_are_believed(self, name: str) -> None:
        """What was lost on a pod that lists its adapters has been said by now, unless it was no loss any more.

        One that the pod was told to bring in, and has not answered, may be on its way: no list says otherwise.
        """
        asked = [(told.command.pod, told.adapter) for told in self.told]
        for pod, adapter in self.lost:
            gone = (pod, adapter) in self.counted_on and adapter not in self.engines[pod].slots
            if pod == name and gone and (pod, adapter) not in asked:
                assert (pod, adapter) in self.said_lost, f"{pod}: nobody says that {adapter} lost its reserved slot"
        self.lost = [each for each in self.lost if each[0] != name]
        self.said_lost = [each for each in self.said_lost if each[0] != name]

    def may_be_sure_again(self, name: str) -> None:
        """From here on nothing is excused on a pod that nobody waits in, and of which the fleet knows what it holds."""
        engine = self.engines[name]
        state = self.fleet.state
        shadow = state.residency.home(state.columns.row_of[name]).shadow
        if name in self.excused and not engine.waiting and not shadow.deferred and self.admits:
            known = [each for each in shadow.gpu if each not in shadow.doubtful]
            held = [*engine.slots]
            # The fleet has the same order of those that it counts on.
            if known == [each for each in held if each in known] and held[len(held) - len(known) :] == known:
                del self.excused[name]

    @rule(name=st.sampled_from(NAMES), long=st.booleans())
    def arrive(self, name: str, long: bool) -> None:
        """A request comes; a long prompt is prefilled elsewhere, if anywhere."""
        request = Request(id=f"r{self.count}", model=name, prompt_tokens=2000 if long else 20, stream=True)
        self.apply(RequestArrived, request=request)

    @rule(names=st.permutations(NAMES), calm=st.sampled_from([True, True, False]))
    def crowd(self, names: list[str], calm: bool) -> None:
        """Some come at a time: one that is prefilled elsewhere, and others who want slots where it is decoded."""
        if calm:
            self.calm()
        for name, long in zip(names, (True, False, True), strict=False):
            self.arrive(name, long)

    @rule(names=st.permutations(NAMES), count=st.integers(2, 4), answers=st.booleans())
    def served(self, names: list[str], count: int, answers: bool) -> None:
        """Some short requests are served at once: slots are taken, and idle."""
        for name in names[:count]:
            while answers and self.told:
                self.answer(self.told[0])
            request_id = f"r{self.count}"
            self.arrive(name, long=False)
            if request_id in self.running:
                self.finish(request_id)

    @precondition(lambda self: self.prefilling)
    @rule(data=st.data(), ok=st.booleans())
    def prefilled(self, data: st.DataObject, ok: bool) -> None:
        """A prefill ends, well or badly; the pod that decodes has the request."""
        request_id = data.draw(st.sampled_from(sorted(self.prefilling)))
        sent = self.prefilling.pop(request_id)
        self.leave(sent.prefill, sent.adapter)
        self.unseated[request_id] = (sent.decode, sent.adapter)
        if (sent.decode, sent.adapter) not in self.believed():
            self.loading_late[request_id] = (sent.decode, sent.adapter)
        self.apply(PrefillEnded, request_id=request_id, ok=ok)
        self.apply(ResponseStarted, request_id=request_id, status=200)

    @precondition(lambda self: self.unseated)
    @rule(data=st.data(), ends=st.booleans())
    def seated(self, data: st.DataObject, ends: bool) -> None:
        """The engine gives a request its seat, and its answer begins; or it fails before."""
        request_id = data.draw(st.sampled_from(sorted(self.unseated)))
        pod, adapter = self.unseated.pop(request_id)
        if ends:
            self.loading_late.pop(request_id, None)
            self.apply(RequestEnded, request_id=request_id, outcome=Outcome.FAILED)
            return
        self.come(pod, request_id, adapter=adapter)
        self.loading_late.pop(request_id, None)
        self.apply(BodyStarted, request_id=request_id)
        state = self.fleet.state
        home = state.residency.home(state.columns.row_of[pod])
        assert home.busy(adapter), f"{pod} runs {adapter}, and the picker has not heard it"

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
        self.finish(data.draw(st.sampled_from(sorted(self.running))))

    @precondition(lambda self: len(self.running) > 1)
    @rule(data=st.data(), apart=st.sampled_from([0.0, 0.02]))
    def answered_together(self, data: st.DataObject, apart: float) -> None:
        """Some end in one step of their engines, and the picker hears of them within its margin, in some order."""
        ended = data.draw(st.permutations([*self.running]))[:4]
        for request_id in ended:
            self.leave(*self.running.pop(request_id))
        for request_id in data.draw(st.permutations(ended)):
            self.apply(ResponseStarted, request_id=request_id, status=200)
            self.apply(RequestEnded, request_id=request_id, outcome=Outcome.SERVED, status=200)
            self.now += apart

    def finish(self, request_id: str) -> None:
        """A request is answered."""
        pod, adapter = self.running.pop(request_id)
        self.leave(pod, adapter)
        self.apply(ResponseStarted, request_id=request_id, status=200)
        self.apply(RequestEnded, request_id=request_id, outcome=Outcome.SERVED, status=200)

    def leave(self, pod: str, adapter: str) -> None:
        """One request less; a slot may be idle now, for who waits."""
        if pod == GONE:
            return
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
        self.answer(self.told[data.draw(st.integers(0, len(self.told) - 1))])

    def answer(self, told: Told) -> None:
        """The picker hears what came of a command."""
        self.told.remove(told)
        kind, values = told.answer()
        self.apply(kind, **values)

    @precondition(lambda self: self.prefilling)
    @rule(names=st.permutations(NAMES), answers=st.booleans())
    def press(self, names: list[str], answers: bool) -> None:
        """During a prefill all others end, and every adapter in turn is asked for, for a moment."""
        if answers:
            self.failing = ""
        for request_id in [*self.running]:
            self.finish(request_id)
        self.served(names, 4, answers)

    @rule(what=st.sampled_from(["fails", "lies", "mend", "mend", "fallback", "restart"]), data=st.data())
    def trouble(self, what: str, data: st.DataObject) -> None:
        """Pods do not do what they are told from now on, or do again; or do not answer; or are lost."""
        if what in ("fails", "lies", "mend"):
            self.failing = "" if what == "mend" else what
        elif what == "fallback":
            self.fallback(data)
        else:
            pod = data.draw(st.sampled_from(sorted(self.engines)))
            self.restart(
                pod,
                size=data.draw(st.integers(2, 3)),
                told=data.draw(st.integers(2, 4)),
                works=data.draw(st.booleans()),
            )

    @precondition(lambda self: any(sent.prefill != GONE for sent in self.prefilling.values()))
    @rule(data=st.data(), size=st.integers(2, 3))
    def prefiller_leaves(self, data: st.DataObject, size: int) -> None:
        """A pod that prefills is in the list no more, and another one of its name is; the first one works on."""
        pods = {sent.prefill: None for sent in self.prefilling.values() if sent.prefill != GONE}
        self.restart(data.draw(st.sampled_from(sorted(pods))), size=size, told=size, works=True)

    @rule(what=st.sampled_from(CHANGES), data=st.data())
    def changes(self, what: str, data: st.DataObject) -> None:
        """Discovery says something else of a pod, a pod is short of memory, others use it, settings change."""
        name = data.draw(st.sampled_from(sorted(self.engines)))
        engine = self.engines[name]
        match what:
            case "role":
                self.roles[name] = data.draw(st.sampled_from([*Role]))
                self.apply(PodChanged, pod=self.described(name, told=data.draw(st.integers(1, 4))))
            case "limits":
                self.apply(PodChanged, pod=self.described(name, told=data.draw(st.integers(1, 4))))
            case "drain":
                self.apply(PodDraining, pod=name)
            case "stay":
                self.apply(PodAppeared, pod=self.described(name, told=SLOTS))
            case "pressure":
                engine.pressure = data.draw(st.sampled_from([0.0, 0.86, 0.92, 0.99]))
                self.report()
            case "lists":
                engine.lists = not engine.lists
            case "others":
                self.excused[name] = "others use it"
                self.use(name, data.draw(st.sampled_from(NAMES)))
            case "retire":
                self.apply(AdapterRetired, adapter=data.draw(st.sampled_from(NAMES)))
            case "declare":
                adapter = data.draw(st.sampled_from(SETTINGS.adapters))
                self.apply(AdapterDeclared, adapter=adapter)
            case _:
                self.configure(data.draw(st.sampled_from(CONFIGURED)))

    def calm(self) -> None:
        """All is as it should be, so that requests are split."""
        if self.fleet.state.settings != SETTINGS:
            self.configure(SETTINGS)
        for adapter in SETTINGS.adapters:
            if adapter.name not in self.fleet.state.adapters:
                self.apply(AdapterDeclared, adapter=adapter)
        for name, engine in self.engines.items():
            row = self.fleet.state.columns.row_of[name]
            engine.pressure = 0.0
            if self.roles[name] is not ROLES[name] or self.fleet.state.loads[row].draining:
                self.roles[name] = ROLES[name]
                self.apply(PodAppeared, pod=self.described(name, told=SLOTS))
        self.report()

    def configure(self, settings: Settings) -> None:
        """Other settings are in force."""
        if not admits(settings):
            self.excused.update(dict.fromkeys(self.engines, "settings leave admission to the pods"))
        self.admits = admits(settings)
        self.apply(ConfigChanged, settings=settings)

    def fallback(self, data: st.DataObject) -> None:
        """The pod that was to decode does not answer: another one has the request, and it is prefilled for that one."""
        ways = sorted((request_id, pod) for request_id, sent in self.prefilling.items() for pod in sent.others)
        if not ways:
            return
        request_id, pod = data.draw(st.sampled_from(ways))
        sent = self.prefilling.pop(request_id)
        self.excused[pod] = "Envoy sent it a request"
        if pod == sent.prefill:
            self.leave(sent.prefill, sent.adapter)
            self.come(pod, request_id, adapter=sent.adapter)
        else:
            self.prefilling[request_id] = sent._replace(decode=pod, others=())
        self.apply(RequestDispatched, request_id=request_id, pod=pod)

    def restart(self, name: str, *, size: int, told: int, works: bool) -> None:
        """A pod goes, with all that it has, and another one of its name comes, with other sizes.

        What it was to prefill its own pods do, and say so; or it `works` on, as it is only in the list no more.
        """
        self.told = [each for each in self.told if each.command.pod != name]
        self.apply(PodGone, pod=name)
        for request_id, sent in [*self.prefilling.items()]:
            if sent.decode == name:
                del self.prefilling[request_id]
                self.apply(RequestEnded, request_id=request_id, outcome=Outcome.FAILED)
                if sent.prefill != name:
                    self.leave(sent.prefill, sent.adapter)
            elif sent.prefill == name and works:
                self.prefilling[request_id] = sent._replace(prefill=GONE)
            elif sent.prefill == name:
                del self.prefilling[request_id]
                self.come(sent.decode, request_id, adapter=sent.adapter)
                self.apply(PrefillEnded, request_id=request_id, ok=False)
                self.apply(BodyStarted, request_id=request_id)
        for there in (self.running, self.unseated):
            for request_id, (pod, _) in [*there.items()]:
                if pod == name:
                    del there[request_id]
                    self.apply(RequestEnded, request_id=request_id, outcome=Outcome.FAILED)
        self.engines[name] = Engine(size=size)
        self.excused.pop(name, None)
        self.lost = [each for each in self.lost if each[0] != name]
        if not self.admits:
            self.excused[name] = "settings leave admission to the pods"
        self.appear_one(name, told=told)
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
                self.apply(UnloadAsked, adapter=name, pods=data.draw(st.sampled_from([(), *((pod,) for pod in pods)])))
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
        for request_id, (pod, adapter) in self.unseated.items():
            kept = adapter in state.residency.home(state.columns.row_of[pod]).reserved
            assert kept or request_id in self.loading_late


ReservedSlots.TestCase.settings = settings(
    max_examples=40, stateful_step_count=60, deadline=None, phases=[Phase.generate]
)
test_reserved_slots_are_no_victims = ReservedSlots.TestCase
