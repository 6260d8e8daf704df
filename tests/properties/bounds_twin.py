"""Bounds the slow, obvious way: every eviction tried, and Belady's rule with the future at hand."""

from collections.abc import Mapping, Sequence
from itertools import combinations


def cheapest(
    requests: Sequence[str],
    slots: int,
    *,
    first: Mapping[str, int],
    again: Mapping[str, int],
    contents: Sequence[frozenset[str]] = (frozenset(),),
) -> int:
    """The least cost over all choices of what to push out, beginning with any of `contents`."""
    costs = dict.fromkeys(contents, 0)
    seen: set[str] = set()
    for adapter in requests:
        price = again[adapter] if adapter in seen else first[adapter]
        seen.add(adapter)
        after: dict[frozenset[str], int] = {}
        for held, cost in costs.items():
            for then, more in _choices(held, adapter, slots=slots, price=price):
                after[then] = min(cost + more, after.get(then, cost + more))
        costs = after
    return min(costs.values())


def _choices(held: frozenset[str], adapter: str, *, slots: int, price: int) -> list[tuple[frozenset[str], int]]:
    if adapter in held:
        return [(held, 0)]
    if len(held) < slots:
        return [(held | {adapter}, price)]
    return [((held - {victim}) | {adapter}, price) for victim in held]


def any_contents(names: Sequence[str], slots: int) -> list[frozenset[str]]:
    """Everything that the slots might hold."""
    return [frozenset(held) for count in range(slots + 1) for held in combinations(names, count)]


def belady(requests: Sequence[str], slots: int) -> int:
    """Loads when what is next used furthest in the future is pushed out."""
    held: list[str] = []
    loads = 0
    for position, adapter in enumerate(requests):
        if adapter in held:
            continue
        loads += 1
        if len(held) == slots:
            future = requests[position + 1 :]
            held.remove(max(held, key=lambda name: future.index(name) if name in future else len(future)))
        held.append(adapter)
    return loads
