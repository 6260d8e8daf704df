"""Which pods are for large ranks, so that the others stay fast.

In: adapters and pods. Out: for each pod the largest rank that it should serve, its class. The kernels of a batch with
several adapters work as for the largest rank among them, so one adapter of rank 64 taxes all that runs beside it: keep
large ranks together, on as few pods as they need. The largest come first, and the smallest get what is left, or no pod
of their own: a small rank among large ones slows only itself, a large one among small ones slows all.

Chosen before the flow and by rule, since "the largest rank on a pod" is no sum over adapters. Given the classes, what a
rank costs on a pod is exact (`costs`). Pods that hold large ranks now are taken first, so classes last as long as their
adapters do. Not here: limits of pods (`max_rank`), which are hard.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from lorapick.model.placement import PlacedAdapter, PodRoom
from lorapick.model.units import PodName

LEAST = 8
"""Ranks up to this one are one class."""


class _Class(NamedTuple):
    """Adapters of one base model with ranks alike."""

    rank: int
    largest: int
    """Of the ranks themselves."""
    units: int
    pods: int
    """At the least: as many as one adapter wants replicas."""


def class_of(rank: int | None) -> int:
    """The rank rounded up to a power of two, `LEAST` at the least. Unknown ranks are taken for small."""
    return LEAST if rank is None else max(LEAST, 1 << (rank - 1).bit_length())


def rank_classes(adapters: Sequence[PlacedAdapter], pods: Sequence[PodRoom]) -> dict[PodName, int]:
    """The class of each pod."""
    found: dict[PodName, int] = {}
    for base in dict.fromkeys(pod.base_model for pod in pods):
        found |= _of_base(
            [each for each in adapters if each.base_model == base and each.replicas > 0],
            [pod for pod in pods if pod.base_model == base],
        )
    return found


def _of_base(adapters: Sequence[PlacedAdapter], pods: Sequence[PodRoom]) -> dict[PodName, int]:
    smallest, larger = _classes(adapters)
    found: dict[PodName, int] = {}
    for each in larger:
        able = [pod for pod in pods if pod.pod not in found and pod.max_rank >= each.largest]
        found |= {pod.pod: each.rank for pod in _enough(each, able, holds=_holds(adapters, each.rank))}
    return {pod.pod: found.get(pod.pod, smallest) for pod in pods}


def _classes(adapters: Sequence[PlacedAdapter]) -> tuple[int, list[_Class]]:
    """The smallest class, and the others, largest first."""
    ranks = sorted({class_of(each.rank) for each in adapters}, reverse=True)
    groups = ((rank, [each for each in adapters if class_of(each.rank) == rank]) for rank in ranks[:-1])
    return (ranks[-1] if ranks else LEAST), [_class(rank, group) for rank, group in groups]


def _class(rank: int, group: Sequence[PlacedAdapter]) -> _Class:
    wants = [each.replicas for each in group]
    return _Class(rank=rank, largest=max(each.rank or 0 for each in group), units=sum(wants), pods=max(wants))


def _holds(adapters: Sequence[PlacedAdapter], rank: int) -> Counter[PodName]:
    """Adapters of that class or larger that each pod has now."""
    return Counter(pod for each in adapters if class_of(each.rank) >= rank for pod in each.now_on)


def _enough(wanted: _Class, able: list[PodRoom], *, holds: Counter[PodName]) -> list[PodRoom]:
    """Pods until there is room for all: those that hold such ranks first, then of zones in turn, the idle first."""
    chosen: list[PodRoom] = []
    zones: Counter[str | None] = Counter()
    room = 0
    while able and (room < wanted.units or len(chosen) < wanted.pods):
        best = min(able, key=lambda pod: (-holds[pod.pod], zones[pod.zone], pod.load, pod.pod))
        able.remove(best)
        chosen.append(best)
        zones[best.zone] += 1
        room += best.slots
    return chosen
