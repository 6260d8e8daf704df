"""Coefficients from measured runs by non-negative least squares, and which runs each fold holds out.

In: runs, what slots cost. Out: `Coefficients`; folds. Not here: how good they are (`scoring`, on played runs).

All runs together, of both models: a group held out would leave only one of its model, in light load or in overload.
What LoRA adds to a step is in proportion to the layers, as `Coefficients` says. What each feature is:

- B, requests that run: Little's law, from the tokens and their pace.
- A, distinct adapters among them: B draws by the adapters' rates, at most the slots; all slots when adapters wait.
- W, requests passed over in each step since their adapter has no slot: all that wait, by Little's law, or by the
  client's ports when the queue grew; and for the share of the time in which the head of the queue did not wait for KV
  memory or for the step's token budget, which pass over nobody.

Measured values are used of runs that are fitted; a run that is predicted gives only its configuration (`simulated`).

Three things are not fitted: prompts' cost per token (it goes with B, and the runs cannot tell them apart), an adapter's
activation (it is a hundredth of the time), and what an idle slot costs, which the other table measures by itself.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, combinations
from math import exp

import msgspec
import numpy as np
from numpy.typing import NDArray

from lorapick.model.units import Ratio, Seconds, Tokens
from lorapick.plan.calibration.coefficients import REFERENCE_LAYERS, REFERENCE_RANK, Coefficients
from lorapick.plan.calibration.runs import Group, Run, SlotCosts
from lorapick.plan.calibration.simulated import STEP_TOKENS
from lorapick.plan.calibration.workload import LINGER, LONGEST, OUTPUT_SPREAD, PORTS

PREFILL: Seconds = 33e-3 / 2048
"""Per prompt token: 2 FLOPs per parameter of 8B at half of an H100's 989.5 TFLOP/s (the presets' number too)."""
ACTIVATION: Seconds = 8e-3
"""The runs' authors measured 6.4-8.1 ms for Llama-3.1-8B and 3.0-3.5 ms for Qwen2.5-7B (their repository)."""
WAITING: Seconds = 1.0
"""Mean TTFT above which adapters are taken to wait for slots."""

LEAST_KV: Tokens = 2 * LONGEST
"""For a run to be played."""

Matrix = NDArray[np.float64]


class FitError(ValueError):
    """The tables do not say enough for a fit: what is missing."""


class Fold(msgspec.Struct, frozen=True):
    """A group that is held out, and what was fitted to all the others."""

    group: Group
    coefficients: Coefficients
    held_out: tuple[Run, ...]
    fitted: int
    """Runs of the other groups."""


def folds(runs: Sequence[Run], costs: SlotCosts) -> tuple[Fold, ...]:
    """Hold out each group of runs once.

    Raises:
        FitError: there are fewer than two groups, or a fit is not possible without one of them.
    """
    groups = sorted({run.group for run in runs})
    if len(groups) < 2:
        raise FitError(f"all {len(runs)} runs have one model and rates, so none can be held out; two groups are needed")
    return tuple(_fold(group, runs, costs=costs) for group in groups)


def _fold(group: Group, runs: Sequence[Run], *, costs: SlotCosts) -> Fold:
    others = [run for run in runs if run.group != group]
    return Fold(
        group=group,
        coefficients=fit(others, costs),
        held_out=tuple(run for run in runs if run.group == group),
        fitted=len(others),
    )


def fit(runs: Sequence[Run], costs: SlotCosts) -> Coefficients:
    """Fit all runs together; each run's relative error counts the same.

    Raises:
        FitError: too few runs, or runs whose slots the other table does not have.
    """
    if len(runs) < _FEWEST:
        raise FitError(
            f"{len(runs)} runs are too few for {len(_Features.__struct_fields__)} coefficients; {_FEWEST} are needed"
        )
    for run in runs:
        _refuse_flood(run)
    slot, slot_by_rank = _slot_seconds(costs)
    paces = np.array([run.tpot * (1.0 - PREFILL * run.input_rate) for run in runs])
    idle = np.array([run.slots * _depth(run.layers) * (slot + slot_by_rank * _steps(run.rank)) for run in runs])
    features = np.array([msgspec.structs.astuple(_features(run, kv_tokens(run, costs))) for run in runs])
    found = _Features(*_least_squares(features, paces - idle, weights=1.0 / paces))
    return Coefficients(
        a=found.one,
        b=found.batch,
        c=found.adapters,
        d=found.both,
        slot=slot,
        scan=found.passed_over,
        a_by_rank=found.rank,
        c_by_rank=found.adapters_by_rank,
        slot_by_rank=slot_by_rank,
        prefill=PREFILL,
        activation=ACTIVATION,
    ).rounded()


