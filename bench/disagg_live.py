"""Prefill on one pod and decode on another through a real Envoy: loads per request, who decodes where, pods that die.

    python -m bench.disagg_live [--requests 600] [--rate 20] [--at-once 0] [--pods 6] [--adapters 30]
                                  [--each-first] [--slots 8] [--kills 4] [--json]

Four runs, each on a new stack of emulated pods with the same requests in the same order: pods that do both; half of
them prefill, pairs chosen jointly; the same, chosen independently; the first pairs again while pods that decode are
killed and come back. Loads are those that the pods themselves count. `late` are adapters that began to come to a pod
that decodes only when the prefill was over, by the picker's word; `cold` requests that had to wait there for a load,
by the pods'. `evicted` are adapters that left their slot while a request for them waited for its KV or its seat there,
by the pods' word. `lost` are requests that got no answer; `there` those that were in flight at the killed pods when
they were killed, by Envoy's count; `elsewhere` those of the lost that were not.
"""

import argparse
import asyncio
import json
import os
import random
import re
import signal
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import aiohttp
import msgspec
from prometheus_client.parser import text_string_to_metric_families

from lorapick.live.envoy.counters import admin_get
from lorapick.live.processes import becomes_true
from lorapick.model.pods import PodLimits, Role
from lorapick.testing.stack import Stack, StackOptions

AWAY = 1.0
"""Seconds for which a killed pod is away."""
PATIENCE = 60.0
"""Seconds after which a request without an answer counts as lost."""
RESTART = 30.0
"""Seconds within which a picker that its watchdog started anew answers again."""
_SERVED = re.compile(rb"lorapick/([^/\"]*)/([^/\"]*)/([^/\"]*)")
"""What an emulated pod says of an answer: who gave it, under which adapter, and where that came from."""

_PICKERS = {
    "lorapick_late_loads_total": "late",
    "lorapick_arrivals_total": "arrivals",
    "lorapick_requests_total": "left",
    "lorapick_fallbacks_total": "fallbacks",
    "lorapick_reserved_lost_total": "unreserved",
}
"""Counters of the picker's page, by what they are called here."""


class Sizes(msgspec.Struct, frozen=True, kw_only=True):
    """How large a run is."""

    requests: int = 600
    rate: float = 20.0
    """Per second."""
    at_once: int = 0
    """Requests in flight, the next one sent when one has ended, whatever the rate; 0: by rate."""
    pods: int = 6
    """On each side."""
    adapters: int = 30
    each_first: bool = False
    """Whether each adapter is asked for once before any is again; it is by chance alone (Zipf 1.0) otherwise."""
    slots: int = 8
    """Of each pod."""
    words: int = 1200
    """Of a prompt."""
    tokens: int = 40
    """Of an answer."""
    skew: float = 1.0
    """Of Zipf's law, by which adapters are asked for; 0: all alike."""
    kills: int = 4
    seed: int = 1


class Kill(NamedTuple):
    """A pod that was killed."""

    pod: str
    at: float
    """On the clock of this process."""
    there: int
    """Requests in flight there at that moment, by Envoy's count."""


class Lost(NamedTuple):
    """A request that got no answer."""

    pod: str
    """Which began to answer; empty: none did."""
    began: float
    ended: float


class Answer(NamedTuple):
    """A whole answer, as its client saw it."""

    number: int
    """Of the request, in the order in which they were sent."""
    pod: str
    split: bool
    """Another pod prefilled it."""
    cold: bool
    """The adapter had still to come to the pod when it had the prompt, or its KV."""


