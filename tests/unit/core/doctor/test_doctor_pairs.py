"""What the doctor says of prefill on other pods."""

import pytest
from msgspec.structs import replace
from pictures_kit import checks, findings, fleet_signals, healthy, pod

from lorapick.core.doctor.diagnose import diagnose
from lorapick.core.doctor.pairs import in_words
from lorapick.model.placement import Side
from lorapick.model.pods import Role
from lorapick.model.signals import SideSignals

SPLIT = {"split": 40, "few_tokens": 50, "dearer": 10}


def side(which, active, slots, **fields):
    ratio = active / slots if slots else None
    return SideSignals(side=which, pods=4, active_adapters=active, slots=slots, active_per_slot=ratio, **fields)


def picture(*, splits=SPLIT, prefill=None, fleet=None, **fields):
    """Four pods that prefill and four that decode."""
    rows = [pod(number, role=Role.DECODE) for number in range(4)]
    rows += [pod(number, role=Role.PREFILL, **(prefill or {}).get(number, {})) for number in range(4, 8)]
    return healthy(pod_rows=rows, splits_requests=True, fleet={"splits": splits, **(fleet or {})}, **fields)


def test_a_fleet_whose_pairs_work_is_well_and_says_so():
    assert checks(picture()) == []
    said = "40 of 100 requests of the last 10 minutes prefilled on another pod; not: 50 with too few tokens"
    assert any(figure.startswith(said) for figure in diagnose(picture()).figures)


def test_nothing_is_said_where_nothing_is_split():
    assert in_words({}) is None
    assert in_words({"split": 1}) == "1 of 1 request of the last 10 minutes prefilled on another pod"


def test_a_pod_that_was_named_in_vain_is_told_with_what_to_look_at():
    found = findings(picture(prefill={5: {"unreached": 12}, 6: {"unreached": 3}}))["unreached"]
    assert found.what == (
        "pod-5 was named 12 times to prefill and got no request (nor did pod-6): do the decode pods have a routing "
        "sidecar, and does the list have its port?"
    )
    assert found.pods == ("pod-5", "pod-6") and found.urgency == "warn"


def test_pods_that_prefill_and_are_down_are_named():
    down = {number: {"ready": False, "reason": "circuit_open"} for number in (4, 5)}
    assert findings(picture(prefill=down))["prefill_pods"].what.startswith("2 of the 4 pods that prefill do not: pod-4")
    every = {**down, 6: {"prefills_fail": True}, 7: {"prefills_fail": True}}
    found = findings(picture(prefill=every))["no_prefill"]
    assert found.what == "none of the 4 pods that prefill does: requests are prefilled where they are decoded"
    assert "pod-6: its prefills fail again and again" in found.arithmetic
    assert "no_prefill" not in checks(replace(picture(prefill=every), splits_requests=False))


@pytest.mark.parametrize(
    ("splits", "idle"),
    [({"few_tokens": 100}, True), ({"few_tokens": 98, "split": 2}, True), (SPLIT, False), ({"few_tokens": 10}, False)],
)
def test_pods_that_idle_because_nothing_is_split_are_told_of(splits, idle):
    found = findings(picture(splits=splits))
    assert ("prefill_idle" in found) is idle
    if idle:
        assert "with too few tokens" in found["prefill_idle"].arithmetic[0]


def test_roles_that_cannot_work_are_told():
    found = findings(picture(roles=("2 pods of base prefill and none decodes", "another")))["roles"]
    assert found.what.startswith("roles that cannot work: 2 pods of base") and found.arithmetic == ("another",)


def test_room_is_that_of_the_side_that_has_least():
    sides = (side(Side.DECODE, 40, 16, swaps_per_second=1.2), side(Side.PREFILL, 10, 16, swaps_per_second=0.1))
    crowded = picture(fleet={"sides": sides, "slots": 32, "active_adapters": 40, "active_per_slot": 2.5})
    found = findings(crowded)["room"]
    assert found.arithmetic[0] == "active adapters per slot of pods that decode 40/16 = 2.50 > 0.8"
    added = [remedy.action for remedy in found.remedies if remedy.action.startswith(("add ", "or add "))]
    assert added == [
        "add 9 slots per pod of those that decode: 40/52 = 0.77 adapters per slot",
        "or add 9 pods that decode with 4 slots each",
    ]
    figures = "; ".join(diagnose(crowded).figures)
    assert "40 active adapters / 16 slots of pods that decode = 2.50" in figures
    assert "10 active adapters / 16 slots of pods that prefill = 0.62" in figures
    assert "(decode 1.2/s, prefill 0.1/s)" in figures


def test_the_tightest_side_is_one_that_answers():
    fleet = fleet_signals(sides=(side(Side.DECODE, 4, 8), side(Side.PREFILL, 4, 0)))
    assert fleet.tightest is not None and fleet.tightest.side is Side.DECODE
