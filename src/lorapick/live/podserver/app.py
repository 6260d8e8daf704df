"""The emulated pod as one Starlette application.

In: `PodServerOptions`. Out: an application with vLLM's routes and the emulator's own.
Not here: sockets, signals and processes (see `serve`).

Routes under `/emulator` exist on no vLLM: `GET /emulator/state` tells the truth about memory, `GET` and `POST
/emulator/faults` read and change the fault switches, `POST /emulator/restart` loses everything in memory.
"""

import asyncio
import random
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
from prometheus_client import CollectorRegistry, make_asgi_app
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route

from lorapick.live.podserver.adapters import AdapterRoutes
from lorapick.live.podserver.bodies import ChatBody, CompletionBody, MessagesBody, ResponsesBody
from lorapick.live.podserver.clock import ModelClock
from lorapick.live.podserver.dialects import Chat, Completions
from lorapick.live.podserver.driver import PodDriver
from lorapick.live.podserver.faults import Faults, FaultSwitch, FaultyRoutes
from lorapick.live.podserver.generate import Endpoint, Generator
from lorapick.live.podserver.handover import Handover
from lorapick.live.podserver.json_response import MsgspecResponse
from lorapick.live.podserver.kv_publisher import KvPublisher
from lorapick.live.podserver.metrics import CountedRoutes, build_registry
from lorapick.live.podserver.more_dialects import Messages, Responses
from lorapick.live.podserver.options import PodServerOptions
from lorapick.live.podserver.pooling import Pooling
from lorapick.live.podserver.refusals import KV_REFUSED, RefusalError, bad_request, http_refusal
from lorapick.live.podserver.sidecar import Sidecar
from lorapick.model.pods import Engine

VLLM_VERSION = "0.32.0"


def build_app(options: PodServerOptions) -> Starlette:
    """An application that is one emulated pod; its model runs while the application's lifespan does.

    Raises:
        BadPodConfig: the configuration describes no pod.
        OSError: KV events cannot be published at their port.
    """
    clock = ModelClock(options.speed)
    driver = PodDriver(
        options.config,
        options.adapters,
        clock,
        draw=random.Random(options.seed).random,
        reserves=options.handover.reserve,
    )
    driver.publisher = _publisher(options)
    faults = msgspec.convert({"metrics": options.metrics_fault, "metrics_lag": options.metrics_lag}, Faults)
    switch = FaultSwitch(faults)
    handover = Handover(options, driver, clock=clock)
    registry, counters = build_registry(options, driver, switch, handovers=handover.counts)
    routes = [
        *_model_routes(options, driver, handover=handover),
        *_status_routes(driver),
        *_emulator_routes(options, driver, switch=switch, handover=handover),
    ]
    paths = [route.path for route in routes if isinstance(route, Route)]

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        del app
        running = asyncio.create_task(driver.run(), name=f"pod {options.name}")
        try:
            yield
        finally:
            running.cancel()
            await handover.close()
            if driver.publisher is not None:
                driver.publisher.close()

    return Starlette(
        routes=[*routes, _metrics_route(registry)],
        lifespan=lifespan,
        middleware=[
            Middleware(CountedRoutes, counters, paths),
            Middleware(FaultyRoutes, switch),
            *_sidecar(options, handover, driver=driver),
        ],
        exception_handlers={RefusalError: _refused, HTTPException: _http_error, ClientDisconnect: _nobody},
    )


def _sidecar(options: PodServerOptions, handover: Handover, *, driver: PodDriver) -> list[Middleware]:
    if not options.has_sidecar:
        return []
    calls, counts = handover.calls, handover.counts
    return [Middleware(Sidecar, options.handover, calls=calls, counts=counts, reserved=driver.reserved)]


def _publisher(options: PodServerOptions) -> KvPublisher | None:
    if options.kv_events_port is None:
        return None
    return KvPublisher(
        host=options.host,
        port=options.kv_events_port,
        topic=f"kv@{options.name}@{options.base_model}",
        block_size=options.config.block_size,
    )


def _metrics_route(registry: CollectorRegistry) -> Mount:
    mount = Mount("/metrics", make_asgi_app(registry))
    # As in vLLM: the page is at /metrics itself, without a redirect to /metrics/.
    mount.path_regex = re.compile("^/metrics(?P<path>.*)$")
    return mount


