"""From a scenario to a world that plays it.

In: a scenario, a policy, a seed, an observer. Out: a `World` with its pods, and the stream of arrivals.
Not here: running it (see `sim.run`).
"""

from collections.abc import Callable, Iterator
from itertools import cycle

import msgspec

from lorapick.core.residency.engines import CACHES
from lorapick.core.retention.policies import make_retention
from lorapick.model.arms import GATEWAY, ROUND_ROBIN
from lorapick.model.pods import Pod, PodLimits
from lorapick.model.retention import Retention, RetentionFacts
from lorapick.model.settings import Settings
from lorapick.model.tiers import Tier
from lorapick.model.units import AdapterName, Bytes
from lorapick.pod.swaps import transfer_seconds
from lorapick.pod.values import AdapterSpec, Memory, MergePolicy, PodConfig, SwapCosts
from lorapick.sim.arrivals import Arrival
from lorapick.sim.failing import FailingLoads
from lorapick.sim.fleet_changes import FailLoads
from lorapick.sim.hardware import PRESETS
from lorapick.sim.kernel import Priority
from lorapick.sim.observer import Observer
from lorapick.sim.performing import Performer
from lorapick.sim.scenario import PODS_OWN, FleetPlan, Scenario
from lorapick.sim.setup import Setup
from lorapick.sim.workload.follow import Followers
from lorapick.sim.workload.stream import arrivals
from lorapick.sim.world import World


def settings_of(scenario: Scenario, policy: str) -> Settings:
    """The picker's configuration with another policy, which looks at pods as often as the scenario says it does."""
    settings = scenario.settings
    mode = settings.mode
    if mode.route in (None, GATEWAY):  # there is no gateway here; most go round
        mode = msgspec.structs.replace(mode, route=ROUND_ROBIN)
    return msgspec.structs.replace(
        settings,
        mode=mode,
        picking=msgspec.structs.replace(settings.picking, policy=policy),
        scrape=msgspec.structs.replace(settings.scrape, interval=scenario.scrape_interval(policy)),
    )


def world_of(scenario: Scenario, *, policy: str, seed: int, observer: Observer, tells_starts: bool = False) -> World:
    """A world at t = 0 in which everything that is planned is scheduled; `tells_starts`: see `Setup`.

    Raises:
        ValueError: there is no such policy.
    """
    config = pod_config(scenario)
    configs = [pod_config(scenario, limits=pod.limits) for pod in pods_of(scenario.fleet)]
    failing = FailingLoads(most=config.load_failure_share, seed=seed)
    setup = Setup(
        settings=settings_of(scenario, policy),
        pods=[*zip(pods_of(scenario.fleet), configs, strict=True)],
        adapters=specs_of(scenario),
        later=scenario.fleet.later,
        followers=_followers(scenario, seed),
        draws=failing.draws if failing.most else None,
        retention=retention_of(scenario),
        reports_loaded=scenario.fleet.reports_loaded,
        midnight=scenario.run.unix,
        tells_starts=tells_starts,
    )
    world = World(setup, observer=observer, seed=seed)
    performer = Performer(world, failing)
    for change in scenario.changes:
        world.kernel.at(change.at, performer.perform, argument=change, priority=Priority.CHANGE)
    return world


def pods_of(fleet: FleetPlan) -> list[Pod]:
    """The pods, those that come later too, with their zones and labels."""
    zones = cycle(fleet.zones or (None,))
    labels = [{key: values[at % len(values)] for key, values in fleet.labels.items()} for at in range(fleet.count)]
    return [
        Pod(
            name=name,
            address=f"sim:{number}",
            zone=zone,
            labels=own,
            engine=fleet.engine,
            limits=fleet.limits_of(plan),
            role=plan.role,
            eviction=fleet.retention or PODS_OWN,
        )
        for number, (name, plan, zone, own) in enumerate(
            zip(fleet.all_names(), fleet.all_roles(), zones, labels, strict=False), start=1
        )
    ]


