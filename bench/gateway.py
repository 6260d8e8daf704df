"""What the picker costs: the same Envoy alone, with the least possible grpc.aio picker, and with lorapick.

`trivial` exchanges the same messages as lorapick; `trivial_lean` is not even shown response headers.

    python -m bench.gateway [--rounds 5] [--seconds 4]

Four upstreams (an Envoy that answers directly), four gateways side by side, measured in turn in each round, the
order rotating: requests/s at saturation (16 connections), and latency at 200 requests/s (Poisson). Everything runs
on one machine, so saturation says "CPU per request over all parts". Compare the ratios.
"""

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from lorapick.live.addresses import free_ports, in_use
from lorapick.live.envoy import config
from lorapick.live.envoy.process import binary

ANSWER = json.dumps(
    {
        "id": "cmpl-1", "object": "chat.completion", "created": 1, "model": "ad0",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "word " * 24}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 80, "completion_tokens": 16, "total_tokens": 96},
    }
)  # fmt: skip
METRICS = Path(__file__).parent.parent / "tests" / "data" / "vllm-0.32-metrics.txt"
"""A real page of 57 kB: what scraping costs is part of what the picker costs."""
MODELS = json.dumps({"object": "list", "data": [{"id": "base", "object": "model"}]
                     + [{"id": f"ad{n}", "object": "model", "parent": "base"} for n in range(6)]})  # fmt: skip
RATE = 200


def idle_page(directory: Path) -> Path:
    """The page of a pod with eight slots, in none of which an adapter runs: the real one is full, all would wait."""
    lines = METRICS.read_text().splitlines(keepends=True)
    series = "vllm:lora_requests_info{"
    kept = [line for line in lines if not line.startswith(series) or 'running_lora_adapters=""' in line]
    path = directory / "metrics.txt"
    path.write_text("".join(kept).replace('max_lora="2"', 'max_lora="8"'))
    return path