class Outcome(msgspec.Struct, kw_only=True):
    """What one run came to."""

    name: str
    answered: int = 0
    arrivals: int = 0
    """Requests that came to the picker, by its word."""
    left: int = 0
    """Of these, those that it has seen end, in whatever way."""
    loads: int = 0
    late: int = 0
    evicted: int = 0
    """Adapters that left a slot on a pod that decodes while a request for them was there that another one prefilled, by
    the pods' word."""
    unreserved: int = 0
    """Reserved slots that were lost, by the picker's word."""
    overdue: int = 0
    """Prefills that nobody said the end of."""
    fallbacks: int = 0
    """Requests that a fallback answered, by the picker's word."""
    split: int = 0
    local: int = 0
    """Prefills that the pod that decodes did although another one was named."""
    foreign: int = 0
    """Handovers refused since the KV was of another adapter, and answers under another one than asked for."""
    not_decoding: int = 0
    """Answers of pods that only prefill."""
    p95: float = 0.0
    """Seconds."""
    restarted: bool = False
    """Whether the picker was started anew meanwhile, as its watchdog does on a machine that is too slow: then its own
    counts (arrivals, left, late, split) are those since then, and what it had reserved is forgotten."""
    answers: list[Answer] = []
    kills: list[Kill] = []
    losses: list[Lost] = []

    @property
    def cold(self) -> int:
        """Answers of pods to which the adapter had still to come when they had the prompt, or its KV."""
        return sum(answer.cold for answer in self.answers)

    @property
    def begun(self) -> int:
        """Lost requests whose answer had begun, so that nobody else could give it."""
        return sum(bool(lost.pod) for lost in self.losses)

    @property
    def lost(self) -> int:
        """Requests without an answer."""
        return len(self.losses)

    @property
    def there(self) -> int:
        """Requests in flight at killed pods."""
        return sum(kill.there for kill in self.kills)

    @property
    def loads_per_request(self) -> float:
        """Of those answered."""
        return self.loads / self.answered if self.answered else 0.0

    @property
    def elsewhere(self) -> int:
        """Lost requests that no kill accounts for: each may cost those in flight there, and no others."""
        left = list(self.losses)
        for kill in self.kills:
            struck = [lost for lost in left if lost.began <= kill.at <= lost.ended and lost.pod in ("", kill.pod)]
            for lost in struck[: kill.there]:
                left.remove(lost)
        return len(left)


RUNS: dict[str, dict[str, Any]] = {
    "pods that do both": {"roles": False},
    "pairs, jointly": {"roles": True},
    "pairs, independently": {"roles": True, "choice": "independent"},
    "pairs, pods killed": {"roles": True, "kills": True},
}


async def play(*names: str, sizes: Sizes) -> list[Outcome]:
    """Runs, one after the other on one stack, whose pods are those of the first."""
    how = RUNS[names[0]]
    options = StackOptions(
        pods=2 * sizes.pods,
        prefill=sizes.pods if how["roles"] else 0,
        adapters=sizes.adapters,
        policy="cost",
        limits=PodLimits(max_loras=sizes.slots),
        observe="bodies",
        restart_pods=AWAY,
        pod_arguments=("--max-model-len", "131072"),
        configuration={"disaggregation": {"choice": how.get("choice", "joint"), "uncached_tokens": 200}},
    )
    patience = aiohttp.ClientTimeout(total=PATIENCE)
    async with Stack(options) as stack, aiohttp.ClientSession(timeout=patience) as session:
        found = []
        for name in names:
            run = _Run(stack, session, sizes=sizes, outcome=Outcome(name=name))
            await run.all(kills=sizes.kills if RUNS[name].get("kills") else 0)
            found.append(run.outcome)
        return found


class _AtPod(NamedTuple):
    in_flight: int
    sent: int
    """Since Envoy's start."""


