"""Arbitrary events in any order: invariants hold after each, every request is answered once, and nothing is left.

And the same events give the same effects, byte for byte, whatever order Python gives to sets of strings.
"""

import os
import subprocess
import sys
from random import Random

import msgspec
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from lorapick.model import events
from lorapick.model.adapters import Adapter, PinSpec
from lorapick.model.effects import Clear, Dispatch, Hold, Load, Raise, Register, Reject, Solve, Touch, Unload
from lorapick.model.placement import AdapterFacts, DemandBin, Why
from lorapick.model.pods import PodReport, Role
from lorapick.model.requests import Outcome, Request
from lorapick.model.tiers import Tier
from lorapick.testing import strategies as given
from lorapick.testing.playbook import Playbook, plain_pod

WALL = 1_760_004_000.0
"""Unix time at which the machine begins."""

SIDES = {"pod-0": Role.PREFILL, "pod-1": Role.DECODE, "pod-2": Role.DECODE, "pod-3": Role.BOTH}
"""The first pods of every other fleet: requests are split there from the start."""
SMALL = {"max_loras": 2, "max_num_seqs": 3, "max_queue": 3}


class FleetMachine(RuleBasedStateMachine):
    """`Playbook` checks the fleet's invariants after each event; this machine checks the answers."""

    @initialize(
        settings=given.settings(),
        seed=st.integers(0, 3),
        data=st.data(),
        pods=st.sampled_from([3, 4, 1, 0]),
        divided=st.booleans(),
    )
    def begin(self, settings, seed, data, pods, divided):
        first = [data.draw(given.pods(st.just(name))) for name in given.POD_NAMES[:pods]]
        if divided:
            first = [plain_pod(name, base_model=given.BASES[0], **SMALL, role=role) for name, role in SIDES.items()]
        self.book = Playbook(pods=first, adapters=given.ADAPTER_NAMES[:2], settings=settings, seed=seed)
        self.count = 0
        self.alerts = {}
        self.held = {}
        self.open = {}
        self.commands = {}
        self.touches = {}
        self.problems = []
        self.scrape()

    def do(self, kind, **fields):
        """Apply an event and take note of the answers; each held request gets one answer, nobody else does."""
        state = self.book.fleet.state
        before = {state.residency.home(row).name: {*state.residency.home(row).in_use} for row in state.loads}
        slots = {state.residency.home(row).name: load.limits.max_loras for row, load in state.loads.items()}
        if kind is events.PodReported and fields["pod"] in before:
            # What the pod itself says is running there needs no slot of its own from now on.
            before[fields["pod"]].update(fields["report"].in_flight_adapters or ())
        self.book.apply(kind, **fields)
        self.note()
        assert state.placement.next_tick > self.book.now, "the controller asks for a tick that is over"
        if kind is not events.RequestDispatched:
            self.budgets_are_kept(before, slots)

    def budgets_are_kept(self, before, slots):
        """No pick brought one adapter too many into use, or began one load too many."""
        state = self.book.fleet.state
        if not state.policy.coalesces:
            return
        sent = [effect for effect in self.book.effects if isinstance(effect, Dispatch)]
        for effect in sent:
            pod, name = effect.target.pod, effect.pick.adapter
            if name is None or pod not in state.columns.row_of:
                continue
            row = state.columns.row_of[pod]
            load, home = state.loads[row], state.residency.home(row)
            if state.settings.admission.slot_budget and name not in before.get(pod, ()):
                # What was due before the event was decided with the slots that the pod had then.
                most = max(load.limits.max_loras, slots.get(pod, 0))
                assert len(home.in_use) <= most, f"{pod} has no slot for {name}"
            if effect.pick.tier < Tier.LOADING:
                assert home.loading <= state.settings.budgets.loads_at_once, f"{pod} loads already"
                told = state.placement.commands.under_way or state.placement.warming  # who is idle there harms nobody
                if len(sent) == 1 and load.in_flight > 1 and home.loading == 1 and not told:
                    most = state.gates.most_loading + (effect.prefill is not None)  # both sides of a pair load at once
                    assert state.residency.rows_loading <= most, f"{pod} is one too many that load"

    def note(self):
        for effect in self.book.effects:
            match effect:
                case Hold():
                    assert effect.until >= self.book.now
                    self.held[effect.request_id] = effect.until
                case Dispatch():
                    del self.held[effect.request_id]
                    self.open[effect.request_id] = effect.target.pod
                case Reject():
                    del self.held[effect.request_id]
                case Raise():
                    assert effect.alert not in self.alerts and effect.facts
                    self.alerts[effect.alert] = self.book.now
                case Clear():
                    assert effect.facts == {"seconds": self.book.now - self.alerts.pop(effect.alert)}
                case Load(why=why) if why in [*Why]:
                    self.commanded(effect)
                case Register() | Touch():
                    self.commanded(effect)
                case Solve():
                    self.problems.append(effect.problem)
                case Load():
                    state, (name,) = self.book.fleet.state, effect.adapters
                    row = state.columns.row_of[effect.pod]
                    assert name in state.unloads.owed(row), f"{effect.pod} was never told to unload {name}"
                    assert not state.residency.registry.accepts(row, name), f"{effect.pod} has {name}"
                    assert not state.loads[row].draining
                    self.commands[effect.pod] = effect
                case Unload():
                    self.commands[effect.pod] = effect
                    state = self.book.fleet.state
                    home = state.residency.home(state.columns.row_of[effect.pod])
                    cell = home.cells.get(effect.adapter)
                    needed = cell is not None and (cell.in_use or cell.pinned)
                    assert not needed, f"{effect.adapter} is needed on {effect.pod}"
                    assert not state.queues.wanted(effect.adapter), f"somebody waits for {effect.adapter}"

    def commanded(self, effect):
        """One command of the controller at a time per pod, and a touch beside it."""
        state = self.book.fleet.state
        assert effect.pod in state.columns.row_of
        row = state.columns.row_of[effect.pod]
        assert not state.unloads.busy(row, now=state.now) or isinstance(effect, Touch)
        # A pod that leaves still decodes what is being prefilled for it.
        awaited = isinstance(effect, Touch) and effect.adapter in state.residency.home(row).reserved
        assert awaited or not state.loads[row].draining
        if isinstance(effect, Touch):
            self.touches[effect.pod] = effect
        else:
            self.commands[effect.pod] = effect

    # -- pods

    @rule(pod=given.pods())
    def appear(self, pod):
        self.do(events.PodAppeared, pod=pod)

    @rule()
    def scrape(self):
        """All pods answer, sanely."""
        for pod in [*self.book.fleet.state.columns.row_of]:
            report = PodReport(waiting=0, running=0, registered=given.ADAPTER_NAMES[:4])
            self.do(events.PodReported, pod=pod, report=report)

    @rule(pod=given.pods())
    def change(self, pod):
        self.do(events.PodChanged, pod=pod)

    @rule(pod=given.pod_names, kind=st.sampled_from([events.PodDraining, events.PodGone, events.KvCleared]))
    def leave(self, pod, kind):
        self.do(kind, pod=pod)

    @rule(
        pod=given.pod_names,
        report=given.reports(),
        age=st.none() | st.floats(0, 2),
        every=st.none() | st.floats(0, 9),
    )
    def report(self, pod, report, age, every):
        since = None if age is None else self.book.now - age
        self.do(events.PodReported, pod=pod, report=report, since=since, every=every)

    @rule(pod=given.pod_names, why=given.silences)
    def silent(self, pod, why):
        self.do(events.PodSilent, pod=pod, why=why)

    @rule(pod=given.pod_names, utilization=st.floats(), blocks=st.lists(st.integers(0, 8), max_size=4).map(tuple))
    def gauge(self, pod, utilization, blocks):
        self.do(events.GpuReported, pod=pod, utilization=utilization)
        self.do(events.KvStored, pod=pod, adapter=None, blocks=blocks)
        self.do(events.KvRemoved, pod=pod, blocks=blocks[:1])

    # -- requests

    @rule(data=st.data(), times=st.sampled_from([1, 2, 4, 9]))
    def arrive(self, data, times):
        request = data.draw(given.requests("template", now=self.book.now))
        for _ in range(times):
            self.count += 1
            request_id = f"r{self.count}"
            self.held[request_id] = float("inf")
            values = {name: getattr(request, name) for name in request.__struct_fields__}
            self.do(events.RequestArrived, request=type(request)(**{**values, "id": request_id}))
            assert self.held.get(request_id) != float("inf"), f"{request_id} got no answer"

    @rule(adapter=st.sampled_from(given.ADAPTER_NAMES[:3]), seconds=st.sampled_from([0.0, 0.3]), tokens=given.prompts)
    def burst(self, adapter, seconds, tokens):
        """Several ask for one adapter; it is served, or not."""
        for _ in range(3):
            self.count += 1
            request = Request(id=f"r{self.count}", model=adapter, prompt_tokens=tokens)
            self.held[request.id] = float("inf")
            self.do(events.RequestArrived, request=request)
        self.pass_time(seconds)

    def some(self, data, among):
        return data.draw(st.sampled_from(sorted(among)))

    @precondition(lambda self: self.open)
    @rule(data=st.data(), pod=given.pod_names)
    def fallback(self, data, pod):
        self.do(events.RequestDispatched, request_id=self.some(data, self.open), pod=pod)

    @precondition(lambda self: self.open)
    @rule(data=st.data(), status=st.sampled_from([200, 200, 404, 500]))
    def start(self, data, status):
        self.do(events.ResponseStarted, request_id=self.some(data, self.open), status=status)

    @precondition(lambda self: self.legs())
    @rule(data=st.data(), ok=st.sampled_from([True, True, False]), twice=st.booleans(), answers=st.booleans())
    def prefilled(self, data, ok, twice, answers):
        """A prefill ends, well or badly, as some say twice; the pod that decodes begins to answer, or waits."""
        request_id = self.some(data, self.legs())
        why = None if ok else data.draw(st.sampled_from([None, "status_500"]))
        self.do(events.PrefillEnded, request_id=request_id, ok=ok, why=why)
        flight = self.book.fleet.state.flights[request_id]
        assert flight.leg is None, f"{request_id} is still being prefilled"
        if twice:
            self.do(events.PrefillEnded, request_id=request_id, ok=not ok)
        if answers:
            self.do(events.ResponseStarted, request_id=request_id, status=200)
            self.do(events.BodyStarted, request_id=request_id)

    def legs(self):
        return [name for name, flight in self.book.fleet.state.flights.items() if flight.leg is not None]

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def body(self, data):
        """The first bytes of an answer."""
        self.do(events.BodyStarted, request_id=self.some(data, self.open))

    @precondition(lambda self: self.open)
    @rule(data=st.data(), outcome=given.endings)
    def end(self, data, outcome):
        request_id = self.some(data, self.open)
        del self.open[request_id]
        self.do(events.RequestEnded, request_id=request_id, outcome=outcome)

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def abandon(self, data):
        request_id = self.some(data, self.held)
        self.do(events.RequestEnded, request_id=request_id, outcome=Outcome.ABANDONED)
        # A load that ended at this very moment may have dispatched it first; then the end took it off its pod.
        self.held.pop(request_id, None)
        self.open.pop(request_id, None)

    @rule()
    def stranger(self):
        """Requests that nobody knows, and one that a transport refused."""
        self.do(events.RequestDispatched, request_id="nobody", pod=given.POD_NAMES[0])
        self.do(events.ResponseStarted, request_id="nobody", status=200)
        self.do(events.PrefillEnded, request_id="nobody", ok=True)
        self.do(events.RequestEnded, request_id="nobody", outcome=Outcome.SERVED)
        self.do(events.RequestRefused, reason="body_invalid", status=400)

    # -- loads and intent

    @rule(pod=given.pod_names, adapter=given.adapter_names, tier=given.tiers, kind=st.integers(0, 5))
    def load(self, pod, adapter, tier, kind):
        by = events.By.CONTROLLER
        match kind:
            case 0:
                self.do(events.LoadStarted, pod=pod, adapters=(adapter,), by=by)
            case 1:
                self.do(events.LoadSucceeded, pod=pod, adapter=adapter, by=by)
            case 2:
                self.do(events.LoadFailed, pod=pod, adapter=adapter, by=by, why="no room")
            case 3:
                self.do(events.Evicted, pod=pod, adapter=adapter, tier=tier)
            case 4:
                self.do(events.UnloadFailed, pod=pod, adapter=adapter, why="HTTP 500")
            case _:
                self.do(events.Unloaded, pod=pod, adapter=adapter)

    @precondition(lambda self: self.commands)
    @rule(data=st.data(), done=given.rarely(st.just(False), otherwise=True))
    def obey(self, data, done):
        """A pod does what it was told, or says that it does not."""
        self.answer(data.draw(st.sampled_from(sorted(self.commands))), done=done)

    def answer(self, pod, *, done):
        match self.commands.pop(pod):
            case Load(adapters=(name,)) if done:
                self.do(events.LoadSucceeded, pod=pod, adapter=name, by=events.By.CONTROLLER)
            case Load(adapters=(name,)):
                self.do(events.LoadFailed, pod=pod, adapter=name, by=events.By.CONTROLLER, why="HTTP 500")
            case Register(adapter=name) if done:
                self.do(events.Registered, pod=pod, adapter=name)
            case Register(adapter=name):
                self.do(events.RegisterFailed, pod=pod, adapter=name, why="HTTP 500")
            case Unload(adapter=name) if done:
                self.do(events.Unloaded, pod=pod, adapter=name)
            case Unload(adapter=name):
                self.do(events.UnloadFailed, pod=pod, adapter=name, why="HTTP 500")

    @precondition(lambda self: self.touches)
    @rule(data=st.data(), done=given.rarely(st.just(False), otherwise=True))
    def touch(self, data, done):
        effect = self.touches.pop(data.draw(st.sampled_from(sorted(self.touches))))
        if done:
            self.do(events.Touched, pod=effect.pod, adapter=effect.adapter)
        else:
            self.do(events.TouchFailed, pod=effect.pod, adapter=effect.adapter, why="HTTP 500")

    @rule(
        adapter=given.adapter_names,
        pods=st.lists(given.pod_names, max_size=2, unique=True),
        lasts=st.none() | st.just(5.0),
        kind=st.integers(0, 3),
    )
    def order(self, adapter, pods, lasts, kind):
        if kind == 0:
            self.do(events.UnloadAsked, adapter=adapter, pods=tuple(pods))
        elif kind == 1 and len(pods) == 2:
            self.do(events.MoveAsked, adapter=adapter, source=pods[0], target=pods[1])
        else:
            self.do(events.LoadAsked, adapter=adapter, pods=tuple(pods), lasts=lasts)

    @rule(adapter=given.adapter_names, kind=st.integers(0, 3), problem=given.rarely(st.just("changed"), otherwise=None))
    def hear(self, adapter, kind, problem):
        """What happens outside: events, looks at files, what was asked for before."""
        if kind < 2:
            self.do(events.TriggerFired, name=("upload", "nobody-listens")[kind], attributes={"adapter": adapter})
        elif kind == 2:
            self.do(events.AdapterChecked, adapter=adapter, problem=problem, facts=AdapterFacts(rank=16))
        else:
            start = (WALL + self.book.now) // 300 * 300
            bins = tuple(DemandBin(start=start - 300 * back, adapter=adapter, count=500) for back in (2, 1))
            self.do(events.DemandRecalled, bins=bins)

    @precondition(lambda self: self.problems)
    @rule(data=st.data())
    def solve(self, data):
        """A solver answers, with anything."""
        problem = self.problems.pop()
        pods = st.lists(given.pod_names, max_size=2, unique=True).map(tuple)
        plan = data.draw(st.dictionaries(given.adapter_names, pods, max_size=3))
        self.do(events.PlacementComputed, plan=plan, version=problem.version)

    @precondition(lambda self: self.relieving())
    @rule(data=st.data(), use=st.booleans(), ease=st.booleans())
    def squeeze(self, data, use, ease):
        """A pod whose unload frees is used, becomes short of memory, and does what it is told; or has enough again."""
        pod = data.draw(st.sampled_from(self.relieving()))
        if use:
            self.do(events.LoadSucceeded, pod=pod, adapter=given.ADAPTER_NAMES[0], by=events.By.ENGINE)
        self.press(pod, 0.92)
        if ease:
            if pod in self.commands:
                self.answer(pod, done=True)
            self.press(pod, 0.5)

    def relieving(self):
        state = self.book.fleet.state
        return [pod.name for row, pod in state.columns.live() if state.residency.home(row).caches.relieves]

    def press(self, pod, pressure):
        self.do(events.PodReported, pod=pod, report=PodReport(waiting=0, running=0, memory_pressure=pressure))

    @rule(adapter=given.adapter_names, pin=st.none() | given.pins())
    def pin(self, adapter, pin):
        if pin is None:
            self.do(events.PinCleared, adapter=adapter)
        else:
            self.do(events.PinSet, adapter=adapter, pin=pin)

    @rule(adapter=given.adapters(), kind=st.sampled_from([events.AdapterDeclared, events.AdapterChanged]))
    def declare(self, adapter, kind):
        self.do(kind, adapter=adapter)

    @rule(adapter=given.adapter_names, declare=given.rarely(st.just(False), otherwise=True))
    def retire(self, adapter, declare):
        self.do(events.AdapterRetired, adapter=adapter)
        if declare:
            self.do(events.AdapterDeclared, adapter=Adapter(name=adapter))

    @rule(settings=given.settings())
    def configure(self, settings):
        self.do(events.ConfigChanged, settings=settings)

    # -- time

    @rule(seconds=st.sampled_from([0.0, 0.05, 0.3, 1.0, 1.0, 7.0]), scrapes=st.booleans())
    def pass_time(self, seconds, scrapes=False):
        """As a driver would: a Ticked whenever the core wants one; and perhaps a scrape at the end."""
        end = self.book.now + seconds
        while (due := self.book.fleet.next_wakeup()) is not None and due <= end:
            self.book.now = max(self.book.now, due)
            self.do(events.Ticked, wall=WALL + self.book.now)
        self.book.now = end
        self.do(events.Ticked, wall=WALL + self.book.now)
        if scrapes:
            self.scrape()

    @rule(seconds=st.sampled_from([0.05, 0.3, 1.0, 7.0]))
    def oversleep(self, seconds):
        """A driver that was busy: no Ticked in between."""
        self.book.now += seconds

    @invariant()
    def woken_in_time(self):
        if not hasattr(self, "book"):
            return
        state = self.book.fleet.state
        waiting = {name for name in state.flights if name in state.holds or name in state.queues}
        assert {*self.held} == waiting
        assert state.waiting == len(waiting)
        due = self.book.fleet.next_wakeup()
        assert due is not None or not self.held
        assert not self.held or due <= min(self.held.values())

    @invariant()
    def explains(self):
        """The latest decision can be explained, and its winner is marked."""
        if not hasattr(self, "book"):
            return
        journal = self.book.fleet.state.journal
        for decision in journal.latest(1):
            explanation = journal.explain(decision.pick.request_id)
            winners = [verdict.pod for verdict in explanation.verdicts if verdict.won]
            assert winners == ([decision.pick.pod] if decision.pick.pod is not None else [])

    def teardown(self):
        """End everything: nothing is held, nothing is in flight, outcomes add up to arrivals."""
        if not hasattr(self, "book"):
            return
        self.pass_time(100.0)
        assert not self.held
        for request_id in sorted(self.open):
            self.do(events.RequestEnded, request_id=request_id, outcome=Outcome.SERVED)
        state = self.book.fleet.state
        assert not state.flights and not state.waiting and not len(state.turns)
        assert not any(state.legs.queued.values()), "somebody is still being prefilled"
        assert not any(state.residency.home(row).reserved for row in state.loads), "a slot is still reserved"
        assert all(load.in_flight == 0 for load in state.loads.values())
        assert sum(state.tally.outcomes.values()) == state.tally.arrivals
        # What looks back on ten minutes takes longer to end.
        self.pass_time(100.0)
        for _ in range(10 if state.alerts.standing else 0):
            self.book.now += 100.0
            self.do(events.Ticked, wall=WALL + self.book.now)
        assert not self.alerts and not state.alerts.standing


