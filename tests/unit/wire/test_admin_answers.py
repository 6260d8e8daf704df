"""Answers about placement read back as they were written, whatever a later version adds."""

import msgspec

from lorapick.core.placement.plans import Action, Move, PlanCosts
from lorapick.model.adapters import PinSpec
from lorapick.model.placement import Why
from lorapick.wire.admin_answers import BudgetUse, Done, ForecastState, PinRow, PlacementAnswer, PlanAnswer, PlanState


def test_a_placement_reads_back():
    answer = PlacementAnswer(
        now=1.0,
        enabled=True,
        pins=(PinRow(adapter="legal", pin=PinSpec(replicas=1), pods=("a",), missing={"a": 0.5}),),
        plan=PlanState(on=False, solver="flow", version=0, asked=0),
        budgets=BudgetUse(
            moves_last_minute=0,
            moves_per_minute=10.0,
            pods_loading=0,
            most_pods_loading=1,
            loads_per_pod_per_minute=30.0,
        ),
        forecast=ForecastState(uses="off"),
    )
    assert msgspec.json.decode(msgspec.json.encode(answer), type=PlacementAnswer) == answer


def test_a_plan_reads_back():
    moves = (Move(adapter="legal", pod="a", action=Action.LOAD, why="wants 1, has 0"),)
    answer = PlanAnswer(solver="flow", pods=1, adapters=1, loads=1, drops=0, keeps=0, moves=moves, costs=PlanCosts())
    assert msgspec.json.decode(msgspec.json.encode(answer), type=PlanAnswer) == answer


def test_what_a_later_version_adds_is_passed_over():
    found = msgspec.json.decode(b'{"changed": false, "understood": "x", "later": 1}', type=Done)
    assert found == Done(changed=False, understood="x")
    assert Why("pin") is Why.PIN
