"""Seeds to tune with, and seeds to report: no run can be of both.

A policy that was tuned on the cells that it is reported on has been told the answers. `SEARCH` is for the search of
each cell's rates, which must not look at reported traffic either.
"""

TUNING = range(1, 100)
SEARCH = 900
REPORTING = range(1_000, 1_100)


def seeds(count: int, *, tuning: bool) -> range:
    """The first `count` of either kind.

    Raises:
        ValueError: there are not so many.
    """
    kind = TUNING if tuning else REPORTING
    if not 1 <= count <= len(kind):
        raise ValueError(f"{count} seeds: there are 1 to {len(kind)}")
    return kind[:count]
