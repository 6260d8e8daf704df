"""The gate, with the article's Thursday: 40 adapters become 60 on 8 pods with 4 slots."""

import msgspec
import pytest

from lorapick.model.adapters import Adapter, PinSpec
from lorapick.model.placement import AdapterFacts
from lorapick.model.pods import Pod, PodLimits
from lorapick.model.settings import AlertSettings, SloSettings
from lorapick.plan.gate.changes import with_pins, with_slots
from lorapick.plan.gate.check import check
from lorapick.plan.gate.compatibility import AdapterFiles, faults
from lorapick.plan.gate.formats import remedy
from lorapick.plan.gate.rollout import Listed, Rollout, Traffic, after, today
from lorapick.plan.gate.rules import Base, judge, worst
from lorapick.plan.gate.values import Level, Plan, Rules, rules_of
from lorapick.plan.prediction.predict import predict
from lorapick.plan.prediction.values import Demand, FleetShape, Prediction

ARTICLE = Traffic(rate=4.0)
"""Requests per second that follow from the article's 92 % hits at 0.04 swaps per second and pod."""
NAMES = [f"tenant-{number:02d}-v2" for number in range(1, 41)]


def pod(number, **limits):
    return Pod(name=f"pod-{number:02d}", address="127.0.0.1:1", base_model="acme/base", limits=PodLimits(**limits))


def fleet(pods=8, *, slots=4, policy="weighted"):
    return FleetShape(pods=tuple(pod(number, max_loras=slots) for number in range(1, pods + 1)), policy=policy)


def before(traffic=ARTICLE, **shape):
    return Plan(fleet=fleet(**shape), demand=today([Listed(name=name) for name in NAMES], traffic))


def split(traffic=ARTICLE, **shape):
    now = before(traffic, **shape)
    rollout = Rollout(splits=tuple({name: 50, f"{name}-experiment": 50} for name in NAMES[:20]))
    return Plan(fleet=now.fleet, demand=after(now.demand, rollout, traffic=traffic))


def levels(verdict):
    return {finding.rule: finding.level for finding in verdict.findings if finding.level is not Level.OK}


# -- the article's Thursday


def test_thursday_before_warns():
    verdict = check(before(), today=None, rules=Rules())
    assert verdict.level is Level.WARN
    assert levels(verdict) == {"active_adapters": Level.WARN, "residency": Level.WARN}
    assert verdict.after.active_per_slot == 1.25
    # The article: above 92 % hits at 0.04 swaps per second and pod.
    assert verdict.after.hit_ratio == pytest.approx(0.92, abs=0.005)
    assert verdict.after.swap_rate == pytest.approx(0.04, abs=0.005)
    assert verdict.changes == ()


def test_thursday_after_fails_and_names_what_would_pass():
    verdict = check(split(), today=before(), rules=Rules())
    assert verdict.level is Level.FAIL
    assert (verdict.after.active, verdict.after.slots, len(verdict.added)) == (60, 32, 20)
    failed = [rule for rule, level in levels(verdict).items() if level is Level.FAIL]
    assert failed == ["hit_ratio", "than_today"]
    kinds = {change.kind: change for change in verdict.changes}
    assert {"pins", "slots", "slots_for_all", "pods", "fewer"} <= kinds.keys()
    assert not kinds["pins"].passes
    assert kinds["slots"].passes and kinds["pods"].passes and kinds["fewer"].passes
    assert verdict.cheapest is not None and verdict.cheapest.kind in ("pins+slots", "slots")


def test_thursday_fixed_passes_with_a_warning():
    failing = check(split(), today=before(), rules=Rules())
    slots = next(change for change in failing.changes if change.kind == "slots_for_all")
    assert slots.plan.fleet.pods[0].limits.max_loras == 8  # the article's first fix
    fixed = with_pins(slots.plan, 10, new=failing.added)
    assert [each.adapter for each in fixed.demand if each.pin] == NAMES[:10]  # its second
    verdict = check(fixed, today=before(), rules=Rules())
    assert verdict.level is Level.WARN
    assert levels(verdict) == {"active_adapters": Level.WARN}
    assert (verdict.after.active, verdict.after.slots) == (60, 64)


@pytest.mark.parametrize("rate", [4.0, 20.0, 50.0])
def test_thursday_at_any_rate(rate):
    traffic = Traffic(rate=rate)
    told = [
        check(plan, today=now, rules=Rules()).level
        for plan, now in ((before(traffic), None), (split(traffic), before(traffic)))
    ]
    assert told == [Level.WARN, Level.FAIL]


def test_a_change_is_the_smallest_that_passes():
    verdict = check(split(), today=before(), rules=Rules())
    slots = next(change for change in verdict.changes if change.kind == "slots")
    extra = slots.plan.fleet.pods[0].limits.max_loras - 4
    one_less = check(with_slots(split(), extra - 1), today=before(), rules=Rules())
    assert one_less.level is Level.FAIL


@pytest.mark.parametrize("policy", ["weighted", "rendezvous", "round-robin"])
def test_every_policy_can_be_checked(policy):
    verdict = check(split(policy=policy), today=before(policy=policy), rules=Rules())
    for change in verdict.changes:
        assert change.passes is (worst(judge(change.prediction, today=verdict.today, rules=Rules())) is not Level.FAIL)
    scattered = verdict.after.hit_ratio is not None and verdict.after.hit_ratio < 0.5
    assert not scattered or verdict.changes[0].kind != "fewer"


# -- rules


