"""The admin API's OpenAPI 3.1 document, made from the structs that the routes answer with.

In: nothing. Out: a JSON-ready dict. Not here: the routes themselves (see `live.admin`).
"""

from typing import Any

import msgspec

from lorapick import __version__
from lorapick.live.publish import AdapterRow, AlertRow, DecisionRow, FleetSnapshot
from lorapick.wire.api import Cell, ExplanationDocument, Problem


class Residency(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of /v1/residency."""

    now: float
    total: int
    """Cells that matched, those beyond the limit included."""
    cells: tuple[Cell, ...]


class Adapters(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of /v1/adapters."""

    adapters: tuple[AdapterRow, ...]


class AdapterDetail(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of /v1/adapters/{name}."""

    adapter: AdapterRow
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


LATER_GET = {"/v1/ledger": "Loads and evictions with their cost"}
LATER_POST = {
    "/v1/adapters/{name}/load": "Load an adapter",
    "/v1/adapters/{name}/unload": "Unload an adapter",
    "/v1/adapters/{name}/pin": "Pin an adapter",
    "/v1/adapters/{name}/unpin": "Unpin an adapter",
    "/v1/adapters/{name}/preload": "Load an adapter ahead of need",
    "/v1/adapters/{name}/move": "Move an adapter between pods",
    "/v1/events": "Fire a trigger",
    "/v1/placement/plan": "Compute a placement",
}
"""Routes that are named and answer 501 until their part of the controller exists."""

_ANSWERS: dict[str, tuple[str, type]] = {
    "/v1/fleet": ("Pods and totals", FleetSnapshot),
    "/v1/residency": ("Which adapter is believed to be where", Residency),
    "/v1/adapters": ("Every adapter known", Adapters),
    "/v1/adapters/{name}": ("One adapter and its cells", AdapterDetail),
    "/v1/decisions": ("The last decisions, newest first", Decisions),
    "/v1/decisions/{id}": ("One decision, explained", ExplanationDocument),
    "/v1/alerts": ("Alerts that stand", Alerts),
    "/healthz": ("Whether the picker's event loop answers", Health),
}
_QUERIES: dict[str, tuple[tuple[str, str], ...]] = {
    "/v1/residency": (("pod", "string"), ("adapter", "string"), ("limit", "integer")),
    "/v1/decisions": (("limit", "integer"),),
}


def document() -> dict[str, Any]:
    """The whole document."""
    types = [*(answer for _, answer in _ANSWERS.values()), Frame, Problem]
    refs, schemas = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    by_type = dict(zip(types, refs, strict=True))
    paths = {path: {"get": _get(path, text, by_type[answer])} for path, (text, answer) in _ANSWERS.items()}
    paths["/v1/stream"] = {"get": _stream(by_type[Frame])}
    for path, text in LATER_GET.items():
        paths[path] = {"get": _later(path, text)}
    for path, text in LATER_POST.items():
        paths[path] = {"post": _later(path, text)}
    return {
        "openapi": "3.1.0",
        "info": {"title": "lorapick admin API", "version": __version__},
        "paths": paths,
        "components": {"schemas": schemas},
    }


def _get(path: str, text: str, answer: dict[str, Any]) -> dict[str, Any]:
    return {
        "summary": text,
        "parameters": _parameters(path),
        "responses": {"200": _body(text, answer, "application/json"), "default": _problem()},
    }


def _stream(frame: dict[str, Any]) -> dict[str, Any]:
    text = "Server-sent events, one `Frame` a second as the data of each"
    return {"summary": text, "responses": {"200": _body(text, frame, "text/event-stream"), "default": _problem()}}


def _later(path: str, text: str) -> dict[str, Any]:
    return {"summary": f"{text} (not yet: 501)", "parameters": _parameters(path), "responses": {"501": _problem()}}


def _parameters(path: str) -> list[dict[str, Any]]:
    places = [
        {"name": part[1:-1], "in": "path", "required": True, "schema": {"type": "string"}}
        for part in path.split("/")
        if part.startswith("{")
    ]
    queries = [{"name": name, "in": "query", "schema": {"type": kind}} for name, kind in _QUERIES.get(path, ())]
    return places + queries


def _body(text: str, schema: dict[str, Any], media: str) -> dict[str, Any]:
    return {"description": text, "content": {media: {"schema": schema}}}


def _problem() -> dict[str, Any]:
    return _body("RFC 9457 problem", {"$ref": "#/components/schemas/Problem"}, "application/problem+json")
