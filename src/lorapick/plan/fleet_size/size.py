"""From a demand and what to choose from to what was found.

In: a scenario, numbers of pods and slots, limits, memory. Out: a `Sized`. Not here: the search itself (see `search`),
its report (see `report`).
"""

import math

import msgspec

from lorapick.core.picking.policies import POLICIES
from lorapick.plan.fleet_size.guess import Traffic, traffic_of
from lorapick.plan.fleet_size.memory import Memory
from lorapick.plan.fleet_size.search import Found, Question, Span, search
from lorapick.plan.fleet_size.trial import Limits
from lorapick.plan.spreading import Progress
from lorapick.sim.scenario import Scenario

MOST_PODS, MOST_SEEDS = 1024, 100


class Sizing(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked."""

    scenario: Scenario
    policy: str
    pods: Span
    slots: tuple[int, ...]
    """Of each pod."""
    seeds: int
    limits: Limits
    memory: Memory
    unsaid: tuple[str, ...] = ()
    """Token counts that nobody gave, see `demand.unsaid_lengths`."""


class Sized(msgspec.Struct, frozen=True, kw_only=True):
    """What was found."""

    asked: Sizing
    traffic: Traffic
    found: tuple[Found, ...]
    """In the order of the slots, without those that cannot be."""
    refused: tuple[str, ...]
    """Why the others cannot be."""


def size(asked: Sizing, *, workers: int | None = None, progress: Progress | None = None) -> Sized:
    """Search.

    Raises:
        ValueError: a number that cannot be, or slots for which no pod has memory.
        WorkerDied: as `plan.spreading.spread`.
    """
    _check(asked)
    longest = asked.scenario.fleet.max_model_len
    refusals = {slots: asked.memory.refusal(slots, longest=longest) for slots in asked.slots}
    fit = [slots for slots, why in refusals.items() if why is None]
    refused = tuple(why for why in refusals.values() if why is not None)
    if not fit:
        raise ValueError(f"--slots: {refused[0]}")
    traffic = traffic_of(asked.scenario)
    first = asked.scenario.run.seed
    questions = [
        Question(
            scenario=asked.scenario,
            policy=asked.policy,
            slots=slots,
            kv_blocks=asked.memory.blocks(slots),
            pods=_for_pins(asked, slots),
            seeds=tuple(range(first, first + asked.seeds)),
            limits=asked.limits,
            traffic=traffic,
        )
        for slots in fit
    ]
    found = search(questions, workers=workers, progress=progress)
    return Sized(asked=asked, traffic=traffic, found=found, refused=refused)


def _check(asked: Sizing) -> None:
    if asked.policy not in POLICIES:
        raise ValueError(f"--policy {asked.policy!r}: it must be one of {', '.join(POLICIES)}")
    if not 1 <= asked.pods.least <= asked.pods.most <= MOST_PODS:
        raise ValueError(f"--pods {asked.pods.least}..{asked.pods.most}: give 1 to {MOST_PODS}, the lower one first")
    if not 1 <= asked.seeds <= MOST_SEEDS:
        raise ValueError(f"--seeds {asked.seeds}: give 1 to {MOST_SEEDS}")
    if not 0 < asked.limits.p95 < math.inf:
        raise ValueError(f"--p95 {asked.limits.p95:g} s: it must be above 0")
    if not 0 <= asked.limits.lost < 1:
        raise ValueError(f"--lost {asked.limits.lost:g}: give a share from 0 to below 100 %")
    highest = max(asked.scenario.adapters.ranks)
    if asked.memory.rank < highest:
        raise ValueError(f"--rank {asked.memory.rank}: an adapter of the demand has rank {highest}; give at least that")


def _for_pins(asked: Sizing, slots: int) -> Span:
    """Pods on which every copy of a pin has a slot: each on a pod of its own."""
    copies = [each.pin.replicas or 0 for each in asked.scenario.settings.adapters if each.pin is not None]
    least = max(asked.pods.least, *copies, math.ceil(sum(copies) / slots)) if copies else asked.pods.least
    if least > asked.pods.most:
        raise ValueError(
            f"--pods: pins have {sum(copies)} copies, up to {max(copies)} of one adapter, which takes {least} pods of "
            f"{slots} slots; at most {asked.pods.most} are allowed"
        )
    return Span(least, asked.pods.most)
