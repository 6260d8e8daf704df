"""Who goes without when slots do not suffice, as prices.

In: adapters, most important first. Out: for each adapter the price of each replica that finds no slot, least first.
Replicas of all adapters stand in one row by what their slot serves, requests per second; the first copy of an adapter
counts twice, since without it every request waits for a load. The given order counts as a rate: nobody is worth less
than one behind him. What is held counts half as much again, so that adapters of like rates do not push one another out
at every look. One place in that row is worth more than any load, so the last in it go without, whatever that costs.
Without rates: first copies in the given order, then second ones, and so on.

Not here: slots (`flow`).
"""

from collections.abc import Sequence

from lorapick.model.placement import PlacedAdapter

FIRST_COPY = 2.0
HELD = 1.5


def missing_prices(adapters: Sequence[PlacedAdapter], *, dearest: int) -> list[list[int]]:
    """Prices of each adapter's missing replicas, least first; all above `dearest`, the highest cost of a pair."""
    scores = _scores(adapters)
    units = [
        (-score * (HELD if copy < len(each.now_on) else 1.0) * (1.0 if copy else FIRST_COPY), copy, index)
        for index, (each, score) in enumerate(zip(adapters, scores, strict=True))
        for copy in range(each.replicas)
    ]
    prices: list[list[int]] = [[] for _ in adapters]
    step = dearest + 1
    for place, (_, _, index) in enumerate(sorted(units, reverse=True)):
        prices[index].append(step * (4 + place))
    return prices


def _scores(adapters: Sequence[PlacedAdapter]) -> list[float]:
    """What one slot of each serves, never less than of one behind it."""
    scores: list[float] = []
    highest = 0.0
    for each in reversed(adapters):
        highest = max(highest, each.rate / max(1, each.replicas))
        scores.append(highest)
    return scores[::-1]
