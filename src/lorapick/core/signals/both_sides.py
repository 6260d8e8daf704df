"""The two sides of a fleet that has pods of several roles: room, swaps, and pods that should prefill and do not.

In: the fleet's state. Out: values. Not here: counting (see `core.signals.handovers`), when somebody is told (see
`core.alarms`).
"""

from typing import NamedTuple

from lorapick.core.columns import REASONS
from lorapick.core.state import FleetState
from lorapick.model.placement import Side
from lorapick.model.pods import Role
from lorapick.model.signals import SideSignals
from lorapick.model.units import PodName, Seconds


class Silent(NamedTuple):
    """A pod that should prefill and does not."""

    pod: PodName
    why: str
    """`not answering` and the like, or `prefills fail`."""


def answers(state: FleetState, row: int, *, now: Seconds) -> bool:
    """Whether a pod is there: its slots count."""
    return state.columns.fresh_until[row] >= now and not state.loads[row].circuit_open


def of_fleet(state: FleetState, *, active: int, span: Seconds, now: Seconds) -> tuple[SideSignals, ...]:
    """Both sides, if there are two; `active` adapters are in use, and rates are of the last `span` seconds."""
    roles = {row: pod.role for row, pod in state.columns.live()}
    if all(role is Role.BOTH for role in roles.values()):
        return ()
    prefilled = state.signals.handovers.active(now)
    return (
        _side(state, Side.DECODE, rows=_others(roles, Role.PREFILL), active=active, span=span, now=now),
        _side(state, Side.PREFILL, rows=_others(roles, Role.DECODE), active=prefilled, span=span, now=now),
    )


def _others(roles: dict[int, Role], but: Role) -> list[int]:
    return [row for row, role in roles.items() if role is not but]


def _side(state: FleetState, side: Side, *, rows: list[int], active: int, span: Seconds, now: Seconds) -> SideSignals:
    there = [row for row in rows if answers(state, row, now=now)]
    homes = [state.residency.home(row) for row in there]
    slots = sum(home.shadow.gpu_slots for home in homes)
    tracks = [track for home in homes if (track := state.signals.pods.get(home.name)) is not None]
    swaps = sum(track.stays.swaps.total(now) for track in tracks)
    return SideSignals(
        side=side,
        pods=len(there),
        active_adapters=active,
        slots=slots,
        active_per_slot=active / slots if slots else None,
        swaps_per_second=swaps / span / max(1, len(there)),
    )


def prefill_rows(state: FleetState) -> list[int]:
    """Pods that do nothing but prefill, where requests are split."""
    if not state.splits:
        return []
    return [row for row, pod in state.columns.live() if pod.role is Role.PREFILL]


def silent(state: FleetState, *, now: Seconds) -> list[Silent]:
    """Pods that only prefill and cannot now: they take nothing, or what they get fails again and again."""
    columns, found = state.columns, []
    for row in prefill_rows(state):
        reason, name = REASONS[columns.gate[row]], columns.targets[row].pod
        if reason is not None:
            found.append(Silent(name, reason.value))
        elif columns.fresh_until[row] < now:
            found.append(Silent(name, "stale"))
        elif state.legs.failing(row):
            found.append(Silent(name, "prefills_fail"))
    return found


def unreached(state: FleetState, *, now: Seconds) -> dict[PodName, int]:
    """Pods that were named to prefill and got nothing, each with how often it was named."""
    handovers = state.signals.handovers
    found = {pod.name: handovers.unreached(pod.name, now=now) for _, pod in state.columns.live()}
    return {name: times for name, times in found.items() if times} if state.splits else {}
