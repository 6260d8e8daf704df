"""What is said of two arms, and when nothing can be said."""

import random

import pytest

from lorapick.core.arms_report import compare, quantiles, report_of_rows, share
from lorapick.core.arms_tally import STEP, ArmTally, Durations, WouldTally
from lorapick.model.arms import Arm, ArmVerdict, Mode, ModeKind
from lorapick.model.ledger import RequestRow
from lorapick.model.requests import Outcome


def arm(count: int, *, hits: float, mean: float = 0.5, errors: int = 0, seed: int = 1) -> ArmTally:
    tally, chance = ArmTally(), random.Random(seed)
    tally.outcomes[Outcome.SERVED] = tally.adapter_requests = count
    tally.hits, tally.errors, tally.loads = round(count * hits), errors, round(count * (1 - hits))
    tally.by_tier["gpu_idle"], tally.by_tier["disk"] = tally.hits, tally.loads
    for _ in range(count):
        tally.latency.add(chance.lognormvariate(0, 0.3) * mean)
    return tally


def compared(enforced: ArmTally, observed: ArmTally):
    tallies = {Arm.ENFORCED: enforced, Arm.OBSERVED: observed}
    return compare(tallies, WouldTally(), mode=Mode(kind=ModeKind.PERCENT, percent=50.0), seconds=60.0)


def verdict_on(found, what: str) -> ArmVerdict:
    return next(finding.verdict for finding in found.findings if finding.what == what)


def test_a_clear_difference_is_said():
    found = compared(arm(2000, hits=0.95, mean=0.3), arm(2000, hits=0.4, mean=0.9, seed=2))
    assert found.verdict is ArmVerdict.BETTER
    assert [verdict_on(found, what) for what in ("hits", "loads", "latency p50", "latency p95")] == [
        ArmVerdict.BETTER
    ] * 4
    assert found.sentence.startswith("Where lorapick's picks are in force: hits better (95 % against 40 %)")


def test_the_other_way_round_it_is_worse():
    found = compared(arm(2000, hits=0.4, mean=0.9), arm(2000, hits=0.95, mean=0.3))
    assert found.verdict is ArmVerdict.WORSE
    assert "hits worse" in found.sentence


def test_better_in_one_and_worse_in_another_is_mixed():
    assert compared(arm(3000, hits=0.95, mean=0.9), arm(3000, hits=0.4, mean=0.3)).verdict is ArmVerdict.MIXED


def test_few_requests_say_nothing():
    found = compared(arm(40, hits=1.0), arm(5000, hits=0.1))
    assert found.verdict is ArmVerdict.TOO_FEW
    assert {finding.verdict for finding in found.findings} == {ArmVerdict.TOO_FEW}
    assert found.sentence == "Too few to tell: one arm has 40 requests, and below 100 nothing is said of it."


def test_a_difference_within_chance_is_not_said():
    found = compared(arm(300, hits=0.80), arm(300, hits=0.83, seed=2))
    assert verdict_on(found, "hits") is ArmVerdict.TOO_FEW
    assert found.sentence == "Too few to tell: no figure's bounds lie apart yet."


def test_no_requests_in_one_arm_are_nothing_to_compare():
    assert compared(ArmTally(), ArmTally()).verdict is ArmVerdict.NOTHING
    found = alone(Mode(kind=ModeKind.ENFORCE), enforced=500)
    assert "picks are in force for all requests" in found and "`lorapick mode percent 50` compares" in found


def alone(mode: Mode, *, enforced: int = 0, observed: int = 0) -> str:
    """What is said where one arm has no requests."""
    tallies = {Arm.ENFORCED: arm(enforced, hits=0.5), Arm.OBSERVED: arm(observed, hits=0.5)}
    return compare(tallies, WouldTally(), mode=mode, seconds=1.0).sentence


@pytest.mark.parametrize("arms", [{"enforced": 9}, {"observed": 9}])
def test_what_is_said_of_one_arm_is_what_the_mode_is_and_not_which_arm_it_is(arms):
    kind = "with them" if "enforced" in arms else "without them"
    assert f"for 25 % of the requests, and all that have left were {kind}" in alone(
        Mode(kind=ModeKind.PERCENT, percent=25.0), **arms
    )
    said = {each: alone(Mode(kind=each), **arms) for each in (ModeKind.ENFORCE, ModeKind.OBSERVE)}
    wrong = ModeKind.OBSERVE if "enforced" in arms else ModeKind.ENFORCE
    assert said[wrong].startswith("Nothing to compare yet: no request has left since picks")


def test_arms_whose_durations_lie_in_neighbouring_buckets_are_not_said_to_differ():
    def constant(seconds: float) -> ArmTally:
        tally = arm(0, hits=0.0)
        tally.outcomes[Outcome.SERVED] = tally.adapter_requests = tally.hits = 5000
        for _ in range(5000):
            tally.latency.add(seconds)
        return tally

    edge = 0.001 * STEP**100
    assert verdict_on(compared(constant(edge * 0.999), constant(edge * 1.001)), "latency p95") is ArmVerdict.TOO_FEW
    assert verdict_on(compared(constant(edge * 0.9), constant(edge * 1.1)), "latency p95") is ArmVerdict.BETTER


@pytest.mark.parametrize("p", [0.02, 0.5, 0.97])
def test_shares_lie_within_their_bounds_as_often_as_said(p):
    chance, inside = random.Random(5), 0
    for _ in range(1000):
        found = share(sum(chance.random() < p for _ in range(200)), 200)
        assert found is not None
        inside += found.low <= p <= found.high
    assert inside >= 920


def test_quantiles_have_bounds_where_enough_lies_beyond_them():
    durations = Durations()
    for number in range(1, 201):
        durations.add(number / 100)
    found = quantiles(durations)
    assert found["p50"].value == pytest.approx(1.0, rel=0.06)
    assert found["p95"].low is not None
    assert found["p99"].high is None  # two of 200 lie beyond it
    assert quantiles(Durations()) == {}


def row(number: int, **fields) -> RequestRow:
    usual = {"arrived": 0.0, "ended": 0.4, "model": "a", "adapter": "a", "pod": "p1", "outcome": Outcome.SERVED}
    return RequestRow(**(usual | {"id": f"r{number}", "status": 200, "tier": "gpu_idle", "hit": True} | fields))


def test_a_ledgers_rows_are_compared_too():
    rows = [row(n, arm=Arm.ENFORCED) for n in range(300)]
    loads = {"arm": Arm.OBSERVED, "tier": "disk", "hit": False, "load_wait": 0.5, "ended": 1.0}
    rows += [row(n, would_pod="p2", would_be="gpu_idle", **loads) for n in range(300)]
    rows += [row(1, arm=None), row(2, arm=Arm.ENFORCED, id=None)]
    found = report_of_rows(rows, seconds=60.0)
    enforced, observed = found.arms
    assert (enforced.requests, observed.requests, found.mode, found.source) == (300, 300, "percent 50", "ledger")
    assert (observed.loads, observed.swap_seconds, enforced.hits) == (300, 150.0, 300)
    assert (found.would.hits, found.would.compared, found.would.agreed) == (300, 300, 0)
    assert found.verdict is ArmVerdict.BETTER
