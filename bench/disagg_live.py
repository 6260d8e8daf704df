"""Prefill on one pod and decode on another through a real Envoy: loads per request, who decodes where, pods that die.

    python -m bench.disagg_live [--requests 600] [--rate 20] [--pods 6] [--adapters 30] [--slots 8]
                                  [--kills 4] [--json]

Four runs, each on a new stack of emulated pods with the same requests in the same order: pods that do both; half of
them prefill, pairs chosen jointly; the same, chosen independently; the first pairs again while pods that decode are
killed and come back. Loads are those that the pods themselves count. `late` are adapters that began to come to a pod
that decodes only when the prefill was over. `lost` are requests that got no answer; `there` those that were in flight
at the killed pods at that moment, by the picker's word.
"""

import argparse
import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import aiohttp
import msgspec
from prometheus_client.parser import text_string_to_metric_families

from lorapick.model.pods import PodLimits
from lorapick.testing.stack import Stack, StackOptions

WORDS = 1200
"""Of a prompt."""
TOKENS = 40
"""Of an answer."""
AWAY = 1.0
"""Seconds for which a killed pod is away."""


class Sizes(msgspec.Struct, frozen=True, kw_only=True):
    """How large a run is."""

    requests: int = 600
    rate: float = 20.0
    """Per second."""
    pods: int = 6
    """On each side."""
    adapters: int = 30
    slots: int = 8
    """Of each pod."""
    kills: int = 4
    seed: int = 1


class Outcome(msgspec.Struct, kw_only=True):
    """What one run came to."""

    name: str
    answered: int = 0
    lost: int = 0
    there: int = 0
    loads: int = 0
    late: int = 0
    split: int = 0
    local: int = 0
    """Prefills that the pod that decodes did although another one was named."""
    foreign: int = 0
    """Handovers refused since the KV was of another adapter."""
    not_decoding: int = 0
    """Answers of pods that only prefill."""
    p95: float = 0.0
    """Seconds."""

    @property
    def loads_per_request(self) -> float:
        """Of those answered."""
        return self.loads / self.answered if self.answered else 0.0


RUNS: dict[str, dict[str, Any]] = {
    "pods that do both": {"roles": False},
    "pairs, jointly": {"roles": True},
    "pairs, independently": {"roles": True, "choice": "independent"},
    "pairs, pods killed": {"roles": True, "kills": True},
}


async def play(name: str, sizes: Sizes) -> Outcome:
    """One run."""
    how = RUNS[name]
    options = StackOptions(
        pods=2 * sizes.pods,
        prefill=sizes.pods if how["roles"] else 0,
        adapters=sizes.adapters,
        policy="cost",
        limits=PodLimits(max_loras=sizes.slots),
        observe="bodies",
        restart_pods=AWAY,
        configuration={"disaggregation": {"choice": how.get("choice", "joint"), "uncached_tokens": 200}},
    )
    async with Stack(options) as stack, aiohttp.ClientSession() as session:
        run = _Run(stack, session, sizes=sizes, outcome=Outcome(name=name))
        await run.all(kills=sizes.kills if how.get("kills") else 0)
        return run.outcome


