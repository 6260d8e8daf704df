"""What only the doctor asks the core: sizes, memory, bounds, and traffic of the last hours.

In: the driver. Out: `Insight`, values that do not change. Not here: what is published for everybody (see
`live.publish`), what is wrong (see `core.doctor`).
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from lorapick.core.doctor.picture import LoadPicture
from lorapick.core.signals.traffic import TrafficTable
from lorapick.live.driver import Driver
from lorapick.model.disaggregation import DisaggregationSettings
from lorapick.model.settings import Settings
from lorapick.model.signals import RATE_WINDOW
from lorapick.model.tiers import Tier
from lorapick.model.units import AdapterName, PodName, Seconds, Tokens
from lorapick.wire.config.roles import useless_roles


class PodInsight(NamedTuple):
    """One pod. None: unknown."""

    cpu_slots: int | None = None
    max_rank: int | None = None
    kv_blocks: int | None = None
    block_tokens: Tokens | None = None
    drift: tuple[str, ...] = ()
    base_model: str | None = None
    served_per_second: float = 0.0
    pinned: int = 0
    unreached: int | None = None
    """How often it was named to prefill while nothing came to it."""
    prefills_fail: bool | None = None


class Insight(NamedTuple):
    """Everything, at one instant."""

    settings: Settings
    traffic: TrafficTable
    loads: tuple[LoadPicture, ...]
    """What loads took, by tier."""
    refused: Mapping[str, int]
    """Requests refused in the last minute, by reason, of the decisions that are kept."""
    pin_problems: Mapping[AdapterName, str]
    pin_missing: Seconds | None
    """For how long a pin has been missing at most, of those that are now; None: none is."""
    pods: Mapping[PodName, PodInsight]
    known_to: Mapping[AdapterName, int] | None
    """Of each declared adapter, how many pods accept its name; None: not all pods have been asked yet."""
    splits: bool = False
    """Whether requests are split."""
    roles: tuple[str, ...] = ()
    """Roles of pods that cannot work, in words."""


def insight(driver: Driver) -> Insight:
    """Look inside."""
    state, now = driver.fleet.state, driver.now()
    placement, registry = state.placement, state.residency.registry
    return Insight(
        settings=state.settings,
        traffic=state.signals.traffic.table(now),
        loads=tuple(_loads(driver)),
        refused=state.journal.refused(now - RATE_WINDOW),
        pin_problems=dict(placement.pinned.problems),
        pin_missing=max((now - since for since in placement.missing_since.values()), default=None),
        known_to={name: registry.accepting(name) for name in state.adapters} if registry.all_asked else None,
        pods={pod.name: _pod(driver, row, now=now) for row, pod in state.columns.live()},
        splits=state.splits,
        roles=useless_roles(
            [pod for _, pod in state.columns.live()],
            decide=state.settings.disaggregation.decide,
            configured=state.settings.disaggregation != DisaggregationSettings(),
        ),
    )


def _loads(driver: Driver) -> Iterator[LoadPicture]:
    """Of tiers from which loads were seen to end."""
    state = driver.fleet.state
    for tier in (Tier.CPU, Tier.DISK):
        seen = state.residency.loads_seen(tier)
        if seen is not None:
            requests = state.tally.picks_by_tier[tier.word]
            yield LoadPicture(
                tier=tier.word, seen=seen.loads, at_most=seen.mean, quickest=seen.quickest, requests=requests
            )


def _pod(driver: Driver, row: int, *, now: Seconds) -> PodInsight:
    state = driver.fleet.state
    load, pod = state.loads[row], state.columns.pods[row]
    pinned = state.placement.pinned.rows
    track = None if pod is None else state.signals.pods.get(pod.name)
    return PodInsight(
        cpu_slots=load.limits.max_cpu_loras,
        max_rank=load.limits.max_lora_rank,
        kv_blocks=load.kv_blocks,
        block_tokens=load.block_tokens,
        drift=tuple(state.placement.drift.get(row, ())),
        base_model=None if pod is None else pod.base_model,
        served_per_second=0.0 if track is None else track.asked.total(now) / RATE_WINDOW,
        pinned=sum(row in rows for rows in pinned.values()),
        unreached=None if pod is None else state.signals.handovers.unreached(pod.name, now=now),
        prefills_fail=state.legs.failing(row),
    )
