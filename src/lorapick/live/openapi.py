"""The admin API's OpenAPI 3.1 document, made from the structs that the routes take and answer with.

In: nothing. Out: a JSON-ready dict. Not here: the routes themselves (see `live.admin`, `live.admin_changes`).
"""

from typing import Any

import msgspec

from lorapick import __version__
from lorapick.live.admin_changes import CHANGES, PLAN, VIEWS, Change
from lorapick.live.publish import AdapterRow, AlertRow, DecisionRow, FleetSnapshot
from lorapick.model.adapters import PinSpec
from lorapick.model.placement import AdapterFacts, Why
from lorapick.model.units import PodName
from lorapick.wire.admin_answers import Done, Intent, PlanAnswer
from lorapick.wire.admin_bodies import PlanBody
from lorapick.wire.api import Cell, ExplanationDocument, Problem


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


LATER = {"/v1/ledger": "Loads and evictions with their cost"}
"""Routes that are named and answer 501 until their part exists."""

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
    answers = _ANSWERS | {view.path: (view.summary, view.answer) for view in VIEWS}
    types = [*(answer for _, answer in answers.values()), Frame, Problem, Done, PlanAnswer, PlanBody]
    types += [change.body for change in CHANGES if change.body is not None]
    refs, schemas = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    by_type = dict(zip(types, refs, strict=True))
    paths: dict[str, dict[str, Any]] = {
        path: {"get": _get(path, text, by_type[answer])} for path, (text, answer) in answers.items()
    }
    paths["/v1/stream"] = {"get": _stream(by_type[Frame])}
    paths["/openapi.json"] = {"get": _this()}
    for path, text in LATER.items():
        paths[path] = {"get": _later(path, text)}
    for change in CHANGES:
        body = None if change.body is None else by_type[change.body]
        paths.setdefault(change.path, {})[change.method.lower()] = _change(change, body, by_type[Done])
    paths[PLAN] = {"post": _plan(by_type[PlanBody], by_type[PlanAnswer])}
    return {
        "openapi": "3.1.0",
        "info": {"title": "lorapick admin API", "version": __version__},
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": {"token": _TOKEN}},
    }


_TOKEN = {
    "type": "http",
    "scheme": "bearer",
    "description": "The token in the environment variable that server.admin_token names. Without that setting changes "
    "are taken on loopback addresses, and need none.",
}
_SECURITY: list[dict[str, list[str]]] = [{"token": []}, {}]
"""With the token; without, where none is configured."""


def _change(change: Change, body: dict[str, Any] | None, done: dict[str, Any]) -> dict[str, Any]:
    answers = {"200": "There was nothing to do", "202": "Understood, and begun"}
    described = {
        "summary": change.summary,
        "parameters": _parameters(change.path),
        "security": _SECURITY,
        "responses": {
            **{status: _body(text, done, "application/json") for status, text in answers.items()},
            "default": _problem(),
        },
    }
    if body is not None:
        # What has no required key may be left out.
        described["requestBody"] = {"content": {"application/json": {"schema": body}}}
    return described


def _plan(body: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    text = "What a placement by load would do now; nothing is changed"
    return {
        "summary": text,
        "security": _SECURITY,
        "requestBody": {"content": {"application/json": {"schema": body}}},
        "responses": {"200": _body(text, answer, "application/json"), "default": _problem()},
    }


def _this() -> dict[str, Any]:
    text = "This document"
    return {"summary": text, "responses": {"200": _body(text, {"type": "object"}, "application/json")}}


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
