"""The ledger's rows, from what the core is told, what it decides and what it believes.

In: each event with its effects and residency changes, in order. Out: rows, as they begin and as they end.
Not here: a clock, files (see `live.ledger`), sums over rows (see `core.ledger.report`).
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from lorapick.core.ledger.slots import Slots
from lorapick.core.ledger.visits import Visits
from lorapick.model.effects import Clear, Dispatch, Effect, Hold, Load, PassOn, Raise, Register, Reject, Touch
from lorapick.model.events import (
    AdapterRetired,
    BodyStarted,
    Event,
    LoadAsked,
    MoveAsked,
    PinCleared,
    PinSet,
    PodGone,
    PodReported,
    PrefillEnded,
    RequestArrived,
    RequestDispatched,
    RequestEnded,
    RequestRefused,
    UnloadAsked,
)
from lorapick.model.ledger import LedgerRow, MarkKind, MarkRow
from lorapick.model.signals import Change
from lorapick.model.units import PodName, Seconds

_ORDERS: dict[type[Event], MarkKind] = {
    PinSet: MarkKind.PIN,
    PinCleared: MarkKind.UNPIN,
    LoadAsked: MarkKind.LOAD,
    UnloadAsked: MarkKind.UNLOAD,
    MoveAsked: MarkKind.MOVE,
    AdapterRetired: MarkKind.RETIRE,
}


class Bookkeeper:
    """Keeps what is open; what is over is handed out and forgotten."""

    def __init__(self) -> None:
        slots = self._slots = Slots()
        visits = self._visits = Visits(slots)
        # Tables of what one kind means: most events and effects mean nothing here, and each costs every request.
        self._on_event: dict[type[Event], Callable[[Any], LedgerRow | None]] = {
            RequestArrived: visits.arrived,
            RequestDispatched: visits.moved,
            PrefillEnded: visits.prefill_ended,
            BodyStarted: visits.body_started,
            RequestEnded: visits.ended,
            RequestRefused: visits.refused,
            PodGone: self._gone,
            **{kind: partial(_order, mark) for kind, mark in _ORDERS.items()},
        }
        self._on_effect: dict[type[Effect], Callable[[Any, Seconds], LedgerRow | None]] = {
            Dispatch: visits.dispatched,
            PassOn: visits.passed_on,
            Hold: visits.held,
            Reject: visits.rejected,
            Load: slots.asked,
            Register: slots.asked,
            Touch: slots.asked,
            Raise: partial(_alert, kind=MarkKind.ALERT),
            Clear: partial(_alert, kind=MarkKind.ALERT_OVER),
        }

    @property
    def open_requests(self) -> int:
        """Requests that have not left."""
        return len(self._visits)

    def _gone(self, event: PodGone) -> None:
        self._slots.gone(event)
        self._visits.gone(event.pod)

    def observe(self, event: Event, effects: Sequence[Effect], *, changes: Sequence[Change]) -> Sequence[LedgerRow]:
        """Rows that one event begins or ends. `changes` are those of `Fleet.changes` for this event."""
        kind, slots = type(event), self._slots
        rows: list[LedgerRow] = []
        if isinstance(event, RequestEnded):
            self._visits.ending(event)
        if changes or kind is PodReported or event.t >= slots.count_due:
            rows += slots.take(event, effects, changes=changes)
        on_event = self._on_event.get(kind)
        if on_event is not None and (row := on_event(event)) is not None:
            rows.append(row)
        for effect in effects:
            on_effect = self._on_effect.get(type(effect))
            if on_effect is not None and (row := on_effect(effect, event.t)) is not None:
                rows.append(row)
        return rows


def _order(kind: MarkKind, event: Any) -> MarkRow:
    facts: dict[str, str | float] = {}
    match event:
        case PinSet():
            facts = {"replicas": str(event.pin.replicas), "pods": _names(event.pin.pods)}
        case LoadAsked():
            facts = {"pods": _names(event.pods), "replicas": event.replicas}
        case UnloadAsked():
            facts = {"pods": _names(event.pods)}
        case MoveAsked():
            facts = {"from": event.source, "to": event.target}
        case _:
            pass
    return MarkRow(t=event.t, kind=kind, subject=event.adapter, facts=facts)


def _names(pods: Sequence[PodName]) -> str:
    return ", ".join(pods)


def _alert(effect: Raise | Clear, now: Seconds, *, kind: MarkKind) -> MarkRow:
    return MarkRow(t=now, kind=kind, subject=effect.alert, facts=effect.facts)