class _Run:
    def __init__(self, stack: Stack, session: aiohttp.ClientSession, *, sizes: Sizes, outcome: Outcome) -> None:
        self.stack, self.session, self.sizes, self.outcome = stack, session, sizes, outcome
        self._latencies: list[float] = []
        self._chance = random.Random(sizes.seed)
        self._counted: Counter[str] = Counter()
        self._began = 0.0
        self._prefilling = [pod.name for pod in stack.pods if pod.role is Role.PREFILL]

    async def all(self, *, kills: int) -> None:
        sizes = self.sizes
        before, began = await self._counts(), await self._picker_began()
        names = self._names()
        deaths = {round(sizes.requests * (number + 1) / (kills + 1)) for number in range(kills)}
        seats = asyncio.Semaphore(sizes.at_once or sizes.requests)
        asked = []
        for number, name in enumerate(names):
            await seats.acquire()
            asked.append(asyncio.create_task(self._ask(number, name)))
            asked[-1].add_done_callback(lambda _: seats.release())
            if number in deaths:
                asked.append(asyncio.create_task(self._kill()))
            if not sizes.at_once:
                await asyncio.sleep(self._chance.expovariate(sizes.rate))
        await asyncio.gather(*asked)
        if not await becomes_true(self._at_rest, within=RESTART):
            raise RuntimeError("requests have ended that the picker still counts in flight, or keeps a slot for")
        self._conclude(before, await self._counts())
        self.outcome.restarted = await self._picker_began() != began

    def _names(self) -> list[str]:
        """Of the adapters that are asked for, in order."""
        sizes = self.sizes
        known = [f"adapter-{number:03d}" for number in range(sizes.adapters)]
        first = self._chance.sample(known, k=len(known)) if sizes.each_first else []
        weights = [(number + 1) ** -sizes.skew for number in range(sizes.adapters)]
        return first + self._chance.choices(known, weights, k=sizes.requests - len(first))

    def _conclude(self, before: Counter[str], after: Counter[str]) -> None:
        outcome, grown = self.outcome, Counter({key: after[key] - before[key] for key in after})
        grown += self._counted
        outcome.loads = int(grown["loads"])
        outcome.local = int(grown["local"])
        outcome.foreign += int(grown["mismatch"])
        outcome.arrivals, outcome.left = int(grown["arrivals"]), int(grown["left"])
        outcome.late, outcome.split = int(grown["late"]), int(grown["split"])
        outcome.evicted, outcome.unreserved = int(grown["evicted"]), int(grown["unreserved"])
        outcome.overdue, outcome.fallbacks = int(grown["overdue"]), int(grown["fallbacks"])
        ranked = sorted(self._latencies)
        outcome.p95 = ranked[int(0.95 * len(ranked))] if ranked else 0.0

    async def _ask(self, number: int, adapter: str) -> None:
        outcome, words = self.outcome, "of whales and ships " * (self.sizes.words // 4)
        prompt = f"{outcome.name} {number} {words}"
        body = {"model": adapter, "prompt": prompt, "max_tokens": self.sizes.tokens, "stream": number % 2 == 0}
        began, whole, pod, prefiller, content = time.monotonic(), False, "", "", b""
        try:
            async with self.session.post(self.stack.endpoint + "/v1/completions", json=body) as answer:
                pod = answer.headers.get("x-lorapick-pod", "")
                prefiller = answer.headers.get("x-lorapick-prefiller", "")
                content = await answer.read()
                whole = answer.status == 200 and (not body["stream"] or b"[DONE]" in content)
        except (aiohttp.ClientError, TimeoutError):
            pass
        if not whole:
            outcome.losses.append(Lost(pod, began, time.monotonic()))
            return
        outcome.answered += 1
        self._latencies.append(time.monotonic() - began)
        served_by, under, came_from = (each.decode() for each in _SERVED.findall(content)[-1])
        outcome.not_decoding += served_by in self._prefilling
        outcome.foreign += under != adapter
        outcome.answers.append(Answer(number, served_by, bool(prefiller), came_from != "hit"))

    async def _kill(self) -> None:
        """One of the pods that decode. It is stopped first, so that what is in flight there can be counted."""
        number = self._chance.randrange(self.sizes.pods, 2 * self.sizes.pods)
        pod = self.stack.pods[number]
        pid = self.stack.pod_pids[number]
        if pid is None:
            return  # it is away since the last time
        self._counted += await self._pod_counts(pod.address)  # what it has counted dies with it
        os.kill(pid, signal.SIGSTOP)
        before = await self._at_pod(pod.address)
        at = time.monotonic()
        self.stack.kill_pod(number)
        came = (await self._at_pod(pod.address)).sent - before.sent  # between counting and killing
        self.outcome.kills.append(Kill(pod.name, at, before.in_flight + came))

    async def _at_pod(self, address: str) -> _AtPod:
        """What Envoy has sent to a pod."""
        status, page = await admin_get(self.stack.envoy_admin, "/clusters?format=json")
        if status != 200:
            raise RuntimeError("Envoy does not say what is in flight where")
        for cluster in json.loads(page)["cluster_statuses"]:
            for host in cluster.get("host_statuses", ()):
                at = host["address"].get("socket_address", {})
                if f"{at.get('address')}:{at.get('port_value')}" == address:
                    counts = {row["name"]: int(row.get("value", 0)) for row in host["stats"] if "name" in row}
                    return _AtPod(counts.get("rq_active", 0), counts.get("rq_total", 0))
        raise RuntimeError(f"Envoy knows no pod at {address}")

    async def _at_rest(self) -> bool:
        fleet = await self._fleet()
        pods = [] if fleet is None else fleet["pods"]
        busy = any(pod["reserved"] or pod["prefill_tokens"] or pod["in_flight"] for pod in pods)
        return fleet is not None and not busy

    async def _fleet(self) -> dict[str, Any] | None:
        """What the picker says; None: it is being started anew."""
        try:
            async with self.session.get(self.stack.admin + "/v1/fleet") as answer:
                return await answer.json() if answer.status == 200 else None
        except (aiohttp.ClientError, TimeoutError):
            return None

    async def _picker_began(self) -> float:
        """When the picker's process began, by its own word; waits for one that is being started."""
        if not await becomes_true(self._answers, within=RESTART):
            raise RuntimeError(f"the picker has not answered for {RESTART:g} s")
        return self._began

    async def _answers(self) -> bool:
        fleet = await self._fleet()
        self._began = 0.0 if fleet is None else float(fleet["started_at"])
        return fleet is not None

    async def _counts(self) -> Counter[str]:
        found: Counter[str] = Counter()
        for pod in self.stack.pods:
            found += await self._pod_counts(pod.address)
        await self._picker_began()  # so that it answers
        for sample in await self._samples(self.stack.metrics):
            if sample.name in _PICKERS:
                found[_PICKERS[sample.name]] += sample.value
            elif sample.name == "lorapick_splits_total" and sample.labels["result"] == "split":
                found["split"] += sample.value
            elif sample.name == "lorapick_prefills_failed_total" and sample.labels["why"] == "overdue":
                found["overdue"] += sample.value
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
            elif sample.name == "lorapick_pod_awaited_evictions_total":
                found["evicted"] += sample.value
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
        how: dict[str, Any] = {"action": "store_true"} if default is False else {"type": type(default)}
        parser.add_argument(f"--{name.replace('_', '-')}", default=default, **how)
    parser.add_argument("--json", action="store_true")
    given = vars(parser.parse_args(arguments))
    as_json = given.pop("json")
    found = [outcome for name in RUNS for outcome in asyncio.run(play(name, sizes=Sizes(**given)))]
    if as_json:
        print(json.dumps(figures(found), indent=1))
        return
    print("\n".join(table(found)))
    restarted = [outcome.name for outcome in found if outcome.restarted]
    if restarted:
        print(f"the picker was started anew in: {', '.join(restarted)}; figures of these runs say nothing")


def figures(found: Sequence[Outcome]) -> dict[str, Any]:
    """What `bench.run` shows beside its aims, and all counts of all runs."""
    by_name = {each.name: each for each in found}
    both, pairs = by_name["pods that do both"], by_name["pairs, jointly"]
    return {
        "loads_against_both": pairs.loads_per_request / both.loads_per_request,
        "late": pairs.late,
        "late_independently": by_name["pairs, independently"].late,
        **{name: sum(getattr(each, name) for each in found) for name in ("not_decoding", "foreign", "elsewhere")},
        "runs": {each.name: figures_of(each) for each in found},
    }


def figures_of(outcome: Outcome) -> dict[str, Any]:
    """All counts of a run."""
    counts = msgspec.to_builtins(outcome)
    del counts["answers"], counts["kills"], counts["losses"], counts["name"]
    derived = ("cold", "lost", "begun", "there", "elsewhere", "loads_per_request")
    return counts | {name: getattr(outcome, name) for name in derived}


def table(found: Sequence[Outcome]) -> list[str]:
    """Lines of text, a line per run."""
    names = ("answered", "lost", "there", "elsewhere", "split", "loads", "late", "cold", "evicted", "local", "foreign")
    lines = [f"{'':22}" + "".join(f"{name:>10}" for name in names) + "  per request      P95"]
    for each in found:
        counts = "".join(f"{getattr(each, name):10}" for name in names)
        lines.append(f"{each.name:22}{counts}{each.loads_per_request:13.3f}{each.p95:7.2f} s")
    return lines


if __name__ == "__main__":
    main()