def upstream_config(ports: list[int], *, page: Path, admin: int | None = None) -> dict[str, Any]:
    """An Envoy that answers like an instant model server on each port; `admin` is the port of its own API."""

    def answer(body: dict[str, str], kind: str) -> dict[str, Any]:
        headers = [{"header": {"key": "content-type", "value": kind}}]
        return {"direct_response": {"status": 200, "body": body}, "response_headers_to_add": headers}

    routes = [
        {"match": {"path": "/metrics"}, **answer({"filename": str(page)}, "text/plain; version=0.0.4")},
        {"match": {"path": "/v1/models"}, **answer({"inline_string": MODELS}, "application/json")},
        {"match": {"prefix": "/"}, **answer({"inline_string": ANSWER}, "application/json")},
    ]
    types = "type.googleapis.com/envoy.extensions.filters."
    manager = {
        "@type": types + "network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "upstream",
        "route_config": {
            "max_direct_response_body_size_bytes": 131_072,
            "virtual_hosts": [{"name": "all", "domains": ["*"], "routes": routes}],
        },
        "http_filters": [
            {
                "name": "envoy.filters.http.router",
                "typed_config": {"@type": types + "http.router.v3.Router"},
            }
        ],
    }
    filters = [{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]
    own = {"admin": {"address": {"socket_address": {"address": "127.0.0.1", "port_value": admin}}}} if admin else {}
    return {
        **own,
        "static_resources": {
            "listeners": [
                {
                    "name": f"pod-{port}",
                    "address": {"socket_address": {"address": "127.0.0.1", "port_value": port}},
                    "filter_chains": [{"filters": filters}],
                }
                for port in ports
            ]
        },
    }


def lean(settings: config.EnvoySettings) -> dict[str, Any]:
    """Our Envoy configuration, but the picker is not shown response headers: the least a picker can be asked."""
    document = config.bootstrap(settings)
    manager = document["static_resources"]["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
    for each in manager["http_filters"]:
        if "ext_proc" in each["name"]:
            each["typed_config"]["processing_mode"]["response_header_mode"] = "SKIP"
    return document


def without_picker(settings: config.EnvoySettings) -> dict[str, Any]:
    """Our Envoy configuration less its ext_proc filter."""
    document = config.bootstrap(settings)
    manager = document["static_resources"]["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
    manager["http_filters"] = [each for each in manager["http_filters"] if "ext_proc" not in each["name"]]
    return document


class Processes:
    """Children that end with the benchmark."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._children: list[asyncio.subprocess.Process] = []

    async def start(self, name: str, *argv: str) -> int:
        """Returns its pid."""
        log = (self.directory / f"{name}.log").open("wb")
        self._children.append(await asyncio.create_subprocess_exec(*argv, stdout=log, stderr=log))
        return self._children[-1].pid

    async def envoy(self, name: str, document: dict[str, Any]) -> None:
        path = self.directory / f"{name}.json"
        path.write_text(json.dumps(document))
        flags = ("--disable-hot-restart", "--concurrency", "1", "--log-level", "error")
        await self.start(name, str(binary()), "-c", str(path), *flags)

    async def end(self, pid: int) -> None:
        """One of them."""
        (child,) = [each for each in self._children if each.pid == pid]
        child.terminate()
        await child.wait()

    async def stop(self) -> None:
        for child in self._children:
            if child.returncode is None:
                child.terminate()
        await asyncio.gather(*(child.wait() for child in self._children))


async def listening(address: str) -> None:
    for _ in range(300):
        if in_use(address):
            return
        await asyncio.sleep(0.1)
    raise SystemExit(f"nothing listens on {address}")


@asynccontextmanager
async def gateways(directory: Path) -> AsyncIterator[dict[str, str]]:
    """Start everything; gives the address of each gateway by name."""
    processes = Processes(directory)
    *pods, alone, trivial, spare, ours, health, metrics, admin = free_ports(11)
    pod_addresses = [f"127.0.0.1:{port}" for port in pods]
    (directory / "eds").mkdir()
    endpoints = directory / "eds" / "endpoints.json"
    endpoints.write_text(json.dumps(config.clusters.endpoints(pod_addresses)))
    (directory / "pods.yaml").write_text(
        json.dumps([{"name": f"pod-{n}", "address": address} for n, address in enumerate(pod_addresses)])
    )
    (directory / "lorapick.yaml").write_text(
        json.dumps(
            {
                "discovery": {"file": str(directory / "pods.yaml")},
                "adapters": {"list": [{"name": f"ad{n}", "rank": 16} for n in range(6)]},
                "defaults": {"max_num_seqs": 256, "max_loras": 8},
                "server": {
                    "extproc": f"unix:{directory}/ours.sock",
                    "health": f"127.0.0.1:{health}",
                    "metrics": f"127.0.0.1:{metrics}",
                    "admin": f"127.0.0.1:{admin}",
                },
            }
        )
    )
    try:
        await processes.envoy("upstream", upstream_config(pods, page=idle_page(directory)))
        python = sys.executable
        trivial_script = str(Path(__file__).with_name("trivial_extproc.py"))
        await processes.start(
            "trivial", python, trivial_script, f"unix:{directory}/trivial.sock", ",".join(pod_addresses)
        )
        await processes.start(
            "ours", python, "-m", "lorapick.cli.main", "serve", "--config", str(directory / "lorapick.yaml")
        )
        for _ in range(300):
            if (directory / "ours.sock").exists() and (directory / "trivial.sock").exists():
                break
            await asyncio.sleep(0.1)
        names = {"envoy": alone, "trivial": trivial, "trivial_lean": spare, "lorapick": ours}
        made = {"envoy": without_picker, "trivial_lean": lean}
        for name, port in names.items():
            settings = config.EnvoySettings(
                listen=f"127.0.0.1:{port}",
                extproc=(f"unix:{directory}/{'ours' if name == 'lorapick' else 'trivial'}.sock",),
                endpoints_file=str(endpoints),
                admin=f"unix:{directory}/{name}-admin.sock",
            )
            await processes.envoy(name, made.get(name, config.bootstrap)(settings))
        addresses = {name: f"127.0.0.1:{port}" for name, port in names.items()}
        for address in addresses.values():
            await listening(address)
        await asyncio.sleep(3.0)  # the first scrapes and health checks
        yield addresses
    finally:
        await processes.stop()


async def load(address: str, *arguments: str) -> dict[str, float]:
    """One run of the load generator in a process of its own."""
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.loadgen", address, *arguments, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await child.communicate()
    result: dict[str, float] = json.loads(out)
    if result["not_200"] or result["errors"]:
        raise SystemExit(f"{address}: {result['not_200']} answers were not 200, {result['errors']} connections broke")
    return result


async def measure(rounds: int, seconds: float) -> dict[str, Any]:
    """All rounds; medians by gateway, and the ratios the aims speak of."""
    with tempfile.TemporaryDirectory(prefix="lorapick-bench-") as name:
        async with gateways(Path(name)) as addresses:
            names = [*addresses]
            runs: dict[str, list[dict[str, float]]] = {name: [] for name in names}
            for number in range(rounds):
                for gateway in names[number % 4 :] + names[: number % 4]:
                    full = await load(addresses[gateway], "closed", "16", str(seconds))
                    calm = await load(addresses[gateway], "open", str(RATE), str(seconds), str(number))
                    runs[gateway].append(
                        {
                            "rps": full["rps"],
                            "sat_p99_ms": full["p99_ms"],
                            "p50_ms": calm["p50_ms"],
                            "p99_ms": calm["p99_ms"],
                        }
                    )
    return report(runs)


def report(runs: dict[str, list[dict[str, float]]]) -> dict[str, Any]:
    medians = {
        name: {key: statistics.median(run[key] for run in each) for key in each[0]} for name, each in runs.items()
    }
    rounds = range(len(runs["envoy"]))

    def ratio(other: str, figure: str = "rps") -> float:
        return statistics.median(runs["lorapick"][n][figure] / runs[other][n][figure] for n in rounds)

    def added(name: str, figure: str) -> float:
        return statistics.median(runs[name][n][figure] - runs["envoy"][n][figure] for n in rounds)

    return {
        "medians": medians,
        "spread_rps": {name: [min(r["rps"] for r in each), max(r["rps"] for r in each)] for name, each in runs.items()},
        "rps_against_trivial": ratio("trivial"),
        "rps_against_trivial_lean": ratio("trivial_lean"),
        "rps_against_envoy": ratio("envoy"),
        "added_p50_ms": added("lorapick", "p50_ms"),
        "added_p99_ms": added("lorapick", "p99_ms"),
        "trivial_added_p50_ms": added("trivial", "p50_ms"),
        "trivial_lean_added_p50_ms": added("trivial_lean", "p50_ms"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0)
    arguments = parser.parse_args()
    print(json.dumps(asyncio.run(measure(arguments.rounds, arguments.seconds)), indent=2))


if __name__ == "__main__":
    main()
