"""An adapter that is asked about on the command line, as the configuration that PEFT would save for it.

In: words for targets, rank, alpha. Out: a `PeftConfig`. Not here: what it comes to (see `plan.sizes.adapters`).
"""

import difflib
import math
from collections.abc import Sequence

from lorapick.wire.model_config import ModelShape
from lorapick.wire.model_modules import outer_modules, projections
from lorapick.wire.peft import HIGHEST_RANK, PeftConfig, PeftError
from lorapick.wire.peft_targets import ALL_LINEAR

_USUAL = (("q_proj", "v_proj"), ("qkv_proj",), ("query_key_value",))
"""The first that a model has."""
_REGEX_SIGNS = frozenset("*\\()|[]^$+?{}")


def asked(
    shape: ModelShape, *, rank: int, alpha: float | None, targets: str | None, rslora: bool = False
) -> PeftConfig:
    """The configuration of an adapter for this model.

    Args:
        shape: whose modules `targets` are.
        rank: at least 1; of every pair.
        alpha: None: not decided.
        targets: names with commas between, in full or without `_proj`; `all-linear`; or a regular expression.
            None: q and v, or what holds them in this model.
        rslora: scale by alpha/√r.

    Raises:
        PeftError: a rank that cannot be, or a target that is no module of the model.
    """
    if not 1 <= rank <= HIGHEST_RANK:
        raise PeftError(f"rank {rank}: a rank is from 1 to {HIGHEST_RANK}")
    if alpha is not None and not math.isfinite(alpha):
        raise PeftError(f"alpha {alpha}: it is a finite number")
    return PeftConfig(
        r=rank,
        lora_alpha=alpha,
        target_modules=usual(shape) if targets is None else _targets(shape, targets),
        use_rslora=rslora,
    )


def usual(shape: ModelShape) -> list[str]:
    """Targets of who names none: queries and values; the one matrix that has them."""
    names = [each.name for each in projections(shape)]
    return list(next(each for each in _USUAL if all(name in names for name in each)))


def _targets(shape: ModelShape, words: str) -> list[str] | str:
    if words.lower() == ALL_LINEAR or any(sign in _REGEX_SIGNS for sign in words):
        return words
    modules = [each.module for each in (*projections(shape), *outer_modules(shape))]
    names = list(dict.fromkeys(module.rpartition(".")[2] for module in modules))
    wanted = [word for part in words.split(",") if (word := part.strip())]
    if not wanted:
        raise PeftError(f"targets {words!r}: name some of {', '.join(names)}, or {ALL_LINEAR}")
    return list(dict.fromkeys(_name(word, names, modules=modules) for word in wanted))


def _name(word: str, names: Sequence[str], *, modules: Sequence[str]) -> str:
    for name in (word, f"{word}_proj"):
        if name in names or any(module == name or module.endswith(f".{name}") for module in modules):
            return name
    near = [name for name in names if word in name] or difflib.get_close_matches(word, names, n=2)
    hint = f"near: {', '.join(near)}; " if near else ""
    raise PeftError(f"target {word!r}: no such module in this model; {hint}there are {', '.join(names)}, {ALL_LINEAR}")
