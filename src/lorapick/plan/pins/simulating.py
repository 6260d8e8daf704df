"""What the fleet does with the requests of the sample: today, with lorapick's policy, and with pins.

In: a sample, a fleet, pins. Out: measures of each case; same requests, same seed. Not here: which pins (see `advise`).

The sample is played as it was recorded, from its first request to its last, after a quiet lead in which pins are
loaded; its first tenth is played and not counted, since slots are empty at the begin. Prompts share no prefixes: logs
do not tell them. Every case has the picker's defaults but for its policy.
"""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from lorapick.model.adapters import Adapter, PinSpec
from lorapick.model.pods import Pod
from lorapick.model.settings import Settings
from lorapick.model.units import AdapterName, Ratio, Seconds
from lorapick.plan.logs.values import LogSample
from lorapick.plan.pins.values import PinFleet, PinOptions
from lorapick.plan.spreading import Progress, spread
from lorapick.pod.values import PodConfig
from lorapick.sim.arrivals import Arrival
from lorapick.sim.build import pod_config, settings_of, specs_of
from lorapick.sim.conservation import check
from lorapick.sim.hardware import PRESETS
from lorapick.sim.measures import Measures
from lorapick.sim.run import Measuring, rare_collections
from lorapick.sim.sampling import Sampler
from lorapick.sim.scenario import LLM_D_INTERVALS, AdapterPlan, FleetPlan, RunPlan, Scenario
from lorapick.sim.setup import Setup
from lorapick.sim.tally import Tally
from lorapick.sim.workload.spec import Workload
from lorapick.sim.world import World

