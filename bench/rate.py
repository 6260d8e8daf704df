"""What the picker costs at a fixed rate: 10 pods, 500 small requests/s, through a real Envoy.

    python -m bench.rate [--rounds 5] [--seconds 4] [--rate 500]

The shape of llm-d's published figures for its picker (Go): 10 pods, 500 requests/s, there 4.9 cores, decisions of 3.6
ms (P50) and 78.6 ms (P95). Per mode (how bodies are sent, whether answers are shown to the picker) a picker and an
Envoy of its own; all stand by while one is measured, the order rotating, beside an Envoy without a picker. Cores are
CPU seconds of the picker's process (`/proc`, scraping included) per second of load; decisions are from its own
histogram `lorapick_pick_seconds`; what is added to latency is against the Envoy without, in the same round. Medians
of the rounds.
"""

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

from bench.gateway import Processes, idle_page, listening, load, upstream_config, without_picker
from lorapick.live.addresses import free_ports
from lorapick.live.envoy import config

PODS = 10
MODES = {
    "buffered": ("buffered", "headers"),
    "buffered, bodies": ("buffered", "bodies"),
    "duplex": ("full_duplex_streamed", "headers"),
    "duplex, bodies": ("full_duplex_streamed", "bodies"),
}
TICKS = os.sysconf("SC_CLK_TCK")
Buckets = dict[float, float]


class Gateway(NamedTuple):
    """One Envoy, and its picker if it has one."""

    address: str
    pid: int | None = None
    metrics: str = ""


def cpu_seconds(pid: int) -> float:
    """That a process has used, in user and kernel mode."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


async def decisions(metrics: str) -> Buckets:
    """Counts of decisions by the upper bound of their time in seconds."""
    async with aiohttp.ClientSession() as session, session.get(f"http://{metrics}/metrics") as answer:
        page = await answer.text()
    found: Buckets = {}
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            if sample.name == "lorapick_pick_seconds_bucket":
                bound = float(sample.labels["le"])
                found[bound] = found.get(bound, 0.0) + sample.value
    return found


def within(before: Buckets, after: Buckets, share: float) -> float | None:
    """Seconds within which a share of the decisions between two looks fell, straight within a bucket; None: none."""
    counts = [(bound, after[bound] - before.get(bound, 0.0)) for bound in sorted(after)]
    whole = counts[-1][1] if counts else 0.0
    if whole <= 0.0:
        return None
    low, below = 0.0, 0.0
    for bound, count in counts:
        if count >= share * whole:
            return bound if bound == float("inf") else low + (bound - low) * (share * whole - below) / (count - below)
        low, below = bound, count
    return None


def configuration(directory: Path, name: str, *, pods: list[str], ports: list[int]) -> Path:
    """A picker's file; returns its path."""
    (directory / "pods.yaml").write_text(
        json.dumps([{"name": f"pod-{n}", "address": each} for n, each in enumerate(pods)])
    )
    body, observe = MODES[name]
    document = {
        "discovery": {"file": str(directory / "pods.yaml")},
        "adapters": {"list": [{"name": f"ad{n}", "rank": 16} for n in range(6)]},
        "defaults": {"max_num_seqs": 256, "max_loras": 8},
        "server": {
            "extproc": f"unix:{directory}/{slug(name)}.sock",
            "body": body,
            "observe": observe,
            **{part: f"127.0.0.1:{port}" for part, port in zip(("health", "metrics", "admin"), ports, strict=True)},
        },
    }
    path = directory / f"{slug(name)}.yaml"
    path.write_text(json.dumps(document))
    return path


def slug(name: str) -> str:
    """A name as part of a file's."""
    return name.replace(", ", "-")


