"""Where wants come from, and the targets that they become on each tick.

In: the fleet's state. Out: targets, most insistent first; none twice. In a fleet of two sides, replicas that somebody
wants are wanted on each; what one pod wants (handover, warm-up) is of its own side; the forecast is for the side that
decodes. Not here: whether they are pursued.
"""

from heapq import nsmallest

from lorapick.core.columns import TIER_BITS
from lorapick.core.placement import ahead, by_load, guard, opening, pinning, sides
from lorapick.core.placement.assigning import candidates, rows_for
from lorapick.core.placement.state import Order
from lorapick.core.placement.targets import Target
from lorapick.core.placement.wants import Want
from lorapick.core.state import FleetState
from lorapick.model.effects import Effect, Note
from lorapick.model.placement import Side, Why
from lorapick.model.tiers import Tier
from lorapick.model.units import AdapterName, Seconds

ORDER_LASTS: Seconds = 600.0
"""An order that could not be carried out for so long is dropped, with a note."""
WARM_PER_MINUTE = 1.0
"""Requests a minute from which on an adapter is brought to a pod that warms up."""


KEPT: dict[Why, None] = dict.fromkeys((Why.OPERATOR, Why.SCHEDULE, Why.TRIGGER, Why.FORECAST))
"""Kept in their slots by a touch when they would be the next to go; of the forecast's, those that are firm."""


class Collected:
    """Targets of one tick, and what each pod is wanted for so far."""

    def __init__(self, state: FleetState) -> None:
        self.state = state
        self.targets: list[Target] = []
        self.wanted: dict[int, dict[AdapterName, Why]] = {}
        self.assigned: dict[tuple[Why, str, AdapterName, Side], tuple[int, ...]] = {}
        self.sides = sides.there(state)

    def add(self, target: Target) -> None:
        """One more, unless it is there already."""
        there = self.wanted.setdefault(target.row, {})
        if target.adapter not in there:
            there[target.adapter] = target.why
            self.targets.append(target)

    def add_if_room(self, target: Target) -> None:
        """One more, unless more insistent ones take all slots of its pod."""
        if len(self.wanted.get(target.row, ())) < self.state.residency.home(target.row).shadow.gpu_slots:
            self.add(target)

    def give(self, want: Want) -> tuple[int, ...]:
        """Find pods for a want, on each side as many as it says; named pods are of whichever side they are."""
        where = sides.ONE if want.pods else self.sides
        return tuple(row for side in where for row in self.give_side(want, side))

    def give_side(self, want: Want, side: Side, *, near: int = -1) -> tuple[int, ...]:
        """Find pods of one side for a want; nothing known of it, best `near` a row."""
        key = (want.why, want.name, want.adapter, side)
        before = self.state.placement.assigned.get(key, (near,) if near >= 0 else ())
        rows = self.assigned[key] = rows_for(self.state, want, wanted=self.wanted, before=before, side=side)
        for row in rows:
            self.add(Target(row, want.adapter, want.why, want.name))
        return rows


def collect(state: FleetState, *, now: Seconds, cause: int, effects: list[Effect]) -> list[Target]:
    """All targets as of now; notes of orders that are done or dropped are added to `effects`."""
    placement, found = state.placement, Collected(state)
    placement.look_at_calendar(state.settings, now=now)
    for target in pinning.targets(state):
        found.add(target)
    effects += _orders(found, now=now, cause=cause)
    for row in placement.leaving:
        if (side := sides.of(state, row)) is None:
            continue
        for name in opening.to_hand_over(state, row, now=now):
            found.give_side(Want(adapter=name, why=Why.HANDOVER, name=state.columns.targets[row].pod), side)
    for want in _by_calendar(state, now=now):
        if _known(state, want.adapter):
            found.give(want)
        elif want.adapter not in placement.said_unknown:
            placement.said_unknown[want.adapter] = None
            facts: dict[str, str | float] = {"adapter": want.adapter, "why": want.why.value, "of": want.name}
            effects.append(Note(cause=cause, kind="nobody_knows", facts=facts))
    _followers(found, now=now)
    for row in placement.warming:
        _warm_up(found, row, now=now)
    effects += by_load.ask(state, now=now, cause=cause)
    for target in by_load.targets(state, now=now):
        found.add_if_room(target)
    effects += ahead.look(state, now=now, cause=cause)
    _ahead(found)
    placement.assigned = found.assigned
    placement.guarded = _guarded(found)
    return found.targets


def watches_time(state: FleetState) -> bool:
    """Whether some source may want something else merely because time passes."""
    settings, placement = state.settings, state.placement
    asked = settings.schedules or placement.forecast is not None or placement.by_load or settings.placement.history
    return bool(asked or placement.called or placement.triggers.due(state.now))


def _by_calendar(state: FleetState, *, now: Seconds) -> tuple[Want, ...]:
    placement = state.placement
    wall = placement.wall(now)
    scheduled = placement.schedules.due(wall, now=now) if wall is not None else ()
    return (*scheduled, *placement.triggers.due(now))


