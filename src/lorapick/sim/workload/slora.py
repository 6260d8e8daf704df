"""S-LoRA's workloads (arXiv 2311.03285), so that results can be compared with the paper's.

In: the paper's parameters. Out: workloads, and the ranks of their adapters. Not here: engines that could run them.
Source: github.com/S-LoRA/S-LoRA, `benchmarks/exp_suite.py` and `benchmarks/trace.py`: adapters by a power law, Gamma
gaps, lengths of 8 to 511 tokens, int(rate·duration) requests; ranks go round over the adapters.
"""

from collections.abc import Iterator

import msgspec

from lorapick.model.units import AdapterName, Seconds
from lorapick.sim.workload.lengths import Sizes, UniformLength
from lorapick.sim.workload.popularity import PowerLaw
from lorapick.sim.workload.processes import Gamma
from lorapick.sim.workload.spec import Flow, Workload

RANKS = {"S1": (8,), "S2": (64, 32, 16, 8), "S3": (16,), "S4": (64, 32, 16)}
"""Ranks of the settings; S1 and S2 are a 7B model, S3 and S4 a 13B model."""
_LENGTH = UniformLength(8, 511)


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """One point of the grid."""

    adapters: int = 200
    alpha: float = 1.0
    """Of the power law over adapters; 1 is uniform."""
    rate: float = 2.0
    cv: float = 1.0
    duration: Seconds = 300.0


class Suite(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the paper's experiments: one parameter varies."""

    name: str
    setting: str
    points: tuple[Point, ...]


def suites() -> tuple[Suite, ...]:
    """The synthetic experiments of the paper."""
    return tuple(_suites())


def _suites() -> Iterator[Suite]:
    for setting in ("S1", "S2"):
        yield _suite("a10g-num-adapter", setting, [Point(adapters=count) for count in (1, 20, 50, 100, 200)])
        yield _suite("a10g-alpha", setting, [Point(alpha=alpha) for alpha in (0.1, 0.3, 0.6, 1.0)])
        yield _suite("a10g-cv", setting, [Point(cv=cv) for cv in (1.0, 2.0, 4.0, 6.0, 8.0)])
        yield _suite("a10g-req-rate", setting, [Point(rate=rate) for rate in (1.0, 1.5, 2.0, 2.5)])
    counts = (1, 20, 50, 100, 200)
    yield _suite("a100-80-S2-num-adapter", "S2", [Point(adapters=count, rate=10.0) for count in counts])
    yield _suite("a100-80-S4-num-adapter", "S4", [Point(adapters=count, rate=6.0) for count in (1, 100, 200, 400)])
    rates = (1.0, 2.0, 4.0, 6.0, 8.0)
    yield _suite("a100-80-S4-req-rate", "S4", [Point(adapters=400, rate=rate) for rate in rates])
    yield _suite("a100-80-S4-cv", "S4", [Point(adapters=400, rate=6.0, cv=cv) for cv in (1.0, 2.0, 4.0, 6.0, 8.0)])
    table = [Point(adapters=count, rate=10.0, duration=120.0) for count in (2, 5, 100, 1000, 2000)]
    for setting in ("S1", "S2"):
        yield _suite("a100-80-table", setting, table)


def _suite(name: str, setting: str, points: list[Point]) -> Suite:
    return Suite(name=name, setting=setting, points=tuple(points))


def slora(point: Point) -> Workload:
    """The workload of a point."""
    flow = Flow(
        name="slora",
        adapters=tuple(f"lora-{number:04}" for number in range(point.adapters)),
        process=Gamma(point.rate, point.cv),
        sizes=Sizes(_LENGTH, _LENGTH),
        popularity=PowerLaw(point.alpha),
    )
    return Workload(flows=(flow,), count=int(point.rate * point.duration))


def slora_ranks(point: Point, setting: str) -> dict[AdapterName, int]:
    """Ranks of the adapters of `slora(point)`."""
    ranks = RANKS[setting]
    return {f"lora-{number:04}": ranks[number % len(ranks)] for number in range(point.adapters)}
