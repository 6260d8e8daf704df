"""The controller: about once a second, what is wanted against what is believed [R3.4-R3.9].

In: the fleet's state. Out: loads, registrations, touches and unloads. Level-based: what is wanted is worked out anew on
each tick from what there is; events only make the tick come sooner. Sources of wants, most insistent first: pins,
orders of operators, what leaving pods have to hand over, the calendar, triggers and groups, pods that warm up, the
placement by load, forecasts. Each yields targets; the guard accepts or refuses each.
Not here: sources (see `core.placement.sources`), the guard's rules, how commands are given.
"""

from math import inf

from lorapick.core.peers import claiming
from lorapick.core.placement import ahead, giving, guard, opening, pinning, registering, sources, turning
from lorapick.core.placement.state import Refusal
from lorapick.core.placement.targets import ORDER, Target
from lorapick.core.state import FleetState
from lorapick.model.effects import Effect, Note
from lorapick.model.placement import Why
from lorapick.model.units import AdapterName, Seconds

BETWEEN_TOUCHES: Seconds = 5.0
"""On one pod, while nobody waits: uses of other adapters make a pin the next to go again and again."""


def due(state: FleetState, *, now: Seconds) -> bool:
    """Whether it is time for a tick."""
    return now >= state.placement.next_tick


def stir(state: FleetState, *, now: Seconds) -> None:
    """A pod came, went, changed or began anew; when many do at a time, one look is for all of them."""
    state.placement.looks += 1
    state.placement.hurry_a_little(now)


def wake(state: FleetState, *, now: Seconds) -> None:
    """What is wanted, or the pods there are, may have changed: look at once."""
    state.placement.looks += 1
    state.placement.hurry(now)


def tick(state: FleetState, *, now: Seconds, cause: int) -> list[Effect]:
    """Compare, and begin what may begin."""
    placement = state.placement
    if not placement.commands_pods:
        effects = opening.settle(state, now=now, cause=cause)
        effects += pinning.place(state, now=now, cause=cause)  # for the score
        _claim(state)
        placement.next_tick = inf
        if not placement.acts:
            effects += _would_want(state, now=now, cause=cause)
        return effects
    effects = giving.give_up(state, now=now, cause=cause)
    effects += pinning.place(state, now=now, cause=cause)
    targets = sources.collect(state, now=now, cause=cause, effects=effects)
    placement.wanted = {}
    for target in targets:
        placement.wanted.setdefault(target.row, {}).setdefault(target.adapter, target.why)
    for target in targets:
        effects += _pursue(state, target, now=now, cause=cause)
    _claim(state)
    effects += _keep(state, now=now, cause=cause)
    effects += registering.register(state, now=now, cause=cause)
    effects += registering.withdraw(state, now=now, cause=cause)
    effects += opening.settle(state, now=now, cause=cause)
    placement.forget_refusals(unknown=lambda row: registering.unknown(state, row))
    placement.last_tick = now
    placement.next_tick = now + state.settings.placement.tick if _busy(state) else inf
    return effects


def _would_want(state: FleetState, *, now: Seconds, cause: int) -> list[Effect]:
    """While requests are only observed: what would be wanted, to be shown; nobody is told anything."""
    placement = state.placement
    effects = giving.give_up(state, now=now, cause=cause)  # on what was asked for before
    if placement.leads and state.settings.placement.enabled:
        placement.wanted = {}
        for target in sources.collect(state, now=now, cause=cause, effects=effects):
            placement.wanted.setdefault(target.row, {}).setdefault(target.adapter, target.why)
        placement.last_tick = now
        placement.next_tick = now + state.settings.placement.tick if _busy(state) else inf
    return effects


def _busy(state: FleetState) -> bool:
    """Whether time alone may bring something about."""
    placement = state.placement
    return bool(
        state.pins
        or state.peers.marks.pins
        or placement.orders
        or placement.unloads
        or placement.warming
        or placement.leaving
        or placement.retiring
        or placement.commands.under_way
        or placement.commands.touches
        or sources.watches_time(state)
        or registering.any_to_register(state)
    )


