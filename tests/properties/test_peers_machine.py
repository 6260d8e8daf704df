"""Two pickers, one model of the store they share, and everything late, lost or out of order.

While the store answers in time nobody loads an adapter that the other has claimed; every request that waits goes on,
whatever becomes of the store; and in the end nothing is left of any claim.
"""

from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from lorapick.core.peers.listening import we_load
from lorapick.core.peers.saying import own_marks
from lorapick.model import events
from lorapick.model.effects import ClaimLoad, Dispatch, Hold, Reject, ReleaseClaim
from lorapick.model.pods import PodReport
from lorapick.model.settings import LoadTimes, PeersSettings, Settings
from lorapick.model.tiers import Tier
from lorapick.testing.playbook import Playbook, plain_pod

PODS = ("a", "b", "c")
NAMES = ("red", "green", "blue")
TTL = 10.0
PICKERS = st.integers(0, 1)


class Picker:
    """One fleet, what it wants from the store, and what the store has answered and it has not heard."""

    def __init__(self, name):
        peers = PeersSettings(redis="redis://store", id=name, claim_ttl=TTL)
        settings = Settings(peers=peers, load_times=LoadTimes(cpu=0.1, disk=0.7))
        self.name = name
        self.book = Playbook(pods=[plain_pod(pod) for pod in PODS], adapters=NAMES, settings=settings)
        self.up = False
        self.asked = []
        self.answers = []
        self.waiting = {}
        self.open = {}

    @property
    def state(self):
        return self.book.fleet.state

    @property
    def claims(self):
        return self.state.peers.claims


