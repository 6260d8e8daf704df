"""The `fleet:` of a scenario file.

In: nodes. Out: a `FleetPlan`. Not here: adapters and traffic (see `sim.scenario_text`, `sim.traffic_text`).
"""

import re
from typing import Any

from lorapick.core.retention.policies import RETENTIONS
from lorapick.model.pods import Engine, PodLimits, Role
from lorapick.pod.values import Kernel, Memory, Merging, SwapMode
from lorapick.sim.hardware import PRESETS
from lorapick.sim.scenario import AdapterPlan, FleetPlan, RolePlan
from lorapick.sim.scenario_readers import raw, tokens
from lorapick.wire.config.document import At
from lorapick.wire.config.pods import LIMITS
from lorapick.wire.config.readers import Reader, boolean, choice, fields, integer, label_text, list_of, record
from lorapick.wire.units import UnitError, parse_size


def _build_fleet(
    *, pods: int, slots: int, cpu_slots: int | None = None, mode: str = SwapMode.DRAIN.value, **values: Any
) -> FleetPlan:
    limits = {name: values.pop(name) for name in LIMITS if name in values}
    return FleetPlan(
        pods=pods,
        mode=SwapMode(mode),
        memory=Memory(values.pop("memory", Memory.SLOTS)),
        kernel=Kernel(values.pop("kernel", Kernel.DISTINCT)),
        merging=Merging(values.pop("merging", Merging.NEVER)),
        engine=Engine(values.pop("engine", Engine.VLLM)),
        limits=PodLimits(max_loras=slots, max_cpu_loras=max(slots, cpu_slots or slots), **limits),
        **values,
    )


def _check_fleet(at: At, fleet: FleetPlan) -> None:
    place = at.find("cpu_slots")
    if place is not None and int(place.node.value) < fleet.limits.max_loras:
        place.note(
            f"must be at least slots, which is {fleet.limits.max_loras}",
            hint="the engine's host level holds the adapters on the GPU too",
        )
    if fleet.roles:
        _check_roles(at.nearest("roles"), fleet)
    special = fleet.memory is not Memory.SLOTS or fleet.merging is not Merging.NEVER
    if special and fleet.mode is SwapMode.DRAIN:
        at.nearest("mode").note("unified memory and merged weights know no drain", hint="write mode: inline")


def _check_roles(at: At, fleet: FleetPlan) -> None:
    given = sum(each.pods for each in fleet.roles)
    if given > fleet.pods:
        at.note(f"gives roles to {given} pods, and there are {fleet.pods}", hint="more pods, or fewer with a role")
    if sum(each.pods for each in fleet.roles if each.role is Role.PREFILL) == fleet.pods:
        at.note("leaves no pod that decodes", hint="fewer pods that prefill")
    if fleet.memory is not Memory.SLOTS or fleet.merging is not Merging.NEVER:
        at.note("needs memory: slots and merging: never", hint="the variants hold no KV for other pods")


def check_memory(root: At, plan: FleetPlan, *, adapters: AdapterPlan) -> None:
    """The slots must leave memory for KV, and hold every adapter.

    Raises:
        Refused: they do not.
    """
    hardware, rank = PRESETS[plan.hardware], max(adapters.ranks)
    slots = max(plan.limits_of(each).max_loras for each in plan.all_roles())
    if plan.memory is Memory.SLOTS and hardware.kv_blocks(slots, rank) <= 0:
        most = int((hardware.kv_blocks(0, rank) * hardware.block_size - 1) / hardware.tokens_of_slot(rank))
        root.nearest("fleet", "slots").refuse(
            f"{slots} slots of rank {rank} leave no memory for KV on {hardware.name}; at most {most} do",
            hint="fewer slots, a smaller rank, or memory: unified",
        )
    if rank > plan.limits.max_lora_rank:
        root.nearest("fleet", "max_lora_rank").refuse(
            f"the pods take adapters up to rank {plan.limits.max_lora_rank}, and some have rank {rank}",
            hint=f"write max_lora_rank: {rank}",
            value="",
        )


_PER_SECOND = re.compile(r"(.+?) ?/ ?s", re.ASCII)


def _bandwidth(at: At) -> float:
    """Bytes per second: a size and `/s`."""
    match = _PER_SECOND.fullmatch(raw(at))
    try:
        size = parse_size(match.group(1)) if match is not None else 0
    except UnitError:
        size = 0
    if size <= 0:
        at.refuse("must be a size per second", hint='for example "60MB/s" or "5GB/s"')
    return float(size)


def _labels(at: At) -> dict[str, tuple[str, ...]]:
    """Labels, each with one value for all pods or several that are dealt out in turn."""
    found: dict[str, tuple[str, ...]] = {}
    for name, entry in at.entries().items():
        place = entry.value
        found[name] = (label_text(place),) if place.is_scalar else list_of(label_text, least=1)(place)
    return found


def _roles(at: At) -> tuple[RolePlan, ...]:
    """Roles, each with its number of pods, or with that and their slots."""
    readers = {"pods": integer(least=1, most=4096), "slots": LIMITS["max_loras"]}
    found = []
    for entry in at.entries().values():
        role = Role(choice(*(role.value for role in Role))(entry.key))
        place = entry.value
        values = {"pods": readers["pods"](place)} if place.is_scalar else fields(place, readers, required=("pods",))
        if "pods" in values:
            found.append(RolePlan(role=role, **values))
    return tuple(found)


fleet_plan: Reader[FleetPlan] = record(
    _build_fleet,
    {
        "pods": integer(least=1, most=4096),
        "slots": LIMITS["max_loras"],
        "cpu_slots": LIMITS["max_cpu_loras"],
        "mode": choice(*(mode.value for mode in SwapMode)),
        "hardware": choice(*PRESETS),
        "engine": choice(Engine.VLLM.value, Engine.SGLANG.value),
        "memory": choice(*(memory.value for memory in Memory)),
        "kernel": choice(*(kernel.value for kernel in Kernel)),
        "merging": choice(*(merging.value for merging in Merging)),
        "retention": choice(*RETENTIONS),
        "max_lora_rank": LIMITS["max_lora_rank"],
        "max_num_seqs": LIMITS["max_num_seqs"],
        "max_queue": LIMITS["max_queue"],
        "max_model_len": tokens,
        "prefix_caching": boolean,
        "reports_loaded": boolean,
        "storage": _bandwidth,
        "roles": _roles,
        "zones": list_of(label_text, least=1),
        "labels": _labels,
    },
    required=("pods", "slots"),
    names={"storage": "storage_bandwidth"},
    check=_check_fleet,
)
"""Reader of the section."""
