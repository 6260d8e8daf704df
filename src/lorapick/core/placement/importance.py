"""Who goes without when slots do not suffice, as an order of replicas and as prices.

In: adapters, most important first. Out: replicas of all adapters in one row; for a flow, the price of each that finds
no slot. They stand by what their slot serves, requests per second; the first copy of an adapter counts twice, since
without it every request waits for a load. The given order counts as a rate: nobody is worth less than one behind him.
What is held counts twice as well, so that adapters of like rates do not push one another out at every look. Without
rates: first copies in the given order, then second ones, and so on.

One place in that row is worth more than any load, so the last in it go without, whatever that costs.
Not here: slots (`flow`, `rendezvous_plan`).
"""

from collections.abc import Sequence

from lorapick.model.placement import PlacedAdapter

FIRST_COPY = 2.0
HELD = 2.0


def by_importance(adapters: Sequence[PlacedAdapter], *, held: float = HELD) -> list[int]:
    """Rows of the adapters, each as often as it wants replicas, the replica that matters most first."""
    units = [
        (-score * (held if copy < len(each.now_on) else 1.0) * (1.0 if copy else FIRST_COPY), copy, row)
        for row, (each, score) in enumerate(zip(adapters, _scores(adapters), strict=True))
        for copy in range(each.replicas)
    ]
    return [row for _, _, row in sorted(units)]


def missing_prices(adapters: Sequence[PlacedAdapter], *, dearest: int) -> list[list[int]]:
    """Prices of each adapter's missing replicas, least first; all above `dearest`, the highest cost of a pair."""
    prices: list[list[int]] = [[] for _ in adapters]
    step = dearest + 1
    for place, row in enumerate(reversed(by_importance(adapters))):
        prices[row].append(step * (4 + place))
    return prices


def _scores(adapters: Sequence[PlacedAdapter]) -> list[float]:
    """What one slot of each serves, never less than of one behind it."""
    scores: list[float] = []
    highest = 0.0
    for each in reversed(adapters):
        highest = max(highest, each.rate / max(1, each.replicas))
        scores.append(highest)
    return scores[::-1]
