"""Fitting coefficients, and what is held out."""

from pathlib import Path

import numpy as np
import pytest
from calibration_kit import run, shipped, slot_costs

from lorapick.plan.calibration.coefficients import FROZEN, Coefficients, CoefficientsError, read_coefficients
from lorapick.plan.calibration.fit import PREFILL, FitError, _least_squares, distinct, fit, folds, kv_tokens
from lorapick.plan.calibration.workload import OUTPUT_SPREAD
from lorapick.sim.hardware import PRESETS

TRUE = Coefficients(
    a=13e-3,
    b=0.1e-3,
    c=0.4e-3,
    d=0.6e-6,
    slot=20e-6,
    scan=0.5e-6,
    a_by_rank=1.5e-3,
    c_by_rank=0.05e-3,
    slot_by_rank=10e-6,
    prefill=PREFILL,
    activation=8e-3,
)
SLOTS = (8, 16, 64, 128)


def made(batch, slots, *, adapters, rank, ttft, layers=32):
    """A run whose pace is what the true coefficients say."""
    prompts_per_token = 1.1
    served = 1.0  # only the queue depends on it
    plain = run(slots=slots, adapters=adapters, rank=rank, served=served, rates=(served / adapters,), ttft=ttft)
    active = slots if adapters > slots and ttft > 1.0 else min(slots, distinct(plain, batch))
    full = min(1.0, batch * (1 + prompts_per_token) / 2048)
    waiting = served * ttft * (1 - full**2) if adapters > slots and ttft > 1.0 else 0.0
    costs = TRUE.step(rank, layers=layers)
    pace = costs.a + costs.b * batch + costs.c * active + costs.d * batch * active
    pace += costs.slot * slots + costs.scan * waiting
    tpot = pace + PREFILL * prompts_per_token * batch
    tokens = batch / tpot
    return run(
        layers=layers,
        slots=slots,
        adapters=adapters,
        rank=rank,
        served=served,
        rates=plain.rates,
        ttft=ttft,
        tpot=tpot,
        output_rate=tokens,
        input_rate=prompts_per_token * tokens,
    )


def many():
    return [
        made(batch, slots, adapters=adapters, rank=rank, ttft=ttft, layers=28 if batch == 30 else 32)
        for batch in (2, 30, 150, 400)
        for slots in SLOTS
        for adapters in (8, 32, 300)
        for rank in (16, 32)
        for ttft in (0.05, 500.0)
    ]


def test_known_coefficients_are_found_again():
    # Memory is no limit here: so much KV that only the step's tokens fill up.
    assert OUTPUT_SPREAD < 1
    found = fit(many(), slot_costs(*SLOTS, kv_tokens=10**9))
    for name in Coefficients.__struct_fields__:
        assert getattr(found, name) == pytest.approx(getattr(TRUE, name), rel=2e-3), name


def test_nothing_becomes_negative():
    features = np.array([[1.0, x, x * x] for x in range(8)])
    falling = _least_squares(features, np.array([9.0 - x for x in range(8)]), weights=np.ones(8))
    assert min(falling) >= 0.0 and falling[1:] == [0.0, 0.0]
    exact = _least_squares(features, features @ [1.0, 0.0, 2.0], weights=np.ones(8))
    assert exact == pytest.approx([1.0, 0.0, 2.0])


def test_the_step_grows_with_the_rank():
    low, high = TRUE.step(16), TRUE.step(32)
    assert (low.a, low.c, low.slot) == (TRUE.a, TRUE.c, TRUE.slot)
    assert (high.a, high.c, high.slot) == pytest.approx((14.5e-3, 0.45e-3, 30e-6))
    assert (high.b, high.d, high.scan) == (low.b, low.d, low.scan)