TestFleetMachine = FleetMachine.TestCase
TestFleetMachine.settings = hypothesis_settings(max_examples=40, stateful_step_count=40, deadline=None)


def recorded(seed, count):
    """Events of a busy small fleet: the kind of sequence an event log holds."""
    chance = Random(seed)
    adapters = [f"adapter-{index}" for index in range(12)]
    pods = [plain_pod(f"pod-{index}", max_num_seqs=3, max_queue=2, max_loras=3) for index in range(6)]
    book = Playbook(pods=pods, adapters=adapters, seed=5)
    book.apply(events.PinSet, adapter=adapters[5], pin=PinSpec(replicas=2))
    for number in range(count):
        book.now += chance.expovariate(50)
        pod = chance.choice(pods)
        open_ids = [flight.request.id for flight in book.fleet.state.flights.values()]
        match chance.randrange(12):
            case 0:
                names = tuple(chance.sample(adapters, k=3))
                report = PodReport(
                    waiting=chance.randrange(4),
                    running=chance.randrange(4),
                    in_flight_adapters=names,
                    registered=chance.choice([None, tuple(adapters)]),
                    gpu_utilization=chance.random(),
                    process_start=chance.choice([None, 1.0, 1.0, 2.0]),
                )
                book.apply(events.PodReported, pod=pod.name, report=report, since=book.now - 0.01)
            case 1 if len(book.fleet.state.columns.row_of) > 3:
                book.apply(events.PodGone, pod=pod.name)
            case 2:
                book.apply(events.PodAppeared, pod=pod)
            case 3:
                book.apply(events.Ticked)
            case 4 | 5 | 6 | 7 if open_ids:
                book.apply(events.RequestEnded, request_id=chance.choice(open_ids), outcome=Outcome.SERVED)
            case 8 if open_ids:
                book.apply(events.ResponseStarted, request_id=chance.choice(open_ids), status=200)
            case _:
                model = chance.choice([*adapters[:3], chance.choice([*adapters, "base", "nobody"])])
                blocks = tuple(chance.randrange(9) for _ in range(chance.randrange(4)))
                session = chance.choice([None, "s1", "s2"])
                request = Request(id=f"r{number}", model=model, blocks=blocks, session=session)
                book.apply(events.RequestArrived, request=request)
    twins(book)
    return book


