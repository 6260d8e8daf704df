"""What pins leave to adapters that are not pinned.

In: a running picker's state. Out: warnings with the arithmetic. Not here: whether a pin fits (see
`core.placement.pinning`): these pins do, and that is allowed.
"""

from collections.abc import Iterator

from lorapick.core.signals.views import ACTIVE_WINDOW
from lorapick.core.state import FleetState

MOST_NAMES = 5


def crowded(state: FleetState) -> Iterator[str]:
    """What is wrong when pins leave fewer slots than the other active adapters need; nothing when they do not."""
    rows = state.placement.pinned.rows
    slots = {row: state.residency.home(row).shadow.gpu_slots for row, _ in state.columns.live()}
    taken = {row: sum(row in pinned for pinned in rows.values()) for row in slots}
    every, pinned = sum(slots.values()), sum(taken.values())
    active = state.signals.courses.names_since(state.now - ACTIVE_WINDOW)
    others = sum(name not in rows for name in active)
    if not pinned or others <= every - pinned:
        return
    left = every - pinned
    verb = "is" if left == 1 else "are"
    yield (
        f"warning: pins take {pinned} of {every} slots, so {left} {verb} left for the other {others} adapters asked "
        f"for in the last 10 minutes ({others} > {every} - {pinned} = {left}): these will be swapped, or wait; fewer "
        "replicas, or `lorapick adapters unpin NAME`, gives slots back"
    )
    full = [pod.name for row, pod in state.columns.live() if slots[row] and taken[row] >= slots[row]]
    if full:
        more = f" and {len(full) - MOST_NAMES} more" if len(full) > MOST_NAMES else ""
        yield f"warning: no slot is left for others on {', '.join(full[:MOST_NAMES])}{more}"
