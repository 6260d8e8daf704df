"""What watching 100 idle pods costs: a real picker, real vLLM pages (57 kB), no traffic, at 1 s and at 50 ms.

    python -m bench.idle [--rounds 3] [--seconds 10]

llm-d's picker (Go) scrapes every 50 ms; published for 100 idle pods: 7.5 cores. Ours scrapes every second, and 50 ms
is measured since intervals differ. `budgets.scrape_core_share` stretches intervals so that scraping uses a tenth of a
core; it is 1 here, so that the interval is the one that is asked for as far as one core can. Cores are CPU seconds of
the picker's process (`/proc`) per second; the interval that was achieved is from the pods' count of requests. Medians
of the rounds.
"""

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

import aiohttp

from bench.gateway import Processes, idle_page, listening, upstream_config
from bench.rate import cpu_seconds
from lorapick.live.addresses import free_ports

PODS = 100
INTERVALS = {"1 s": 1.0, "50 ms": 0.05}
SETTLED = 5.0
"""Seconds until the first scrapes and questions are over."""


async def asked(admin: str) -> float:
    """Requests that the pods have had so far, all together."""
    url = f"http://{admin}/stats?filter=^http.upstream.downstream_rq_total"
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        return float((await answer.text()).rsplit(": ", 1)[1])


async def play(
    processes: Processes, pods: list[str], *, upstream: str, interval: float, seconds: float
) -> dict[str, float]:
    """One picker that only looks."""
    directory = processes.directory
    health, metrics, admin = (f"127.0.0.1:{port}" for port in free_ports(3))
    (directory / "pods.yaml").write_text(json.dumps([{"name": f"pod-{n}", "address": at} for n, at in enumerate(pods)]))
    document = {
        "discovery": {"file": str(directory / "pods.yaml")},
        "scrape": {"interval": f"{interval * 1e3:.0f}ms", "timeout": "5s"},
        "budgets": {"scrape_core_share": 1.0},
        "server": {"extproc": f"unix:{directory}/idle.sock", "health": health, "metrics": metrics, "admin": admin},
    }
    path = directory / "idle.yaml"
    path.write_text(json.dumps(document))
    pid = await processes.start("idle", sys.executable, "-m", "lorapick.cli.main", "serve", "--config", str(path))
    await listening(metrics)
    await asyncio.sleep(SETTLED)
    before, used, began = await asked(upstream), cpu_seconds(pid), time.monotonic()
    await asyncio.sleep(seconds)
    took, cpu = time.monotonic() - began, cpu_seconds(pid) - used
    made = await asked(upstream) - before
    await processes.end(pid)
    return {"cores": cpu / took, "interval_ms": took * PODS / made * 1e3, "cpu_us_per_scrape": cpu / made * 1e6}


async def measure(rounds: int, *, seconds: float) -> dict[str, object]:
    """All rounds; medians by interval."""
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in INTERVALS}
    with tempfile.TemporaryDirectory(prefix="lorapick-idle-") as name:
        processes = Processes(Path(name))
        try:
            admin, *ports = free_ports(PODS + 1)
            page = idle_page(processes.directory)
            await processes.envoy("upstream", upstream_config(ports, page=page, admin=admin))
            pods = [f"127.0.0.1:{port}" for port in ports]
            await listening(pods[-1])
            for _ in range(rounds):
                for each, interval in INTERVALS.items():
                    found = await play(
                        processes, pods, upstream=f"127.0.0.1:{admin}", interval=interval, seconds=seconds
                    )
                    runs[each].append(found)
        finally:
            await processes.stop()
    medians = {
        name: {key: statistics.median(run[key] for run in each) for key in each[0]} for name, each in runs.items()
    }
    return {
        "cores_1s": medians["1 s"]["cores"],
        "cores_50ms": medians["50 ms"]["cores"],
        "interval_50ms": medians["50 ms"]["interval_ms"],
        "intervals": medians,
    }


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=10.0)
    arguments = parser.parse_args()
    print(json.dumps(asyncio.run(measure(arguments.rounds, seconds=arguments.seconds)), indent=1))


if __name__ == "__main__":
    main()
