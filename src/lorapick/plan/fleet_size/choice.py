"""Which of the points that were found is cheapest, and which are worth a look.

In: what the search found. Out: points. Not here: the search, words.
"""

import math
from collections.abc import Iterable, Sequence

from lorapick.plan.fleet_size.search import Found, Point
from lorapick.plan.fleet_size.trial import Limits


def frontier(points: Iterable[Point]) -> tuple[Point, ...]:
    """Those that no other beats in pods, KV memory or P95 without being worse in another; fewest pods first.

    The cheapest is always one of them: what has as few pods and as low a P95 with more slots leaves no more KV.
    """
    kept = list(points)
    return tuple(sorted((each for each in kept if not any(_beats(other, each) for other in kept)), key=_order))


def _beats(one: Point, other: Point) -> bool:
    pairs = list(zip(_costs(one), _costs(other), strict=True))
    return all(own <= theirs for own, theirs in pairs) and any(own < theirs for own, theirs in pairs)


def _costs(point: Point) -> tuple[float, ...]:
    """Each the better the lower it is."""
    return point.pods, -point.kv_blocks, math.inf if point.p95 is None else point.p95


def cheapest(found: Sequence[Found]) -> Point | None:
    """Fewest pods, as each costs the same; of those the lowest P95, then the fewest slots. None: nothing is enough."""
    return min((each.best for each in found if each.best is not None), key=_order, default=None)


def _order(point: Point) -> tuple[int, float, int]:
    assert point.p95 is not None, "a point that keeps the limit has a P95"
    return point.pods, point.p95, point.slots


def nearest(found: Sequence[Found], limits: Limits) -> Point:
    """Of points that are not enough, the one whose worse excess is the smallest, as a ratio to its limit."""

    def excess(point: Point) -> tuple[float, int, int]:
        late = math.inf if point.p95 is None else point.p95 / limits.p95
        lost = point.lost / limits.lost if limits.lost else (math.inf if point.lost else 0.0)
        return max(late, lost), point.pods, point.slots

    return min((each for one in found for each in one.tried), key=excess)
