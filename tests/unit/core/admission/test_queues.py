"""Who waits at the picker and who is next: against a list that is searched anew each time."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from lorapick.core.admission.queues import Queues, Waiter
from lorapick.model.requests import Request
from lorapick.model.settings import Fairness


def waiter(name, *, priority=0, team="", adapter="legal", since=0.0, until=30.0):
    return Waiter(name, (priority, team, adapter), since, until)


def filled(*waiters, fairness=Fairness.ROUND_ROBIN, patience=2.0):
    queues = Queues(fairness=fairness, patience=patience)
    for each in waiters:
        queues.add(each)
    queues.check()
    return queues


def heads(queues, now=1.0):
    """First of each flow, whose turn it is first."""
    return [queues.waiting_in(flow)[0].request_id for flow in queues.order(now)]


def serve(queues, name, *, tokens=10):
    gone = queues.remove(name)
    queues.served(gone)
    if queues.attained is not None:
        queues.attained.sent(Request(id=name, model="m", fairness_id=gone.flow[1], prompt_tokens=tokens), now=1.0)
    queues.check()


def test_bands_are_strict():
    queues = filled(waiter("low", priority=-1), waiter("old"), waiter("high", priority=1, since=0.9))
    assert heads(queues, now=1.0) == ["high", "old", "low"]
    assert heads(queues, now=99.0) == ["high", "old", "low"], "patience counts within a band"


def test_flows_take_turns_and_each_serves_its_oldest_first():
    queues = filled(*(waiter(name, adapter=name[0]) for name in ("a1", "a2", "b1", "b2", "c1")))
    assert heads(queues) == ["a1", "b1", "c1"]
    serve(queues, "a1")
    assert heads(queues) == ["b1", "c1", "a2"]
    serve(queues, "b1")
    serve(queues, "c1")
    assert heads(queues) == ["a2", "b2"]


def test_whoever_has_waited_for_too_long_comes_first():
    queues = filled(
        waiter("a1", adapter="a", since=1.0), waiter("b1", adapter="b", since=0.0), waiter("c1", adapter="c")
    )
    serve(queues, "c1")
    assert heads(queues, now=1.9) == ["a1", "b1"]
    assert heads(queues, now=2.0) == ["b1", "a1"]
    assert [each.request_id for each in queues.impatient(2.0)] == ["b1"]
    assert [each.request_id for each in queues.impatient(9.0)] == ["b1", "a1"]


def test_the_impatient_of_a_higher_band_come_first():
    queues = filled(waiter("old"), waiter("high", priority=3, since=1.0))
    assert [each.request_id for each in queues.impatient(9.0)] == ["high", "old"]


def test_whoever_had_the_fewest_tokens_comes_first():
    queues = filled(
        *(waiter(f"big{n}", team="big") for n in range(3)),
        *(waiter(f"small{n}", team="small") for n in range(9)),
        fairness=Fairness.LEAST_ATTAINED,
    )
    order = []
    for _ in range(8):
        order.append(heads(queues)[0])
        serve(queues, order[-1], tokens=100 if order[-1].startswith("big") else 30)
    assert [name.rstrip("0123456789") for name in order] == ["big", *["small"] * 4, "big", *["small"] * 2]


def test_whoever_comes_back_has_no_claim_from_before():
    queues = filled(
        waiter("a1", team="a"),
        waiter("a2", team="a"),
        waiter("b1", team="b"),
        fairness=Fairness.LEAST_ATTAINED,
    )
    serve(queues, "a1", tokens=500)
    serve(queues, "b1")
    queues.add(waiter("b2", team="b"))
    serve(queues, "b2")
    queues.add(waiter("c1", team="c"))
    assert heads(queues)[0] == "a2", "b and c begin where a stands"


def test_whoever_had_much_without_waiting_comes_last():
    queues = filled(fairness=Fairness.LEAST_ATTAINED)
    queues.attained.sent(Request(id="r", model="m", fairness_id="busy", prompt_tokens=900), now=1.0)
    queues.add(waiter("b1", team="busy"))
    queues.add(waiter("q1", team="quiet"))
    assert heads(queues) == ["b1", "q1"], "the first one waits alone, and the next begins where it stands"
    queues.remove("q1")
    queues.remove("b1")
    queues.add(waiter("n1", team="new"))
    queues.add(waiter("b2", team="busy"))
    assert heads(queues) == ["n1", "b2"]
    queues.fairness = Fairness.ROUND_ROBIN
    assert queues.attained is None


def test_the_last_of_the_lowest_band_yields():
    queues = filled(waiter("low1", priority=-2), waiter("low2", priority=-2, adapter="b", since=1.0), waiter("mid"))
    assert queues.yields_to(5).request_id == "low2"
    assert queues.yields_to(-2) is None
    assert filled().yields_to(5) is None


def test_due_ones_are_named_until_they_leave():
    queues = filled(waiter("a", until=3.0), waiter("b", until=1.0), waiter("c", until=2.0))
    assert [*queues.due(2.0)] == [*queues.due(2.0)] == ["b", "c"]
    queues.remove("b")
    assert ([*queues.due(2.0)], queues.next_due()) == (["c"], 2.0)
    queues.remove("c")
    queues.add(waiter("c", until=9.0))
    assert ([*queues.due(2.0)], queues.next_due()) == ([], 3.0)
    assert queues.remove("never-there") is None


class QueueMachine(RuleBasedStateMachine):
    """The queues next to a plain list in order of arrival."""

    @initialize(fairness=st.sampled_from(Fairness), patience=st.sampled_from([0.0, 1.0, 5.0]))
    def begin(self, fairness, patience):
        self.queues = Queues(fairness=fairness, patience=patience)
        self.model: list[Waiter] = []
        self.turn: dict[tuple, int] = {}
        self.attained: dict[str, float] = {}
        self.now, self.count, self.turns = 0.0, 0, 0

    @rule(
        priority=st.integers(-1, 1),
        team=st.sampled_from(["", "x", "y"]),
        adapter=st.sampled_from([None, "a", "b"]),
        most=st.integers(0, 6),
    )
    def add(self, priority, team, adapter, most):
        self.count += 1
        flow = (priority, team, adapter)
        if flow not in {each.flow for each in self.model}:
            self.turns += 1
            self.turn[flow] = self.turns
        teams = {each.flow[1] for each in self.model}
        if teams and team not in teams:
            least = min(self.attained.get(each, 0.0) for each in teams)
            self.attained[team] = max(self.attained.get(team, 0.0), least)
        made = Waiter(f"r{self.count}", flow, self.now, self.now + most)
        self.model.append(made)
        self.queues.add(made)

    def leave(self, data):
        gone = data.draw(st.sampled_from(self.model))
        self.model.remove(gone)
        assert self.queues.remove(gone.request_id) == gone
        if gone.flow not in {each.flow for each in self.model}:
            del self.turn[gone.flow]
        return gone

    @rule(team=st.sampled_from(["", "x", "y"]), tokens=st.integers(0, 9))
    def be_sent(self, team, tokens):
        """With or without a wait before."""
        if self.queues.attained is not None:
            self.queues.attained.sent(Request(id="r", model="m", fairness_id=team, prompt_tokens=tokens), now=0.0)
            self.attained[team] = self.attained.get(team, 0.0) + tokens

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def give_up(self, data):
        self.leave(data)

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def be_served(self, data):
        gone = self.leave(data)
        self.queues.served(gone)
        if gone.flow in self.turn:
            self.turns += 1
            self.turn[gone.flow] = self.turns

    @rule(seconds=st.sampled_from([0.5, 1.0, 4.0]))
    def pass_time(self, seconds):
        self.now += seconds

    @invariant()
    def agree(self):
        if not hasattr(self, "queues"):
            return
        queues, model = self.queues, self.model
        queues.check()
        assert len(queues) == len(model) and all(each.request_id in queues for each in model)
        assert queues.order(self.now) == self.order()
        for flow in self.turn:
            assert queues.waiting_in(flow) == [each for each in model if each.flow == flow]
        assert queues.next_due() == min((each.until for each in model), default=None)
        assert sorted(queues.due(self.now)) == sorted(each.request_id for each in model if each.until <= self.now)
        assert [name for name in ("a", "b") if queues.wanted(name)] == [
            name for name in ("a", "b") if any(each.flow[2] == name for each in model)
        ]

    def order(self):
        """Band by band: the impatient by age, then the others by claim and turn."""
        late, prompt = [], []
        for flow in self.turn:
            since = next(each.since for each in self.model if each.flow == flow)
            claim = self.attained.get(flow[1], 0.0) if self.queues.fairness is Fairness.LEAST_ATTAINED else 0
            if self.now - since >= self.queues.patience:
                late.append(((-flow[0], 0, since), self.queues.order(self.now).index(flow), flow))
            else:
                prompt.append(((-flow[0], 1, claim, self.turn[flow]), 0, flow))
        return [flow for _, _, flow in sorted([*late, *prompt], key=lambda each: each[:2])]

    @invariant()
    def the_last_of_the_lowest_band_yields(self):
        for priority in (-1, 0, 1) if hasattr(self, "queues") else ():
            lower = [each for each in self.model if each.flow[0] < priority]
            lowest = [each for each in lower if each.flow[0] == min(other.flow[0] for other in lower)]
            found = self.queues.yields_to(priority)
            assert (found is None) == (not lower)
            assert found is None or (found in lowest and found.since == max(each.since for each in lowest))


TestQueueMachine = QueueMachine.TestCase
TestQueueMachine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_who_comes_back_with_the_same_bound_is_named_once():
    queues = Queues(patience=1.0)
    waiter = Waiter(request_id="r", flow=(0, "", "a"), since=0.0, until=5.0)
    queues.add(waiter)
    queues.remove("r")
    queues.add(waiter)
    assert list(queues.due(5.0)) == ["r"]


def test_those_behind_a_round_of_tries_come_first_in_the_next():
    queues = Queues(patience=1.0)
    for number in range(5):
        queues.add(Waiter(request_id=f"r{number}", flow=(0, "", f"a{number}"), since=0.0, until=9.0))
    first = queues.in_turn(0.5)
    queues.go_on_after(first[1])
    assert queues.in_turn(0.5) == [*first[2:], *first[:2]]
    assert queues.in_turn(0.5) == first
    queues.go_on_after(first[1])
    queues.remove("r1")
    assert queues.in_turn(0.5) == [each for each in first if each != first[1]]


def test_ranks_order_a_flow_and_those_whose_patience_has_ended():
    late, soon, never = 20.0, 5.0, float("inf")
    queues = filled(
        waiter("a1", adapter="a")._replace(rank=late),
        waiter("a2", adapter="a", since=0.5)._replace(rank=soon),
        waiter("a3", adapter="a", since=0.1)._replace(rank=late),
        waiter("b1", adapter="b", since=0.2)._replace(rank=never),
        waiter("c1", adapter="c", since=0.3)._replace(rank=6.0),
    )
    assert [each.request_id for each in queues.waiting_in((0, "", "a"))] == ["a2", "a1", "a3"]
    assert heads(queues, now=1.0) == ["a2", "b1", "c1"], "flows take turns"
    assert heads(queues, now=9.0) == ["a2", "c1", "b1"]
    serve(queues, "a2")
    assert heads(queues, now=9.0) == ["c1", "a1", "b1"]
