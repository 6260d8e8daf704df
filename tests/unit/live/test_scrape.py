"""The scraper against real HTTP servers on 127.0.0.1; pacing under a virtual clock."""

import asyncio
import contextlib
import itertools
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from lorapick.live.scrape import Budget, Scraper
from lorapick.model.events import Event, GpuReported, PodAppeared, PodChanged, PodGone, PodReported, PodSilent
from lorapick.model.pods import Engine, Pod, SilentWhy
from lorapick.model.profiles import CustomMetric
from lorapick.model.settings import ScrapeSettings

PAGE = (Path(__file__).parents[2] / "data" / "vllm-0.32-metrics.txt").read_bytes()
MODELS = b'{"data":[{"id":"base","parent":null},{"id":"ad0","parent":"base"}]}'
FAST = ScrapeSettings(interval=0.02, timeout=0.25, stale_after=1.0, models_every=0.05)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def serving(metrics: Handler, models: Handler | None = None, **more: Handler) -> AsyncIterator[str]:
    """A pod's HTTP server; its address."""

    async def no_models(_: web.Request) -> web.Response:
        return web.Response(body=MODELS)

    app = web.Application()
    app.router.add_get("/metrics", metrics)
    app.router.add_get("/v1/models", models or no_models)
    for path, handler in more.items():
        app.router.add_get(f"/{path}", handler)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.05)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def answering(body: bytes, *, status: int = 200) -> Handler:
    async def handler(_: web.Request) -> web.Response:
        return web.Response(body=body, status=status)

    return handler


class Watch:
    """A scraper and what it submitted."""

    def __init__(self, settings: ScrapeSettings = FAST, *, core_share: float = 1.0) -> None:
        self.events: list[Event] = []
        self._ids = itertools.count(1)
        self._news = asyncio.Event()
        self.scraper = Scraper(settings, core_share=core_share, submit=self._submit, now=self.now, rng=random.Random(1))

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    def _submit(self, make: Callable[[float, int], Event]) -> None:
        self.events.append(make(self.now(), next(self._ids)))
        self._news.set()

    def about(self, pod: str) -> list[Event]:
        return [event for event in self.events if getattr(event, "pod", None) == pod]

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(5):
            while not condition():
                self._news.clear()
                await self._news.wait()

    @asynccontextmanager
    async def running(self, *pods: Pod) -> AsyncIterator["Watch"]:
        for pod in pods:
            self.scraper.watch(pod)
        task = asyncio.create_task(self.scraper.run())
        try:
            yield self
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            left = [task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith("scrape")]
            assert not left


async def silence(metrics: Handler) -> PodSilent:
    async with serving(metrics) as address, Watch().running(Pod(name="p", address=address)) as watch:
        await watch.until(lambda: bool(watch.events))
    [first, *_] = watch.events
    assert isinstance(first, PodSilent) and first.pod == "p"
    return first


async def test_a_report_has_the_page_the_models_and_when_it_was_asked_for() -> None:
    async with serving(answering(PAGE)) as address, Watch().running(Pod(name="p", address=address)) as watch:
        await watch.until(lambda: len(watch.events) > 3)
    [first, second, *_] = watch.events
    assert isinstance(first, PodReported) and isinstance(second, PodReported)
    assert (first.pod, first.report.running, first.report.in_flight_adapters) == ("p", 5, ("ad0", "ad1"))
    assert (first.report.base_models, first.report.registered) == (("base",), ("ad0",))
    assert first.since is not None and first.since <= first.t
    assert second.report.registered is None, "the list is asked for less often"
    assert first.every is None
    assert first.t < second.t


async def test_the_list_of_models_is_asked_for_again_in_time_and_on_request() -> None:
    async with serving(answering(PAGE)) as address:
        async with Watch().running(Pod(name="p", address=address)) as watch:
            lists = lambda: [e for e in watch.events if isinstance(e, PodReported) and e.report.registered is not None]  # noqa: E731
            await watch.until(lambda: len(lists()) == 2)
        rarely = Watch(ScrapeSettings(interval=0.02, timeout=1.0, models_every=600.0))
        async with rarely.running(Pod(name="p", address=address)) as watch:
            await watch.until(lambda: len(watch.events) == 3)
            assert len(lists()) == 1
            watch.scraper.refresh("p")
            watch.scraper.refresh("unknown")
            await watch.until(lambda: len(lists()) == 2)


