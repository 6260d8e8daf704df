"""Runs as a table would have them, made up."""

from lorapick.plan.calibration.runs import Run, SlotCost, read_runs, read_slot_costs
from lorapick.plan.calibration.scoring import Outcome
from lorapick.plan.calibration.simulated import Simulated
from lorapick.plan.datafiles import data_path, open_lines

RUNS = "calibration/vllm085_h100_multi_lora_runs_half.csv"
SLOT_COSTS = "calibration/vllm085_h100_lora_slot_cost.csv"


def shipped():
    """The two tables that come with the project."""
    return read_runs(open_lines(data_path(RUNS))), read_slot_costs(open_lines(data_path(SLOT_COSTS)))


def run(**values):
    """A light run; what a test is about is given."""
    plain = Run(
        line=2,
        model="m",
        layers=32,
        rates=(0.1,),
        slots=8,
        adapters=10,
        rank=16,
        seconds=3600.0,
        served=1.0,
        output_rate=200.0,
        input_rate=220.0,
        ttft=0.05,
        ttft_p99=0.1,
        tpot=0.015,
    )
    return Run(**{name: values.get(name, getattr(plain, name)) for name in Run.__struct_fields__})


def outcome(*, ours=None, **values):
    """A run played in full; `ours` are figures that differ from the measured ones."""
    measured = run(**values)
    figures = {name: getattr(measured, name) for name in ("served", "output_rate", "ttft", "ttft_p99", "tpot")}
    return Outcome(
        run=measured,
        played=3600.0,
        ours=Simulated(**{**figures, "loads": 0.0, "preemptions": 0.0, "unsent": 0, **(ours or {})}),
    )


def slot_costs(*slots, model="m", ranks=(16, 32), kv_tokens=10_000_000, slot=2e-5, by_rank=1e-5):
    """What slots cost, by a straight line."""
    return {
        (model, count, rank): SlotCost(
            model=model,
            layers=32,
            slots=count,
            rank=rank,
            kv_tokens=kv_tokens,
            tpot=12e-3 + count * (slot + by_rank * (rank / 16 - 1)),
        )
        for count in slots
        for rank in ranks
    }