@asynccontextmanager
async def gateways(directory: Path) -> AsyncIterator[dict[str, Gateway]]:
    """Start everything; gives the gateways by name, `envoy` without a picker."""
    processes = Processes(directory)
    ports = free_ports(PODS + 1 + 4 * len(MODES))
    pods = [f"127.0.0.1:{port}" for port in ports[:PODS]]
    alone, rest = ports[PODS], ports[PODS + 1 :]
    (directory / "eds").mkdir()
    endpoints = directory / "eds" / "endpoints.json"
    endpoints.write_text(json.dumps(config.clusters.endpoints(pods)))

    def envoy(name: str, port: int) -> config.EnvoySettings:
        body, observe = MODES.get(name, ("buffered", "headers"))
        return config.EnvoySettings(
            listen=f"127.0.0.1:{port}",
            extproc=(f"unix:{directory}/{slug(name)}.sock",),
            endpoints_file=str(endpoints),
            admin=f"unix:{directory}/{slug(name)}-admin.sock",
            body=body,
            observe=observe,
        )

    try:
        await processes.envoy("upstream", upstream_config(ports[:PODS], page=idle_page(directory)))
        found = {"envoy": Gateway(f"127.0.0.1:{alone}")}
        await processes.envoy("envoy", without_picker(envoy("envoy", alone)))
        for number, name in enumerate(MODES):
            listen, *own = rest[4 * number : 4 * number + 4]
            path = configuration(directory, name, pods=pods, ports=own)
            pid = await processes.start(
                slug(name), sys.executable, "-m", "lorapick.cli.main", "serve", "--config", str(path)
            )
            await listening(f"127.0.0.1:{own[0]}")
            await processes.envoy(f"{slug(name)}-envoy", config.bootstrap(envoy(name, listen)))
            found[name] = Gateway(f"127.0.0.1:{listen}", pid, f"127.0.0.1:{own[1]}")
        for each in found.values():
            await listening(each.address)
        await asyncio.sleep(3.0)  # the first scrapes and health checks
        yield found
    finally:
        await processes.stop()


async def play(gateway: Gateway, *, rate: float, seconds: float, seed: int) -> dict[str, float | None]:
    """One run: latencies, and what the picker used for it."""
    counted = await decisions(gateway.metrics) if gateway.pid else {}
    used = cpu_seconds(gateway.pid) if gateway.pid else 0.0
    ran = await load(gateway.address, "open", str(rate), str(seconds), str(seed))
    figures: dict[str, float | None] = {"p50_ms": ran["p50_ms"], "p99_ms": ran["p99_ms"], "rps": ran["rps"]}
    if gateway.pid is None:
        return figures
    cpu = cpu_seconds(gateway.pid) - used
    after = await decisions(gateway.metrics)
    median, tail = within(counted, after, 0.5), within(counted, after, 0.95)
    return figures | {
        "cores": cpu / ran["requests"] * rate,
        "cpu_us_per_request": cpu / ran["requests"] * 1e6,
        "decision_p50_ms": median * 1e3 if median is not None else None,
        "decision_p95_ms": tail * 1e3 if tail is not None else None,
    }


async def measure(rounds: int, *, seconds: float, rate: float) -> dict[str, Any]:
    """All rounds; medians by mode."""
    with tempfile.TemporaryDirectory(prefix="lorapick-rate-") as name:
        async with gateways(Path(name)) as found:
            names = [*found]
            runs: dict[str, list[dict[str, float | None]]] = {each: [] for each in names}
            for number in range(rounds):
                for each in names[number % len(names) :] + names[: number % len(names)]:
                    runs[each].append(await play(found[each], rate=rate, seconds=seconds, seed=number))
    return report(runs)


def report(runs: dict[str, list[dict[str, float | None]]]) -> dict[str, Any]:
    """Medians; the figures that aims speak of are those of the worst mode."""
    medians: dict[str, dict[str, float]] = {}
    for name, each in runs.items():
        medians[name] = {key: statistics.median([known(run, key, name) for run in each]) for key in each[0]}
        if name != "envoy":
            for figure in ("p50_ms", "p99_ms"):
                gained = [
                    known(run, figure, name) - known(bare, figure, "envoy")
                    for run, bare in zip(each, runs["envoy"], strict=True)
                ]
                medians[name][f"added_{figure}"] = statistics.median(gained)
    pickers = [each for name, each in medians.items() if name != "envoy"]
    worst = {
        f"{key}_most": max(each[key] for each in pickers) for key in ("cores", "decision_p50_ms", "decision_p95_ms")
    }
    return {**worst, "cores_least": min(each["cores"] for each in pickers), "modes": medians}


def known(run: dict[str, float | None], key: str, name: str) -> float:
    """A figure of a run that must have it."""
    value = run[key]
    if value is None:
        raise SystemExit(f"{name}: no {key}: the picker has decided nothing, so the run says nothing of it")
    return value


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--rate", type=float, default=500.0)
    arguments = parser.parse_args()
    found = asyncio.run(measure(arguments.rounds, seconds=arguments.seconds, rate=arguments.rate))
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
