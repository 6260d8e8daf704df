"""A slot that waits for its request's prefill elsewhere is never the victim of another load, whatever happens.

The engines are played here by a least-recently-used cache of a few lines, which knows only what it is sent.
"""

from collections import OrderedDict
from typing import Any, NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from lorapick.core.fleet import Fleet
from lorapick.model.adapters import Adapter
from lorapick.model.disaggregation import Decide, DisaggregationSettings
from lorapick.model.effects import Dispatch, Effect, Touch
from lorapick.model.events import (
    Event,
    PodAppeared,
    PodReported,
    PrefillEnded,
    RequestArrived,
    RequestEnded,
    ResponseStarted,
    Ticked,
    Touched,
)
from lorapick.model.picks import Pick
from lorapick.model.pods import Pod, PodLimits, PodReport, Role
from lorapick.model.requests import Outcome, Request, Target
from lorapick.model.settings import Settings

NAMES = [f"tenant-{number}" for number in range(7)]
ROLES = {"p-1": Role.PREFILL, "d-1": Role.DECODE, "b-1": Role.BOTH}
SLOTS = 3


class Engine:
    """Slots of one pod: the least recently used idle adapter makes room; who finds no idle one waits."""

    def __init__(self) -> None:
        self.slots: OrderedDict[str, None] = OrderedDict()
        self.running: dict[str, int] = {}
        self.waiting: list[str] = []

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


class ReservedSlots(RuleBasedStateMachine):
    """Requests come, are prefilled, decoded, and end, in any order."""

    def __init__(self) -> None:
        super().__init__()
        split = DisaggregationSettings(decide=Decide.TOKENS, uncached_tokens=500)
        self.fleet = Fleet(Settings(disaggregation=split, adapters=tuple(Adapter(name=each) for each in NAMES)), seed=3)
        self.now, self.count = 0.0, 0
        self.prefilling: dict[str, Sent] = {}
        self.running: dict[str, tuple[str, str]] = {}
        self.touched: list[Touch] = []
        self.victims = 0
        self.engines: dict[str, Engine] = {}

    @initialize(names=st.sampled_from([("p-1", "d-1"), ("p-1", "b-1"), ("p-1", "d-1", "b-1"), ("d-1", "b-1")]))
    def appear(self, names: tuple[str, ...]) -> None:
        """Pods of several roles."""
        self.engines = {name: Engine() for name in names}
        for name in names:
            limits = PodLimits(max_loras=SLOTS, max_cpu_loras=8, max_queue=32)
            pod = Pod(name=name, address=f"10.0.0.1:{8000 + self.count}", role=ROLES[name], limits=limits)
            self.apply(PodAppeared, pod=pod)
        self.report()

    def apply(self, kind: type[Event], **values: Any) -> None:
        """One event, and what follows from it."""
        self.count += 1
        for effect in self.fleet.apply(kind(t=self.now, id=self.count, **values), self.now):
            self.perform(effect)
        self.fleet.check()

    def perform(self, effect: Effect) -> None:
        """Send it to the engines."""
        match effect:
            case Dispatch(prefill=None, target=target, pick=Pick(adapter=str(adapter))):
                self.come(target.pod, effect.request_id, adapter=adapter)
            case Dispatch(prefill=Target(pod=first), target=target, pick=Pick(adapter=str(adapter))):
                self.prefilling[effect.request_id] = Sent(first, target.pod, adapter)
                self.use(first, adapter)
                self.engines[first].running[adapter] = self.engines[first].running.get(adapter, 0) + 1
            case Touch():
                self.use(effect.pod, effect.adapter)
                self.touched.append(effect)
            case _:
                pass

    def come(self, pod: str, request_id: str, *, adapter: str) -> None:
        """A request is at the pod that decodes it."""
        self.use(pod, adapter)
        self.engines[pod].running[adapter] = self.engines[pod].running.get(adapter, 0) + 1
        self.running[request_id] = (pod, adapter)

    def use(self, pod: str, adapter: str) -> None:
        """An engine uses an adapter; whom that throws out had no reservation."""
        reserved = [each.adapter for each in self.prefilling.values() if each.decode == pod]
        victim = self.engines[pod].use(adapter)
        self.victims += victim is not None
        assert victim not in reserved, f"{pod}: {adapter} throws out {victim}, whose request is being prefilled"

    def report(self) -> None:
        """Every pod says that it is well."""
        for name in self.engines:
            self.apply(PodReported, pod=name, report=PodReport(waiting=0, running=0))

    @rule(name=st.sampled_from(NAMES), long=st.booleans())
    def arrive(self, name: str, long: bool) -> None:
        """A request comes."""
        request = Request(id=f"r{self.count}", model=name, prompt_tokens=2000 if long else 20, stream=True)
        self.apply(RequestArrived, request=request)

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

    @precondition(lambda self: self.touched)
    @rule()
    def touch_answered(self) -> None:
        """A touch is answered."""
        touch = self.touched.pop(0)
        self.apply(Touched, pod=touch.pod, adapter=touch.adapter)

    @rule(seconds=st.sampled_from([0.001, 0.05, 0.3]))
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
