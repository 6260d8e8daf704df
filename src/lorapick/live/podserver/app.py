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
from typing import Any

import msgspec
from prometheus_client import CollectorRegistry, make_asgi_app
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ExceptionHandler

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
from lorapick.live.podserver.lists import document
from lorapick.live.podserver.meanings import meaning_of
from lorapick.live.podserver.metrics import CountedRoutes, build_registry
from lorapick.live.podserver.more_dialects import Messages, Responses
from lorapick.live.podserver.options import PodServerOptions
from lorapick.live.podserver.pooling import Pooling
from lorapick.live.podserver.refusals import KV_REFUSED, RefusalError, bad_request, http_refusal
from lorapick.live.podserver.sglang import SglangRoutes
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
    adapters = AdapterRoutes(options, driver)
    sglang = SglangRoutes(options, driver, adapters=adapters) if options.engine is Engine.SGLANG else None
    meant = meaning_of(options, driver, adapters=adapters, sglang=sglang)
    generator = Generator(options, driver, handover=handover, meant=meant)
    routes = [
        *_model_routes(generator),
        _models_route(options, driver, paths=adapters if sglang is None else sglang),
        *_adapter_routes(options, adapters, sglang=sglang),
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
        routes=[*routes, *_metrics_routes(options, registry)],
        lifespan=lifespan,
        middleware=[
            Middleware(CountedRoutes, counters, paths),
            Middleware(FaultyRoutes, switch),
            *_sidecar(options, handover, driver=driver),
        ],
        exception_handlers={**_error_handlers(options.engine), ClientDisconnect: _nobody},
    )


def _sidecar(options: PodServerOptions, handover: Handover, *, driver: PodDriver) -> list[Middleware]:
    if not options.has_sidecar:
        return []
    calls, counts = handover.calls, handover.counts
    return [
        Middleware(
            Sidecar, options.handover, may_ask=options.may_ask, calls=calls, counts=counts, reserved=driver.reserved
        )
    ]


def _publisher(options: PodServerOptions) -> KvPublisher | None:
    if options.kv_events_port is None:
        return None
    return KvPublisher(
        host=options.host,
        port=options.kv_events_port,
        topic=f"kv@{options.name}@{options.base_model}",
        block_size=options.config.block_size,
    )


def _metrics_routes(options: PodServerOptions, registry: CollectorRegistry) -> list[BaseRoute]:
    trtllm = options.engine is Engine.TRTLLM
    path = "/prometheus/metrics" if trtllm else "/metrics"
    mount = Mount(path, make_asgi_app(registry))
    # As in vLLM: the page is at /metrics itself, without a redirect to /metrics/.
    mount.path_regex = re.compile(f"^{path}(?P<path>.*)$")
    return [mount, *([Route("/metrics", _iterations)] if trtllm else [])]


async def _iterations(request: Request) -> Response:
    """GET /metrics of `trtllm-serve`: what each step did, as JSON; an emulated pod keeps no such list."""
    del request
    return MsgspecResponse([])


def _post(path: str, endpoint: Endpoint) -> Route:
    return Route(path, endpoint, methods=["POST"])


def _model_routes(generator: Generator) -> list[BaseRoute]:
    pooling = Pooling(generator)
    return [
        _post("/v1/completions", generator.route(CompletionBody, Completions())),
        _post("/v1/chat/completions", generator.route(ChatBody, Chat())),
        _post("/v1/responses", generator.route(ResponsesBody, Responses())),
        _post("/v1/messages", generator.route(MessagesBody, Messages())),
        _post("/v1/embeddings", pooling.embeddings),
        _post("/tokenize", pooling.tokenize),
        *(_post(path, pooling.rerank) for path in ("/rerank", "/v1/rerank", "/v2/rerank")),
        *(_post(path, pooling.score) for path in ("/score", "/v1/score")),
    ]


def _models_route(options: PodServerOptions, driver: PodDriver, *, paths: AdapterRoutes | SglangRoutes) -> Route:
    async def models(request: Request) -> Response:
        """GET /v1/models: the base model, and the adapters that this engine lists."""
        del request
        return MsgspecResponse(document(options, {name: paths.path(name) for name in driver.registered}))

    return Route("/v1/models", models)


def _adapter_routes(
    options: PodServerOptions, adapters: AdapterRoutes, *, sglang: SglangRoutes | None
) -> list[BaseRoute]:
    """TensorRT-LLM and Triton have none."""
    if sglang is not None:
        return [*sglang.routes()] if options.runtime_lora else []
    if options.engine is not Engine.VLLM or not options.runtime_lora:
        return []
    return [_post("/v1/load_lora_adapter", adapters.load), _post("/v1/unload_lora_adapter", adapters.unload)]


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


def _error_handlers(engine: Engine) -> dict[Any, ExceptionHandler]:
    async def refused(request: Request, error: Exception) -> Response:
        del request
        assert isinstance(error, RefusalError)
        headers = {KV_REFUSED: error.kv_refused} if error.kv_refused else None
        return MsgspecResponse(error.body(engine), status_code=error.status, headers=headers)

    async def http_error(request: Request, error: Exception) -> Response:
        del request
        assert isinstance(error, HTTPException)
        # What the framework says by itself has its own shape, FastAPI's, but for vLLM, which reshapes it.
        shape = engine if engine is Engine.VLLM else Engine.TRITON
        body = http_refusal(error.status_code).body(shape)
        return MsgspecResponse(body, status_code=error.status_code, headers=error.headers)

    return {RefusalError: refused, HTTPException: http_error}


async def _nobody(request: Request, error: Exception) -> Response:
    """The client is gone; the response goes nowhere. 499 is what logs call that."""
    del request, error
    return Response(status_code=499)
