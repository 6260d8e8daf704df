"""Reports of the gate; what it says of fleets and rollouts at their ends."""

import json

import pytest

from lorapick.model.pods import Pod, PodLimits
from lorapick.plan.gate.check import check
from lorapick.plan.gate.fitting import Told, times_of
from lorapick.plan.gate.formats import to_github, to_json, to_junit
from lorapick.plan.gate.report import POINTS, Checked, report
from lorapick.plan.gate.values import Finding, Level, Plan, Rules
from lorapick.plan.prediction.values import Demand, FleetShape
from lorapick.plan.work import GIVEN
from lorapick.plan.work import to_json as report_json
from lorapick.plan.work_page import report_page


def plan(adapters=6, *, rate=1.0, pods=2, slots=2, policy="weighted"):
    limits = PodLimits(max_loras=slots)
    fleet = FleetShape(
        pods=tuple(Pod(name=f"p{n}", address="127.0.0.1:1", limits=limits) for n in range(pods)), policy=policy
    )
    return Plan(fleet=fleet, demand=tuple(Demand(adapter=f"a{n}", rate=rate) for n in range(adapters)))


RULES, TOLD = Rules(), Told()


def checked(then, now=None, *, rules=RULES, told=TOLD, faults=()):
    times = times_of(told, now)
    verdict = check(then, today=now, rules=rules, costs=times.costs, faults=faults)
    return Checked(now=now, then=then, rules=rules, times=times, verdict=verdict, told_by="fleet.yaml")


# -- the report


def test_figures_put_their_numbers_in():
    told = report(checked(plan(6), plan(4)), curves=False)
    assert told.title.startswith("fails: 6 active adapters on 4 slots, 2 added, 0 removed")
    assert (told["active adapters / slots then"].value, told["active adapters / slots then"].formula) == (1.5, "6 / 4")
    assert told["requests today"].value == 4.0
    hits = told["hits then"]
    missed, asked = (float(word.split()[0]) for word in hits.formula.removeprefix("1 − ").split(" / "))
    assert hits.value == pytest.approx(1 - missed / asked, abs=1e-3)
    residency = told["mean residency then"]
    used, loads = (float(word.split()[0]) for word in residency.formula.split(" / "))
    assert (used, residency.value) == (4.0, pytest.approx(used / loads, rel=1e-3))
    assert all(each.formula and each.source for each in (*told.figures, *told.assumptions))
    assert len({each.name for each in (*told.figures, *told.assumptions)}) == len(told.figures) + len(told.assumptions)


def test_where_bounds_and_times_come_from():
    told = report(checked(plan(), rules=Rules(hit_ratio=0.9), told=Told(swap=0.5)), curves=False)
    assert told["bound of hit ratio"].source == "alerts.hit_ratio in fleet.yaml"
    assert told["bound of residency"].source == "default of alerts.residency"
    assert told["swap"].source == GIVEN
    assert told["latency"].source == "assumed: half of their P95; the article has none"
    assert told["latency p95"].source.startswith("assumed: 220 ms, of the article's healthy fleet")


def test_where_times_come_from_that_today_has_a_part_in():
    told = report(checked(plan(6), plan(4), told=Told(p95=0.5, median=0.1)), curves=False)
    assert (told["P95 today"].source, told["latency"].source) == (GIVEN, GIVEN)
    assert told["swap"].source.startswith("assumed: the middle of the article's 200 to 500 ms")
    assert told["latency p95"].source.startswith("searched")
    short = report(checked(plan(6), plan(5), told=Told(p95=0.2)), curves=False)
    assert short["swap"].source == "as long as P95 of today leaves room for; otherwise 350 ms are assumed"
    assert not any("as assumed" in note for note in short.notes)
    nothing = report(checked(plan(6), plan(6)), curves=False)
    assert any("as assumed" in note for note in nothing.notes)
    assert nothing["swap"].source.startswith("assumed: the shortest of the article's 200 to 500 ms")


def test_findings_and_changes_are_tables():
    told = report(checked(plan(6), plan(4)), curves=False)
    findings, changes = told.tables
    assert [row[0] for row in findings.rows if row[1] == "fail"] == ["hit_ratio", "swap_rate", "than_today"]
    assert changes.title == "what would pass, cheapest first"
    assert any(row[1] == "passes" for row in changes.rows)


def test_a_page_has_the_verdict_and_why_above_all_numbers():
    page = report_page(report(checked(plan(6), plan(4)), curves=True))
    places = [page.index(f"<h{level}>{words}") for level, words in ((1, "fails"), (2, "findings"), (2, "Figures"))]
    assert places == sorted(places)
    assert '<tr><td>hit_ratio</td><td>fail</td><td class="words">' in page
    assert page.count('class="line c2"') == 4, "each line of both charts has its dashes in the legend too"


