"""One workload played twice, by the whole installation in real time and by the simulator, and what both decided.

Both tell their story as an event log, so that one reader serves both. docs/replay.md says what the measures mean.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import takewhile
from pathlib import Path
from random import Random
from statistics import fmean

import aiohttp
import msgspec

from lorapick.core.picking.policies import POLICIES
from lorapick.live.podserver.options import adapter_spec
from lorapick.live.podserver.prompts import Prompt
from lorapick.live.traffic import Arrival, Mix, Record, body_of, drive_arrivals, schedule
from lorapick.model.pods import Pod, PodLimits
from lorapick.model.settings import Settings
from lorapick.plan.datafiles import open_lines
from lorapick.pod.values import PodConfig
from lorapick.sim.arrivals import Arrival as SimulatedArrival
from lorapick.sim.histogram import Histogram
from lorapick.sim.tally import Tally
from lorapick.sim.world import Setup, World
from lorapick.testing.stack import Stack, StackOptions
from lorapick.wire.config import parse_settings
from lorapick.wire.eventlog import Decided, Dispatched, LineEncoder, LogReader, Step, header_of

PREFIX = "twin-"
"""Of the request ids that count; the stack sends a request of its own when it starts."""
WARM_UP = 3.0
"""Seconds before the first request of the workload, in which pods are scraped a few times and are idle."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Workload and fleet."""

    seconds: float = 60.0
    rate: float = 25.0
    pods: int = 8
    adapters: int = 64
    zipf: float = 0.0
    """All alike: else the load of pods is a matter of where the popular ones happen to be at home."""
    limits: PodLimits = PodLimits(max_loras=2)
    policy: str = "weighted"
    seed: int = 1

    @property
    def options(self) -> StackOptions:
        return StackOptions(
            pods=self.pods,
            adapters=self.adapters,
            policy=self.policy,
            mode="inline",
            limits=self.limits,
            seed=self.seed,
            event_log=True,
        )

    def arrivals(self) -> list[Arrival]:
        mix = Mix(adapters=self.options.adapter_names, zipf=self.zipf)
        due = takewhile(lambda each: each.at < self.seconds, schedule(mix, rate=self.rate, seed=self.seed))
        return [msgspec.structs.replace(each, id=f"{PREFIX}{each.number}") for each in due]


class Decisions:
    """What one world decided, by its event log."""

    def __init__(self, steps: Iterable[Step]) -> None:
        self.pods: dict[str, str] = {}
        """Request to the pod it was sent to."""
        self.tiers: Counter[str] = Counter()
        """Dispatches by the tier in which the adapter was believed to be."""
        self.heard: dict[str, float] = {}
        """Request to when the picker heard of it, on the log's clock."""
        for step in steps:
            request = getattr(step.event, "request", None)
            if request is not None and request.id.startswith(PREFIX):
                self.heard[request.id] = step.event.t
            if isinstance(step.result, Decided):
                self._take(step.result)

    def _take(self, decided: Decided) -> None:
        for answer in decided.answers:
            if isinstance(answer, Dispatched) and answer.request_id.startswith(PREFIX):
                self.pods[answer.request_id] = answer.pod
                self.tiers[answer.tier or "base"] += 1


class Played(msgspec.Struct, frozen=True, kw_only=True):
    """One world's run."""

    decisions: Decisions
    swaps: int
    """By the pods' own count."""
    p95: float
    """Seconds."""


class Lateness(msgspec.Struct, frozen=True, kw_only=True):
    """How far real time was behind; seconds."""

    loop_p99: float
    """By which the driving process woke late."""
    heard_p95: float
    """From when a request was due to when the picker heard of it."""
    outside: float
    """Mean of what clients waited beyond what pods say they took."""


class Live(Played, frozen=True, kw_only=True):
    """The run of the whole installation."""

    lateness: Lateness
    log: Path
    settings: Settings
    pods: tuple[Pod, ...]
    records: tuple[Record, ...]
    finished: int
    """Requests that pods finished, by their own count; those before the workload included."""
    pickers: int
    """Pickers that ran: more than one when one died or hung."""


# -- in real time


async def play_live(plan: Plan, directory: Path) -> Live:
    """Start everything, send the workload, ask the pods for the truth, end everything."""
    arrivals = plan.arrivals()
    async with Stack(plan.options, run_dir=directory) as stack:
        pickers = {stack.picker_pid}
        (place,) = stack.pickers
        log, written = place.event_log, place.configuration.read_bytes()
        settings = parse_settings(written, file="lorapick.yaml", policies=POLICIES)
        await asyncio.gather(*(warm(pod) for pod in stack.pods))
        await asyncio.sleep(WARM_UP)
        began = asyncio.get_running_loop().time()
        lag: list[float] = []
        watching = asyncio.create_task(watch_loop(lag))
        results = await drive_arrivals(stack.endpoint, arrivals)
        watching.cancel()
        truths = [await truth_of(pod.address) for pod in stack.pods]
        pickers.add(stack.picker_pid)
        pods = stack.pods
    decisions = Decisions(LogReader(open_lines(log)))
    heard = [decisions.heard[each.id] - began - each.at for each in arrivals if each.id in decisions.heard]
    latencies = [record.latency for record in results.records]
    finished = sum(truth["finished"] for truth in truths)
    in_pods = sum(truth["latency"] for truth in truths) / finished
    return Live(
        decisions=decisions,
        swaps=sum(truth["swaps"] for truth in truths),
        p95=quantile(latencies, 0.95),
        lateness=Lateness(
            loop_p99=quantile(lag, 0.99),
            heard_p95=quantile(heard, 0.95),
            outside=sum(latencies) / len(latencies) - in_pods,
        ),
        log=log,
        settings=settings,
        pods=pods,
        records=results.records,
        finished=finished,
        pickers=len(pickers),
    )


