"""The admin API and the status page, on their own port.

In: a `Published`, `Operations` and, for the page, a directory of static files that the command hands over.
Out: a Starlette application, and a server for it. Routes and reasons: docs/admin-api.md.
Not here: changes and views of placement (see `live.admin_changes`), who may call (see `live.guard`).
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from lorapick import __version__
from lorapick.core.explain import KEPT
from lorapick.live import admin_views, openapi
from lorapick.live.admin_changes import change_routes
from lorapick.live.admin_token import Changers
from lorapick.live.doctor import Doctor
from lorapick.live.feed import Feed
from lorapick.live.guard import Guard
from lorapick.live.ledger.route import LedgerRoute
from lorapick.live.operations import Operations
from lorapick.live.problems import nearest, problem
from lorapick.live.publish import AdapterRow, Published
from lorapick.live.runbook_pages import Files, runbook_routes
from lorapick.live.tls.door import PLAIN, Door
from lorapick.live.web import serving, split_bind
from lorapick.model.signals import POINT_EVERY
from lorapick.wire.api import ApiReason, History, cell
from lorapick.wire.words import explained, span

SETTING = "server.admin"
MAX_DECISIONS = 1000
MAX_CELLS = 10_000
_MOST_DIGITS = 9


class _BadParameterError(Exception):
    """A query parameter cannot be understood; the message says what would be right."""


def admin_app(
    published: Published,
    *,
    static: Files | Path | None = None,
    bind_host: str = "127.0.0.1",
    feed: Feed | None = None,
    operations: Operations | None = None,
    door: Door = PLAIN,
) -> ASGIApp:
    """The whole application.

    Args:
        published: what is shown.
        static: directory with `index.html`, perhaps with the runbooks'; None: no page.
        bind_host: where it is served; on loopback alone changes are taken without a token.
        feed: of the page; None makes one.
        operations: what may be changed, and placement's views; None: those routes answer 501.
        door: what callers must show.
    """
    doctor = Doctor(published, operations, certificate_problem=door.problem)
    views = _Views(published, feed or Feed(published), operations=operations, doctor=doctor)
    handlers = {HTTPException: _http_problem, _BadParameterError: _parameter_problem, Exception: _internal_problem}
    routes = [*_routes(views, change_routes(operations), ledger=LedgerRoute(published)), *_page_routes(static)]
    app = Starlette(routes=routes, exception_handlers=handlers)  # type: ignore[arg-type]  # Starlette's stub wants handlers of the base Exception
    return Guard(app, bind_host=bind_host, changers=Changers(bind_host=bind_host, door=door))


@asynccontextmanager
async def serve_admin(
    published: Published,
    *,
    bind: str,
    static: Files | Path | None = None,
    operations: Operations | None = None,
    door: Door = PLAIN,
) -> AsyncIterator[str]:
    """Serve while the block runs; gives `host:port` as bound.

    `door` says what callers must show, and whether it is TLS.

    Raises:
        BindError: the port is in use.
    """
    feed = Feed(published)
    app = admin_app(
        published,
        static=static,
        bind_host=split_bind(bind, setting=SETTING)[0],
        feed=feed,
        operations=operations,
        door=door,
    )
    what = "admin API"
    async with serving(app, bind, what=what, setting=SETTING, on_stop=feed.close, tls=door.tls) as address:
        yield address


def _routes(views: "_Views", changes: list[Route], *, ledger: LedgerRoute) -> list[BaseRoute]:
    return [
        Route("/v1/fleet", views.fleet),
        Route("/v1/residency", views.residency),
        Route("/v1/adapters", views.adapters),
        Route("/v1/decisions", views.decisions),
        Route("/v1/decisions/{id:path}", views.decision),
        Route("/v1/alerts", views.alerts),
        Route("/v1/doctor", views.doctor),
        Route("/v1/signals", views.signals),
        Route("/v1/history", views.history),
        Route("/v1/stream", views.stream),
        Route("/healthz", views.healthz),
        Route("/openapi.json", _openapi),
        Route("/v1/ledger", ledger.get),
        *changes,
        # After the verbs: a name may hold slashes.
        Route("/v1/adapters/{name:path}", views.adapter),
    ]


def _page_routes(static: Files | Path | None) -> list[BaseRoute]:
    if static is None:
        return []
    page, runbooks = static if isinstance(static, Files) else Files(static)
    routes: list[BaseRoute] = [Route("/", _page(page / "index.html")), Mount("/static", StaticFiles(directory=page))]
    return routes + runbook_routes(runbooks)


class _Views:
    """One method per GET route."""

    def __init__(self, published: Published, feed: Feed, *, operations: Operations | None, doctor: Doctor) -> None:
        self._published = published
        self._feed = feed
        self._operations = operations
        self._doctor = doctor

    async def fleet(self, _request: Request) -> Response:
        return _json(self._published.fleet())

    async def residency(self, request: Request) -> Response:
        limit = _limit(request, default=MAX_CELLS, most=MAX_CELLS)
        pod, adapter = request.query_params.get("pod"), request.query_params.get("adapter")
        unknown = self._unknown(pod, adapter)
        if unknown is not None:
            return unknown
        beliefs = [
            belief
            for belief in self._published.residency()
            if (pod is None or belief.pod == pod) and (adapter is None or belief.adapter == adapter)
        ]
        now = self._published.fleet().now
        cells = tuple(cell(belief, now=now) for belief in beliefs[:limit])
        return _json(admin_views.Residency(now=now, total=len(beliefs), cells=cells))

    def _unknown(self, pod: str | None, adapter: str | None) -> Response | None:
        """A filter that fits nothing is a slip, and an empty answer would hide it."""
        pods = tuple(row.name for row in self._published.fleet().pods) if pod is not None else ()
        if pod is not None and pod not in pods:
            detail = f"no pod {pod!r} among {len(pods)}; GET /v1/fleet lists them"
            return problem(404, ApiReason.POD_UNKNOWN, detail=detail, near=nearest(pod, pods))
        if adapter is not None:
            return self._unknown_adapter(adapter)
        return None

    def _unknown_adapter(self, name: str) -> Response | None:
        names = tuple(row.name for row in self._published.adapters())
        if name in names:
            return None
        detail = f"no adapter {name!r} among {len(names)}; GET /v1/adapters lists them"
        return problem(404, ApiReason.ADAPTER_UNKNOWN, detail=detail, near=nearest(name, names))

    async def adapters(self, _request: Request) -> Response:
        return _json(admin_views.Adapters(adapters=tuple(self._entries(self._published.adapters()))))

    def _entries(self, rows: Iterable[AdapterRow]) -> Iterator[admin_views.AdapterEntry]:
        intents = self._operations.intents() if self._operations is not None else {}
        for row in rows:
            yield admin_views.entry(row, intents.get(row.name))

    async def adapter(self, request: Request) -> Response:
        name = request.path_params["name"]
        unknown = self._unknown_adapter(name)
        if unknown is not None:
            return unknown
        (row,) = self._entries(each for each in self._published.adapters() if each.name == name)
        now = self._published.fleet().now
        cells = tuple(cell(belief, now=now) for belief in self._published.residency() if belief.adapter == name)
        return _json(admin_views.AdapterDetail(adapter=row, cells=cells))

    async def decisions(self, request: Request) -> Response:
        limit = _limit(request, default=50, most=MAX_DECISIONS)
        return _json(admin_views.Decisions(decisions=tuple(self._published.decisions(limit))))

    async def decision(self, request: Request) -> Response:
        request_id = request.path_params["id"]
        explanation = self._published.explain(request_id)
        if explanation is not None:
            return _json(explained(explanation))
        recent = self._published.decisions(KEPT)
        kept = nearest(request_id, [row.request_id for row in recent if row.explained])
        if any(row.request_id == request_id for row in recent):
            detail = f"the decision on {request_id!r} was taken, but only a sample of decisions is kept in full"
            return problem(404, ApiReason.DECISION_NOT_KEPT, detail=detail, near=kept)
        reach = f", which reach back {span(self._published.fleet().now - recent[-1].t)}" if recent else ""
        detail = (
            f"no decision on {request_id!r} among the last {len(recent)}{reach}; the last {KEPT} are kept, until the "
            "picker ends; GET /v1/decisions lists them"
        )
        return problem(404, ApiReason.DECISION_UNKNOWN, detail=detail, near=kept)

    async def alerts(self, _request: Request) -> Response:
        return _json(admin_views.Alerts(alerts=tuple(self._published.alerts())))

    async def signals(self, _request: Request) -> Response:
        return _json(self._published.signals())

    async def history(self, _request: Request) -> Response:
        return _json(History(every=POINT_EVERY, points=tuple(self._published.history())))

    async def doctor(self, _request: Request) -> Response:
        return _json(await self._doctor.answer())

    async def stream(self, _request: Request) -> Response:
        if self._feed.full():
            detail = f"{self._feed.watchers} watchers are served, which is the limit; close one, or ask /v1/fleet"
            return problem(503, ApiReason.TOO_MANY_STREAMS, detail=detail, headers={"retry-after": "5"})
        return StreamingResponse(
            self._feed.watch(), media_type="text/event-stream", headers={"cache-control": "no-store"}
        )

    async def healthz(self, _request: Request) -> Response:
        pods = self._published.fleet().pods
        ready = sum(pod.ready for pod in pods)
        return _json(admin_views.Health(status="ok", version=__version__, pods_ready=ready, pods=len(pods)))


def _json(value: msgspec.Struct) -> Response:
    return Response(msgspec.json.encode(value), media_type="application/json", headers={"cache-control": "no-store"})


def _limit(request: Request, *, default: int, most: int) -> int:
    text = request.query_params.get("limit")
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS and 1 <= int(text) <= most):
        raise _BadParameterError(f"limit: {text[:40]!r} is no whole number from 1 to {most}")
    return int(text)


async def _openapi(_request: Request) -> Response:
    return JSONResponse(openapi.document())


def _page(index: Path) -> Callable[[Request], Awaitable[Response]]:
    async def answer(_request: Request) -> Response:
        return FileResponse(index, headers={"cache-control": "no-cache"})

    return answer


async def _http_problem(request: Request, error: HTTPException) -> Response:
    if error.status_code == 405:
        detail = f"{request.method} is not allowed on {request.url.path}"
        return problem(405, ApiReason.METHOD_NOT_ALLOWED, detail=detail, headers=error.headers)
    detail = f"nothing at {request.url.path}; /openapi.json lists the routes"
    return problem(error.status_code, ApiReason.NOT_FOUND, detail=detail, headers=error.headers)


async def _parameter_problem(_request: Request, error: _BadParameterError) -> Response:
    return problem(400, ApiReason.PARAMETER_INVALID, detail=str(error))


async def _internal_problem(_request: Request, error: Exception) -> Response:
    return problem(500, ApiReason.INTERNAL, detail=f"{type(error).__name__}; the picker's log has the rest")