def _followers(scenario: Scenario, seed: int) -> Followers | None:
    workload = scenario.workload
    return Followers(workload.follows, seed=seed, until=workload.until) if workload.follows else None


def pod_config(scenario: Scenario, *, limits: PodLimits | None = None) -> PodConfig:
    """What every pod of the scenario is; `limits`: of some of them."""
    fleet, hardware = scenario.fleet, PRESETS[scenario.fleet.hardware]
    limits = limits or fleet.limits
    slots = limits.max_loras if fleet.memory is Memory.SLOTS else 0
    blocks = hardware.kv_blocks(slots, max(scenario.adapters.ranks)) if fleet.kv_blocks is None else fleet.kv_blocks
    return PodConfig(
        limits=limits,
        mode=fleet.mode,
        step=hardware.step,
        swap=swap_costs(scenario),
        prefill_per_token=hardware.prefill_per_token,
        max_model_len=fleet.max_model_len,
        block_size=hardware.block_size,
        kv_blocks=blocks,
        kv_bytes_per_token=hardware.kv_bytes_per_token,
        memory=fleet.memory,
        kernel=fleet.kernel,
        merging=MergePolicy(mode=fleet.merging, seconds=hardware.merge),
        unload_frees=CACHES[fleet.engine].unload_frees,
        load_failure_share=max((each.share for each in scenario.changes if isinstance(each, FailLoads)), default=0.0),
    )


def swap_costs(scenario: Scenario) -> SwapCosts:
    """What loads cost on the scenario's hardware, from where its adapters lie."""
    fleet = scenario.fleet
    swap = PRESETS[fleet.hardware].swap
    if fleet.storage_bandwidth is None:
        return swap
    return msgspec.structs.replace(swap, disk_bandwidth=fleet.storage_bandwidth)


def retention_of(scenario: Scenario) -> Callable[[], Retention] | None:
    """What makes the policy that says who leaves a pod's memory; None: the pod's own LRU.

    A policy is told what an adapter's loads cost on this hardware, and what room it takes: in slots every one the same.
    """
    if scenario.fleet.retention is None:
        return None
    settings = msgspec.structs.replace(scenario.settings.retention, policy=scenario.fleet.retention)
    swap = swap_costs(scenario)
    unified = scenario.fleet.memory is Memory.UNIFIED
    fixed = swap.initialisation + swap.warm_up + (0.0 if unified else swap.deallocation)
    facts = {
        spec.name: RetentionFacts(
            room=float(spec.size) if unified else 1.0,
            from_cpu=fixed + transfer_seconds(swap, tier_from=Tier.CPU, size=spec.size),
            from_disk=fixed + transfer_seconds(swap, tier_from=Tier.DISK, size=spec.size),
        )
        for spec in specs_of(scenario)
    }
    return lambda: make_retention(settings, facts.__getitem__)


def specs_of(scenario: Scenario) -> tuple[AdapterSpec, ...]:
    """Every adapter that can be asked for, as the pods' disks have it."""
    plan = scenario.adapters
    specs = []
    for place, name in enumerate(names_of(scenario)):
        rank = plan.rank_of(place)
        size = plan.size if plan.size is not None else size_at(scenario, rank)
        specs.append(AdapterSpec(name=name, rank=rank, size=size))
    return tuple(specs)


def names_of(scenario: Scenario) -> tuple[AdapterName, ...]:
    """Their names."""
    return scenario.names()


def size_at(scenario: Scenario, rank: int) -> Bytes:
    """Bytes of an adapter of the scenario's base model."""
    return PRESETS[scenario.fleet.hardware].adapter_size * rank // 16


def arrivals_of(scenario: Scenario, seed: int) -> Iterator[Arrival]:
    """What comes; the same for every policy."""
    stream = arrivals(scenario.workload, seed=seed, open_lines=scenario.open_lines)
    if scenario.fleet.prefix_caching:
        return stream
    return (msgspec.structs.replace(each, blocks=()) if each.blocks else each for each in stream)
