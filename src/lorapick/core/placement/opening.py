"""Pods that come and pods that leave: when they begin and end to take traffic.

In: pods that appeared, restarted or drain. Out: their gates. A pod that comes while others serve takes no traffic until
its pins and what else it should have are there, for `placement.warm_up` at most. A pod that leaves goes on serving what
nobody else has until somebody has it, for `placement.handover` at most. Neither when no other pod would serve. Of a
fleet of two sides, "others" are pods of the same one: a copy that only prefills decodes nothing.
Not here: what they should have (see `core.placement.sources`).
"""

from lorapick.core.placement import guard
from lorapick.core.releasing import release
from lorapick.core.requests import gate
from lorapick.core.state import FleetState
from lorapick.model.effects import Effect, Note
from lorapick.model.tiers import Tier
from lorapick.model.units import AdapterName, Seconds

ATTEMPTS = 3
"""Failed loads of one adapter after which a pod does not wait for it any longer."""
LASTING: dict[str, None] = dict.fromkeys(("unfit", "unregistered", "retiring", "no_load_api"))
"""Refusals of the guard that time does not change."""


def warm(state: FleetState, row: int, *, now: Seconds) -> None:
    """A process is new there: keep it from traffic for a while, if others serve and there is something to bring."""
    wanted = state.settings.placement.warm_up > 0 and state.residency.home(row).caches.loads
    if wanted and _ours(state) and state.tally.dispatched and others_serve(state, row):
        state.placement.warming[row] = now
        state.placement.hurry(now)


def leave(state: FleetState, row: int, *, now: Seconds) -> None:
    """A pod drains: let it go on with what nobody else has, if anybody could take it over."""
    seconds = state.settings.placement.handover
    if seconds > 0 and _ours(state) and others_serve(state, row) and to_hand_over(state, row, now=now):
        state.placement.leaving[row] = now + seconds
        state.placement.hurry(now)


def _ours(state: FleetState) -> bool:
    """Whether who is let in where is ours to say; other systems' policies are played as they are."""
    return state.placement.commands_pods and state.policy.coalesces


def others_serve(state: FleetState, row: int) -> bool:
    """Whether another pod of the same side and base model takes requests, and not those for its pins alone."""
    columns, keeps = state.columns, state.placement.keeps
    return any(
        other != row
        and not (other in keeps and keeps[other].reserved)
        and not columns.gate[other]
        and columns.base[other] == columns.base[row]
        and columns.prefill_only[other] == columns.prefill_only[row]
        and columns.fresh_until[other] >= state.now
        for other, _ in columns.live()
    )


def to_hand_over(state: FleetState, row: int, *, now: Seconds) -> list[AdapterName]:
    """Adapters in a pod's slots that are asked for, and that no other pod has: one that loads them may fail."""
    home = state.residency.home(row)

    def only_here(name: AdapterName) -> bool:
        least = min(home.cell(name).tier, Tier.GPU_IDLE)
        return guard.wanted_last_copy(state, row, name=name, now=now, least=least)

    return [name for name in home.shadow.gpu if only_here(name)]


def settle(state: FleetState, *, now: Seconds, cause: int) -> list[Effect]:
    """Open pods that are ready or have waited long enough; close those that have handed everything over."""
    placement, effects = state.placement, list[Effect]()
    for row, since in [*placement.warming.items()]:
        missing = [name for name in placement.wanted.get(row, {}) if not _there(state, row, name=name)]
        over = not _ours(state) or now - since >= state.settings.placement.warm_up
        if over or not missing or not others_serve(state, row):
            del placement.warming[row]
            gate(state, row)
            state.refresh(row)
            if now > since:
                effects.append(_note(state, row, kind="pod_warm", names=missing, cause=cause))
            effects += release(state, row, now=now, cause=cause)
    for row, until in [*placement.leaving.items()]:
        missing = to_hand_over(state, row, now=now)
        if not _ours(state) or now >= until or not missing:
            del placement.leaving[row]
            gate(state, row)
            effects.append(_note(state, row, kind="pod_handed_over", names=missing, cause=cause))
            effects += release(state, row, now=now, cause=cause)
    return effects


def _there(state: FleetState, row: int, *, name: AdapterName) -> bool:
    """Whether an adapter is in a slot, or will not come."""
    placement = state.placement
    refusal = placement.refusals.get((row, name))
    lasting = refusal is not None and refusal.reason in LASTING
    return guard.has(state, row, name=name) or lasting or placement.commands.failures(row, name) >= ATTEMPTS


def _note(state: FleetState, row: int, *, kind: str, names: list[AdapterName], cause: int) -> Note:
    facts: dict[str, str | float] = {"pod": state.columns.targets[row].pod, "without": ", ".join(names)}
    return Note(cause=cause, kind=kind, facts=facts)
