"""Pins, and events from outside.

In: an adapter's name and a pin; an event with its attributes. Out: `PinSet`, `PinCleared`, `TriggerFired`, and what
came of them; or `OperationError`. Not here: whether a pin fits (see `core.placement.pins`), which trigger is for which
event (see `core.placement.triggers`).
"""

from lorapick.core.intent import PIN_REFUSED, TRIGGER_REFUSED
from lorapick.core.placement.triggers import PLACEHOLDER, Refused
from lorapick.live.changes.known import check_adapter, check_enabled, check_pods, pods_of, resident_rows, wanted_rows
from lorapick.live.changes.room import crowded
from lorapick.live.changes.submitting import Submitting, notes_of
from lorapick.live.operations import OperationError
from lorapick.model.adapters import PinSpec
from lorapick.model.events import PinCleared, PinSet, TriggerFired
from lorapick.model.units import AdapterName
from lorapick.wire.admin_answers import Done
from lorapick.wire.admin_bodies import EventBody
from lorapick.wire.api import ApiReason

_REFUSALS = {
    Refused.UNKNOWN_EVENT: (404, ApiReason.UNKNOWN_EVENT),
    Refused.UNKNOWN_ADAPTER: (404, ApiReason.ADAPTER_UNKNOWN),
    Refused.MISSING_ATTRIBUTE: (422, ApiReason.MISSING_ATTRIBUTE),
    Refused.BAD_NAME: (422, ApiReason.BAD_NAME),
}


class Wishes:
    """Pins and events, over a driver."""

    def __init__(self, door: Submitting) -> None:
        """Tell of them through `door`."""
        self._door = door

    def pin(self, name: AdapterName, pin: PinSpec) -> Done:
        """Keep resident; refused, with the arithmetic, when it does not fit."""
        state = self._door.state
        check_adapter(state, name)
        check_pods(state, pin.pods)
        before = state.pins.get(name)
        if before == pin:
            return self._door.unchanged(name, f"{name} is pinned {pinned(pin)} already")
        event, effects = self._door.submit(lambda t, i: PinSet(t=t, id=i, adapter=name, pin=pin))
        for note in notes_of(effects, PIN_REFUSED):
            detail = f"{name} cannot be pinned {pinned(pin)}: {note.facts['why']}"
            raise OperationError(409, ApiReason.PIN_REFUSED, detail=detail)
        notes = [f"was pinned {pinned(before)} before"] if before is not None else []
        if not state.settings.placement.enabled:
            notes.append("placement.enabled is false: the pin counts in the score, and no pod is told to load it")
        elif not state.placement.pinned.rows.get(name):
            notes.append("no pod fits it now; it is loaded when one comes")
        notes.extend(crowded(state))
        return self._door.done(name, f"keep {name} resident {pinned(pin)}", event=event, notes=notes)

    def unpin(self, name: AdapterName) -> Done:
        """Insist no longer."""
        if name not in self._door.state.pins:
            check_adapter(self._door.state, name)
            return self._door.unchanged(name, f"{name} is not pinned")
        event, _ = self._door.submit(lambda t, i: PinCleared(t=t, id=i, adapter=name))
        notes = ["it stays where it is until its slot is needed"]
        return self._door.done(name, f"{name} is pinned no more", event=event, notes=notes)

    def fire(self, body: EventBody) -> Done:
        """Triggers of this event want what they name, for a while."""
        state = self._door.state
        check_enabled(state)
        event, effects = self._door.submit(
            lambda t, i: TriggerFired(t=t, id=i, name=body.name, attributes=body.attributes)
        )
        refused = notes_of(effects, TRIGGER_REFUSED)
        words = tuple(str(note.facts["detail"]) for note in refused)
        names = self._wanted_by(body)
        if not names and refused:
            status, reason = _REFUSALS[Refused(str(refused[0].facts["why"]))]
            raise OperationError(status, reason, detail="; ".join(words))
        rows = dict.fromkeys(row for name in names for row in wanted_rows(state, name))
        holding = dict.fromkeys(row for name in names for row in resident_rows(state, name))
        return Done(
            changed=True,
            understood=f"{body.name}: load {', '.join(names)} for a while",
            event=event,
            pods=pods_of(state, rows),
            resident=pods_of(state, holding),
            notes=words,
        )

    def _wanted_by(self, body: EventBody) -> list[AdapterName]:
        """Adapters that this event's triggers want now."""
        state = self._door.state
        due = {want.adapter: None for want in state.placement.triggers.due(state.now)}
        filled = [
            PLACEHOLDER.sub(lambda found: body.attributes.get(found[1], ""), trigger.preload)
            for trigger in state.settings.triggers
            if trigger.event == body.name
        ]
        return [name for name in dict.fromkeys(filled) if name in due]


def pinned(pin: PinSpec) -> str:
    """Where a pin wants its adapter, in words."""
    labels = ", ".join(f"{key}={value}" for key, value in pin.selector.items())
    named = ", ".join(pin.pods)
    if pin.replicas is None and not named and not labels:
        where = ""
    elif pin.replicas is None:
        where = named or f"all pods with {labels}"
    elif named or labels:
        where = f"{pin.replicas} of {named or f'the pods with {labels}'}"
    else:
        where = f"{pin.replicas} pod{'s' if pin.replicas > 1 else ''}"
    if pin.prefill_replicas is not None:
        count = f"{pin.prefill_replicas} to prefill"
        where = f"{where}, and on {count}" if where else count
    return f"on {where}{', which take pins only' if pin.reserve else ''}"
