"""Which requests picks are in force for, changed while they come; and how both arms fare.

In: a mode. Out: `ConfigChanged` and what came of it; the report. Not here: what a mode does (see `core.arms`).
"""

from msgspec.structs import replace

from lorapick.core.arms import route_of
from lorapick.core.arms_report import report
from lorapick.live.changes.submitting import Submitting
from lorapick.model.arms import GATEWAY, ArmsReport, Mode, ModeKind
from lorapick.model.events import ConfigChanged
from lorapick.wire.admin_answers import Done


class Modes:
    """The mode of one driver."""

    def __init__(self, door: Submitting) -> None:
        self._door = door
        self._file = door.state.settings.mode

    def report(self) -> ArmsReport:
        """Both arms side by side."""
        state = self._door.state
        return report(state.arms, state.settings, now=self._door.now)

    def set(self, mode: Mode) -> Done:
        """From the next request on; who waits and is only observed now is sent on at once."""
        state = self._door.state
        before = state.settings.mode
        wanted = replace(mode, route=mode.route or before.route)
        if wanted == before:
            return Done(changed=False, understood=f"the mode is {before.text} already")
        settings = replace(state.settings, mode=wanted)
        event, _ = self._door.submit(lambda t, i: ConfigChanged(t=t, id=i, settings=settings))
        return Done(
            changed=True, understood=f"mode {wanted.text}, {before.text} before", event=event, notes=self._notes(wanted)
        )

    def _notes(self, mode: Mode) -> tuple[str, ...]:
        notes = []
        if mode.enforced < 1.0:
            route = route_of(self._door.state.settings)
            who = "the gateway's own balancing" if route == GATEWAY else f"policy {route}"
            notes.append(f"requests of the observed arm are routed by {who}")
            notes.append("pods are told nothing (pins, preloads, orders) until picks are in force for all requests")
        peers = self._door.state.peers
        if peers.on and peers.claims.reachable:
            notes.append("the other pickers of the fleet take it over within a second")
        elif peers.on:
            notes.append("the store that pickers share is out of reach: it holds for this one alone until that is back")
        if mode != self._file:
            kind = "percentage" if self._file.kind is ModeKind.PERCENT else "mode"
            notes.append(f"after a restart the file's {kind} holds again: {self._file.text}")
        return tuple(notes)
