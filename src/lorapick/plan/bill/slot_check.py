"""The formula of `reserve` beside what vLLM 0.8.5 measured on an H100: memory and KV tokens by number of slots.

In: lines of the table of slot costs. Out: for each model and rank, what a slot took, what the formula says, the error.
Not here: the table itself (`data/calibration`), the reservation.

What a slot took is the slope of a straight line through all numbers of slots: the base falls out of it.
"""

import csv
from collections.abc import Iterable, Mapping
from statistics import linear_regression
from typing import NamedTuple

from lorapick.model.units import Bytes
from lorapick.plan.bill.reserve import kv_bytes_per_token, reserved
from lorapick.plan.sizes.models import BaseModel, read_model

MEASURED = "calibration/vllm085_h100_lora_slot_cost.csv"
EXTRA_TOKENS = 256
"""`lora_extra_vocab_size` of the engine that was measured."""
_MODELS = {"llama-3.1-8b-instruct": "llama-3.1-8b", "qwen-2.5-7b-instruct": "qwen2.5-7b"}
"""The table's names: the models of `plan.sizes`."""
_GIB = 2.0**30


class Checked(NamedTuple):
    """One model at one highest rank."""

    model: str
    max_rank: int
    measured: float
    """Bytes of GPU memory for each slot."""
    formula: Bytes
    kv_measured: float
    """Tokens of KV that each slot displaced."""
    kv_formula: float

    @property
    def error(self) -> float:
        """Of the formula, as a share of what was measured."""
        return self.formula / self.measured - 1

    @property
    def kv_error(self) -> float:
        """The same for tokens."""
        return self.kv_formula / self.kv_measured - 1


def check(lines: Iterable[bytes]) -> tuple[Checked, ...]:
    """Compare, in the table's order.

    Raises:
        ValueError: a line is not of this table; the message has its number.
    """
    return tuple(_checked(model, rank, rows=rows) for (model, rank), rows in _groups(lines).items())


Row = tuple[int, float | None, float | None]
"""Slots, bytes of the model with them, tokens of KV beside them; None: the engine did not start."""


def _groups(lines: Iterable[bytes]) -> Mapping[tuple[str, int], list[Row]]:
    found: dict[tuple[str, int], list[Row]] = {}
    for number, row in enumerate(csv.DictReader(line.decode(errors="replace") for line in lines), start=2):
        try:
            key = (_MODELS[row["model"]], int(row["max_lora_rank"]))
            memory, tokens = (_number(row[column]) for column in ("model_load_GiB", "kv_cache_tokens"))
            slots = int(row["max_loras"])
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"line {number} of {MEASURED}: {error!r}; install the file again") from None
        found.setdefault(key, []).append((slots, None if memory is None else memory * _GIB, tokens))
    return found


def _number(text: str) -> float | None:
    return float(text) if text else None


def _checked(name: str, max_rank: int, *, rows: list[Row]) -> Checked:
    model: BaseModel = read_model(name)
    memory = [(slots, taken) for slots, taken, _ in rows if taken is not None]
    tokens = [(slots, left) for slots, _, left in rows if left is not None]
    formula = reserved(model, max_rank, extra_tokens=EXTRA_TOKENS).total
    return Checked(
        model=model.name,
        max_rank=max_rank,
        measured=_slope(memory),
        formula=formula,
        kv_measured=-_slope(tokens),
        kv_formula=formula / kv_bytes_per_token(model),
    )


def _slope(points: list[tuple[int, float]]) -> float:
    return linear_regression(*zip(*points, strict=True)).slope
