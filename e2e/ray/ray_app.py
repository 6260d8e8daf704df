"""The deployment that is measured: replicas that take a while to load a model, and say whether they had to."""

import asyncio
import os
import time

from ray import serve
from ray.serve.config import RequestRouterConfig

MODELS = 4
"""Per replica."""
LOAD, WORK = 0.3, 0.03
"""Seconds that a load and a request take."""
OURS = "lorapick.live.ray.router:LorapickRouter"


class Replica:
    """Loads by sleeping. `loads` are those of this replica since it started."""

    def __init__(self) -> None:
        self.loads = 0

    @serve.multiplexed(max_num_models_per_replica=MODELS)
    async def load(self, model_id: str) -> str:
        self.loads += 1
        await asyncio.sleep(LOAD)
        return model_id

    async def __call__(self) -> tuple[str, bool]:
        """Name of the replica, and whether this request waited for a load."""
        began = time.monotonic()
        await self.load(serve.get_multiplexed_model_id())
        waited = time.monotonic() - began > LOAD / 10
        await asyncio.sleep(WORK)
        return serve.get_replica_context().replica_id.unique_id, waited

    async def count(self) -> int:
        """Loads since it started."""
        return self.loads

    async def die(self) -> None:
        """End as a process that crashes."""
        os._exit(1)


def app(*, ours: bool, replicas: int, **options: object) -> serve.Application:
    """The same deployment under Ray's router or ours."""
    router = (
        RequestRouterConfig(
            request_router_class=OURS,
            request_router_kwargs={"max_models": MODELS, "load_seconds": LOAD, **options},
        )
        if ours
        else RequestRouterConfig()
    )
    made = serve.deployment(
        Replica,
        name="ours" if ours else "rays",
        num_replicas=replicas,
        max_ongoing_requests=16,
        ray_actor_options={"num_cpus": 0.01},
        request_router_config=router,
        health_check_period_s=1.0,
        graceful_shutdown_timeout_s=1.0,
    )
    return made.bind()
