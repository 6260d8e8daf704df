"""The least number of pods that keeps the limits, for each number of slots.

In: a scenario, slots and pods to choose from, limits, seeds. Out: for each number of slots what was found, with every
point that was tried. Not here: reading a demand (`demand`), KV memory (`memory`), which of the points is cheapest
(`choice`).

It is assumed that more pods are never worse. The search begins at a guess, goes on in growing steps until one number of
pods keeps the limits and a lower one does not, and halves what lies between; so the neighbour below the answer has
always been played, unless the answer is the lowest that is allowed.
"""

import math
from collections.abc import Callable, Sequence

import msgspec

from lorapick.model.units import Ratio, Seconds
from lorapick.plan.fleet_size.guess import Traffic, guessed_pods
from lorapick.plan.fleet_size.trial import Limits, Outcome, tried
from lorapick.plan.spreading import Progress, spread
from lorapick.sim.scenario import Scenario


class Span(msgspec.Struct, frozen=True):
    """Pods to choose from, both ends included."""

    least: int
    most: int


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """A fleet that was tried, with every seed."""

    pods: int
    slots: int
    kv_blocks: int
    """Of a pod, beside its slots."""
    outcomes: tuple[Outcome, ...]
    """One for each seed."""
    kept: bool
    """Whether every seed kept the limits."""

    @property
    def p95(self) -> Seconds | None:
        """The worst of all seeds; None: in one of them nothing was served."""
        found = [each.p95 for each in self.outcomes]
        return None if None in found else max(each for each in found if each is not None)

    @property
    def lost(self) -> Ratio:
        """The worst of all seeds."""
        return max(each.lost for each in self.outcomes)


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """One number of slots, for which the least pods are wanted."""

    scenario: Scenario
    """Its fleet is replaced in size."""
    policy: str
    slots: int
    kv_blocks: int
    pods: Span
    seeds: tuple[int, ...]
    limits: Limits
    traffic: Traffic
    """For the guess."""


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """The answer for one number of slots."""

    slots: int
    kv_blocks: int
    guess: int
    """Pods at which the search began."""
    best: Point | None
    """The least pods that keep the limits; None: none of those allowed does."""
    tried: tuple[Point, ...]
    """In the order of the search."""


def search(
    questions: Sequence[Question], *, workers: int | None = None, progress: Progress | None = None
) -> tuple[Found, ...]:
    """Answer all, in parallel."""
    return spread(answer, questions, workers=workers, progress=progress)


def answer(question: Question, progress: Progress) -> Found:
    """Search the pods for one number of slots."""
    span, points = question.pods, list[Point]()
    usual = math.ceil(math.log2(span.most - span.least + 1)) + 2

    def keeps(pods: int) -> bool:
        points.append(point(question, pods, progress=lambda share: progress(min(0.99, (len(points) + share) / usual))))
        return points[-1].kept

    guess = guessed_pods(
        sized(question.scenario, pods=span.least, slots=question.slots, kv_blocks=question.kv_blocks),
        question.traffic,
        policy=question.policy,
        limit=question.limits.p95,
        most=span.most,
    )
    least = least_kept(keeps, span, guess=guess)
    progress(1.0)
    return Found(
        slots=question.slots,
        kv_blocks=question.kv_blocks,
        guess=guess,
        best=next((each for each in points if each.pods == least), None),
        tried=tuple(points),
    )


def least_kept(keeps: Callable[[int], bool], span: Span, *, guess: int) -> int | None:
    """The lowest number that keeps, if all above one that does do too; None: not even the highest does."""
    low, high = span.least - 1, span.most + 1
    at, step = min(max(guess, span.least), span.most), 1
    while high - low > 1:
        if keeps(at):
            high = at
        else:
            low = at
        if low < span.least:
            at, step = max(span.least, high - step), 2 * step
        elif high > span.most:
            at, step = min(span.most, low + step), 2 * step
        else:
            at = (low + high) // 2
    return high if high <= span.most else None


def point(question: Question, pods: int, *, progress: Progress) -> Point:
    """Play one fleet with every seed."""
    fleet = sized(question.scenario, pods=pods, slots=question.slots, kv_blocks=question.kv_blocks)
    seeds = question.seeds

    def part(done: int) -> Progress:
        return lambda share: progress((done + share) / len(seeds))

    outcomes = tuple(
        tried(fleet, policy=question.policy, seed=seed, progress=part(done)) for done, seed in enumerate(seeds)
    )
    return Point(
        pods=pods,
        slots=question.slots,
        kv_blocks=question.kv_blocks,
        outcomes=outcomes,
        kept=all(each.keeps(question.limits) for each in outcomes),
    )


def sized(scenario: Scenario, *, pods: int, slots: int, kv_blocks: int) -> Scenario:
    """The scenario with another fleet; host memory has room for at least the adapters on the GPU."""
    limits = scenario.fleet.limits
    limits = msgspec.structs.replace(limits, max_loras=slots, max_cpu_loras=max(slots, limits.max_cpu_loras))
    return msgspec.structs.replace(
        scenario,
        fleet=msgspec.structs.replace(scenario.fleet, pods=pods, limits=limits, kv_blocks=kv_blocks),
        settings=msgspec.structs.replace(scenario.settings, defaults=limits),
    )
