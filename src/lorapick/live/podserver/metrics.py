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
from lorapick.live.podserver.handover_counts import HandoverCounts
from lorapick.live.podserver.options import PodServerOptions
from lorapick.model.pods import Engine
from lorapick.model.units import AdapterName, Ratio, Seconds
from lorapick.pod.values import PodStats, TimeSpent
from lorapick.wire import emulator_page, sglang_page, triton_page, trtllm_page, vllm_page
from lorapick.wire.emulator_page import Truths
from lorapick.wire.vllm_page import PageFacts, ResidentAdapter

_UNCOUNTED = ("/metrics", "/prometheus", "/health", "/load", "/ping", "/version", "/server_info", "/emulator")
_HIGHR = (0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 7.5, 10, 30, 60)
_LOWR = (0.1, 0.5, 1)
_WINDOW: Seconds = 0.5
"""Real seconds that a utilisation looks back at least: less than a scrape interval with its jitter, so that one scraper
sees the time since its last look, neither more nor less; and enough that a second one does not spoil it."""


class Looks:
    """Looks at the pod for the page, at most `metrics_lag` old."""

    def __init__(self, options: PodServerOptions, driver: PodDriver, switch: FaultSwitch) -> None:
        self._options = options
        self._driver = driver
        self._switch = switch
        self._busy = BusyShare()
        self._taken: tuple[Seconds, PageFacts, Truths] | None = None

    def look(self) -> tuple[PageFacts, Truths]:
        """What the page shows now."""
        now = time.monotonic()
        if self._taken is None or now - self._taken[0] >= self._switch.faults.metrics_lag:
            stats = self._driver.stats()
            self._taken = (now, self._facts(stats), self._truths(stats))
        return self._taken[1:]

    def _facts(self, stats: PodStats) -> PageFacts:
        records = self._driver.records
        return PageFacts(
            model_name=self._options.base_model,
            config=self._options.config,
            stats=stats,
            histograms=records.histograms,
            finished=records.finished,
            lora_requests=records.lora_requests,
            created=self._driver.started_wall,
            received_tokens=records.received_tokens,
            resident=tuple(self._resident(stats)) if self._options.report_loaded else None,
        )

    def _truths(self, stats: PodStats) -> Truths:
        second = 1.0 / self._options.speed
        busy = self._busy.since_last_look(stats.time, second)
        return Truths(config=self._options.config, stats=stats, second=second, gpu_utilization=busy)

    def _resident(self, stats: PodStats) -> Iterator[ResidentAdapter]:
        on_gpu = dict.fromkeys(stats.on_gpu, "gpu")
        levels: dict[AdapterName, str] = dict.fromkeys(stats.on_cpu, "cpu") | on_gpu
        for name, level in levels.items():
            spec = self._driver.spec(name)
            yield ResidentAdapter(name=name, level=level, rank=spec.rank if spec else None)


class BusyShare:
    """GPU utilisation as the device's own counter has it: the share of a window in which anything ran."""

    def __init__(self) -> None:
        self._since: list[tuple[Seconds, Seconds]] = [(0.0, 0.0)]
        """Looks as (all, idle) real seconds of the pod's life: the last one a window old or older, and those after."""

    def since_last_look(self, spent: TimeSpent, second: Seconds) -> Ratio | None:
        """Busy share since the last look that is at least half a second old; None: no time has passed."""
        idle = spent.idle * second
        total = second * sum(getattr(spent, phase) for phase in spent.__struct_fields__)
        if total < self._since[-1][0]:
            # The pod restarted.
            self._since = [(0.0, 0.0)]
        while len(self._since) > 1 and total - self._since[1][0] >= _WINDOW:
            del self._since[0]
        then, idle_then = self._since[0]
        self._since.append((total, idle))
        window = total - then
        return min(1.0, max(0.0, 1.0 - (idle - idle_then) / window)) if window > 0 else None


class EngineCollector(Collector):
    """The engine families."""

    def __init__(self, looks: Looks, engine: Engine) -> None:
        self._looks = looks
        self._engine = engine

    def collect(self) -> Iterable[Metric]:
        """Called by the registry for each page."""
        facts, truths = self._looks.look()
        config, stats = truths.config, truths.stats
        match self._engine:
            case Engine.SGLANG:
                return sglang_page.families(facts.model_name, config=config, stats=stats)
            case Engine.TRTLLM:
                return trtllm_page.families(facts.model_name, config=config, stats=stats)
            case Engine.TRITON:
                return triton_page.families(config=config, stats=stats)
            case _:
                return vllm_page.families(facts)


class TruthCollector(Collector):
    """The emulator's own families."""

    def __init__(self, looks: Looks) -> None:
        self._looks = looks

    def collect(self) -> Iterable[Metric]:
        """Called by the registry for each page."""
        return emulator_page.families(self._looks.look()[1])


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


class HttpCounters:
    """The HTTP families."""

    def __init__(self, registry: CollectorRegistry) -> None:
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

    def count(self, scope: Scope, handler: str, *, status: int, size: int, seconds: Seconds) -> None:
        """Count one exchange; sizes are those that `content-length` tells, in bytes."""
        self._requests.labels(scope["method"], f"{status // 100}xx", handler).inc()
        self._request_size.labels(handler).observe(_content_length(scope["headers"]))
        self._response_size.labels(handler).observe(size)
        self._all_times.observe(seconds)
        self._times.labels(scope["method"], handler).observe(seconds)


def build_registry(
    options: PodServerOptions, driver: PodDriver, switch: FaultSwitch, *, handovers: HandoverCounts
) -> tuple[CollectorRegistry, HttpCounters]:
    """The registry of one pod: its engine's families in vLLM's order, then the emulator's own."""
    registry = CollectorRegistry(auto_describe=True)
    if options.engine in (Engine.VLLM, Engine.SGLANG):
        # TensorRT-LLM's page is that of several processes, and Triton is no Python: neither has these.
        GCCollector(registry)
        PlatformCollector(registry)
        registry.register(EmulatedProcess(driver))
    looks = Looks(options, driver, switch)
    registry.register(EngineCollector(looks, options.engine))
    http = HttpCounters(registry)
    registry.register(handovers)
    # Last on the page, where the scraper looks for them.
    registry.register(TruthCollector(looks))
    return registry, http


class CountedRoutes:
    """ASGI wrapper that counts requests, sizes and times of the known paths."""

    def __init__(self, app: ASGIApp, counters: HttpCounters, paths: Iterable[str]) -> None:
        self._app = app
        self._counters = counters
        self._paths = frozenset(path for path in paths if not path.startswith(_UNCOUNTED))

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
            handler = scope["path"] if scope["path"] in self._paths else "none"
            seconds = time.monotonic() - began
            self._counters.count(scope, handler, status=status, size=size, seconds=seconds)


def _content_length(headers: Iterable[tuple[bytes, bytes]]) -> int:
    return next((int(value) for name, value in headers if name == b"content-length"), 0)