class _Run:
    def __init__(self, stack: Stack, session: aiohttp.ClientSession, *, sizes: Sizes, outcome: Outcome) -> None:
        self.stack, self.session, self.sizes, self.outcome = stack, session, sizes, outcome
        self._latencies: list[float] = []
        self._chance = random.Random(sizes.seed)
        self._counted: Counter[str] = Counter()

    async def all(self, *, kills: int) -> None:
        sizes = self.sizes
        before = await self._counts()
        weights = [1.0 / (number + 1) for number in range(sizes.adapters)]
        names = self._chance.choices([f"adapter-{n:03d}" for n in range(sizes.adapters)], weights, k=sizes.requests)
        killer = asyncio.create_task(self._kill(kills)) if kills else None
        asked = []
        for number, name in enumerate(names):
            asked.append(asyncio.create_task(self._ask(number, name)))
            await asyncio.sleep(self._chance.expovariate(sizes.rate))
        await asyncio.gather(*asked)
        if killer is not None:
            await killer
        self._conclude(before, await self._counts())

    def _conclude(self, before: Counter[str], after: Counter[str]) -> None:
        outcome, grown = self.outcome, Counter({key: after[key] - before[key] for key in after})
        grown += self._counted
        outcome.loads = int(grown["loads"])
        outcome.local, outcome.foreign = int(grown["local"]), int(grown["mismatch"])
        outcome.late, outcome.split = int(grown["late"]), int(grown["split"])
        ranked = sorted(self._latencies)
        outcome.p95 = ranked[int(0.95 * len(ranked))] if ranked else 0.0

    async def _ask(self, number: int, adapter: str) -> None:
        body = {"model": adapter, "prompt": f"{number} " + "of whales and ships " * (WORDS // 4), "max_tokens": TOKENS}
        began = time.monotonic()
        try:
            async with self.session.post(
                self.stack.endpoint + "/v1/completions", json={**body, "stream": number % 2 == 0}
            ) as answer:
                content = await answer.read()
                whole = answer.status == 200 and (number % 2 or b"[DONE]" in content)
                pod = answer.headers.get("x-lorapick-pod", "")
        except aiohttp.ClientError:
            whole, pod = False, ""
        if not whole:
            self.outcome.lost += 1
            return
        self.outcome.answered += 1
        self.outcome.not_decoding += pod in self._prefilling()
        self._latencies.append(time.monotonic() - began)

    def _prefilling(self) -> Sequence[str]:
        return [pod.name for pod in self.stack.pods if pod.role.value == "prefill"]

    async def _kill(self, kills: int) -> None:
        """Pods that decode, one after the other, spread over the run."""
        first = self.sizes.pods
        pause = self.sizes.requests / self.sizes.rate / (kills + 1)
        for _ in range(kills):
            await asyncio.sleep(pause)
            number = self._chance.randrange(first, 2 * first)
            pod = self.stack.pods[number]
            self._counted += await self._pod_counts(pod.address)  # what it has counted dies with it
            self.outcome.there += await self._in_flight(pod.name)
            self.stack.kill_pod(number)

    async def _in_flight(self, name: str) -> int:
        async with self.session.get(self.stack.admin + "/v1/fleet") as answer:
            fleet = await answer.json()
        return next(int(pod["in_flight"]) for pod in fleet["pods"] if pod["name"] == name)

    async def _counts(self) -> Counter[str]:
        found: Counter[str] = Counter()
        for pod in self.stack.pods:
            found += await self._pod_counts(pod.address)
        for sample in await self._samples(self.stack.metrics):
            if sample.name == "lorapick_late_loads_total":
                found["late"] += sample.value
            elif sample.name == "lorapick_splits_total" and sample.labels["result"] == "split":
                found["split"] += sample.value
        return found

    async def _pod_counts(self, address: str) -> Counter[str]:
        found: Counter[str] = Counter()
        try:
            samples = await self._samples(f"http://{address}/metrics")
        except aiohttp.ClientError:
            return found  # it is away
        for sample in samples:
            if sample.name == "lorapick_pod_loads_total":
                found["loads"] += sample.value
            elif sample.name == "lorapick_pod_local_prefills_total":
                found["local"] += sample.value
                found["mismatch"] += sample.value if sample.labels["reason"] == "kv_mismatch" else 0.0
        return found

    async def _samples(self, url: str) -> list[Any]:
        async with self.session.get(url) as answer:
            page = await answer.text()
        return [sample for family in text_string_to_metric_families(page) for sample in family.samples]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run all and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in msgspec.to_builtins(Sizes()).items():
        parser.add_argument(f"--{name}", type=type(default), default=default)
    parser.add_argument("--json", action="store_true")
    given = vars(parser.parse_args(arguments))
    as_json = given.pop("json")
    found = [asyncio.run(play(name, Sizes(**given))) for name in RUNS]
    if as_json:
        print(json.dumps([msgspec.to_builtins(each) for each in found], indent=2))
        return
    print(f"{'':22} answered  lost  there  split  loads  per request  late  local  foreign  P95")
    for each in found:
        print(
            f"{each.name:22} {each.answered:8} {each.lost:5} {each.there:6} {each.split:6} {each.loads:6} "
            f"{each.loads_per_request:12.3f} {each.late:5} {each.local:6} {each.foreign:8} {each.p95:5.2f} s"
        )


if __name__ == "__main__":
    main()