def test_what_lora_adds_grows_with_the_layers():
    deep, high = TRUE.step(16, layers=64), TRUE.step(32, layers=64)
    assert (deep.a, deep.b, deep.scan) == (TRUE.a, TRUE.b, TRUE.scan)
    assert (deep.c, deep.d, deep.slot) == pytest.approx((2 * TRUE.c, 2 * TRUE.d, 2 * TRUE.slot))
    assert high.a == pytest.approx(TRUE.a + 2 * TRUE.a_by_rank)


def test_a_group_that_is_held_out_is_not_fitted():
    runs, costs = shipped()
    found = folds(runs, costs)
    assert [fold.group for fold in found] == sorted({run.group for run in runs})
    for fold in found:
        rest = [run for run in runs if run.group != fold.group]
        assert {run.group for run in fold.held_out} == {fold.group}
        assert fold.fitted == len(rest) == len(runs) - len(fold.held_out)
        assert fold.coefficients == fit(rest, costs)


def test_what_was_measured_of_a_held_out_group_changes_nothing():
    runs, costs = shipped()
    group = runs[0].group
    spoilt = [run(line=r.line, model=r.model, rates=r.rates, slots=8) if r.group == group else r for r in runs]
    (before,), (after,) = (
        [fold.coefficients for fold in folds(each, costs) if fold.group == group] for each in (runs, spoilt)
    )
    assert before == after


def test_the_frozen_coefficients_are_those_of_the_shipped_tables(tmp_path):
    runs, costs = shipped()
    found = fit(runs, costs)
    assert found == read_coefficients()
    name = "vllm085_h100_multi_lora_runs_half.csv"
    assert found.text(name) == FROZEN.read_text(encoding="utf-8")
    assert found == fit(tuple(reversed(runs)), costs)


def test_scenarios_can_name_hardware_with_the_frozen_coefficients():
    frozen, preset = read_coefficients(), PRESETS["h100-llama8b-vllm085"]
    assert preset.step == frozen.step(16)
    assert (preset.prefill_per_token, preset.swap.initialisation) == (frozen.prefill, frozen.activation)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: 1\n", "missing required field `b`"),
        ("a: [", "while parsing"),
        ("- 1", "Expected `object`"),
    ],
)
def test_a_file_that_has_no_coefficients(tmp_path, text, words):
    path = tmp_path / "c.yaml"
    path.write_text(text)
    with pytest.raises(CoefficientsError, match=words):
        read_coefficients(path)


def test_coefficients_out_of_range_or_reach(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text(TRUE.text("x").replace("a: 0.013", "a: -1"))
    with pytest.raises(CoefficientsError, match="a is -1 s; it has to be from 0 to 60"):
        read_coefficients(path)
    with pytest.raises(CoefficientsError, match="cannot be read: No such file"):
        read_coefficients(Path(tmp_path / "none.yaml"))


def test_tables_that_say_too_little_are_refused():
    runs, costs = shipped()
    with pytest.raises(FitError, match="5 runs are too few for 7 coefficients; 14 are needed"):
        fit(runs[:5], costs)
    with pytest.raises(FitError, match="0 runs are too few"):
        fit([], costs)
    with pytest.raises(FitError, match="have one model and rates, so none can be held out; two groups are needed"):
        folds([run for run in runs if run.group == runs[0].group], costs)
    with pytest.raises(FitError, match=r"0 slot costs .* are too few"):
        fit(runs, {})


def test_memory_that_nobody_measured_or_that_is_none():
    with pytest.raises(FitError, match="line 2: no kv_cache_tokens for model m, max_loras 8, max_lora_rank 16; add"):
        kv_tokens(run(), {})
    with pytest.raises(FitError, match="line 2: kv_cache_tokens 100 of its slots cannot hold one request"):
        kv_tokens(run(), slot_costs(8, kv_tokens=100))


def test_more_prompts_than_a_gpu_can_read_are_refused():
    flood = [*many(), run(input_rate=70_000.0, line=99)]
    with pytest.raises(FitError, match="line 99: in_tok_s 70000 is more than a GPU can read, 62,061"):
        fit(flood, slot_costs(*SLOTS))
