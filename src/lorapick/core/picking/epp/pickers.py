"""Pickers of profiles, as keys: the candidate with the highest key is picked, the next ones are fallbacks.

In: scores of the candidates. Out: a key per candidate. Chance is a function of the seed, the request and the pod, so
that a replay picks the same. Not here: ties of keys; `core.picking.pick` breaks them by its draw.
"""

from collections.abc import Sequence
from typing import Protocol

from lorapick.core.draw import draw_for
from lorapick.core.picking.query import FleetView, Query

_LEAST_DRAW = 1e-10
"""Instead of a draw of 0, which would exclude a candidate that has a score."""


class Picker(Protocol):
    """Keys of the candidates `rows`, in their order."""

    def __call__(self, query: Query, view: FleetView, /, *, rows: list[int], scores: Sequence[float]) -> list[float]:
        """The highest is picked."""
        ...


def _draw(query: Query, view: FleetView, *, row: int) -> float:
    pod = view.pods[row]
    assert pod is not None
    return draw_for(query.seed, query.request_id, purpose=f"pick:{pod.name}:")


def by_score(query: Query, view: FleetView, *, rows: list[int], scores: Sequence[float]) -> list[float]:
    """`max-score-picker`: the score itself."""
    del query, view, rows
    return [*scores]


def by_chance(query: Query, view: FleetView, *, rows: list[int], scores: Sequence[float]) -> list[float]:
    """`random-picker`: each candidate as likely as the others."""
    del scores
    return [_draw(query, view, row=row) for row in rows]


def by_weight(query: Query, view: FleetView, *, rows: list[int], scores: Sequence[float]) -> list[float]:
    """`weighted-random-picker`: as likely as its share of all scores (Efraimidis and Spirakis's A-Res: U^(1/score))."""
    if max(scores) <= 0.0:
        return by_chance(query, view, rows=rows, scores=scores)
    return [
        max(_LEAST_DRAW, _draw(query, view, row=row)) ** (1.0 / score) if score > 0.0 else 0.0
        for row, score in zip(rows, scores, strict=True)
    ]
