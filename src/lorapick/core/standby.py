"""A slot on a fallback, for a request whose own pod is lost before it had it.

In: a flight; what its pods are. Out: a reservation on a fallback's row, and its end. Not here: when a pod counts as
lost, and what is said of it (see `core.moving`).

The gateway goes on to the fallbacks by itself and says who serves only when the answer begins. Until then that pod has
the prompt prefilled anew, and its engine knows as little of the request as the first one's did. Whether the first one
is really lost nobody knows for sure, so its own reservation stays where it is; the answer ends both.
"""

from math import inf

from lorapick.core.columns import PINNED, TIER_BITS
from lorapick.core.state import FleetState, Flight
from lorapick.model.requests import Target
from lorapick.model.tiers import Tier
from lorapick.model.units import Seconds

_LOADING, _IDLE = int(Tier.LOADING), int(Tier.GPU_IDLE)


def next_living(state: FleetState, flight: Flight, *, lost: int) -> int:
    """Row of the fallback that the gateway will try first, of those that are there and answer; -1: none is."""
    for target in flight.fallbacks:
        row = _row_of(state, target)
        if row >= 0 and row != lost and not state.loads[row].circuit_open:
            return row
    return -1


def _row_of(state: FleetState, target: Target) -> int:
    row = state.columns.row_of.get(target.pod, -1)
    # At another address it is another process, which the gateway was not told of.
    return row if row >= 0 and state.columns.targets[row].address == target.address else -1


def has_room(state: FleetState, flight: Flight, *, row: int) -> bool:
    """Whether a slot can be kept there without taking one that is in use or kept for others."""
    name, columns = flight.adapter_name, state.columns
    if name is None:
        return True
    code = columns.adapter_row(name)[row]
    tier, pinned = code & TIER_BITS, code & PINNED
    if not tier or row in state.placement.commands.unloading(name):
        return False
    if tier == _LOADING or tier > _IDLE:
        return True
    kept = columns.kept[row]
    return (kept < inf or bool(pinned)) and columns.slots_left[row] > (0.0 if pinned else kept)


def may_load(state: FleetState, flight: Flight, *, row: int) -> bool:
    """Whether the adapter is there, or could be loaded there now without harm to others."""
    name, columns = flight.adapter_name, state.columns
    return name is None or columns.adapter_row(name)[row] & TIER_BITS >= _LOADING or not columns.pressure[row]


def keep(state: FleetState, flight: Flight, *, row: int, now: Seconds) -> None:
    """Count the request at a fallback, with a slot reserved."""
    assert flight.standby < 0, flight.request.id
    flight.standby = row
    if flight.adapter_name is not None:
        state.residency.reserve(row, flight.adapter_name)
    state.loads[row].dispatched(now)
    state.refresh(row)


def let_go(state: FleetState, flight: Flight, *, now: Seconds) -> int:
    """The slot is free again, if one is kept; return the row whose it was, or -1."""
    row, flight.standby = flight.standby, -1
    if row not in state.loads:
        return -1
    if flight.adapter_name is not None:
        state.residency.ended(row, flight.adapter_name, now=now, load_failed=False, reserved=True)
    state.loads[row].ended(now)
    state.refresh(row)
    return row