LEAD: Seconds = 60.0
"""Before the first request, for each `LOADS` pins of the pod that has most."""
LOADS = 25
"""Pins that a pod surely loads in that time: its budget is 30 loads a minute."""
WARM_UP: Ratio = 0.1
RANK = 16
"""Of adapters whose rank nobody told."""
FEW = 2000
"""Requests up to which further processes take longer than they save."""
_WINDOWS = 20
_MODEL_LEN = 8192
"""The simulator's own; more where the sample has longer requests."""


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One way to serve the sample."""

    name: str
    policy: str
    pins: Mapping[AdapterName, PinSpec]


class _Task(msgspec.Struct, frozen=True, kw_only=True):
    case: Case
    fleet: PinFleet
    sample: LogSample
    options: PinOptions
    lead: Seconds


def play(
    cases: Sequence[Case],
    sample: LogSample,
    *,
    fleet: PinFleet,
    options: PinOptions,
    progress: Progress | None = None,
) -> tuple[Measures, ...]:
    """Play the sample in each case, in parallel where that pays.

    Raises:
        ValueError: see `check_fleet`.
    """
    check_fleet(fleet, options)
    lead = LEAD * max(-(-_most_pins(case, fleet) // LOADS) for case in cases)
    tasks = [_Task(case=case, fleet=fleet, sample=sample, options=options, lead=max(lead, LEAD)) for case in cases]
    few = len(cases) * len(sample.arrivals) <= FEW
    return spread(_play, tasks, workers=1 if few else None, progress=progress)


def check_fleet(fleet: PinFleet, options: PinOptions) -> None:
    """Refuse what cannot be played, before anything long begins.

    Raises:
        ValueError: pods whose slots leave no memory for requests.
    """
    hardware = PRESETS[options.hardware]
    rank = max(_ranks([each.name for each in fleet.declared], fleet))
    slots = max(pod.limits.max_loras for pod in fleet.pods)
    if hardware.kv_blocks(slots, rank) <= 0:
        raise ValueError(
            f"{slots} slots of rank {rank} leave no memory for requests on {hardware.name}: take fewer (--slots), or "
            "other hardware (--hardware)"
        )


def _most_pins(case: Case, fleet: PinFleet) -> int:
    """About as many as the pod with most of them has."""
    copies = sum(pin.replicas or len(pin.pods) or len(fleet.pods) for pin in case.pins.values())
    return max([-(-copies // len(fleet.pods)), *(_on(pod.name, case) for pod in fleet.pods)])


def _on(pod: str, case: Case) -> int:
    return sum(pod in pin.pods for pin in case.pins.values())


def _play(task: _Task, progress: Progress) -> Measures:
    arrivals = list(recorded(task.sample, task.options, lead=task.lead))
    first, last = arrivals[0].t, arrivals[-1].t
    end = last + max(1.0, 0.01 * (last - first))
    start = first + WARM_UP * (last - first)
    window = max((end - start) / _WINDOWS, 1e-3)
    tally = Tally(start=start, window=window)
    world = _world(task, arrivals, tally=tally, length=end)
    sampler = Sampler(world, tally, start=start, end=end, window=window)
    sampler.progress = progress
    with rare_collections():
        world.run(arrivals, until=end)
    check(world, tally)
    return Measuring(tally, sampler, pods=len(world.pods)).stretch(start, end)


def recorded(sample: LogSample, options: PinOptions, *, lead: Seconds) -> Iterator[Arrival]:
    """Arrivals as they were recorded; the first one comes after `lead`."""
    first = sample.arrivals[0].at
    for number, each in enumerate(sample.arrivals):
        prompt = each.prompt_tokens if each.prompt_tokens is not None else options.prompt
        output = each.output_tokens if each.output_tokens is not None else options.output
        yield Arrival(
            t=lead + each.at - first,
            id=f"log-{number}",
            adapter=each.adapter,
            prompt_tokens=max(prompt, 1),
            output_tokens=max(output, 1),
        )


def _world(task: _Task, arrivals: Sequence[Arrival], *, tally: Tally, length: Seconds) -> World:
    case, fleet = task.case, task.fleet
    longest = max(each.prompt_tokens + each.output_tokens for each in arrivals)
    names = dict.fromkeys([each.adapter for each in arrivals if each.adapter is not None])
    names |= dict.fromkeys(case.pins)
    scenario = _scenario(task, tuple(names), longest=longest, length=length)
    setup = Setup(
        settings=settings_of(scenario, case.policy),
        pods=[(pod, _config(scenario, pod)) for pod in fleet.pods],
        adapters=specs_of(scenario),
    )
    return World(setup, observer=tally, seed=task.options.seed)


def _scenario(task: _Task, names: tuple[AdapterName, ...], *, longest: int, length: Seconds) -> Scenario:
    case, fleet = task.case, task.fleet
    base = {each.name: each.base_model for each in fleet.declared}
    return Scenario(
        name="pins",
        title=case.name,
        source="request logs",
        assumes=(),
        fleet=FleetPlan(
            pods=len(fleet.pods),
            limits=fleet.pods[0].limits,
            hardware=task.options.hardware,
            max_model_len=max(_MODEL_LEN, longest),
        ),
        adapters=AdapterPlan(names=names, ranks=_ranks(names, fleet)),
        workload=Workload(),
        settings=Settings(
            base_model=fleet.base_model,
            adapters=tuple(
                Adapter(name=name, base_model=base.get(name), declared=True, pin=case.pins.get(name)) for name in names
            ),
        ),
        run=RunPlan(length=length, window=length, seed=task.options.seed),
        scrape_intervals=LLM_D_INTERVALS,
    )


def _ranks(names: Sequence[AdapterName], fleet: PinFleet) -> tuple[int, ...]:
    """Of these adapters; of one at least."""
    told = {each.name: each.rank for each in fleet.declared}
    most = min(RANK, *(pod.limits.max_lora_rank for pod in fleet.pods))
    return tuple(told.get(name) or most for name in names) or (most,)


def _config(scenario: Scenario, pod: Pod) -> PodConfig:
    fleet = msgspec.structs.replace(scenario.fleet, limits=pod.limits, engine=pod.engine)
    return pod_config(msgspec.structs.replace(scenario, fleet=fleet))
