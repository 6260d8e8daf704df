"""The admin API's OpenAPI 3.1 document, made from the structs that the routes take and answer with.

In: nothing. Out: a JSON-ready dict. Not here: the routes themselves (see `live.admin`, `live.admin_changes`).
"""

from typing import Any

import msgspec

from lorapick import __version__
from lorapick.live.admin_changes import CHANGES, PLAN, VIEWS, Change
from lorapick.live.admin_views import AdapterDetail, Adapters, Alerts, Decisions, Frame, Health, Residency
from lorapick.live.doctor import DoctorAnswer
from lorapick.live.ledger.answers import LedgerAnswer
from lorapick.live.ledger.route import PARAMETERS
from lorapick.live.publish import FleetSnapshot
from lorapick.model.signals import Signals
from lorapick.wire.admin_answers import Done, PlanAnswer
from lorapick.wire.admin_bodies import PlanBody
from lorapick.wire.api import ExplanationDocument, History, Problem

_ANSWERS: dict[str, tuple[str, type]] = {
    "/v1/fleet": ("Pods and totals", FleetSnapshot),
    "/v1/residency": ("Which adapter is believed to be where", Residency),
    "/v1/adapters": ("Every adapter known", Adapters),
    "/v1/adapters/{name}": ("One adapter and its cells", AdapterDetail),
    "/v1/decisions": ("The last decisions, newest first", Decisions),
    "/v1/decisions/{id}": ("One decision, explained", ExplanationDocument),
    "/v1/alerts": ("Alerts that stand", Alerts),
    "/v1/doctor": ("What is wrong, worst first, and the picture that was looked at", DoctorAnswer),
    "/v1/ledger": ("Which evictions made a window of time slow; or requests, loads, evictions", LedgerAnswer),
    "/v1/signals": ("What shows thrash as thrash, now", Signals),
    "/v1/history": ("The same over the last hour, oldest first", History),
    "/healthz": ("Whether the picker's event loop answers", Health),
}
_QUERIES: dict[str, tuple[tuple[str, str], ...]] = {
    "/v1/residency": (("pod", "string"), ("adapter", "string"), ("limit", "integer")),
    "/v1/decisions": (("limit", "integer"),),
    "/v1/ledger": PARAMETERS,
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
    for change in CHANGES:
        body = None if change.body is None else by_type[change.body]
        paths.setdefault(change.path, {})[change.method.lower()] = _change(change, body=body, done=by_type[Done])
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


def _change(change: Change, *, body: dict[str, Any] | None, done: dict[str, Any]) -> dict[str, Any]:
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
