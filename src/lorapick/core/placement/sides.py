"""The two sides of a fleet that splits requests: pods that decode, and pods that only prefill.

In: the fleet's state. Out: which pods are on which side. A side is placed by itself: pins, orders, schedules and the
placement by load count replicas on each, and a copy on one is none on the other. Pods of the role `both` decode, so
they are on that side alone. In a fleet that splits no requests, pods that only prefill are on no side: nothing is
brought to them. Not here: how many replicas a side has.
"""

from lorapick.core.columns import TIER_BITS
from lorapick.core.state import FleetState
from lorapick.model.placement import Side
from lorapick.model.tiers import Tier
from lorapick.model.units import AdapterName

DECODE, PREFILL = Side.DECODE, Side.PREFILL
ONE, BOTH = (DECODE,), (DECODE, PREFILL)


def there(state: FleetState) -> tuple[Side, ...]:
    """Sides of the fleet as it is now."""
    if not state.splits:
        return ONE
    prefill_only = state.columns.prefill_only
    return BOTH if any(prefill_only[row] for row in state.loads) else ONE


def of(state: FleetState, row: int) -> Side | None:
    """Side of a pod; None: it only prefills, and nobody splits requests."""
    if not state.columns.prefill_only[row]:
        return DECODE
    return PREFILL if state.splits else None


def rows_of(state: FleetState, side: Side) -> list[int]:
    """Pods of a side."""
    return [row for row in state.loads if of(state, row) is side]


def holders(state: FleetState, name: AdapterName, *, side: Side = DECODE, least: Tier = Tier.LOADING) -> list[int]:
    """Pods of a side that have an adapter in a slot or load it (`least`): the side's affinity map (docs/adr/0016)."""
    codes = state.columns.adapters.get(name)
    if codes is None:
        return []
    return [row for row in rows_of(state, side) if codes[row] & TIER_BITS >= least]