def prediction(**changes):
    fine = Prediction(
        active=10,
        slots=20,
        requests=5.0,
        hit_ratio=0.99,
        load_ratio=0.01,
        swap_rate=0.01,
        worst_swap_rate=0.01,
        residency=3600.0,
        busy=0.0,
        p95=0.3,
    )
    return msgspec.structs.replace(fine, **changes)


@pytest.mark.parametrize(
    ("hits", "points", "close"),
    [(0.79, 2.0, True), (0.77, 2.0, False), (0.77, 4.0, True), (0.81, 2.0, True), (0.83, 2.0, False)],
)
def test_hits_near_their_bound_are_said_to_be_unsure(hits, points, close):
    found = next(
        each
        for each in judge(prediction(hit_ratio=hits, error_points=points), today=None, rules=Rules())
        if each.rule == "hit_ratio"
    )
    assert found.unsure is close
    assert (f"within what the prediction may be off ({points:g} points)" in found.message) is close


def test_hits_are_sure_where_nothing_is_loaded():
    certain = prediction(hit_ratio=1.0, residency=None)
    assert worst(judge(certain, today=None, rules=Rules(hit_ratio=0.99))) is Level.OK


def test_changes_near_the_bound_say_so():
    slots = next(each for each in check(split(), today=before(), rules=Rules()).changes if each.kind == "slots")
    assert slots.unsure and "81." in remedy(slots) and "% hits ± 2 points" in remedy(slots)


@pytest.mark.parametrize(
    ("changes", "rule", "level"),
    [
        ({}, None, Level.OK),
        ({"active": 16}, None, Level.OK),
        ({"active": 17}, "active_adapters", Level.WARN),
        ({"residency": 299.0}, "residency", Level.WARN),
        ({"residency": None}, None, Level.OK),
        ({"worst_swap_rate": 0.11}, "swap_rate", Level.WARN),
        ({"worst_swap_rate": 0.51}, "swap_rate", Level.FAIL),
        ({"hit_ratio": 0.79}, "hit_ratio", Level.FAIL),
        ({"hit_ratio": 0.81}, "hit_ratio", Level.WARN),
        ({"hit_ratio": 0.83}, None, Level.OK),
        ({"hit_ratio": 0.83, "error_points": 4.0}, "hit_ratio", Level.WARN),
        ({"hit_ratio": None}, None, Level.OK),
        ({"p95": 2.1}, "slo", Level.FAIL),
        ({"p95": None}, "slo", Level.FAIL),
        ({"swap_rate": 0.12}, "than_today", Level.FAIL),
        ({"swap_rate": 0.09}, None, Level.OK),
    ],
)
def test_rules(changes, rule, level):
    rules = Rules(latency_p95=2.0)
    found = judge(prediction(**changes), today=prediction(swap_rate=0.04), rules=rules)
    assert {each.rule: each.level for each in found if each.level is not Level.OK} == ({rule: level} if rule else {})
    assert worst(found) is level


@pytest.mark.parametrize(("p95", "level"), [(1.0, Level.WARN), (2.1, Level.FAIL)])
def test_promises_judged_by_a_latency_that_nobody_measured(p95, level):
    found = judge(prediction(p95=p95), today=None, rules=Rules(latency_p95=2.0), base=Base(p95=0.22, assumed=True))
    slo = next(each for each in found if each.rule == "slo")
    assert slo.level is level
    assert slo.message.endswith("that rests on an assumed latency: give the P95 that is measured (--latency-p95)")
    assert not any(each.rule == "slo" for each in judge(prediction(), today=None, rules=Rules(), base=None))


def test_bounds_come_from_the_configuration():
    found = rules_of(AlertSettings(swap_rate=0.3, hit_ratio=0.9), SloSettings(latency_p95=1.5))
    assert (found.swap_rate, found.hit_ratio, found.latency_p95) == (0.3, 0.9, 1.5)


def test_without_today_nothing_is_compared():
    assert "than_today" not in [each.rule for each in judge(prediction(), today=None, rules=Rules())]


# -- faults of adapters


@pytest.mark.parametrize(
    ("adapter", "facts", "rule"),
    [
        (Adapter(name="a,b"), None, "name"),
        (Adapter(name="a b"), None, "name"),
        (Adapter(name="a", base_model="acme/other"), None, "base_model"),
        (Adapter(name="a"), AdapterFacts(base_model="acme/other"), "base_model"),
        (Adapter(name="a", rank=128), None, "rank"),
        (Adapter(name="a"), AdapterFacts(needs=("use_dora",)), "needs"),
    ],
)
def test_who_fits_nowhere_fails(adapter, facts, rule):
    found = faults([adapter], [pod(1), pod(2)], files={adapter.name: AdapterFiles(facts)} if facts else {})
    assert [(each.rule, each.level, each.adapter) for each in found] == [(rule, Level.FAIL, adapter.name)]


def test_who_fits_somewhere_is_warned_of():
    found = faults([Adapter(name="a", rank=64)], [pod(1, max_lora_rank=16), pod(2, max_lora_rank=64)], files={})
    assert [each.level for each in found] == [Level.WARN]


def test_a_fault_fails_the_check():
    fine = Plan(fleet=fleet(), demand=(Demand(adapter="a", rate=1.0),))
    found = faults([Adapter(name="a", rank=128)], fine.fleet.pods, files={})
    verdict = check(fine, today=None, rules=Rules(), faults=found)
    assert (verdict.level, verdict.changes) == (Level.FAIL, ())


def test_pins_that_are_there_count():
    plan = with_pins(before(), 10)
    assert [each.pin for each in plan.demand[:10]] == [PinSpec(replicas=1)] * 10
    assert predict(plan.fleet, plan.demand).hit_ratio > 0.9
