"""Have the next victim of a pod used, so that another one leaves.

In: a target that the guard refused for its victim's sake. Out: a touch, if some other there may go.
Not here: who may go (see `core.placement.guard`).
"""

from lorapick.core.placement import giving, guard
from lorapick.core.placement.targets import Target
from lorapick.core.state import FleetState
from lorapick.model.effects import Effect
from lorapick.model.units import Seconds


def turn(state: FleetState, target: Target, *, now: Seconds, cause: int) -> list[Effect]:
    """Have the next victim used, so that another one is: if some other there may go."""
    home = state.residency.home(target.row)
    victim = home.shadow.next_out(home.busy)
    if victim is None or not _other_victim(state, target, now=now):
        return []
    why = state.placement.wanted.get(target.row, {}).get(victim, target.why)
    return giving.touch(state, Target(target.row, victim, why), now=now, cause=cause)


def _other_victim(state: FleetState, target: Target, *, now: Seconds) -> bool:
    home = state.residency.home(target.row)
    return any(
        not home.busy(name)
        and not guard.protected(state, target, victim=name)
        and not guard.wanted_last_copy(state, target.row, name=name, now=now, why=target.why)
        for name in home.shadow.gpu
    )
