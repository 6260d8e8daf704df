"""The whole metrics page: process, engine and HTTP families in one registry per pod.

In: the driver's statistics, every HTTP exchange. Out: a prometheus_client registry, and an ASGI wrapper that counts.
Not here: the engine families themselves (see `wire.vllm_page`), the route (prometheus_client's own ASGI application).

The HTTP families are those of prometheus-fastapi-instrumentator, which vLLM uses.
"""

import time
from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry, Counter, GCCollector, Histogram, PlatformCollector, Summary
from prometheus_client.core import Metric
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lorapick.live.podserver.driver import PodDriver
from lorapick.live.podserver.faults import FaultSwitch
from lorapick.live.podserver.options import PodServerOptions
from lorapick.model.units import AdapterName
from lorapick.pod.values import PodStats
from lorapick.wire.vllm_page import PageFacts, ResidentAdapter, families

_UNCOUNTED = ("/metrics", "/health", "/load", "/ping", "/version", "/server_info", "/emulator")
_HIGHR = (0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 7.5, 10, 30, 60)
_LOWR = (0.1, 0.5, 1)


class EngineCollector(Collector):
    """The engine families, from statistics that are at most `metrics_lag` old."""

    def __init__(self, options: PodServerOptions, driver: PodDriver, switch: FaultSwitch) -> None:
        self._options = options
        self._driver = driver
        self._switch = switch
        self._taken: tuple[float, list[Metric]] | None = None

    def collect(self) -> Iterable[Metric]:
        """Called by the registry for each page."""
        now = time.monotonic()
        lag = self._switch.faults.metrics_lag
        if self._taken is None or now - self._taken[0] >= lag:
            self._taken = (now, list(families(self._facts())))
        return self._taken[1]

    def _facts(self) -> PageFacts:
        driver, options = self._driver, self._options
        stats = driver.stats()
        records = driver.records
        return PageFacts(
            model_name=options.base_model,
            config=options.config,
            stats=stats,
            histograms=records.histograms,
            finished=records.finished,
            lora_requests=records.lora_requests,
            created=driver.started_wall,
            second=1.0 / options.speed,
            resident=tuple(self._resident(stats)) if options.report_loaded else None,
        )

    def _resident(self, stats: PodStats) -> Iterator[ResidentAdapter]:
        on_gpu = dict.fromkeys(stats.on_gpu, "gpu")
        levels: dict[AdapterName, str] = dict.fromkeys(stats.on_cpu, "cpu") | on_gpu
        for name, level in levels.items():
            spec = self._driver.spec(name)
            yield ResidentAdapter(name=name, level=level, rank=spec.rank if spec else None)


class EmulatedProcess(Collector):
    """The process families, whose start time is the emulated pod's (a restart need not end this process)."""

    def __init__(self, driver: PodDriver) -> None:
        self._driver = driver
        self._process = ProcessCollector(registry=None)

    def collect(self) -> Iterable[Metric]:
        """Called by the registry for each page."""
        for metric in self._process.collect():
            if metric.name == "process_start_time_seconds":
                metric.samples.clear()
                metric.add_sample(metric.name, {}, self._driver.started_wall)
            yield metric


def build_registry(options: PodServerOptions, driver: PodDriver, switch: FaultSwitch) -> CollectorRegistry:
    """The registry of one pod, in vLLM's order of families."""
    registry = CollectorRegistry(auto_describe=False)
    GCCollector(registry)
    PlatformCollector(registry)
    registry.register(EmulatedProcess(driver))
    registry.register(EngineCollector(options, driver, switch))
    return registry


class CountedRoutes:
    """ASGI wrapper that counts requests, sizes and times of the known paths."""

    def __init__(self, app: ASGIApp, registry: CollectorRegistry, paths: Iterable[str]) -> None:
        self._app = app
        self._paths = frozenset(path for path in paths if not path.startswith(_UNCOUNTED))
        note = "Only value of header is respected. Otherwise ignored. No percentile calculated. "
        self._requests = Counter(
            "http_requests",
            "Total number of requests by method, status and handler.",
            ("method", "status", "handler"),
            registry=registry,
        )
        self._request_size = Summary(
            "http_request_size_bytes",
            f"Content length of incoming requests by handler. {note}",
            ("handler",),
            registry=registry,
        )
        self._response_size = Summary(
            "http_response_size_bytes",
            f"Content length of outgoing responses by handler. {note}",
            ("handler",),
            registry=registry,
        )
        self._all_times = Histogram(
            "http_request_duration_highr_seconds",
            "Latency with many buckets but no API specific labels. Made for more accurate percentile calculations. ",
            buckets=_HIGHR,
            registry=registry,
        )
        self._times = Histogram(
            "http_request_duration_seconds",
            "Latency with only few buckets by handler. Made to be only used if aggregation by handler is important. ",
            ("method", "handler"),
            buckets=_LOWR,
            registry=registry,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one exchange and count it."""
        if scope["type"] != "http" or scope["path"].startswith(_UNCOUNTED):
            await self._app(scope, receive, send)
            return
        began = time.monotonic()
        status, size = 500, 0

        async def watched(message: Message) -> None:
            nonlocal status, size
            if message["type"] == "http.response.start":
                status, size = message["status"], _content_length(message["headers"])
            await send(message)

        try:
            await self._app(scope, receive, watched)
        finally:
            self._count(scope, status, size, time.monotonic() - began)

    def _count(self, scope: Scope, status: int, size: int, seconds: float) -> None:
        handler = scope["path"] if scope["path"] in self._paths else "none"
        self._requests.labels(scope["method"], f"{status // 100}xx", handler).inc()
        self._request_size.labels(handler).observe(_content_length(scope["headers"]))
        self._response_size.labels(handler).observe(size)
        self._all_times.observe(seconds)
        self._times.labels(scope["method"], handler).observe(seconds)


def _content_length(headers: Iterable[tuple[bytes, bytes]]) -> int:
    return next((int(value) for name, value in headers if name == b"content-length"), 0)
