"""Playing a measured run, and what its client can send."""

import numpy as np
import pytest
from calibration_kit import run, shipped, slot_costs

from lorapick.plan.calibration.coefficients import read_coefficients
from lorapick.plan.calibration.held_out import Plan, calibrate
from lorapick.plan.calibration.simulated import pod_config, simulate
from lorapick.plan.calibration.workload import LINGER, LONGEST, LONGEST_PROMPT, PORTS, SHORTEST, Arrivals, Client
from lorapick.pod.values import StepCosts

KV = 300_000


def play(each, seconds=200.0, **values):
    return simulate(each, read_coefficients(), kv_tokens=KV, seconds=seconds, **values)


def test_the_pod_is_configured_as_the_run_was():
    config = pod_config(run(slots=8, adapters=32, rank=32), read_coefficients(), kv_tokens=KV)
    assert (config.limits.max_loras, config.limits.max_cpu_loras, config.limits.max_lora_rank) == (8, 32, 32)
    assert config.kv_blocks * config.block_size == KV
    assert config.step == read_coefficients().step(32) != StepCosts()


def test_requests_come_at_the_rates_and_with_the_lengths_of_the_run():
    each = run(rates=(1.6, 0.8, 0.4), adapters=6, output_rate=200.0, input_rate=220.0)
    arrivals = Arrivals(each, 3600.0, seed=1)
    shares = np.bincount(arrivals.adapters, minlength=6) / 3600.0
    assert shares == pytest.approx([1.6, 0.8, 0.4] * 2, rel=0.1)
    assert arrivals.times == sorted(arrivals.times) and 0 < arrivals.times[0] < arrivals.times[-1] < 3600
    assert np.mean(arrivals.prompts) == pytest.approx(220, rel=0.02)
    assert np.mean(arrivals.outputs) == pytest.approx(200, rel=0.02)
    assert min(arrivals.prompts) >= SHORTEST and max(arrivals.prompts) <= LONGEST_PROMPT
    assert max(p + o for p, o in zip(arrivals.prompts, arrivals.outputs, strict=True)) <= LONGEST


def test_runs_that_differ_in_slots_or_rank_get_the_same_requests():
    one, other = (Arrivals(each, 100.0, seed=3) for each in (run(), run(slots=64, rank=32, line=9)))
    assert (one.times, one.adapters, one.prompts) == (other.times, other.adapters, other.prompts)
    assert Arrivals(run(), 100.0, seed=4).times != one.times


def test_only_what_was_configured_and_the_lengths_decide():
    other = {"served": 2.0, "output_rate": 400.0, "input_rate": 440.0, "ttft": 50.0, "ttft_p99": 99.0, "tpot": 0.2}
    assert play(run()) == play(run(**other, line=77))


def test_ports_linger():
    client = Client()
    assert client.free_at(0.0) == 0.0
    for _ in range(PORTS):
        client.sent()
    assert client.free_at(1.0) is None
    client.answered(2.0)
    assert client.free_at(2.0) == 2.0 + LINGER
    assert client.free_at(2.0 + LINGER) == 2.0 + LINGER


def test_requests_that_find_no_port_are_not_sent(monkeypatch):
    monkeypatch.setattr("lorapick.plan.calibration.workload.PORTS", 50)
    flooded = play(run(rates=(5.0,), adapters=10))
    assert flooded.unsent > 0 and flooded.served == pytest.approx(50 / LINGER, rel=0.35)


def test_a_light_run_is_served_as_it_comes():
    ours = play(run())
    assert ours.served == pytest.approx(1.0, rel=0.15)
    assert 0.01 < ours.tpot < 0.03 and ours.ttft < ours.ttft_p99 < 0.5
    assert (ours.preemptions, ours.unsent) == (0.0, 0)


def test_one_slot_for_many_adapters_makes_them_wait():
    few, many = play(run(slots=1, rates=(0.5,))), play(run(slots=16, rates=(0.5,)))
    assert few.ttft > 20 * many.ttft
    assert few.served < many.served


def test_what_comes_before_the_warm_up_is_not_counted():
    whole, late = play(run()), play(run(), warm_up=100.0)
    assert late.served == pytest.approx(whole.served, rel=0.3) and late.ttft != whole.ttft


def test_nobody_served_is_not_nought_seconds():
    ours = play(run(), seconds=0.01)
    assert (ours.served, ours.ttft, ours.ttft_p99, ours.tpot) == (0.0, None, None, None)


def test_the_same_again_in_one_process_and_in_two():
    runs, costs = shipped()
    found = [calibrate(runs, costs, plan=Plan(seconds=30.0, only="8/16 r16", workers=workers)) for workers in (1, 1, 2)]
    assert found[0] == found[1] == found[2]
    assert [outcome.run.line for outcome in found[0].outcomes] == [r.line for r in runs if "8/16 r16" in r.name]
    assert all(outcome.played == 30.0 for outcome in found[0].outcomes)


def test_each_run_is_played_with_what_was_fitted_without_its_group():
    runs, costs = shipped()
    found = calibrate(runs, costs, plan=Plan(seconds=20.0, only="8/8 r16", workers=1))
    assert {outcome.run.group for outcome in found.outcomes} <= {fold.group for fold in found.folds}
    for outcome in found.outcomes:
        (fold,) = (fold for fold in found.folds if fold.group == outcome.run.group)
        kv = costs[outcome.run.model, 8, 16].kv_tokens
        assert outcome.ours == simulate(outcome.run, fold.coefficients, kv_tokens=kv, seconds=20.0)


def test_progress_is_told():
    runs, costs = shipped()
    told = []
    calibrate(runs, costs, plan=Plan(seconds=2.0, only="8/8 r16", workers=1), progress=told.append)
    assert told == sorted(told) and told[-1] == pytest.approx(1.0)


def test_little_memory_is_enough_to_play():
    costs = slot_costs(8, kv_tokens=4096)
    assert simulate(run(), read_coefficients(), kv_tokens=costs["m", 8, 16].kv_tokens, seconds=100.0).served > 0
