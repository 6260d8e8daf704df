"""Answers of the admin API's routes that show the picker, made of published values.

In: rows of `live.publish`, intents. Out: structs for JSON. Not here: HTTP (see `live.admin`), answers
about placement (see `wire.admin_answers`).
"""

import msgspec

from lorapick.live.publish import AdapterRow, AlertRow, DecisionRow, FleetSnapshot
from lorapick.model.adapters import PinSpec
from lorapick.model.placement import AdapterFacts, Why
from lorapick.model.units import PodName
from lorapick.wire.admin_answers import Intent
from lorapick.wire.api import Cell


class Residency(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of /v1/residency."""

    now: float
    total: int
    """Cells that matched, those beyond the limit included."""
    cells: tuple[Cell, ...]


class AdapterEntry(AdapterRow, frozen=True, kw_only=True):
    """One adapter over the whole fleet, with what is wanted of it and known of its files."""

    source: str | None = None
    revision: str | None = None
    pin: PinSpec | None = None
    wanted: dict[PodName, Why] = msgspec.field(default_factory=dict)
    """Pods that should hold it as of the last tick, and what for."""
    problem: str | None = None
    """What is wrong with its files; then nobody is told to load it."""
    facts: AdapterFacts | None = None
    """What its files say; None: nobody has looked."""
    retiring: bool = False
    """It is retired, and pods are still to forget it."""


def entry(row: AdapterRow, intent: Intent | None) -> AdapterEntry:
    """The row with what is wanted; None: nothing is."""
    fields = {name: getattr(row, name) for name in row.__struct_fields__}
    wanted = {name: getattr(intent, name) for name in Intent.__struct_fields__} if intent is not None else {}
    return AdapterEntry(**fields, **wanted)


class Adapters(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of /v1/adapters."""

    adapters: tuple[AdapterEntry, ...]


class AdapterDetail(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of /v1/adapters/{name}."""

    adapter: AdapterEntry
    cells: tuple[Cell, ...]


class Decisions(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of /v1/decisions, newest first."""

    decisions: tuple[DecisionRow, ...]


class Alerts(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of /v1/alerts."""

    alerts: tuple[AlertRow, ...]


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    """One message of /v1/stream: what the status page shows. Bounded; the other routes have the rest."""

    fleet: FleetSnapshot
    pods_total: int
    """Pods of the fleet; `fleet.pods` holds at most the first 256."""
    cells: tuple[Cell, ...]
    """Cells of the pods in this frame, without adapters that are only on disk."""
    adapters_total: int
    adapters: tuple[AdapterRow, ...]
    """Those with most requests, at most 50; `pods` without those that have them only on disk."""
    decisions: tuple[DecisionRow, ...]
    alerts: tuple[AlertRow, ...]


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of /healthz."""

    status: str
    version: str
    pods_ready: int
    pods: int