def twins(book):
    """Two pods that nothing tells apart: one of them loses by lot."""
    for name in ("twin-1", "twin-2"):
        book.appear(plain_pod(name, base_model="twin"))
    book.now += 2.0
    book.apply(events.Ticked)
    book.arrive("twin")


REPLAY = """
import sys, msgspec
from lorapick.core.fleet import Fleet
from lorapick.model.events import AnyEvent
from lorapick.model.settings import Settings

settings, *lines = sys.stdin.buffer.read().splitlines()
fleet = Fleet(msgspec.json.decode(settings, type=Settings), seed=5)
for line in lines:
    event = msgspec.json.decode(line, type=AnyEvent)
    print(msgspec.json.encode(fleet.apply(event, event.t)).decode())
for decision in fleet.state.journal.latest(400):
    print(msgspec.json.encode(fleet.state.journal.explain(decision.pick.request_id)).decode())
"""


def replay(log, hash_seed):
    return subprocess.run(
        [sys.executable, "-c", REPLAY],
        input=log,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        stdout=subprocess.PIPE,
        check=True,
        timeout=60,
    ).stdout


def test_the_same_events_give_the_same_bytes():
    book = recorded(seed=6, count=1500)
    log = b"\n".join(msgspec.json.encode(value) for value in [book.settings, *book.events])
    first, second = replay(log, "1"), replay(log, "2")
    assert first == second
    assert first.splitlines()[: len(book.answers)] == [msgspec.json.encode(answer) for answer in book.answers]
    for kind in (
        b'"Dispatch"',
        b'"Hold"',
        b'"Reject"',
        b"load_ended",
        b"pod_restarted",
        b'"lost_tie"',
        b'"Load"',
    ):
        assert kind in first, f"the recording has no {kind.decode()}"