async def warm(pod: Pod) -> None:
    """Ask for the base model. A process's first request takes 50 ms of CPU more than the others, eight at once a fifth
    of a second; no engine is put behind a gateway cold, and the pod model knows no such thing."""
    async with aiohttp.ClientSession() as session:
        body = {"model": pod.base_model, "prompt": "warm", "max_tokens": 1, "stream": True}
        async with session.post(f"http://{pod.address}/v1/completions", json=body) as answer:
            assert answer.status == 200
            await answer.read()


async def watch_loop(lag: list[float], *, every: float = 0.01) -> None:
    """Note how late this event loop wakes, a hundred times a second."""
    loop = asyncio.get_running_loop()
    with contextlib.suppress(asyncio.CancelledError):
        while True:
            due = loop.time() + every
            await asyncio.sleep(every)
            lag.append(loop.time() - due)


async def truth_of(address: str) -> dict:
    """What one pod has done, by its own word; `latency` is the sum of all its requests'."""
    async with aiohttp.ClientSession() as session:
        async with session.get(f"http://{address}/emulator/state") as answer:
            stats = (await answer.json())["stats"]
        async with session.get(f"http://{address}/metrics") as answer:
            page = await answer.text()
    total = next(line for line in page.splitlines() if line.startswith("vllm:e2e_request_latency_seconds_sum"))
    return {**stats, "latency": float(total.rsplit(" ", 1)[1])}


def quantile(values: Sequence[float], share: float) -> float:
    """A quantile; of nothing, infinity: a picker that heard nothing was late."""
    if not values:
        return float("inf")
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


# -- in no time


def play_simulated(plan: Plan, settings: Settings, pods: Sequence[Pod], *, worlds: int) -> list[Played]:
    """The same through the simulator, as often as told, each time with other luck: in ties, and in which pod is scraped
    when, which live is drawn too."""
    return [play_once(plan, settings, pods, seed=settings.seed + number) for number in range(worlds)]


def play_once(plan: Plan, settings: Settings, pods: Sequence[Pod], *, seed: int) -> Played:
    """One minute in no time; pods and adapters are what `lorapick pod` makes of the stack's flags."""
    config = PodConfig(limits=plan.limits)
    setup = Setup(
        settings=settings,
        pods=[(pod, config) for pod in Random(seed).sample(pods, len(pods))],
        adapters=[adapter_spec(name) for name in plan.options.adapter_names],
    )
    tally = Tally(start=0.0, window=plan.seconds)
    world = World(setup, observer=tally, seed=seed)
    encoder = LineEncoder()
    lines = [encoder.header(header_of(settings, seed=seed, epoch=0.0))]
    world.heard = lambda event, effects: lines.extend(bytes(encoder.step(event, effects)).splitlines(keepends=True))
    world.run([simulated(each, config) for each in plan.arrivals()])
    latency = Histogram().merge(window.latency for window in tally.windows)
    return Played(
        decisions=Decisions(LogReader(lines)),
        swaps=sum(window.swaps.total() for window in tally.windows),
        p95=latency.quantile(0.95),
    )


def simulated(arrival: Arrival, config: PodConfig) -> SimulatedArrival:
    """The request as a pod reads it from the body that is sent live."""
    prompt = Prompt.of_text(msgspec.json.decode(body_of(arrival))["prompt"])
    return SimulatedArrival(
        t=WARM_UP + arrival.at,
        id=arrival.id,
        adapter=arrival.adapter,
        prompt_tokens=prompt.tokens,
        output_tokens=arrival.output_tokens,
        blocks=prompt.blocks(arrival.adapter, block_size=config.block_size),
    )


# -- side by side


class Distance(msgspec.Struct, frozen=True, kw_only=True):
    """How far a run is from what is usual; shares in [0, 1]."""

    swaps: float
    """Difference of the two counts, as a share of the larger."""
    tiers: float
    """Share of dispatches that would have to find their adapter in another tier for both mixes to be equal."""
    load: float
    """Share of dispatches that would have to move for pods, ordered by how much they got, to have got equally much."""
    other_pod: float
    """Share of requests that went to another pod. Told, not judged."""


def distance(run: Played, usual: Sequence[Played]) -> Distance:
    """How far `run` is from the mean of `usual`."""
    pods = run.decisions.pods
    swaps = fmean(each.swaps for each in usual)
    elsewhere = [each.decisions.pods.get(name) != pod for each in usual for name, pod in pods.items()]
    return Distance(
        swaps=abs(run.swaps - swaps) / max(run.swaps, swaps, 1),
        tiers=to_move(run.decisions.tiers, total(each.decisions.tiers for each in usual)),
        load=to_move(ranked(pods), total(ranked(each.decisions.pods) for each in usual)),
        other_pod=sum(elsewhere) / max(1, len(elsewhere)),
    )


def total(counters: Iterable[Counter]) -> Counter:
    return sum(counters, start=Counter())


def to_move(one: Counter, two: Counter) -> float:
    """Total variation distance of two distributions."""
    keys = dict.fromkeys([*one, *two])
    all_one, all_two = max(1, one.total()), max(1, two.total())
    return sum(abs(one[key] / all_one - two[key] / all_two) for key in keys) / 2


def ranked(pods: dict[str, str]) -> Counter:
    """Requests of the pod that got most, the second, ..."""
    return Counter(dict(enumerate(sorted(Counter(pods.values()).values(), reverse=True))))
