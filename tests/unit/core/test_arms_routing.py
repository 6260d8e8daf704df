"""Observed requests: routed as before, never held or refused, what would have been kept beside."""

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from lorapick.core.arms_report import report
from lorapick.model import events
from lorapick.model.adapters import PinSpec
from lorapick.model.arms import Arm, Mode, ModeKind
from lorapick.model.effects import Dispatch, Hold, Load, PassOn, Register, Reject, Touch, Unload
from lorapick.model.picks import What
from lorapick.model.pods import PodLimits
from lorapick.model.requests import Outcome
from lorapick.model.settings import AdmissionSettings, Settings
from lorapick.testing.playbook import Playbook, plain_pod

OBSERVE = Mode(kind=ModeKind.OBSERVE)
ROUND = Mode(kind=ModeKind.OBSERVE, route="round-robin")


def playbook(mode: Mode, **fields) -> Playbook:
    made = Playbook(settings=Settings(mode=mode, **fields), adapters=["x", "y", "z"])
    for name in ("a", "b"):
        made.appear(replace(plain_pod(name), limits=PodLimits(max_loras=1, max_cpu_loras=4)))
        made.report(name)
    return made


def effects(book: Playbook, *kinds):
    return [effect for answer in book.answers for effect in answer if isinstance(effect, kinds)]


def set_mode(book: Playbook, mode: Mode) -> None:
    book.apply(events.ConfigChanged, settings=replace(book.fleet.state.settings, mode=mode))


def test_the_gateway_is_named_no_pod_and_says_where_it_went():
    book = playbook(OBSERVE)
    book.arrive("x")
    (passed,) = effects(book, PassOn)
    assert passed.pick.pod in ("a", "b")
    assert passed.model is None
    other = "b" if passed.pick.pod == "a" else "a"
    book.fallback("r1", other)
    (sent,) = effects(book, Dispatch)
    assert (sent.target.pod, sent.pick.tier.word, sent.would) == (other, "disk", passed.pick)
    book.start("r1")
    book.end("r1", status=200)
    tally = book.fleet.state.arms.tallies[Arm.OBSERVED]
    assert (tally.ended, tally.loads, tally.hits) == (1, 1, 0)
    assert (book.fleet.state.arms.would.compared, book.fleet.state.arms.would.agreed) == (1, 0)
    found = book.fleet.state.journal.explain("r1")
    assert (found.outcome, found.verdicts[0].pod) == ("observed", passed.pick.pod)
    assert [(came.what, came.pod, came.why) for came in found.came] == [(What.WENT, other, "disk")]


def test_what_is_in_a_slot_when_a_request_comes_is_a_hit_whatever_comes_meanwhile():
    book = playbook(OBSERVE)
    for number, name in enumerate(("x", "x", "y"), start=1):
        book.arrive(name)
        book.fallback(f"r{number}", "a")
        book.start(f"r{number}")
        book.end(f"r{number}", status=200)
    tally = book.fleet.state.arms.tallies[Arm.OBSERVED]
    assert (tally.hits, tally.loads, tally.adapter_requests) == (1, 2, 3)


def test_a_gateway_that_does_not_say_which_pod_it_was_is_counted_so():
    book = playbook(OBSERVE)
    book.arrive("x")
    book.start("r1")
    book.end("r1", status=200)
    tally = book.fleet.state.arms.tallies[Arm.OBSERVED]
    assert tally.by_tier == {"unknown": 1}
    assert book.fleet.state.tally.outcomes[Outcome.SERVED] == 1


def test_nobody_is_refused_for_what_pods_hold():
    """Neither for a name that nobody knows, nor for want of slots; and pods answer for themselves."""
    for mode in (OBSERVE, ROUND):
        book = playbook(mode, admission=AdmissionSettings(max_queued=0))
        for name in ("x", "y", "z", "nobody-knows-it", "x", "y"):
            book.arrive(name)
        assert effects(book, Reject, Hold) == []
        assert len(effects(book, PassOn, Dispatch)) == 6
        would = book.fleet.state.arms.would.by_result
        assert would["rejected"] >= 1


