"""Which adapters to keep between their requests when loads cost different amounts: the problem, and proof of an answer.

In: a sequence of adapters without immediate repeats, and what keeping each saves. Out: `Keeping`, a minimum-cost flow
in disguise; an answer to it, proven best in whole numbers. Not here: solvers (they are passed in), bounds.

Between two requests for the same adapter lies an interval. Keeping the adapter saves its load and takes one lane (a
slot beside the one that serves) over the whole interval. At most `lanes` may be taken at any point; which intervals
save most? As a flow: points of time are nodes, `lanes` units flow from the first to the last, along the time line for
nothing or through an interval, one unit each, at minus what it saves (Carlisle and Lloyd 1995; paging with costs as a
flow: Chrobak, Karloff, Payne and Vishwanathan, SIAM Journal on Discrete Mathematics 4, 1991).
"""

from array import array
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import TypeAlias

import msgspec


class Keeping(msgspec.Struct, frozen=True, kw_only=True):
    """Intervals between points 0 to `points` - 1, and how many may be kept side by side."""

    lanes: int
    points: int
    begins: "array[int]"
    """Point at which each interval begins."""
    ends: "array[int]"
    """Point at which it ends, a later one."""
    saves: "array[int]"
    """What keeping it saves, 0 or more."""


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """An answer with its proof."""

    kept: Sequence[bool]
    """For each interval."""
    prices: Sequence[int]
    """For each gap between a point and the next: what one more lane would be worth there, 0 or more. Whoever keeps
    intervals and pays these prices for their lanes cannot save more than an answer that pays exactly what they cost."""


Solve: TypeAlias = Callable[[Keeping], Kept]


class NotProven(Exception):  # noqa: N818 - what it is, not that it is one
    """A solver gave no answer, or one that breaks the limits or is not the best: a bug in it or in how it is called."""


def keeping(adapters: Sequence[int], lanes: int, *, saves: Sequence[int]) -> Keeping:
    """The intervals of a sequence of adapters in which no two neighbours are the same; `saves` is by adapter."""
    last: dict[int, int] = {}
    begins, ends, saved = array("q"), array("q"), array("q")
    for position, adapter in enumerate(adapters):
        before = last.get(adapter)
        if before is not None:
            assert before + 1 < position, (
                f"adapter {adapter} stands at {before} and at {position}: neighbours must differ"
            )
            # It is free to go behind its own request, and back just before the next.
            begins.append(before + 1)
            ends.append(position)
            saved.append(saves[adapter])
        last[adapter] = position
    # Points at which nothing begins or ends say nothing new.
    number = {point: index for index, point in enumerate(sorted({*begins, *ends}))}
    return Keeping(
        lanes=lanes,
        points=len(number),
        begins=array("q", (number[point] for point in begins)),
        ends=array("q", (number[point] for point in ends)),
        saves=saved,
    )


def best_saving(problem: Keeping, answer: Kept) -> int:
    """What the answer saves, after a proof that it keeps the limits and that none saves more.

    Raises:
        NotProven: it does not, or one might.
    """
    if len(answer.kept) != len(problem.saves) or len(answer.prices) != max(0, problem.points - 1):
        raise NotProven("the answer is to another problem")
    if min(answer.prices, default=0) < 0:
        raise NotProven("a price is negative")
    taken = _most_taken(problem, answer.kept)
    if taken > problem.lanes:
        raise NotProven(f"{taken} intervals are kept side by side where {problem.lanes} may be")
    saved = sum(save for save, kept in zip(problem.saves, answer.kept, strict=True) if kept)
    most = most_saving(problem, answer.prices)
    if saved != most:
        raise NotProven(f"the answer saves {saved}, and its prices only prove that none saves more than {most}")
    return saved


def most_saving(problem: Keeping, prices: Sequence[int]) -> int:
    """What no choice of intervals can save more than, by any prices of 0 or more (weak duality of linear programs)."""
    upto = [0, *accumulate(prices)]
    intervals = zip(problem.begins, problem.ends, problem.saves, strict=True)
    return problem.lanes * upto[-1] + sum(max(0, save - (upto[end] - upto[begin])) for begin, end, save in intervals)


def _most_taken(problem: Keeping, kept: Sequence[bool]) -> int:
    change = [0] * (problem.points + 1)
    for begin, end, stays in zip(problem.begins, problem.ends, kept, strict=True):
        if stays:
            change[begin] += 1
            change[end] -= 1
    return max(accumulate(change))
