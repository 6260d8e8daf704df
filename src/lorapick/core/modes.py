"""The mode: which requests picks are in force for, set here or at another picker of the fleet.

In: settings with a mode; the word of a peer. Out: notes, and what becomes of those who wait. Not here: arms and their
counts (see `core.arms`), how a request is routed in which (see `core.arms_routing`).
"""

from msgspec.structs import replace

from lorapick.core import arms_routing
from lorapick.core.arms import route_of
from lorapick.core.arms_routing import Moment
from lorapick.core.placement.controller import wake
from lorapick.core.releasing import admit
from lorapick.core.state import FleetState
from lorapick.model.effects import Effect, Note
from lorapick.model.peers import ModeWord
from lorapick.model.settings import Settings

REFUSED = "mode_refused"
"""Kind of the note that a mode of a peer cannot be taken over."""


def change(state: FleetState, settings: Settings, *, at: Moment) -> list[Effect]:
    """Take over the mode of these settings, and nothing else; who waits and is only observed now is sent on.

    Raises:
        ValueError: its route is no policy; nothing is changed then.
    """
    before, mode = state.settings, settings.mode
    state.arms.configure(replace(before, mode=mode, discovery=settings.discovery), now=at.now)
    state.settings = replace(before, mode=mode)
    state.placement.acts = state.arms.commands
    state.placement.configure(state.settings)
    state.take_policy(state.policy)
    facts: dict[str, str | float] = {"mode": mode.text, "before": before.mode.text, "route": route_of(settings)}
    effects: list[Effect] = [Note(cause=at.cause, kind="mode", facts=facts)]
    for flight in [*state.flights.values()]:
        if flight.request.id in state.holds or flight.request.id in state.queues:
            effects += arms_routing.change_arm(state, flight, at=at)
    wake(state, now=at.now)
    return effects


def said(state: FleetState) -> None:
    """An operator has set the mode here: peers are to hear of it."""
    if state.peers.on:
        last = state.peers.mode
        state.peers.mode = ModeWord(number=last.number + 1 if last is not None else 1, mode=state.settings.mode)


def heard(state: FleetState, word: ModeWord | None, *, peer: str, at: Moment) -> list[Effect]:
    """A peer has the word of an operator: take it over if it is later than what is known."""
    if word is None or not word.beats(state.peers.mode):
        return []
    if word.mode != state.settings.mode:
        try:
            effects = change(state, replace(state.settings, mode=word.mode), at=at)
        except ValueError as error:
            return [Note(cause=at.cause, kind=REFUSED, facts={"peer": peer, "mode": word.mode.text, "why": str(error)})]
        state.peers.mode = word
        return [*effects, *admit(state, now=at.now, cause=at.cause)]
    state.peers.mode = word
    return []
