"""The problem that a solver is asked: of the controller, and afresh for who only wants to see it."""

import pytest

from lorapick.core.placement import by_load
from lorapick.core.placement.solving import solve
from lorapick.model import events
from lorapick.model.adapters import PinSpec
from lorapick.model.disaggregation import Decide, DisaggregationSettings
from lorapick.model.placement import Side
from lorapick.model.pods import Role
from lorapick.model.requests import Outcome
from lorapick.model.settings import PlacementSettings, Settings
from lorapick.testing.playbook import Playbook, plain_pod

BY_LOAD = Settings(placement=PlacementSettings(replicas="auto"))


def asked(settings):
    """Two pods; `x` is asked for twice as often as `y`, `z` never."""
    book = Playbook(pods=["a", "b"], adapters=["x", "y", "z"], settings=settings)
    for pod in ("a", "b"):
        book.report(pod)
    for number in range(12):
        book.now += 0.5
        book.arrive("y" if number % 3 == 0 else "x", id=f"r{number}")
        book.start(f"r{number}")
        book.end(f"r{number}", outcome=Outcome.SERVED)
    return book


@pytest.mark.parametrize("settings", [Settings(), BY_LOAD], ids=["off", "auto"])
def test_afresh_it_is_there_whether_adapters_are_placed_by_load_or_not(settings):
    book = asked(settings)
    found = by_load.problem(book.fleet.state, now=book.now, afresh=True)
    assert [(each.adapter, each.replicas) for each in found.adapters] == [("x", 1), ("y", 1)]
    assert [pod.pod for pod in found.pods] == ["a", "b"]
    assert by_load.problem(book.fleet.state, now=book.now, afresh=True) == found


def test_afresh_nothing_is_remembered():
    book = asked(Settings())
    by_load.problem(book.fleet.state, now=book.now, afresh=True)
    assert len(book.fleet.state.placement.replicas) == 0
    by_load.problem(book.fleet.state, now=book.now)
    assert len(book.fleet.state.placement.replicas) == 2


# -- two sides

SPLIT = {"p": Role.PREFILL, "d": Role.DECODE}


def two_sides(**settings):
    """Three pods that prefill and three that decode; `x` has long prompts and many requests, `y` short ones."""
    pods = [plain_pod(f"{letter}{number}", role=SPLIT[letter]) for letter in "pd" for number in range(3)]
    book = Playbook(pods=pods, adapters=["x", "y", "z"], settings=Settings(placement=BY_LOAD.placement, **settings))
    for pod in pods:
        book.report(pod.name)
    for number in range(60):
        book.now += 0.05
        name, tokens = ("y", 20) if number % 6 == 0 else ("x", 4000)
        book.arrive(name, id=f"r{number}", prompt_tokens=tokens, stream=True)
        book.prefilled(f"r{number}")
        book.start(f"r{number}")
        book.end(f"r{number}", outcome=Outcome.SERVED, status=200)
    return book


def wanted(book, **learnt):
    """Replicas by adapter and side, of nobody's memory."""
    state = book.fleet.state
    for name, value in learnt.items():
        setattr(state.legs if name == "per_token" else state.prices.service, name, value)
    found = by_load.problem(state, now=book.now, afresh=True)
    assert {pod.pod[0]: pod.side for pod in found.pods} == {"p": Side.PREFILL, "d": Side.DECODE}
    return {(each.adapter, each.side): each.replicas for each in found.adapters}


def test_each_side_has_replicas_by_what_a_request_takes_there():
    book = two_sides()
    brief = wanted(book, per_token=1e-5, base=2.0)
    assert brief["x", Side.PREFILL] == 1 and brief["x", Side.DECODE] == 3
    heavy = wanted(book, per_token=1e-4, base=0.01)
    assert heavy["x", Side.PREFILL] == 3 and heavy["x", Side.DECODE] == 1


def test_who_is_not_prefilled_elsewhere_needs_no_copy_there():
    found = wanted(two_sides())
    assert ("y", Side.DECODE) in found and ("y", Side.PREFILL) not in found
    always = two_sides(disaggregation=DisaggregationSettings(decide=Decide.ALWAYS))
    assert ("y", Side.PREFILL) in wanted(always)


def test_pins_of_a_side_count_there_alone():
    book = two_sides()
    before = wanted(book, per_token=1e-4, base=2.0)
    book.apply(events.PinSet, adapter="x", pin=PinSpec(replicas=1, prefill_replicas=2))
    after = wanted(book)
    assert after["x", Side.DECODE] == before["x", Side.DECODE] - 1
    assert after["x", Side.PREFILL] == before["x", Side.PREFILL] - 2


def test_one_answer_is_for_both_sides_and_is_carried_out_on_both():
    book = two_sides()
    book.now += 10.0
    for pod in [*book.fleet.state.columns.row_of]:
        book.report(pod)
    book.apply(events.Ticked)
    found = by_load.problem(book.fleet.state, now=book.now)
    plan = solve(found)
    book.apply(events.PlacementComputed, plan=dict(plan.placed), version=book.fleet.state.placement.asked_version)
    wants = book.fleet.state.placement.wanted
    sides = {book.fleet.state.columns.targets[row].pod[0] for row, names in wants.items() if "x" in names}
    assert sides == {"p", "d"}
