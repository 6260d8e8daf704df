"""A run is a pure function: same scenario, policy and seed, same bytes; conservation in every run."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from sim_helpers import SCENARIO

from lorapick.core.fleet import Fleet
from lorapick.core.picking.policies import POLICIES
from lorapick.sim import run as running
from lorapick.sim.report import encoded
from lorapick.sim.run import Options, run
from lorapick.sim.scenario_text import parse_scenario
from lorapick.sim.world import World

RESTART = "phases:\n  - {at: 10s, change: {restart: {pod: pod-02, down: 3s}}}\n"
INLINE = {"fleet.mode": "inline", "fleet.reports_loaded": "true", "arrivals.shared_prefix": "64"}


def tiny(text="", **overrides):
    return parse_scenario(SCENARIO + text, file="s.yaml", policies=POLICIES, overrides=overrides)


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_keeps_all_invariants(policy):
    report = run(tiny(RESTART), policy=policy, options=Options(check_every=1))
    whole = report.whole
    ended = whole.served + whole.failed + whole.rejected + whole.abandoned
    assert ended + whole.in_flight == whole.arrivals > 200
    assert whole.gpu.total == pytest.approx(2 * whole.length)
    assert whole.gpu.down == pytest.approx(3.0)
    assert sum(row.gpu.total for row in report.pods) == pytest.approx(2 * whole.length)
    assert sum(row.loads for row in report.pods) == whole.loads
    assert sum(row.swaps for row in report.pods) == whole.swaps == sum(report.swaps_from.values())
    assert (report.policy, report.seed, report.scenario) == (policy, 1, "tiny")
    # No run needs fewer loads than the best for the order in which it served.
    assert report.bounds.service_order <= whole.loads


def test_inline_pods_that_report_what_they_hold_and_cache_prefixes():
    report = run(tiny(**INLINE), options=Options(check_every=1))
    assert report.whole.served > 200
    assert report.whole.gpu.drain == 0.0
    uncached = run(tiny(**INLINE, **{"fleet.prefix_caching": "false"}))
    assert uncached.whole.gpu.prefill > report.whole.gpu.prefill


@pytest.mark.parametrize(
    "variant", [{"fleet.memory": "unified"}, {"fleet.kernel": "segmented"}, {"fleet.merging": "by_load"}]
)
def test_variants_of_pods_keep_all_invariants(variant):
    report = run(tiny(**{"fleet.mode": "inline", **variant}), policy="round-robin", options=Options(check_every=1))
    assert report.whole.served > 100
    assert report.whole.gpu.total == pytest.approx(2 * report.whole.length)
    assert (report.bounds is None) == ("fleet.memory" in variant)
    assert (report.whole.gpu.merge > 0) == ("fleet.merging" in variant)


def test_windows_and_periods_are_parts_of_the_whole():
    report = run(tiny("periods: [{name: a, from: 5s, to: 12s}, {name: b, from: 12s, to: 20s}]\n"))
    whole, parts = report.whole, report.periods.values()
    for name in ("arrivals", "served", "in_flight", "hits", "misses", "waited", "swaps", "loads", "output_tokens"):
        assert getattr(whole, name) == sum(getattr(part, name) for part in parts), name
    for name in ("slot_seconds", "length"):
        assert getattr(whole, name) == pytest.approx(sum(getattr(part, name) for part in parts)), name
    assert sum(report.series.arrivals) == whole.arrivals
    assert len(report.series.t) == len(report.series.gpu["idle"]) == 15
    assert all(sum(parts) == pytest.approx(1.0) for parts in zip(*report.series.gpu.values(), strict=True))
    swaps = sum(sum(each) for each in report.series.swap_rate) * report.series.window
    assert swaps == pytest.approx(whole.swaps)


def test_mean_residency_follows_from_slots_and_loads():
    whole = run(tiny(), policy="round-robin").whole
    # Four slots, all full: residencies add up to four slots times the time.
    assert whole.slot_seconds == pytest.approx(4 * whole.length, rel=0.02)
    assert whole.loads > 20


def test_all_policies_see_the_same_arrivals_and_seeds_differ():
    first, second = (run(tiny(), policy=policy) for policy in ("weighted", "random"))
    assert first.series.arrivals == second.series.arrivals
    assert run(tiny(), seed=2).series.arrivals != first.series.arrivals


def test_a_run_tells_its_progress_and_is_none_the_different():
    told = []
    watched = run(tiny(), options=Options(progress=told.append, check_every=50))
    assert told == sorted(told)
    assert (len(told), told[-1]) == (16, 1.0)
    assert encoded(watched) == encoded(run(tiny()))
    assert run(tiny(), options=Options(bounds=False)).bounds is None


def test_tests_check_invariants_on_the_way_without_asking(monkeypatch):
    checks = []
    monkeypatch.setattr(Fleet, "check", lambda fleet: checks.append(fleet.state.tally.arrivals))
    run(tiny())
    # At least once for so many arrivals, each of which is an event; the last look is the one at the end.
    assert len(checks) > checks[-1] / World.check_every > 5


def test_an_unknown_policy_is_refused():
    with pytest.raises(ValueError, match="policy 'best' is unknown; use one of weighted"):
        run(tiny(), policy="best")


def test_lost_gpu_time_is_found(monkeypatch):
    monkeypatch.setattr("lorapick.sim.simpod.spent", lambda time: running.GpuTime(prefill=time.prefill))
    with pytest.raises(AssertionError, match=r"pod-01: .* s are accounted for, 20\.0 s passed"):
        run(tiny())


# -- same seed, same bytes

DIGESTED = ("weighted", "chwbl", "gie-lora")
DIGEST = """
import hashlib, sys
sys.path.insert(0, sys.argv[1])
from sim_helpers import SCENARIO
from lorapick.core.picking.policies import POLICIES
from lorapick.sim.report import encoded
from lorapick.sim.run import run
from lorapick.sim.scenario_text import parse_scenario
scenario = parse_scenario(SCENARIO + sys.argv[2], file="s.yaml", policies=POLICIES)
digest = hashlib.sha256()
for policy in sys.argv[3:]:
    digest.update(encoded(run(scenario, policy=policy, seed=3)))
print(digest.hexdigest())
"""


def digest_under(hash_seed):
    """Digest of some policies' reports, made by a process of its own."""
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    arguments = [sys.executable, "-c", DIGEST, str(Path(__file__).parent), RESTART, *DIGESTED]
    done = subprocess.run(arguments, env=environment, capture_output=True, text=True, timeout=100, check=True)
    return done.stdout.strip()


def test_same_seed_same_bytes_whatever_the_hash_seed():
    here = hashlib.sha256()
    for policy in DIGESTED:
        here.update(encoded(run(tiny(RESTART), policy=policy, seed=3)))
    assert {digest_under("1"), digest_under("2")} == {here.hexdigest()}