@pytest.mark.parametrize(
    ("family", "before", "after"), [("process_start_time_seconds", 1, 2), ("vllm:num_preemptions_total", 7, 0)]
)
async def test_a_restarted_pod_is_asked_for_its_models_at_once(family: str, before: int, after: int) -> None:
    values = iter([before, before, *[after] * 100])

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(text=f"vllm:num_requests_running 0\n{family} {next(values)}\n")

    watch = Watch(ScrapeSettings(interval=0.02, timeout=1.0, models_every=600.0))
    async with serving(metrics) as address, watch.running(Pod(name="p", address=address)):
        await watch.until(lambda: len(watch.events) == 4)
    reports = [event.report for event in watch.events if isinstance(event, PodReported)]
    assert [report.registered for report in reports] == [("ad0",), None, ("ad0",), None]


@pytest.mark.parametrize("models", [answering(b"<html>"), answering(b"no", status=404)])
async def test_without_a_list_of_models_the_rest_is_reported(models: Handler) -> None:
    async with (
        serving(answering(PAGE), models) as address,
        Watch().running(Pod(name="p", address=address)) as watch,
    ):
        await watch.until(lambda: bool(watch.events))
    assert isinstance(watch.events[0], PodReported)
    assert watch.events[0].report.registered is None


async def test_an_engine_without_a_list_of_models_is_not_asked() -> None:
    async def asked(_: web.Request) -> web.Response:
        raise AssertionError

    pod = Pod(name="p", address="", engine=Engine.LORAX)
    async with serving(answering(b"lorax_queue_size 3\n"), asked) as address:
        watch = Watch()
        async with watch.running(Pod(name=pod.name, address=address, engine=pod.engine)):
            await watch.until(lambda: len(watch.events) == 2)
    assert [event.report.waiting for event in watch.events if isinstance(event, PodReported)] == [3, 3]


async def test_garbage() -> None:
    event = await silence(answering(b"<html>hello</html>"))
    assert event.why is SilentWhy.GARBAGE
    assert "not the metrics of vLLM" in event.detail
    broken = await silence(answering(b"vllm:num_requests_running x\n"))
    assert (broken.why, broken.detail) == (
        SilentWhy.GARBAGE,
        "line 1 has the value x, which is not a number: vllm:num_requests_running x",
    )


async def test_a_status_and_a_redirect() -> None:
    async def moved(_: web.Request) -> web.Response:
        raise web.HTTPFound("http://127.0.0.1:1/metrics")

    failed, redirected = await silence(answering(b"x", status=500)), await silence(moved)
    assert (failed.why, failed.detail) == (SilentWhy.STATUS, "status 500")
    assert redirected.why is SilentWhy.STATUS
    assert redirected.detail == "status 302 to 'http://127.0.0.1:1/metrics'; redirects are not followed"


async def test_a_hang_and_a_slow_body() -> None:
    async def hang(_: web.Request) -> web.Response:
        await asyncio.sleep(60)
        raise AssertionError

    async def slow(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b"x 1\n")
            await asyncio.sleep(0.02)

    for handler in (hang, slow):
        event = await silence(handler)
        assert (event.why, event.detail) == (SilentWhy.TIMEOUT, "no answer to /metrics within 0.25 s")