def _post(path: str, endpoint: Endpoint) -> Route:
    return Route(path, endpoint, methods=["POST"])


def _model_routes(options: PodServerOptions, driver: PodDriver, *, handover: Handover) -> list[BaseRoute]:
    generator = Generator(options, driver, handover=handover)
    pooling = Pooling(generator)
    adapters = AdapterRoutes(options, driver)
    routes: list[BaseRoute] = [
        Route("/v1/models", adapters.models),
        _post("/v1/completions", generator.route(CompletionBody, Completions())),
        _post("/v1/chat/completions", generator.route(ChatBody, Chat())),
        _post("/v1/responses", generator.route(ResponsesBody, Responses())),
        _post("/v1/messages", generator.route(MessagesBody, Messages())),
        _post("/v1/embeddings", pooling.embeddings),
        _post("/tokenize", pooling.tokenize),
        *(_post(path, pooling.rerank) for path in ("/rerank", "/v1/rerank", "/v2/rerank")),
        *(_post(path, pooling.score) for path in ("/score", "/v1/score")),
    ]
    if options.engine is Engine.SGLANG:
        routes += [
            _post("/load_lora_adapter", adapters.load_to_host),
            _post("/unload_lora_adapter", adapters.unload_freeing),
            Route("/server_info", adapters.server_info),
        ]
    elif options.runtime_lora:
        routes += [
            _post("/v1/load_lora_adapter", adapters.load),
            _post("/v1/unload_lora_adapter", adapters.unload),
        ]
    return routes


def _status_routes(driver: PodDriver) -> list[BaseRoute]:
    async def health(request: Request) -> Response:
        del request
        return Response(status_code=200 if driver.failure is None else 503)

    async def version(request: Request) -> Response:
        del request
        return MsgspecResponse({"version": VLLM_VERSION})

    async def load(request: Request) -> Response:
        del request
        return MsgspecResponse({"server_load": driver.in_flight})

    async def kv_event_sources(request: Request) -> Response:
        del request
        return MsgspecResponse([])

    return [
        Route("/health", health),
        Route("/ping", health, methods=["GET", "POST"]),
        Route("/version", version),
        Route("/load", load),
        Route("/kv_event_sources", kv_event_sources),
    ]


def _emulator_routes(
    options: PodServerOptions, driver: PodDriver, *, switch: FaultSwitch, handover: Handover
) -> list[BaseRoute]:
    async def state(request: Request) -> Response:
        del request
        stats = msgspec.to_builtins(driver.stats())
        endpoint = None if driver.publisher is None else driver.publisher.endpoint
        facts = {"name": options.name, "role": options.role, "labels": options.labels}
        return MsgspecResponse({**facts, "registered": driver.registered, "kv_events": endpoint, "stats": stats})

    async def faults(request: Request) -> Response:
        if request.method == "POST":
            try:
                switch.set(switch.faults.merged(await request.body()))
            except msgspec.DecodeError as error:
                raise bad_request(f"faults: {error}") from None
        return MsgspecResponse(switch.faults)

    async def restart(request: Request) -> Response:
        del request
        driver.restart()
        handover.holder.restarted()
        return MsgspecResponse({"process_start_time_seconds": driver.started_wall})

    return [
        Route("/emulator/state", state),
        Route("/emulator/faults", faults, methods=["GET", "POST"]),
        _post("/emulator/restart", restart),
        *handover.holder.routes(),
    ]


async def _refused(request: Request, error: Exception) -> Response:
    del request
    assert isinstance(error, RefusalError)
    headers = {KV_REFUSED: error.kv_refused} if error.kv_refused else None
    return MsgspecResponse(error.body(), status_code=error.status, headers=headers)


async def _http_error(request: Request, error: Exception) -> Response:
    del request
    assert isinstance(error, HTTPException)
    body = http_refusal(error.status_code).body()
    return MsgspecResponse(body, status_code=error.status_code, headers=error.headers)


async def _nobody(request: Request, error: Exception) -> Response:
    """The client is gone; the response goes nowhere. 499 is what logs call that."""
    del request, error
    return Response(status_code=499)