@pytest.mark.parametrize("policy", ["weighted", "round-robin", "rendezvous"])
def test_curves_over_slots(policy):
    told = report(checked(plan(6, policy=policy), plan(4, policy=policy)), curves=True)
    hits, swaps = told.charts
    assert hits.xs[0] == 1.0 and 2.0 in hits.xs and len(hits.xs) <= POINTS
    assert [curve.name for curve in hits.curves] == ["today", "then", "what has to be"]
    then = hits.curves[1].values[hits.xs.index(2.0)]
    assert then == pytest.approx(100 * told["hits then"].value)
    assert [*swaps.curves[1].values] == sorted(swaps.curves[1].values, reverse=True)
    assert "<svg" in report_page(told)


def test_many_slots_are_few_points():
    assert len(report(checked(plan(500, slots=60, pods=3)), curves=True).charts[0].xs) <= POINTS
    assert len(report(checked(plan(1, slots=1, pods=1)), curves=True).charts[0].xs) >= 2


def test_names_are_made_printable():
    odd = Plan(fleet=plan().fleet, demand=(Demand(adapter="\x1b[31m", rate=9.0), *plan().demand))
    fault = Finding(rule="name", level=Level.FAIL, message="\x1b[31m\ud800 is no name", adapter="x")
    told = report(checked(odd, faults=(fault,)), curves=True)
    assert "\x1b" not in report_page(told)
    report_page(told).encode()
    assert "?[31m? is no name" in json.dumps(report_json(told))


# -- ends


def test_no_traffic_is_warned_of():
    verdict = check(plan(rate=0.0), today=None, rules=Rules())
    assert (verdict.level, verdict.changes) == (Level.WARN, ())
    assert [each.rule for each in verdict.findings if each.level is Level.WARN] == ["traffic"]
    assert report(checked(plan(rate=0.0)), curves=True)["hits"].value is None


@pytest.mark.parametrize("policy", ["weighted", "round-robin", "rendezvous"])
def test_no_slots_fail_and_say_so(policy):
    then = plan(slots=0, policy=policy)
    verdict = check(then, today=None, rules=Rules())
    assert verdict.level is Level.FAIL
    assert "the pods have no slots" in verdict.findings[0].message
    assert verdict.cheapest is not None
    assert report(checked(then), curves=True)["active adapters / slots"].value is None
    assert json.loads(json.dumps(to_json(verdict), allow_nan=False))["after"]["slots"] == 0


def test_one_pod_can_be_checked():
    verdict = check(plan(6, pods=1), today=None, rules=Rules())
    assert {"slots", "pods", "fewer"} <= {each.kind for each in verdict.changes}
    assert next(each for each in verdict.changes if each.kind == "fewer").prediction.active >= 1


def test_when_nothing_passes_the_closest_is_told():
    rules = Rules(hit_ratio=1.01)
    verdict = check(plan(), today=None, rules=rules)
    assert verdict.cheapest is None and not any(each.passes for each in verdict.changes)
    best = verdict.closest
    assert best is not None and best.kind == "slots"
    assert [each.rule for each in best.failing] == ["hit_ratio"]
    assert best.plan.fleet.slots >= 6  # as many as can help, and no more
    assert best.plan.fleet.slots < 10
    assert to_json(verdict)["closest"] == "slots" and to_json(verdict)["cheapest"] is None
    assert "nothing that was tried would pass; closest: 3 slots per pod instead of 2" in to_github(verdict)
    assert "nothing that was tried would pass:" in to_junit(verdict)
    tables = report(checked(plan(), rules=rules), curves=False).tables
    assert tables[1].title == "nothing that was tried would pass"
    assert any(row[1] == "fails hit_ratio" for row in tables[1].rows)


def test_a_promise_below_what_takes_no_swap_is_mended_by_nothing():
    verdict = check(plan(), today=None, rules=Rules(latency_p95=0.1))
    slo = next(each for each in verdict.findings if each.rule == "slo")
    assert slo.level is Level.FAIL and verdict.level is Level.FAIL
    assert "requests without a swap take 0.22 s already, so no change of adapters, slots or pods helps" in slo.message
    assert verdict.changes == () and verdict.closest is None
    assert "::notice title=lorapick check::nothing" not in to_github(verdict)


def test_where_something_passes_nothing_is_closest():
    assert check(plan(), today=None, rules=Rules()).closest is None
    assert check(plan(1), today=None, rules=Rules()).closest is None


def test_somebody_always_stays():
    """Also where all are of the rollout."""
    now = Plan(fleet=plan().fleet, demand=(Demand(adapter="old", rate=6.0),))
    verdict = check(plan(), today=now, rules=Rules(hit_ratio=1.01))
    assert next(each for each in verdict.changes if each.kind == "fewer").prediction.active == 1
