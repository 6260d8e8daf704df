"""Room by side, pods that should prefill and do not, and the alert that says so."""

import pytest

from lorapick.core.signals.both_sides import silent, unreached
from lorapick.core.signals.views import fleet_signals
from lorapick.model.alerts import Alert
from lorapick.model.disaggregation import Decide, DisaggregationSettings
from lorapick.model.effects import Clear, Raise
from lorapick.model.pods import Role
from lorapick.model.requests import Outcome
from lorapick.model.settings import AlertSettings, Settings
from lorapick.testing.playbook import Playbook, plain_pod

NAMES = tuple("abcdef")
LONG, SHORT = {"prompt_tokens": 2000, "stream": True}, {"prompt_tokens": 20, "stream": True}


class Fleet:
    def __init__(self, *roles, slots=4, decide=Decide.TOKENS):
        self.names = [f"{role[0]}{number}" for number, role in enumerate(roles)]
        pods = [plain_pod(name, role=Role(role), max_loras=slots) for name, role in zip(self.names, roles, strict=True)]
        settings = Settings(
            disaggregation=DisaggregationSettings(decide=decide),
            alerts=AlertSettings(active_per_slot=9.0, sustained=1e6, after=5.0, clear_after=5.0),
        )
        self.book = Playbook(pods=pods, adapters=NAMES, settings=settings)
        self.count = 0
        self.reports(prompt_tokens=0)

    @property
    def state(self):
        return self.book.fleet.state

    @property
    def signals(self):
        return fleet_signals(self.state, now=self.book.now)

    def reports(self, *, but=(), **fields):
        for name in self.names:
            if name not in but:
                self.book.report(name, registered=NAMES, **fields)

    def ask(self, name, *, ok=True, **fields):
        self.count += 1
        request = f"q{self.count}"
        self.book.arrive(name, id=request, **fields)
        if (flight := self.state.flights[request]).leg is not None:
            self.book.prefilled(request, ok=ok)
        if flight.row >= 0:
            self.book.start(request)
        self.book.end(request, Outcome.SERVED if flight.row >= 0 else Outcome.ABANDONED)

    def seconds(self, count, *, tokens=0, but=(), each=lambda: None):
        for _ in range(count):
            self.book.wait(1.0)
            self.reports(but=but, prompt_tokens=tokens)
            each()

    @property
    def told(self):
        effects = [effect for answer in self.book.answers for effect in answer]
        return [
            (type(each), each.alert)
            for each in effects
            if isinstance(each, Raise | Clear) and each.alert is Alert.NO_PREFILL
        ]


def test_where_all_pods_do_both_there_are_no_sides():
    fleet = Fleet("both", "both")
    fleet.ask("a", **LONG)
    assert (fleet.signals.sides, fleet.signals.splits, fleet.signals.slots) == ((), {}, 8)
    assert fleet.signals.tightest is None and fleet.signals.active_per_slot == 1 / 8


def test_each_side_has_its_own_adapters_and_slots():
    fleet = Fleet("prefill", "prefill", "decode", slots=4)
    for name in NAMES:
        fleet.ask(name, **SHORT)
        fleet.seconds(2)
    fleet.ask("a", **LONG)
    signals = fleet.signals
    decode, prefill = signals.sides
    assert (decode.side, decode.pods, decode.active_adapters, decode.slots) == ("decode", 1, 6, 4)
    assert (prefill.side, prefill.pods, prefill.active_adapters, prefill.slots) == ("prefill", 2, 1, 8)
    assert signals.tightest == decode and signals.active_per_slot == 6 / 4
    assert signals.splits == {"few_tokens": 6, "split": 1}
    assert decode.swaps_per_second > prefill.swaps_per_second > 0


def test_pods_that_do_both_count_on_either_side():
    decode, prefill = Fleet("prefill", "both", "decode").signals.sides
    assert (decode.pods, prefill.pods) == (2, 2)


def test_slots_of_pods_that_do_not_answer_do_not_count():
    fleet = Fleet("prefill", "decode", "decode")
    fleet.seconds(20, but=("d2",))
    decode, _ = fleet.signals.sides
    assert (decode.pods, decode.slots, fleet.signals.slots) == (1, 4, 8)


@pytest.mark.parametrize(
    ("request_of", "decide", "word"),
    [
        (SHORT, Decide.TOKENS, "few_tokens"),
        ({"stream": True}, Decide.TOKENS, "unknown_length"),
        (LONG, Decide.COST, "dearer"),
    ],
)
def test_why_a_request_is_not_split_is_counted(request_of, decide, word):
    fleet = Fleet("prefill", "decode", decide=decide)
    fleet.ask("a", **request_of)
    assert fleet.signals.splits == {word: 1}


def test_pods_that_are_named_and_get_nothing_are_told_of():
    fleet = Fleet("prefill", "decode")
    fleet.seconds(12, each=lambda: fleet.ask("a", **LONG))
    assert unreached(fleet.state, now=fleet.book.now) == {"p0": 11}
    assert fleet.told == [(Raise, Alert.NO_PREFILL)]
    assert fleet.state.alerts.standing[Alert.NO_PREFILL].facts == {"unreached": "p0 (10 times)"}
    fleet.seconds(10, tokens=50_000)
    assert unreached(fleet.state, now=fleet.book.now) == {}
    assert fleet.told[1:] == [(Clear, Alert.NO_PREFILL)]


def test_pods_that_work_raise_nothing():
    fleet, tokens = Fleet("prefill", "decode"), iter(range(0, 10**6, 2000))
    for _ in range(30):
        fleet.seconds(1, tokens=next(tokens), each=lambda: fleet.ask("a", **LONG))
    assert fleet.told == [] and unreached(fleet.state, now=fleet.book.now) == {}


def test_the_last_pod_that_prefills_is_missed_and_not_the_first():
    fleet = Fleet("prefill", "prefill", "decode")
    fleet.seconds(30, but=("p0",))
    assert [each.pod for each in silent(fleet.state, now=fleet.book.now)] == ["p0"]
    assert fleet.told == []
    fleet.seconds(30, but=("p0", "p1"))
    assert fleet.told == [], "nobody asks for it"
    fleet.ask("a", **LONG)
    fleet.seconds(12, but=("p0", "p1"))
    assert fleet.told == [(Raise, Alert.NO_PREFILL)]
    assert fleet.state.alerts.standing[Alert.NO_PREFILL].facts["of"] == 2
    fleet.seconds(10)
    assert fleet.told[1:] == [(Clear, Alert.NO_PREFILL)]


def test_prefills_that_fail_again_and_again_count_until_one_works():
    fleet = Fleet("prefill", "decode")
    fleet.seconds(12, tokens=1, each=lambda: fleet.ask("a", ok=False, **LONG))
    assert [each.why for each in silent(fleet.state, now=fleet.book.now)] == ["prefills_fail"]
    assert fleet.told == [(Raise, Alert.NO_PREFILL)]


def test_whoever_never_splits_misses_nobody():
    fleet = Fleet("prefill", "decode", decide=Decide.NEVER)
    fleet.seconds(30, but=("p0",))
    assert silent(fleet.state, now=fleet.book.now) == [] and fleet.told == []
