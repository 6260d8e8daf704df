"""What watching pods costs: CPU seconds per 1,000 scrapes of a real vLLM page (57 kB) over HTTP.

    python -m bench.scrape [--scrapes 1000] [--rounds 3]

A server in a process of its own sends the page; this process asks for it one after the other, so all its CPU is that
of scraping. Compared in the same run: our page client with a general HTTP client (aiohttp), our parser with
Prometheus's own, and the scraper as a whole (`scraper_cpu_s`, the figure that counts) with what its budget believes it
used. Medians of the rounds.
"""

import argparse
import asyncio
import json
import random
import statistics
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import aiohttp
import uvloop
from prometheus_client.parser import text_string_to_metric_families

from lorapick.live.page import PageClient
from lorapick.live.scrape import Scraper
from lorapick.model.events import Event, PodReported
from lorapick.model.pods import Pod
from lorapick.model.settings import ScrapeSettings
from lorapick.wire.engines import vllm

PAGE = Path(__file__).parents[1] / "tests" / "data" / "vllm-0.32-metrics.txt"
MODELS = b'{"object":"list","data":[{"id":"base","parent":null}]}'
PODS = 20
PROMETHEUS_PAGES = 20
"""Its parser takes some 20 ms for a page: enough of them for a mean, not for a minute."""


class _Answer(asyncio.Protocol):
    """Sends the page for every request, as fast as can be."""

    page = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are asyncio's by behaviour, not by inheritance.
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        body = MODELS if b"/v1/models" in data else self.page
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain; version=0.0.4\r\ncontent-length: %d\r\n\r\n" % len(body)
        self.transport.write(head + body)


async def serve() -> None:
    """Send the page until killed; the first line of output is the port."""
    _Answer.page = PAGE.read_bytes()
    server = await asyncio.get_running_loop().create_server(_Answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


@asynccontextmanager
async def server() -> AsyncIterator[str]:
    """The address of a server in another process."""
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.scrape", "--serve", stdout=asyncio.subprocess.PIPE
    )
    assert child.stdout is not None
    try:
        yield f"127.0.0.1:{int(await child.stdout.readline())}"
    finally:
        child.kill()
        await child.wait()


async def fetch(address: str, scrapes: int) -> float:
    client = PageClient(address, timeout=5.0)
    await client.get("/metrics")
    began = time.process_time()
    for _ in range(scrapes):
        await client.get("/metrics")
    used = time.process_time() - began
    client.close()
    return used


async def fetch_with_aiohttp(address: str, scrapes: int) -> float:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5.0)) as session:
        url = f"http://{address}/metrics"
        began = time.process_time()
        for _ in range(scrapes):
            async with session.get(url, allow_redirects=False) as response:
                await response.read()
        return time.process_time() - began


async def whole_scraper(address: str, scrapes: int) -> tuple[float, float]:
    """CPU of the process and CPU that the budget counted, for at least `scrapes` scrapes of twenty pods."""
    enough = asyncio.Event()
    reports = 0

    def submit(make: Callable[[float, int], Event]) -> None:
        nonlocal reports
        assert isinstance(make(0.0, 0), PodReported)
        reports += 1
        if reports >= scrapes:
            enough.set()

    settings = ScrapeSettings(interval=0.02, timeout=5.0, models_every=0.2)
    scraper = Scraper(settings, core_share=1.0, submit=submit, now=time.monotonic, rng=random.Random(1))
    for number in range(PODS):
        scraper.watch(Pod(name=f"pod-{number}", address=address))
    began = time.process_time()
    task = asyncio.create_task(scraper.run())
    await enough.wait()
    used = time.process_time() - began
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return used / reports * scrapes, scraper.budget.spent / scraper.budget.scrapes * scrapes


def parse_alone(page: bytes, scrapes: int) -> float:
    began = time.process_time()
    for _ in range(scrapes):
        vllm.parse(page)
    return time.process_time() - began


def parse_with_prometheus(page: bytes, scrapes: int) -> float:
    began = time.process_time()
    for _ in range(PROMETHEUS_PAGES):
        list(text_string_to_metric_families(page.decode()))
    return (time.process_time() - began) / PROMETHEUS_PAGES * scrapes


async def measure(scrapes: int, rounds: int) -> dict[str, float]:
    """Medians, scaled to 1,000 scrapes, and the ratios."""
    page = PAGE.read_bytes()
    found: dict[str, list[float]] = {}
    async with server() as address:
        for _ in range(rounds):
            whole, counted = await whole_scraper(address, scrapes)
            figures = {
                "fetch_cpu_s": await fetch(address, scrapes),
                "parse_cpu_s": parse_alone(page, scrapes),
                "prometheus_parse_cpu_s": parse_with_prometheus(page, scrapes),
                "aiohttp_fetch_cpu_s": await fetch_with_aiohttp(address, scrapes),
                "scraper_cpu_s": whole,
                "scraper_counted_cpu_s": counted,
            }
            for name, value in figures.items():
                found.setdefault(name, []).append(value / scrapes * 1000)
    medians = {name: statistics.median(values) for name, values in found.items()}
    return {
        "page_bytes": len(page),
        **{name: round(value, 4) for name, value in medians.items()},
        "parse_times_faster_than_prometheus": round(medians["prometheus_parse_cpu_s"] / medians["parse_cpu_s"], 1),
        "fetch_times_cheaper_than_aiohttp": round(medians["aiohttp_fetch_cpu_s"] / medians["fetch_cpu_s"], 2),
        "budget_counts_share_of_cpu": round(medians["scraper_counted_cpu_s"] / medians["scraper_cpu_s"], 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scrapes", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        uvloop.run(serve())
    else:
        print(json.dumps(uvloop.run(measure(arguments.scrapes, arguments.rounds)), indent=2))


if __name__ == "__main__":
    main()