class PeersMachine(RuleBasedStateMachine):
    @initialize(faulty=st.booleans())
    def begin(self, faulty):
        self.faulty = faulty
        self.pickers = [Picker("one"), Picker("two")]
        self.store = {}
        self.up = True
        self.count = 0
        for picker in self.pickers:
            for pod in PODS:
                self.do(picker, events.PodReported, pod=pod, report=PodReport(waiting=0, running=0, registered=NAMES))
            self.reach(picker, up=True)

    # -- what happens

    def do(self, picker, kind, **fields):
        picker.book.apply(kind, **fields)
        for effect in picker.book.effects:
            match effect:
                case Hold():
                    picker.waiting[effect.request_id] = effect
                case Dispatch():
                    picker.waiting.pop(effect.request_id, None)
                    picker.open[effect.request_id] = effect
                    self.check_load(picker, effect)
                case Reject():
                    picker.waiting.pop(effect.request_id, None)
                case ClaimLoad() | ReleaseClaim():
                    if picker.up:
                        picker.asked.append(effect)

    def check_load(self, picker, effect):
        """A load begins: the other one has not begun one, if both could ask all the time."""
        if self.faulty or effect.pick.tier is None or effect.pick.tier >= Tier.LOADING:
            return
        other = next(each for each in self.pickers if each is not picker)
        name = effect.pick.adapter
        rows = other.state.residency.loading_rows(name)
        theirs = [row for row in rows if not other.state.residency.by_peer(row, name)]
        assert not theirs, f"{picker.name} loads {name} on {effect.target.pod}, and {other.name} loads it already"

    def reach(self, picker, *, up):
        picker.up = up
        if not up:
            picker.asked.clear()
            picker.answers.clear()
        self.do(picker, events.PeersReached, up=up, why="" if up else "gone")

    @rule(who=PICKERS, name=st.sampled_from(NAMES), crowd=st.integers(1, 4))
    def arrive(self, who, name, crowd):
        picker = self.pickers[who]
        for _ in range(crowd):
            self.count += 1
            request_id = f"q{self.count}"
            fields = {"model": name, "id": request_id}
            self.do(picker, events.RequestArrived, request=events.Request(**fields))

    @rule(who=PICKERS, index=st.integers(0, 50), outcome=st.sampled_from(["served", "failed", "abandoned"]))
    def end(self, who, index, outcome):
        picker = self.pickers[who]
        ids = [*picker.open, *picker.waiting]
        if ids:
            request_id = ids[index % len(ids)]
            held = request_id in picker.waiting
            picker.open.pop(request_id, None)
            picker.waiting.pop(request_id, None)
            outcome = "abandoned" if held else outcome
            if outcome == "failed" and not self.faulty:
                outcome = "served"  # a load that failed begins again elsewhere, and that is right
            self.do(
                picker,
                events.RequestEnded,
                request_id=request_id,
                outcome=events.Outcome(outcome),
                status=500 if outcome == "failed" else 200,
            )

    @rule(who=PICKERS)
    def store_works(self, who):
        """The store takes the oldest command of a picker."""
        picker = self.pickers[who]
        if not picker.asked or not self.up:
            return
        effect = picker.asked.pop(0)
        key = (effect.adapter, effect.side)
        held = self.store.get(key)
        if held is not None and held[2] <= picker.book.now:
            held = None
        if isinstance(effect, ReleaseClaim):
            if held is not None and held[0] == picker.name:
                del self.store[key]
            return
        if held is None or held[0] == picker.name:
            held = self.store[key] = (picker.name, effect.pod, picker.book.now + TTL)
        picker.answers.append((effect, held))

    @rule(who=PICKERS)
    def answer(self, who):
        """A picker hears the oldest answer."""
        picker = self.pickers[who]
        if picker.answers:
            effect, (owner, pod, _) = picker.answers.pop(0)
            self.do(picker, events.LoadClaimed, claim=effect.claim, adapter=effect.adapter, side=effect.side,
                    granted=owner == picker.name, owner=owner, pod=pod)  # fmt: skip

    @rule(who=PICKERS)
    def all_goes_well(self, who):
        """As it nearly always is: asked, and answered at once; then both tell their marks."""
        while self.up and self.pickers[who].asked:
            self.store_works(who)
        while self.pickers[who].answers:
            self.answer(who)

    @rule(who=PICKERS)
    def tell(self, who):
        """Marks of one picker reach the other."""
        picker, other = self.pickers[who], self.pickers[1 - who]
        marks = own_marks(picker.state)
        self.do(
            other, events.PeerReported, peer=picker.name, loads=marks.loads, in_flight=marks.in_flight, pins=marks.pins
        )

    @rule(seconds=st.sampled_from([0.001, 0.01, 0.06, 0.3, 0.8, 2.1]))
    def wait(self, seconds):
        """Time passes for both. Where nothing is faulty the store has answered before."""
        for who, _ in enumerate(self.pickers):
            if not self.faulty:
                self.all_goes_well(who)
                self.tell(who)
        end = self.pickers[0].book.now + seconds
        for picker in self.pickers:
            while (due := picker.book.fleet.next_wakeup()) is not None and due <= end:
                picker.book.now = max(picker.book.now, due)
                self.do(picker, events.Ticked)
            picker.book.now = end
            self.do(picker, events.Ticked)

    @precondition(lambda self: self.faulty)
    @rule(who=PICKERS)
    def lose_answers(self, who):
        """Some commands and answers never come."""
        picker = self.pickers[who]
        picker.asked.clear()
        picker.answers.clear()

    @precondition(lambda self: self.faulty)
    @rule(who=PICKERS)
    def lose_store(self, who):
        self.reach(self.pickers[who], up=False)

    @rule(who=PICKERS)
    def find_store(self, who):
        self.reach(self.pickers[who], up=True)

    @precondition(lambda self: self.faulty)
    @rule()
    def forget(self):
        """The store is another one, with nothing in it."""
        self.store.clear()

    @precondition(lambda self: self.count > 3)
    @rule()
    def pods_report(self):
        for picker in self.pickers:
            for pod in PODS:
                self.do(picker, events.PodReported, pod=pod, report=PodReport(waiting=0, running=1, registered=NAMES))

    # -- what must hold

    @invariant()
    def who_waits_is_known(self):
        for picker in getattr(self, "pickers", ()):
            for request_id in picker.waiting:
                assert request_id in picker.state.flights, f"{request_id} waits, and nobody knows of it"
            for key in picker.claims.ours:
                assert we_load(picker.state, key), f"{picker.name} keeps a claim of {key} and loads nothing"
            due = picker.book.fleet.next_wakeup()
            assert not picker.claims.waits or (due is not None and due <= picker.book.now + 0.05)

    def teardown(self):
        """Whatever happened: all go on, and nothing is left."""
        self.faulty = True  # from here on nobody can ask
        for picker in getattr(self, "pickers", ()):
            self.reach(picker, up=False)
            assert not picker.claims.waits
            for _ in range(200):
                for request_id in [*picker.open]:
                    del picker.open[request_id]
                    self.do(
                        picker, events.RequestEnded, request_id=request_id, outcome=events.Outcome("served"), status=200
                    )
                if not picker.waiting:
                    break
                picker.book.wait(1.0)
                for effect in [effect for answer in picker.book.answers[-20:] for effect in answer]:
                    if isinstance(effect, Dispatch) and effect.request_id in picker.waiting:
                        del picker.waiting[effect.request_id]
                        picker.open[effect.request_id] = effect
                    elif isinstance(effect, Reject):
                        picker.waiting.pop(effect.request_id, None)
            assert not picker.waiting, f"{[*picker.waiting]} wait for ever"
            picker.book.wait(3 * TTL)
            assert not picker.claims.by_key and not picker.claims.ours and not picker.state.peers.marks.peers
            assert not any(load.others or load.others_delta for load in picker.state.loads.values())


PeersMachine.TestCase.settings = hypothesis_settings(max_examples=60, stateful_step_count=25, deadline=None)
TestPeers = PeersMachine.TestCase
