"""A local Ray cluster without a dashboard, and the same arrivals for either router."""

import asyncio
import os
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

# Ray takes a node at 127.0.0.1 for one at the machine's own address, unless it is told that there is no cluster. It
# reads this when it is imported.
os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"

import ray
from ray import serve
from ray.exceptions import RayError
from ray_app import app

MODELS = 40
RATE = 40.0
"""Requests per second."""


class Run(NamedTuple):
    """One play of the arrivals."""

    loads: int
    """Requests that waited for a load, which several may share."""
    latencies: list[float]
    failed: int

    def percentile(self, share: float) -> float:
        return sorted(self.latencies)[int(share * len(self.latencies))]


@contextmanager
def cluster() -> Iterator[None]:
    """On 127.0.0.1, but for a port of each replica that Ray Serve opens on all addresses."""
    os.environ["PYTHONPATH"] = str(Path(__file__).parent)  # Ray's processes import the deployment from here
    ray.init(
        num_cpus=4, include_dashboard=False, object_store_memory=100_000_000, _node_ip_address="127.0.0.1",
        log_to_driver=False, configure_logging=False,
    )  # fmt: skip
    try:
        serve.start(proxy_location="Disabled")
        yield
    finally:
        serve.shutdown()
        ray.shutdown()


def deploy(*, ours: bool, replicas: int = 8, **options: object) -> Any:
    """A handle to a fresh application."""
    name = "ours" if ours else "rays"
    return serve.run(app(ours=ours, replicas=replicas, **options), name=name, route_prefix=None)


def arrivals(seed: int, *, count: int) -> list[tuple[float, str]]:
    """Seconds from the begin, and models by Zipf's law."""
    chance = random.Random(seed)
    weights = [1 / (n + 1) for n in range(MODELS)]
    at, found = 0.0, []
    for _ in range(count):
        at += chance.expovariate(RATE)
        found.append((at, f"model-{chance.choices(range(MODELS), weights)[0]:02d}"))
    return found


async def play(handle: Any, wanted: list[tuple[float, str]]) -> Run:
    """Send each at its time, whatever became of the ones before."""
    began = time.monotonic()

    async def one(at: float, model: str) -> tuple[float, bool] | None:
        await asyncio.sleep(max(0.0, began + at - time.monotonic()))
        sent = time.monotonic()
        try:
            _, waited = await asyncio.wait_for(handle.options(multiplexed_model_id=model).remote(), 30)
        except (TimeoutError, RayError):
            return None
        return time.monotonic() - sent, waited

    ended = await asyncio.gather(*(one(at, model) for at, model in wanted))
    whole = [each for each in ended if each is not None]
    return Run(sum(waited for _, waited in whole), [seconds for seconds, _ in whole], len(ended) - len(whole))
