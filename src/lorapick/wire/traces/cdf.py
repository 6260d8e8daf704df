"""Length laws as tables: JSON [[tokens, cumulative share], ...] (fleet_sim of vllm-sr-sim).

In: the bytes of the file. Out: the points. Not here: drawing from them (`sim.workload.lengths.TableLength`).
"""

from itertools import pairwise
from typing import Annotated

import msgspec
from msgspec import Meta

from lorapick.model.units import Ratio, Tokens
from lorapick.wire.traces.rows import MOST_TOKENS, TraceError

_Points = tuple[tuple[Annotated[int, Meta(ge=1, le=MOST_TOKENS)], Annotated[float, Meta(ge=0, le=1)]], ...]


def cdf_points(content: bytes, *, name: str = "table") -> tuple[tuple[Tokens, Ratio], ...]:
    """Points of a cumulative distribution: tokens rise, shares do not fall, the last is 1.

    Raises:
        TraceError: it is not one.
    """
    try:
        points = msgspec.json.decode(content, type=_Points)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise TraceError(f"{name}: {error}; a list of [tokens, cumulative share] is needed") from None
    for before, after in pairwise(points):
        if not (before[0] < after[0] and before[1] <= after[1]):
            raise TraceError(f"{name}: {list(after)} after {list(before)}; tokens must rise and shares not fall")
    if not points or points[-1][1] != 1:
        raise TraceError(f"{name}: the last share is {points[-1][1] if points else None}; it must be 1")
    return points