async def test_a_huge_body() -> None:
    async def huge(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(16):
            await response.write(b"x 1\n" * (1 << 18))
        return response

    event = await silence(huge)
    # A slow machine may need longer for 8 MiB than the pod has.
    assert event.why in (SilentWhy.GARBAGE, SilentWhy.TIMEOUT)
    assert event.detail in ("the body has more than 8388608 bytes", "no answer to /metrics within 0.25 s")


async def test_a_refused_connection_and_the_pod_that_comes_back() -> None:
    async with serving(answering(PAGE)) as address:
        pass
    port = int(address.rpartition(":")[2])
    async with Watch().running(Pod(name="p", address=address)) as watch:
        await watch.until(lambda: len(watch.events) == 2)
        assert [(event.why, bool(event.detail)) for event in watch.events if isinstance(event, PodSilent)] == [
            (SilentWhy.REFUSED, True),
            (SilentWhy.REFUSED, True),
        ]
        server = await asyncio.start_server(_one_page, "127.0.0.1", port)
        async with server:
            await watch.until(lambda: any(isinstance(event, PodReported) for event in watch.events))


async def _one_page(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while request := await reader.readuntil(b"\r\n\r\n"):
        body = MODELS if b"/v1/models" in request else PAGE
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % len(body) + body)
        writer.close()
        await writer.wait_closed()
        return


async def test_one_pod_never_has_two_questions_and_a_slow_one_delays_nobody() -> None:
    asking = most = 0

    async def slow(_: web.Request) -> web.Response:
        nonlocal asking, most
        asking += 1
        most = max(most, asking)
        await asyncio.sleep(0.1)
        asking -= 1
        return web.Response(body=PAGE)

    async with serving(slow) as slow_address, serving(answering(PAGE)) as quick_address:
        watch = Watch()
        pods = (Pod(name="slow", address=slow_address), Pod(name="quick", address=quick_address))
        async with watch.running(*pods):
            await watch.until(lambda: len(watch.about("slow")) == 3)
    assert most == 1
    assert len(watch.about("quick")) > 3


async def test_pods_come_and_go_while_it_runs() -> None:
    watch = Watch()
    async with serving(answering(PAGE)) as one, serving(answering(PAGE)) as two, watch.running():
        watch.scraper.observe(PodAppeared(t=0.0, id=1, pod=Pod(name="a", address=one)), ())
        watch.scraper.observe(PodAppeared(t=0.0, id=2, pod=Pod(name="b", address="127.0.0.1:9")), ())
        await watch.until(lambda: bool(watch.about("a")) and bool(watch.about("b")))
        assert isinstance(watch.about("b")[0], PodSilent)
        watch.scraper.observe(PodChanged(t=0.0, id=3, pod=Pod(name="b", address=two)), ())
        await watch.until(lambda: isinstance(watch.about("b")[-1], PodReported))
        watch.scraper.observe(PodGone(t=0.0, id=4, pod="a"), ())
        watch.scraper.observe(PodGone(t=0.0, id=5, pod="a"), ())
        gone, others = len(watch.about("a")), len(watch.about("b"))
        await watch.until(lambda: len(watch.about("b")) >= others + 3)
        assert len(watch.about("a")) == gone


async def test_a_pod_whose_labels_change_is_watched_on() -> None:
    watch = Watch()
    async with serving(answering(PAGE)) as address, watch.running(Pod(name="p", address=address)):
        await watch.until(lambda: bool(watch.events))
        task = watch.scraper._tasks["p"]
        watch.scraper.watch(Pod(name="p", address=address, labels={"tier": "gold"}))
        assert watch.scraper._tasks["p"] is task


async def test_a_page_that_breaks_the_parser_ends_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from lorapick.live import scrape
    from lorapick.wire.engines import Dialect

    def broken(_: bytes, *, used_since: float | None = None) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setitem(scrape.DIALECTS, Engine.VLLM, Dialect(parse=broken))  # type: ignore[arg-type]
    with caplog.at_level(logging.CRITICAL):
        event = await silence(answering(PAGE))
    assert (event.why, event.detail) == (SilentWhy.GARBAGE, "ZeroDivisionError: oops")


async def test_gpu_utilisation_of_a_dcgm_exporter(caplog: pytest.LogCaptureFixture) -> None:
    pages = iter([b"up 1\n", b"up 1\n", *[b'DCGM_FI_DEV_GPU_UTIL{gpu="0",pod="p"} 45\n'] * 1000])

    async def gpu(_: web.Request) -> web.Response:
        return web.Response(body=next(pages))

    watch = Watch()
    async with serving(answering(PAGE), gpu=gpu) as address:
        async with watch.running(Pod(name="p", address=address, dcgm_url=f"http://{address}/gpu")):
            await watch.until(lambda: any(isinstance(event, GpuReported) for event in watch.events))
    [found, *_] = [event for event in watch.events if isinstance(event, GpuReported)]
    assert (found.pod, found.utilization) == ("p", 0.45)
    warnings = [record.getMessage() for record in caplog.records]
    assert len(warnings) == 1 and "not the metrics of a DCGM exporter" in warnings[0]


@pytest.mark.parametrize("handler", [answering(b"x", status=503), answering(b"x" * (9 << 20))])
async def test_a_dcgm_exporter_that_fails_leaves_the_pod_alone(
    handler: Handler, caplog: pytest.LogCaptureFixture
) -> None:
    watch = Watch(ScrapeSettings(interval=0.02, timeout=2.0))
    async with serving(answering(PAGE), gpu=handler) as address:
        async with watch.running(Pod(name="p", address=address, dcgm_url=f"http://{address}/gpu")):
            await watch.until(lambda: len(watch.events) > 2 and bool(caplog.records))
    assert all(isinstance(event, PodReported) for event in watch.events)


class Cpu:
    """CPU seconds that a test sets."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def test_the_interval_stretches_when_pods_times_cost_exceed_the_share() -> None:
    cpu = Cpu()
    budget = Budget(interval=1.0, share=0.1, cpu=cpu)
    assert budget.interval(1000) == 1.0, "nothing is known yet"
    for _ in range(3):
        with budget:
            cpu.seconds += 0.0009
        budget.scraped(unseen=0.0001)
    assert budget.cost == pytest.approx(0.001)
    assert budget.interval(50) == 1.0
    assert budget.interval(1000) == pytest.approx(10.0)
    assert (budget.scrapes, budget.spent) == (3, pytest.approx(0.003))


def test_the_cost_follows_what_scrapes_cost_lately() -> None:
    cpu = Cpu()
    budget = Budget(interval=1.0, share=0.1, cpu=cpu)
    budget.scraped(unseen=0.01)
    for _ in range(400):
        budget.scraped(unseen=0.001)
    assert budget.cost == pytest.approx(0.001, rel=0.01)


def test_a_slow_first_scrape_is_soon_forgotten() -> None:
    budget = Budget(interval=1.0, share=0.1, cpu=Cpu())
    for cost in (0.02, *[0.001] * 19):
        budget.scraped(unseen=cost)
    assert budget.cost == pytest.approx(0.00195)


async def test_reports_say_when_the_interval_is_stretched() -> None:
    watch = Watch(core_share=5e-3)
    async with serving(answering(PAGE)) as address, watch.running(Pod(name="p", address=address)):
        await watch.until(lambda: len(watch.events) == 3)
    last = watch.events[-1]
    assert isinstance(last, PodReported) and last.every is not None
    assert last.every > FAST.interval


class Question:
    """A watcher that takes a while to ask."""

    unseen = 0.0

    def __init__(self, takes: float) -> None:
        self.takes = takes
        self.asked: list[float] = []
        self.closed = False

    async def scrape(self) -> None:
        self.asked.append(asyncio.get_running_loop().time())
        await asyncio.sleep(self.takes)

    async def aclose(self) -> None:
        self.closed = True


@pytest.mark.parametrize(("takes", "gap"), [(0.0, 10.0), (4.0, 10.0), (10.0, 11.0), (60.0, 61.0)])
@pytest.mark.looptime
async def test_pods_are_asked_at_the_interval_whatever_an_answer_takes(takes: float, gap: float) -> None:
    watch = Watch(ScrapeSettings(interval=10.0, timeout=60.0, stale_after=100.0))
    question = Question(takes)
    task = asyncio.create_task(watch.scraper._repeat(question))
    await asyncio.sleep(1000.0)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    gaps = [later - earlier for earlier, later in itertools.pairwise(question.asked)]
    assert all(gap - 1.1 <= each <= gap + 1.1 for each in gaps)
    assert len(set(gaps)) > 5, "with jitter"
    assert sum(gaps) / len(gaps) == pytest.approx(gap, rel=0.05)
    assert question.closed


async def test_metrics_that_the_configuration_names_come_with_reports_of_their_engine() -> None:
    page = PAGE + b'# TYPE depth gauge\ndepth{tier="gold"} 7\n'
    watch = Watch()
    watch.scraper.custom = (
        CustomMetric(engine=Engine.VLLM, attribute="Depth", family="depth", labels={"tier": "gold"}),
        CustomMetric(engine=Engine.SGLANG, attribute="Other", family="depth"),
    )
    async with serving(answering(page)) as address, watch.running(Pod(name="p", address=address)):
        await watch.until(lambda: len(watch.events) > 1)
    [first, *_] = watch.events
    assert isinstance(first, PodReported)
    assert (first.report.attributes, first.report.running) == ((("Depth", 7.0),), 5)
