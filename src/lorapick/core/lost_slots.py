"""Reserved slots that were lost: another adapter took them before the request came [R4.4].

In: what the residency table noted during an event. Out: a Note for each, and its count. Nothing that the picker decides
takes a reserved slot; requests that Envoy sends to a fallback can, others' traffic, slots that were never there, and
policies and settings that leave admission to the pods (docs/disaggregation.md).
Not here: what is done about it. A touch brings the adapter in again, or the request loads it when it comes.
"""

from lorapick.core.state import FleetState
from lorapick.model.effects import Effect, Note

RESERVED_LOST = "reserved_lost"
"""Kind of the note."""
REPORTED, INFERRED = "reported", "inferred"


def tell(state: FleetState, *, cause: int) -> list[Effect]:
    """Count what was lost and say so, once."""
    lost, state.residency.lost = state.residency.lost, []
    effects: list[Effect] = []
    for each in lost:
        how = REPORTED if each.known else INFERRED
        state.tally.reserved_lost[how] += 1
        facts: dict[str, str | float] = {"pod": each.pod, "adapter": each.adapter, "known": how}
        effects.append(Note(cause=cause, kind=RESERVED_LOST, facts=facts))
    return effects
