"""The ledger's rows, from what the core is told, what it decides and what it believes.

In: each event with its effects and residency changes, in order. Out: rows, as they begin and as they end.
Not here: a clock, files (see `live.ledger`), sums over rows (see `core.ledger.report`).
"""

from collections.abc import Callable, Sequence
from typing import Any

from lorapick.core.ledger.slots import Slots
from lorapick.core.ledger.visits import Visits
from lorapick.model.effects import Clear, Effect, Raise
from lorapick.model.events import (
    AdapterRetired,
    BodyStarted,
    Event,
    LoadAsked,
    MoveAsked,
    PinCleared,
    PinSet,
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
_NONE: Sequence[LedgerRow] = ()


class Bookkeeper:
    """Keeps what is open; what is over is handed out and forgotten."""

    def __init__(self) -> None:
        self._slots = Slots()
        self._visits = Visits(self._slots)
        self._requests: dict[type[Event], Callable[[Any], Sequence[LedgerRow] | None]] = {
            RequestArrived: self._visits.arrived,
            RequestDispatched: self._visits.moved,
            BodyStarted: self._visits.body_started,
            RequestEnded: self._visits.ended,
            RequestRefused: lambda event: (self._visits.refused(event),),
        }

    @property
    def open_requests(self) -> int:
        """Requests that have not left."""
        return len(self._visits)

    def observe(self, event: Event, effects: Sequence[Effect], *, changes: Sequence[Change]) -> Sequence[LedgerRow]:
        """Rows that one event begins or ends. `changes` are those of `Fleet.changes` for this event."""
        rows: Sequence[LedgerRow] = self._slots.take(event, effects, changes=changes)
        kind = type(event)
        on_request = self._requests.get(kind)
        if on_request is not None:
            ended = on_request(event)
            if ended:
                rows = [*rows, *ended]
        elif kind in _ORDERS:
            rows = [*rows, _order(_ORDERS[kind], event)]
        if effects:
            rows = [*rows, *self._visits.decided(effects, event.t), *_alerts(effects, event.t)]
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


def _alerts(effects: Sequence[Effect], now: Seconds) -> list[MarkRow]:
    return [
        MarkRow(
            t=now,
            kind=MarkKind.ALERT if isinstance(effect, Raise) else MarkKind.ALERT_OVER,
            subject=effect.alert,
            facts=effect.facts,
        )
        for effect in effects
        if isinstance(effect, Raise | Clear)
    ]
