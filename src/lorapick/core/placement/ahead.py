"""Load ahead of need what a forecast expects to be asked for [R3.5].

In: counts of requests in bins of time, a forecast. Out: who is to be held in the bin that runs now, as targets; bins
that are over, to be kept. Whoever is firm is held for the whole bin; others are brought once, and give way to whoever
is asked for. Without the time of day nobody is forecast. In a fleet of two sides this is for the side that decodes:
there a load is waited for once more after the prefill, and an answer keeps its slot for much longer.
Not here: forecasts and the choice (see `core.forecast`), whether a load is allowed (see `core.placement.guard`).
"""

from collections.abc import Iterable

from lorapick.core.forecast.choose import choose
from lorapick.core.forecast.history import BIN, bin_of
from lorapick.core.placement import sides
from lorapick.core.placement.state import Ahead
from lorapick.core.placement.targets import Target
from lorapick.core.placement.wants import Want
from lorapick.core.state import FleetState
from lorapick.model.effects import Effect, KeepDemand
from lorapick.model.placement import Side, Why
from lorapick.model.units import AdapterName, Seconds


def look(state: FleetState, *, now: Seconds, cause: int) -> list[Effect]:
    """When a bin is over, give it out to be kept, and choose anew."""
    placement = state.placement
    wall = placement.wall(now)
    if wall is None or wall < 0:
        return []
    number = bin_of(wall)
    if placement.ahead is not None and placement.ahead.number == number:
        return []
    bins = placement.history.close(wall)
    _choose(state, number)
    return [KeepDemand(cause=cause, bins=bins)] if bins else []


def _choose(state: FleetState, number: int) -> None:
    placement, start = state.placement, number * BIN
    forecast = placement.forecast
    if forecast is None:
        placement.ahead = None
        return
    slots = _slots(state)
    placement.turnover.turn(firm=placement.ahead.choice.firm if placement.ahead is not None else 0)
    most = placement.turnover.most(slots)
    rates = {name: rate for name, rate in forecast.rates(start, most=most).items() if _may(state, name)}
    choice = choose(rates, forecast.chances(start), residents=_residents(state), slots=slots)
    if placement.scorer is not None:
        placement.scorer.turn(start, slots=slots, most=most)
    placement.ahead = Ahead(number, choice, {}, dict.fromkeys(choice.touches))


def _may(state: FleetState, name: AdapterName) -> bool:
    placement = state.placement
    known = state.residency.registry.known(name)
    pinned = any(
        sides.of(state, row) is Side.DECODE for row in placement.pinned.rows.get(name, ()) if row in state.loads
    )
    return known and not placement.is_deprioritised(name) and not pinned


def _slots(state: FleetState) -> int:
    """Slots in which adapters may be held that are not pinned."""
    keeps = state.placement.keeps
    return sum(
        state.residency.home(row).shadow.gpu_slots - (len(keeps[row].pinned) if row in keeps else 0)
        for row in sides.rows_of(state, Side.DECODE)
        if not (row in keeps and keeps[row].reserved) and not state.loads[row].draining
    )


def _residents(state: FleetState) -> Iterable[AdapterName]:
    rows = sides.rows_of(state, Side.DECODE)
    return dict.fromkeys(name for row in rows for name in state.residency.home(row).shadow.gpu)


def wants(state: FleetState) -> list[tuple[Want, bool]]:
    """Who is to be held now, best first, and whether it is there already."""
    ahead = state.placement.ahead
    if ahead is None:
        return []
    found = []
    for place, name in enumerate(ahead.choice.hold):
        there = bool(sides.holders(state, name))
        if there:
            ahead.brought[name] = None
        if there or place < ahead.choice.firm or name not in ahead.brought:
            found.append((Want(adapter=name, why=Why.FORECAST, name="forecast"), there))
    return found


def to_touch(state: FleetState) -> list[Target]:
    """At the edge of a bin, one at a time for each pod, all that is held; the best last, so it is the last to go."""
    ahead = state.placement.ahead
    if ahead is None or not ahead.touching:
        return []
    found: dict[int, Target] = {}
    for name in [*ahead.touching]:
        rows = sides.holders(state, name)
        if not rows or state.residency.home(rows[0]).busy(name):
            del ahead.touching[name]
        elif rows[0] not in found and rows[0] not in state.placement.commands.touches:
            found[rows[0]] = Target(rows[0], name, Why.FORECAST)
            del ahead.touching[name]
    return [*found.values()]


def is_firm(state: FleetState, name: AdapterName) -> bool:
    """Whether the forecast wants an adapter held for the whole bin."""
    ahead = state.placement.ahead
    return ahead is not None and name in ahead.choice.hold[: ahead.choice.firm]
