"""Bring pins and pods together: who is pinned where, and whether a new pin would fit [R3.4].

In: pins, pods, residency. Out: `Placement.pinned` and `keeps`, the pin bits of the cells; notes of what does not fit.
Not here: the arithmetic (see `core.placement.pins`), loading.
"""

from collections.abc import Mapping

from lorapick.core.placement import sides
from lorapick.core.placement.guard import cannot_serve, has, holds
from lorapick.core.placement.keeping import Keeps
from lorapick.core.placement.pins import Pinned, PinPod, Told, meant, on_side
from lorapick.core.placement.pins import place as place_pins
from lorapick.core.placement.targets import Target
from lorapick.core.state import FleetState
from lorapick.model.adapters import PinSpec
from lorapick.model.effects import Effect, Note
from lorapick.model.placement import Why
from lorapick.model.pods import Pod
from lorapick.model.units import AdapterName, Seconds


def place(state: FleetState, *, now: Seconds, cause: int) -> list[Effect]:
    """Work out where pins are, and take note of it."""
    placement = state.placement
    pins = state.all_pins
    if not pins and not placement.pinned.rows:
        return []
    if placement.pinned_at != placement.looks:
        before = placement.pinned.rows
        placement.pinned, placement.pinned_at = _placed(state, pins), placement.looks
        _mark(state, before)
    _count_missing(state, now=now)
    return _say(state, cause=cause)


def targets(state: FleetState) -> list[Target]:
    """Each pin on each of its pods."""
    rows = state.placement.pinned.rows
    return [Target(row, name, Why.PIN) for name in rows for row in rows[name]]


def why_not(state: FleetState, name: AdapterName, *, pin: PinSpec) -> str | None:
    """Why a pin does not fit beside those there are; None: it does, or there are no pods to judge by."""
    if not state.loads:
        return None
    others = {other: spec for other, spec in state.all_pins.items() if other != name}
    alone = _placed(state, others).problems
    found = _placed(state, {**others, name: pin}).problems
    if pin.selector and not any(meant(pin, pod) for _, pod in state.columns.live()):
        return None  # such pods may come
    if name in found:
        return found[name]
    worse = [other for other in found if other not in alone]
    return f"{worse[0]} would lose its place: {found[worse[0]]}" if worse else None


def _placed(state: FleetState, pins: Mapping[AdapterName, PinSpec]) -> Pinned:
    pods = [
        PinPod(row, pod, state.residency.home(row).shadow.gpu_slots, leaving=state.loads[row].draining, side=side)
        for row, pod in state.columns.live()
        if (side := sides.of(state, row)) is not None
    ]
    held = {name: [row for row, _ in state.columns.live() if holds(state, row, name=name)] for name in pins}
    row_of = state.columns.row_of

    def may(name: AdapterName, pod: Pod) -> str | None:
        return cannot_serve(state, row_of[pod.name], name=name)

    before = state.placement.pinned.rows
    return place_pins(pins, pods, told=Told(may, held, before), sides=sides.there(state))


def _mark(state: FleetState, before: Mapping[AdapterName, tuple[int, ...]]) -> None:
    """Set the pin bits, and what each pod keeps; look again at pods for which that has changed."""
    placement, rows = state.placement, state.placement.pinned.rows
    for name in dict.fromkeys([*before, *rows]):
        for row in state.loads:
            pinned = row in rows.get(name, ())
            if pinned != _bit(state, row, name=name):
                state.residency.pin(row, name, pinned=pinned)
    keeps: dict[int, Keeps] = {}
    pins = state.all_pins
    for name in rows if state.settings.placement.enabled else ():
        pin = pins[name]
        for row in rows[name]:
            keeps.setdefault(row, Keeps()).pinned[name] = None
        for row in _reserved(state, pin, rows=rows[name]):
            keeps.setdefault(row, Keeps()).reserved = True
    changed = [
        row
        for row in dict.fromkeys([*placement.keeps, *keeps])
        if row in state.loads and _differs(placement.keeps.get(row), keeps.get(row))
    ]
    placement.keeps.clear()
    placement.keeps.update(keeps)
    for row in changed:
        state.refresh(row)


def _reserved(state: FleetState, pin: PinSpec, *, rows: tuple[int, ...]) -> list[int]:
    """Pods that take only pinned adapters for this pin's sake."""
    if not pin.reserve:
        return []
    found: list[int] = []
    for side in sides.there(state):
        pods = [(row, pod) for row, pod in state.columns.live() if sides.of(state, row) is side]
        here = on_side(pin, side, pods=[pod for _, pod in pods])
        if here is not None and here.reserve:
            narrow = here.pods or here.selector
            found += [row for row, pod in pods if (meant(here, pod) if narrow else row in rows)]
    return found


def _bit(state: FleetState, row: int, *, name: AdapterName) -> bool:
    cell = state.residency.home(row).cells.get(name)
    return cell is not None and cell.pinned


def _differs(one: Keeps | None, other: Keeps | None) -> bool:
    if one is None or other is None:
        return one is not other
    return [*one.pinned] != [*other.pinned] or one.reserved != other.reserved


def _count_missing(state: FleetState, *, now: Seconds) -> None:
    """Since when each pin is not where it should be, and for how long the worst was."""
    placement = state.placement
    missing = {
        (target.row, target.adapter): None
        for target in targets(state)
        if not has(state, target.row, name=target.adapter)
    }
    for pair in [pair for pair in placement.missing_since if pair not in missing]:
        placement.longest_missing = max(placement.longest_missing, now - placement.missing_since.pop(pair))
    for pair in missing:
        placement.missing_since.setdefault(pair, now)


def _say(state: FleetState, *, cause: int) -> list[Effect]:
    placement, effects = state.placement, list[Effect]()
    # At the start pods appear one after another: who has not heard of all of them yet says nothing.
    heard = any(load.last_report is not None for load in state.loads.values())
    problems = placement.pinned.problems if heard else {}
    for name, problem in problems.items():
        if placement.said_of_pins.get(name) != problem:
            facts: dict[str, str | float] = {"adapter": name, "why": problem}
            effects.append(Note(cause=cause, kind="pin_does_not_fit", facts=facts))
    placement.said_of_pins = dict(problems)
    return effects