def _pursue(state: FleetState, target: Target, *, now: Seconds, cause: int) -> list[Effect]:
    placement = state.placement
    home = state.residency.home(target.row)
    if guard.holds(state, target.row, name=target.adapter):
        return []
    reason = guard.refuse(state, target, now=now)
    if reason is None and state.peers.on:
        asked = claiming.before_command(state, target, now=now, cause=cause)
        if asked is not None:
            return asked
        told = claiming.moved(state, target.adapter, row=target.row, cause=cause)
        return [*told, *giving.load(state, target, now=now, cause=cause)]
    if reason is None:
        return giving.load(state, target, now=now, cause=cause)
    effects: list[Effect] = []
    if placement.refused(target.row, target.adapter, refusal=Refusal(reason, target.why, now)):
        facts: dict[str, str | float] = {
            "pod": home.name,
            "adapter": target.adapter,
            "why": target.why.value,
            "reason": reason,
        }
        effects.append(Note(cause=cause, kind="load_refused", facts=facts))
    if reason in (guard.EVICTS_KEPT, guard.EVICTS_LAST_COPY):
        effects += turning.turn(state, target, now=now, cause=cause)
    return effects


def _claim(state: FleetState) -> None:
    """Where a pin waits for a load to end, no request begins another: the next is the pin's."""
    placement, waits = state.placement, (guard.POD_BUSY, guard.TOO_MANY_LOAD)
    claims: dict[int, None] = {}
    for target in pinning.targets(state) if placement.commands_pods else ():
        refusal = placement.refusals.get((target.row, target.adapter))
        if refusal is not None and refusal.reason in waits and not guard.holds(state, target.row, name=target.adapter):
            claims[target.row] = None
    if claims != placement.claims:
        placement.claims.clear()
        placement.claims.update(claims)
        state.gates.recount()


def _keep(state: FleetState, *, now: Seconds, cause: int) -> list[Effect]:
    """Touch what is to stay and would be the next to go, where others may come."""
    effects: list[Effect] = []
    placement = state.placement
    targets = ahead.to_touch(state)
    rows = [row for row in dict.fromkeys([*placement.keeps, *placement.guarded]) if row in state.loads]
    targets += [target for row in rows if (target := _endangered(state, row)) is not None]
    for target in targets:
        load = state.loads[target.row]
        if not (load.circuit_open or load.draining):  # nobody loads there
            effects += giving.touch(state, target, now=now, cause=cause)
    return effects


def _endangered(state: FleetState, row: int) -> Target | None:
    """Who is to stay and would be thrown out by the next load, unless nobody there may go."""
    placement, home = state.placement, state.residency.home(row)
    if home.shadow.free > 0 or not _somebody_comes(state, row):
        return None
    victim = home.shadow.next_out(home.busy)
    if victim is None or not _stays(state, row, name=victim):
        return None
    others = [name for name in home.shadow.gpu if not home.busy(name) and not _stays(state, row, name=name)]
    why = placement.wanted.get(row, {}).get(victim, Why.PIN)
    return Target(row, victim, why) if others else None


def _somebody_comes(state: FleetState, row: int) -> bool:
    """Whether a load may begin there soon: somebody waits, or others were loaded of late; then not too often."""
    if len(state.queues):
        return True
    commands, now = state.placement.commands, state.now
    return commands.loads_in_last_minute(row, now=now) > 0 and commands.since_touch(row, now=now) >= BETWEEN_TOUCHES


def _stays(state: FleetState, row: int, *, name: AdapterName) -> bool:
    placement = state.placement
    keeps = placement.keeps.get(row)
    if keeps is not None and name in keeps.pinned:
        return True
    why = placement.wanted.get(row, {}).get(name)
    return why in sources.KEPT and (why is not Why.FORECAST or ahead.is_firm(state, name))


assert [*ORDER] == [*Why]