def _known(state: FleetState, name: AdapterName) -> bool:
    return name in state.adapters or state.residency.registry.known(name)


def _followers(found: Collected, *, now: Seconds) -> None:
    """Followers of who was called: where they are, else on their leader's pod if that has room, else elsewhere."""
    placement = found.state.placement
    for name, called in [*placement.called.items()]:
        if called.want.until is not None and now >= called.want.until:
            del placement.called[name]
        elif not placement.is_deprioritised(name) and _known(found.state, name):
            for side in found.sides:
                rows = sides.holders(found.state, called.leader, side=side)
                found.give_side(called.want, side, near=rows[0] if rows else -1)


def _ahead(found: Collected) -> None:
    """Whoever is there stays there; whoever is not is brought to a pod that has room for it."""
    for want, there in ahead.wants(found.state):
        if there:
            found.add(Target(sides.holders(found.state, want.adapter)[0], want.adapter, Why.FORECAST))
        else:
            found.give_side(want, Side.DECODE)


def _guarded(found: Collected) -> dict[int, None]:
    return dict.fromkeys(row for row, there in found.wanted.items() if any(why in KEPT for why in there.values()))


def _orders(found: Collected, *, now: Seconds, cause: int) -> list[Effect]:
    state, effects, kept = found.state, list[Effect](), list[Order]()
    for order in state.placement.orders:
        want = order.want
        if want.until is not None and now >= want.until:
            effects.append(_said(order, "order_over", cause=cause))
            continue
        rows = found.give(want)
        wanted = _wanted(found, want)
        there = [row for row in rows if _in_slot(state, row, name=want.adapter)]
        if order.once and len(there) == wanted:
            effects.append(_said(order, "order_done", cause=cause))
            _leave(state, order)
        elif order.once and now - order.asked >= ORDER_LASTS:
            effects.append(_said(order, "order_dropped", cause=cause))
        else:
            kept.append(order)
    state.placement.orders = kept
    return effects


def _wanted(found: Collected, want: Want) -> int:
    """Copies that an order is for: on the side that prefills no more than pods there may have."""
    if want.pods:
        return len(want.pods)
    count = [len(candidates(found.state, want, side=side)) for side in found.sides]
    if len(count) == 2 and count[1] and not count[0]:
        return min(want.replicas, count[1])  # its labels are of pods that prefill
    return want.replicas + sum(min(want.replicas, more) for more in count[1:])


def _leave(state: FleetState, order: Order) -> None:
    row = state.columns.row_of.get(order.leaves) if order.leaves is not None else None
    if row is not None:
        state.placement.unloads[row, order.want.adapter] = Why.OPERATOR
        state.placement.unwanted[row, order.want.adapter] = None


def _said(order: Order, kind: str, *, cause: int) -> Note:
    return Note(cause=cause, kind=kind, facts={"adapter": order.want.adapter, "order": order.want.name})


def _in_slot(state: FleetState, row: int, *, name: AdapterName) -> bool:
    # Whoever asked for a load on an engine whose loads end in host memory has it when it is there.
    in_host = state.columns.adapter_row(name)[row] & TIER_BITS >= Tier.CPU
    return guard.has(state, row, name=name) or (state.residency.home(row).caches.loads_to_host and in_host)


def _warm_up(found: Collected, row: int, *, now: Seconds) -> None:
    """What a pod should have before it takes traffic: what nobody of its side has, then what is asked for most.

    Copies only until the pod has its fair share of the requests, of which each copy takes its part: more of them would
    leave no slot for what other pods have to hand over.
    """
    state, side = found.state, sides.of(found.state, row)
    home, keeps = state.residency.home(row), state.placement.keeps.get(row)
    there, wanted = home.shadow.gpu, found.wanted.get(row, {})
    room = home.shadow.gpu_slots - len({**dict.fromkeys(there), **wanted})
    if side is None or room <= 0 or (keeps is not None and keeps.reserved):
        return
    rates = {name: rate for name, rate in state.prices.demand.rates(now=now) if rate * 60.0 >= WARM_PER_MINUTE}
    others = [other for other in sides.rows_of(state, side) if other != row]
    parts = {name: rate / (1 + _copies(state, name, among=others)) for name, rate in rates.items()}
    share = sum(rates.values()) / (1 + len(others)) - sum(parts.get(name, 0.0) for name in there)
    new = [name for name in parts if name not in there and not state.placement.is_deprioritised(name)]
    for name in nsmallest(room, new, key=lambda name: (parts[name] < rates[name], -parts[name], name)):
        alone = parts[name] == rates[name]
        if alone or share > 0:
            found.add(Target(row, name, Why.WARM_UP))
            share -= parts[name]


def _copies(state: FleetState, name: AdapterName, *, among: list[int]) -> int:
    return sum(guard.holds(state, row, name=name) for row in among)
