"""Changes through the admin API, and views of placement: the table of their routes, and how each is answered.

In: `Operations`. Out: Starlette routes; `CHANGES` and `VIEWS`, from which `live.openapi` describes them.
Not here: who may change anything (see `live.admin_token`), what a change does (see `live.changes`).

A change is answered with 202 and what was understood, with 200 when there was nothing to do, else with a problem; each
is logged with who asked for it.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from lorapick.live.operations import OperationError, Operations
from lorapick.live.problems import problem
from lorapick.model.adapters import PinSpec
from lorapick.model.arms import ArmsReport, Mode
from lorapick.wire import admin_bodies as bodies
from lorapick.wire.admin_answers import AliasesAnswer, Done, GroupsAnswer, PlacementAnswer
from lorapick.wire.api import ApiReason, FieldProblem
from lorapick.wire.config.problems import MOST_SHOWN, ConfigError
from lorapick.wire.config.readers import Reader

log = logging.getLogger(__name__)

PLAN = "/v1/placement/plan"
_SHOWN = 200
"""Letters of a path that the log repeats."""
_DIGITS = 40
"""Of a length, and letters of a media type: what is longer is nonsense."""
Answerer = Callable[[Request], Awaitable[Response]]


class Change(NamedTuple):
    """One change."""

    method: str
    path: str
    summary: str
    body: type[msgspec.Struct] | None
    """What describes the body; None: there is none."""
    read: Reader[Any]
    make: Callable[[Operations, str, Any], Done]
    """Given the name in the path and the body."""
    named: bool = False
    """The name in the path is a part of the body."""


class View(NamedTuple):
    """One view of placement."""

    path: str
    summary: str
    answer: type[msgspec.Struct]
    make: Callable[[Operations], msgspec.Struct]


VIEWS = (
    View("/v1/placement", "What should be where, beside what is believed", PlacementAnswer, lambda o: o.placement()),
    View("/v1/groups", "Adapters that are called one after another", GroupsAnswer, lambda o: o.groups()),
    View("/v1/report", "Both arms of a trial side by side", ArmsReport, lambda o: o.report()),
    View("/v1/aliases", "Names that stand for adapters", AliasesAnswer, lambda o: o.aliases()),
)
_OF = "/v1/adapters/{name}"
CHANGES = (
    Change("POST", _OF + "/load", "Load an adapter", bodies.LoadBody, bodies.load, lambda o, n, b: o.load(n, b)),
    Change(
        "POST",
        _OF + "/preload",
        "Load an adapter ahead of need, and keep it for a while",
        bodies.PreloadText,
        bodies.preload,
        lambda o, n, b: o.preload(n, b),
    ),
    Change(
        "POST",
        _OF + "/unload",
        "Unload an adapter",
        bodies.UnloadBody,
        bodies.unload,
        lambda o, n, b: o.unload(n, b.pods),
    ),
    Change("POST", _OF + "/pin", "Keep an adapter resident", PinSpec, bodies.pin, lambda o, n, b: o.pin(n, b)),
    Change("POST", _OF + "/unpin", "Insist no longer", bodies.NoBody, bodies.nothing, lambda o, n, _: o.unpin(n)),
    Change(
        "POST",
        _OF + "/move",
        "Load an adapter on one pod, then unload it on another",
        bodies.MoveBody,
        bodies.move,
        lambda o, n, b: o.move(n, b),
    ),
    Change("PUT", "/v1/mode", "Say whom picks are in force for", Mode, bodies.mode, lambda o, _, b: o.set_mode(b)),
    Change("POST", "/v1/events", "Fire an event", bodies.EventBody, bodies.event, lambda o, _, b: o.fire(b)),
    Change(
        "PUT",
        "/v1/aliases/{name}",
        "Set an alias, or move it",
        bodies.AliasBody,
        bodies.alias,
        lambda o, _, b: o.set_alias(b),
        named=True,
    ),
    Change("DELETE", "/v1/aliases/{name}", "Clear an alias", None, bodies.nothing, lambda o, n, _: o.clear_alias(n)),
    Change(
        "PUT",
        _OF,
        "Declare an adapter, or say more of it",
        bodies.AdapterBody,
        bodies.adapter,
        lambda o, _, b: o.declare(b),
        named=True,
    ),
    Change("DELETE", _OF, "Retire an adapter", None, bodies.nothing, lambda o, n, _: o.retire(n)),
)
"""In the order in which routes are tried: names hold slashes, so those that end in a verb come first."""


def change_routes(operations: Operations | None) -> list[Route]:
    """Routes of all changes and views; without operations they answer 501."""
    routes = [_route(view.path, _viewing(operations, view)) for view in VIEWS]
    routes.append(_route(PLAN, _planning(operations), method="POST"))
    return [*routes, *(_route(each.path, _changing(operations, each), method=each.method) for each in CHANGES)]


def _route(path: str, answer: Answerer, *, method: str = "GET") -> Route:
    return Route(path.replace("{name}", "{name:path}"), answer, methods=[method])


def _viewing(operations: Operations | None, view: View) -> Answerer:
    async def answer(_request: Request) -> Response:
        return _nobody() if operations is None else _json(view.make(operations))

    return answer


def _planning(operations: Operations | None) -> Answerer:
    async def answer(request: Request) -> Response:
        if operations is None:
            return _nobody()
        try:
            body = bodies.read_body(await _content(request), bodies.plan)
            return _json(await operations.plan(body))
        except (OperationError, ConfigError) as error:
            return _refusal(request, error)

    return answer


def _changing(operations: Operations | None, change: Change) -> Answerer:
    async def answer(request: Request) -> Response:
        if operations is None:
            return _nobody()
        name = request.path_params.get("name", "")
        try:
            content = b"" if change.body is None else await _content(request)
            body = bodies.read_body(content, change.read, name=name if change.named else None)
            done = change.make(operations, name, body)
        except (OperationError, ConfigError) as error:
            return _refusal(request, error)
        log.info("admin: %s: %s", _asked(request), done.understood if done.changed else "nothing to do")
        return _json(done, status=202 if done.changed else 200)

    return answer


async def _content(request: Request) -> bytes:
    """The body. Raises OperationError when it is too large, before more is read, and when it says to be no JSON."""
    length = request.headers.get("content-length", "")
    if length.isdigit() and len(length) < _DIGITS and int(length) > bodies.MOST_BYTES:
        raise _too_large()
    content = bytearray()
    async for piece in request.stream():
        content += piece
        if len(content) > bodies.MOST_BYTES:
            raise _too_large()
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content and media != "application/json":
        detail = f"bodies are JSON, not {media[:_DIGITS] or 'of no type'}; send content-type: application/json"
        raise OperationError(415, ApiReason.NOT_JSON, detail=detail)
    return bytes(content)


def _too_large() -> OperationError:
    return OperationError(413, ApiReason.BODY_TOO_LARGE, detail=f"a body has at most {bodies.MOST_BYTES} bytes")


def _refusal(request: Request, error: OperationError | ConfigError) -> Response:
    """The answer to what cannot be done."""
    if isinstance(error, ConfigError):
        return _body_problem(error)
    log.info("admin: %s: refused (%s): %s", _asked(request), error.reason, error)
    headers = {503: {"retry-after": "1"}, 413: {"connection": "close"}}.get(error.status)
    return problem(error.status, error.reason, detail=str(error), near=error.near, errors=error.errors, headers=headers)


def _body_problem(error: ConfigError) -> Response:
    errors = tuple(
        FieldProblem(field=each.field, value=each.value, message=each.message, remedy=each.hint)
        for each in error.problems[:MOST_SHOWN]
    )
    return problem(400, ApiReason.BODY_INVALID, detail="; ".join(map(_told, errors)), errors=errors)


def _told(each: FieldProblem) -> str:
    field = f"{each.field}: " if each.field else ""
    found = f" (found {each.value})" if each.value else ""
    return f"{field}{each.message}{found}" + (f"; {each.remedy}" if each.remedy else "")


def _asked(request: Request) -> str:
    """Who asked for what; a path may hold anything."""
    who = request.client.host if request.client is not None else "?"
    path = request.url.path
    shown = path if path.isprintable() else ascii(path)
    return f"{request.method} {shown[:_SHOWN]} from {who}"


def _nobody() -> Response:
    return problem(501, ApiReason.NOT_IMPLEMENTED, detail="here the picker is only shown; nothing was changed")


def _json(value: msgspec.Struct, *, status: int = 200) -> Response:
    headers = {"cache-control": "no-store"}
    return Response(msgspec.json.encode(value), status, headers, media_type="application/json")
