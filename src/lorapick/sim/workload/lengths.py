"""Lengths of prompts and answers: the laws, and numbers from them.

In: numbers in [0, 1). Out: tokens, one for each (a law is its quantile function). Not here: where the numbers come
from (`chance`), tables as files (`wire.traces.cdf`).
"""

import math
from collections.abc import Iterable
from itertools import islice, pairwise
from statistics import NormalDist
from typing import TypeAlias, assert_never

import msgspec
import numpy as np

from lorapick.model.units import Ratio, Tokens
from lorapick.sim.workload.chance import FloatArray, IntArray
from lorapick.sim.workload.checks import MOST_TOKENS, require, require_length, require_share
from lorapick.wire.traces.rows import TraceRow

_LEAST = 2.0**-54
"""Stands for 0, which has no quantile; the next number that a draw can be is twice it."""


class FixedLength(msgspec.Struct, frozen=True, tag="fixed"):
    """Always `tokens`."""

    tokens: Tokens

    def __post_init__(self) -> None:
        require_length(self.tokens, "tokens")


class UniformLength(msgspec.Struct, frozen=True, tag="uniform"):
    """Every whole number from `low` to `high`, both included, is as likely."""

    low: Tokens
    high: Tokens

    def __post_init__(self) -> None:
        require_length(self.low, "low")
        require_length(self.high, "high")
        require(self.low <= self.high, "high", self.high, f"at least low, {self.low}")


class LogNormalLength(msgspec.Struct, frozen=True, tag="lognormal"):
    """Log-normal with this mean and coefficient of variation, then clipped to [low, high] (which moves the mean)."""

    mean: float
    cv: float
    low: Tokens = 1
    high: Tokens = MOST_TOKENS

    def __post_init__(self) -> None:
        require(1 <= self.mean <= MOST_TOKENS, "mean", self.mean, f"tokens, 1 to {MOST_TOKENS:,}")
        require(0 < self.cv <= 100, "cv", self.cv, "a coefficient of variation above 0, at most 100")
        require_length(self.low, "low")
        require_length(self.high, "high")
        require(self.low <= self.high, "high", self.high, f"at least low, {self.low}")


class TableLength(msgspec.Struct, frozen=True, tag="table"):
    """A cumulative distribution: (tokens, share of requests of at most so many), linear in between, from 0 tokens."""

    points: tuple[tuple[Tokens, Ratio], ...]

    def __post_init__(self) -> None:
        require(bool(self.points), "points", self.points, "at least one pair of tokens and share is needed")
        for tokens, share in self.points:
            require_length(tokens, "tokens")
            require_share(share, "share")
        for before, after in pairwise(self.points):
            rises = before[0] < after[0] and before[1] <= after[1]
            require(rises, "point", after, f"tokens must rise and the share not fall after {before}")
        require(self.points[-1][1] == 1, "the last share", self.points[-1][1], "it must be 1")


Length: TypeAlias = FixedLength | UniformLength | LogNormalLength | TableLength


class Sizes(msgspec.Struct, frozen=True, tag="independent"):
    """Prompt and answer drawn apart."""

    prompt: Length
    output: Length


class SizePairs(msgspec.Struct, frozen=True, tag="pairs"):
    """(prompt, output) tokens of real requests, drawn together with replacement (see `pairs_of`)."""

    rows: tuple[tuple[Tokens, Tokens], ...]

    def __post_init__(self) -> None:
        require(bool(self.rows), "rows", self.rows, "at least one (prompt, output) pair is needed")
        for prompt, output in self.rows:
            require_length(prompt, "prompt")
            require_length(output, "output")


class SizeSplit(msgspec.Struct, frozen=True, tag="total"):
    """Prompt and answer together by a law (vllm-sr-sim's tables), of which the prompt has a fixed share."""

    total: Length
    prompt_share: Ratio

    def __post_init__(self) -> None:
        require_share(self.prompt_share, "prompt_share")


AnySizes: TypeAlias = Sizes | SizePairs | SizeSplit


def pairs_of(rows: Iterable[TraceRow], *, most: int = 20_000) -> SizePairs:
    """Sizes of a trace's first `most` requests that have a prompt and an answer.

    Raises:
        ValueError: there are none.
    """
    sized = ((row.prompt_tokens, row.output_tokens) for row in rows if row.prompt_tokens and row.output_tokens)
    return SizePairs(tuple(islice(sized, most)))


def quantiles(law: Length, shares: FloatArray) -> IntArray:
    """Tokens that are exceeded with probability 1 - share."""
    match law:
        case FixedLength(tokens):
            return np.full(len(shares), tokens, dtype=np.int64)
        case UniformLength(low, high):
            return low + (shares * (high - low + 1)).astype(np.int64)
        case LogNormalLength():
            return _lognormal(law, shares)
        case TableLength(points):
            lengths, cumulative = np.array([(0, 0.0), *points]).T
            # Shares too small for a draw to tell from 0 would make slopes that are no numbers.
            found: FloatArray = np.interp(shares, np.where(cumulative < _LEAST, 0.0, cumulative), lengths)
            return np.maximum(np.ceil(found), 1).astype(np.int64)
        case _:
            assert_never(law)


def _lognormal(law: LogNormalLength, shares: FloatArray) -> IntArray:
    sigma = math.sqrt(math.log1p(law.cv**2))
    normal = NormalDist(math.log(law.mean) - sigma**2 / 2, sigma)
    logs = [normal.inv_cdf(max(share, _LEAST)) for share in shares.tolist()]
    return np.clip(np.rint(np.exp(logs)), law.low, law.high).astype(np.int64)


def sizes_at(sizes: AnySizes, prompt: FloatArray, output: FloatArray) -> tuple[IntArray, IntArray]:
    """Prompt and answer tokens, from a number in [0, 1) for each; pairs and totals use the first alone."""
    match sizes:
        case Sizes():
            return quantiles(sizes.prompt, prompt), quantiles(sizes.output, output)
        case SizePairs(rows):
            table = np.array(rows, dtype=np.int64)
            chosen = table[(prompt * len(rows)).astype(np.int64)]
            return chosen[:, 0], chosen[:, 1]
        case SizeSplit():
            total = quantiles(sizes.total, prompt)
            first = np.rint(total * sizes.prompt_share).astype(np.int64)
            return np.maximum(first, 1), np.maximum(total - first, 1)
        case _:
            assert_never(sizes)