def kv_tokens(run: Run, costs: SlotCosts) -> Tokens:
    """What the run's slots leave for KV.

    Raises:
        FitError: the table of slot costs does not say.
    """
    cost = costs.get((run.model, run.slots, run.rank))
    if cost is None or cost.kv_tokens is None:
        where = f"model {run.model}, max_loras {run.slots}, max_lora_rank {run.rank}"
        raise FitError(f"line {run.line}: no kv_cache_tokens for {where}; add a line to the table of slot costs")
    if cost.kv_tokens < LEAST_KV:
        what = f"line {run.line}: kv_cache_tokens {cost.kv_tokens} of its slots cannot hold one request"
        raise FitError(f"{what}; it has to be {LEAST_KV} or more")
    return cost.kv_tokens


def _refuse_flood(run: Run) -> None:
    if run.input_rate * PREFILL >= 1.0:
        more = f"more than a GPU can read, {1.0 / PREFILL:,.0f}"
        raise FitError(f"line {run.line}: in_tok_s {run.input_rate:g} is {more}; take the line out")


# -- features


class _Features(msgspec.Struct, frozen=True):
    """Of a run, what is multiplied with each coefficient; or the coefficients."""

    one: float
    batch: float
    adapters: float
    both: float
    passed_over: float
    rank: float
    adapters_by_rank: float


_FEWEST = 2 * len(_Features.__struct_fields__)


def _features(run: Run, kv: Tokens) -> _Features:
    batch, steps, depth = run.batch, _steps(run.rank), _depth(run.layers)
    adapters = float(run.slots) if _wait_for_slots(run) else min(float(run.slots), distinct(run, batch))
    return _Features(
        one=1.0,
        batch=batch,
        adapters=depth * adapters,
        both=depth * batch * adapters,
        passed_over=_passed_over(run, kv),
        rank=depth * steps,
        adapters_by_rank=depth * adapters * steps,
    )


def _steps(rank: int) -> float:
    return rank / REFERENCE_RANK - 1.0


def _depth(layers: int) -> float:
    return layers / REFERENCE_LAYERS


def distinct(run: Run, batch: float) -> float:
    """Expected number of distinct adapters among so many requests."""
    offered = run.offered
    return sum(1.0 - exp(-batch * run.rate_of(adapter) / offered) for adapter in range(run.adapters))


def _wait_for_slots(run: Run) -> bool:
    return run.adapters > run.slots and run.ttft > WAITING


def _passed_over(run: Run, kv: Tokens) -> float:
    if not _wait_for_slots(run):
        return 0.0
    return _queue(run) * (1.0 - _fullness(run, kv) ** 2)


def _queue(run: Run) -> float:
    """Mean number of requests that waited, the run over."""
    if not run.overloaded:
        return run.served * run.ttft
    growth = run.offered - run.served
    most = max(0.0, PORTS - LINGER * run.served - run.batch)
    full_at = most / growth
    if full_at >= run.seconds:
        return growth * run.seconds / 2.0
    return most * (1.0 - full_at / run.seconds / 2.0)


def _fullness(run: Run, kv: Tokens) -> Ratio:
    """How much of the KV memory, or of a step's tokens, the batch takes; whichever is more."""
    spread = (1.0 + OUTPUT_SPREAD**2) / 2.0  # a request seen at random is a long one, half done
    memory = run.batch * (run.prompt_tokens + run.output_tokens * spread) / kv
    budget = run.batch * (1.0 + run.prompt_tokens / run.output_tokens) / STEP_TOKENS
    return min(1.0, max(memory, budget))


# -- least squares


def _slot_seconds(costs: SlotCosts) -> tuple[Seconds, Seconds]:
    """What a configured slot adds to the step of a single request of the base model: at rank 16, and more at 32."""
    rows = [cost for cost in costs.values() if cost.tpot is not None]
    if len(rows) < 4:
        few = f"{len(rows)} slot costs with single_req_tpot_ms are too few to say what a slot costs"
        raise FitError(f"{few}; 4 are needed")
    models = sorted({cost.model for cost in rows})
    features = [
        [
            *(float(cost.model == each) for each in models),
            _depth(cost.layers) * cost.slots,
            _depth(cost.layers) * cost.slots * _steps(cost.rank),
        ]
        for cost in rows
    ]
    paces = np.array([cost.tpot for cost in rows], dtype=np.float64)
    *_, slot, by_rank = _least_squares(np.array(features), paces, weights=1.0 / paces)
    return slot, by_rank


def _least_squares(features: Matrix, values: Matrix, *, weights: Matrix) -> list[float]:
    """The non-negative coefficients with the least weighted squared error, zeros included.

    The best of them is a plain solution on the features that it uses, so trying every set of features finds it; for ten
    features that is a thousand small solutions.
    """
    weighted, target = features * weights[:, None], values * weights
    best, least = np.zeros(features.shape[1]), float("inf")
    for used in _sets(range(features.shape[1])):
        found = np.zeros(features.shape[1])
        found[list(used)] = np.linalg.lstsq(weighted[:, used], target, rcond=None)[0]
        error = float(np.sum((weighted @ found - target) ** 2))
        if (found >= 0.0).all() and error < least:
            best, least = found, error
    return [float(value) for value in best]


def _sets(features: Iterable[int]) -> Iterator[tuple[int, ...]]:
    every = list(features)
    return chain.from_iterable(combinations(every, size) for size in range(1, len(every) + 1))