def test_a_policy_needs_a_pod_and_says_so_when_there_is_none():
    book = Playbook(settings=Settings(mode=ROUND), adapters=["x"])
    book.arrive("x")
    (refused,) = effects(book, Reject)
    assert refused.status == 503
    assert book.fleet.state.arms.tallies[Arm.OBSERVED].errors == 1


def test_who_waits_is_sent_on_by_the_command_back():
    book = playbook(Mode(), admission=AdmissionSettings(max_wait=60.0))
    for name in ("x", "y", "z"):
        book.arrive(name)
    assert [each.request_id for each in effects(book, Hold)] == ["r3"]
    set_mode(book, OBSERVE)
    assert [each.request_id for each in effects(book, PassOn)] == ["r3"]
    book.fallback("r3", "a")
    for number in (1, 2, 3):
        book.end(f"r{number}", status=200)
    assert book.fleet.state.tally.outcomes == {Outcome.SERVED: 3}
    assert not book.fleet.state.flights


def test_a_mode_changes_nothing_else():
    book = playbook(OBSERVE)
    book.apply(events.PinSet, adapter="x", pin=PinSpec(replicas=1))
    pins = dict(book.fleet.state.pins)
    book.wait(60.0)
    assert effects(book, Load, Register, Touch, Unload) == []
    assert book.fleet.state.placement.wanted
    for name in ("a", "b"):
        book.report(name)
    set_mode(book, Mode())
    book.wait(1.0)
    assert effects(book, Load, Register)
    assert book.fleet.state.pins == pins


def test_arms_of_different_times_are_said_to_be():
    book = playbook(ROUND)
    book.arrive("x")
    book.end("r1", status=200)
    set_mode(book, Mode())
    book.arrive("x")
    book.end("r2", status=200)
    found = report(book.fleet.state.arms, book.fleet.state.settings, now=book.now + 1.0)
    assert found.apart
    assert [figures.requests for figures in found.arms] == [1, 1]
    assert found.sentence.endswith("counts as one of the routing.")


MODES = st.builds(
    Mode,
    kind=st.sampled_from(ModeKind),
    percent=st.sampled_from([0.0, 30.0, 100.0]),
    route=st.sampled_from(["gateway", "round-robin", "least-loaded", "weighted", "chwbl"]),
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("arrive"), st.sampled_from(["x", "y", "z", "none"]), st.sampled_from([None, "s", "t"])),
        st.tuples(st.just("place"), st.integers(0, 9), st.sampled_from(["a", "b"])),
        st.tuples(st.just("end"), st.integers(0, 9), st.sampled_from([200, 500])),
        st.tuples(st.just("mode"), MODES, st.none()),
        st.tuples(st.just("wait"), st.sampled_from([0.1, 1.0, 31.0]), st.none()),
    ),
    max_size=30,
)


@settings(max_examples=60)
@given(first=MODES, steps=STEPS)
def test_nothing_is_lost_whatever_mode_is_set_when(first, steps):
    """Invariants are checked after each event; each arrival is answered once, and each arm adds up."""
    book = playbook(first)
    for verb, one, other in steps:
        flights = [*book.fleet.state.flights.values()]
        if verb == "arrive":
            book.arrive(one, session=other)
        elif verb == "mode":
            set_mode(book, one)
        elif verb == "wait":
            book.wait(one)
        elif flights:
            flight = flights[one % len(flights)]
            if verb == "place":
                book.fallback(flight.request.id, other)
            else:
                outcome = Outcome.SERVED if other == 200 else Outcome.FAILED
                book.end(flight.request.id, outcome, status=other)
    set_mode(book, replace(OBSERVE, route="gateway"))
    state = book.fleet.state
    assert not state.waiting
    for flight in [*state.flights.values()]:
        book.end(flight.request.id, status=200)
    assert sum(state.tally.outcomes.values()) == state.tally.arrivals
    for tally in state.arms.tallies.values():
        assert tally.ended == tally.arrivals
    answered = [each.request_id for each in effects(book, PassOn, Reject)]
    answered += [each.request_id for each in effects(book, Dispatch) if each.request_id not in answered]
    assert len(answered) == len(set(answered))
