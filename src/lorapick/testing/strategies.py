"""Hypothesis strategies for values of `model`: small worlds on purpose, so that events meet each other.

In: nothing. Out: strategies. Numbers that come from outside (reports) may be anything their type allows, lies
included; what the driver or the configuration makes is sane. Not here: order of events (see the state machines).
"""

from typing import TypeVar

from hypothesis import strategies as st

from lorapick.core.picking.policies import POLICIES
from lorapick.model.adapters import Adapter, AffinityGroup, Alias, AliasTarget, PinSpec, Schedule, Trigger
from lorapick.model.bands import Band, CeilingSettings, ChanceSettings, SaturationSettings, Spread
from lorapick.model.disaggregation import Choice, Decide, DisaggregationSettings
from lorapick.model.pods import Engine, GpuSource, LoadedAdapter, Pod, PodLimits, PodReport, Role, SilentWhy
from lorapick.model.profiles import Profiles
from lorapick.model.requests import Outcome, Request
from lorapick.model.settings import (
    AdmissionSettings,
    AlertSettings,
    BudgetSettings,
    Fairness,
    PickingSettings,
    PlacementSettings,
    RetentionSettings,
    ScrapeSettings,
    Settings,
)
from lorapick.model.tiers import Tier
from lorapick.model.units import RequestId, Seconds
from lorapick.testing.profiles import profile, spec

T = TypeVar("T")

POD_NAMES = tuple(f"pod-{index}" for index in range(5))
ADAPTER_NAMES = tuple(f"adapter-{index}" for index in range(6))
ALIAS = "alias"
BASES = ("base", "other-base")
MODELS = (*ADAPTER_NAMES[:2] * 6, *ADAPTER_NAMES, ALIAS, ALIAS, *BASES, "nobody-knows")
"""Two adapters are popular: a machine of few steps must see followers."""
ZONES = ("west", "east")
POLICY_NAMES = (*["weighted", "weighted", "cost"] * (len(POLICIES) // 2), *POLICIES)
"""Most of them those that leave admission to us."""

PROFILES = (
    Profiles(
        decode=profile(
            "lora-affinity-scorer",
            "no-hit-lru-scorer",
            spec("token-load-scorer", threshold=100.0),
            filters=[spec("utilization-detector", queue=2, kv=0.5, headroom=0.0), "session-affinity-filter"],
        )
    ),
    Profiles(
        decode=profile(
            "queue-scorer", "prefix-cache-scorer", filters=["decode-filter"], picker="weighted-random-picker"
        ),
        prefill=profile(filters=["prefill-filter"], picker="random-picker"),
        waits=True,
    ),
    Profiles(decode=profile("lorapick-residency-scorer", spec("active-request-scorer", idle=0, most=0.5))),
)
"""One that leaves nothing to us, one that waits, one that leaves admission to us."""

pod_names = st.sampled_from(POD_NAMES)
adapter_names = st.sampled_from(ADAPTER_NAMES)
silences = st.sampled_from(SilentWhy)
endings = st.sampled_from([Outcome.SERVED, Outcome.FAILED, Outcome.ABANDONED])
tiers = st.sampled_from(Tier)

prompts = st.sampled_from([None, 1000, 10, 1000, 0])
"""Tokens; a long prompt is split where it may be."""

wild_shares = st.none() | st.floats(0, 0.8) | st.floats() | st.sampled_from([0.84, 0.86, 0.91, 0.96])
wild_counts = st.none() | st.integers(0, 4) | st.integers(0, 4) | st.integers(-5, 10**9)


def rarely(strategy: st.SearchStrategy[T], *, otherwise: T | None) -> st.SearchStrategy[T | None]:
    """One time in eight what `strategy` gives."""
    return st.integers(0, 7).flatmap(lambda dice: strategy if dice == 7 else st.just(otherwise))


def labels() -> st.SearchStrategy[dict[str, str]]:
    """No label, or a zone."""
    return st.just({}) | st.sampled_from(ZONES).map(lambda zone: {"zone": zone})


def limits() -> st.SearchStrategy[PodLimits]:
    """Small pods, some that take nothing."""
    return st.builds(
        PodLimits,
        max_loras=st.sampled_from([1, 2, 3, 0]),
        max_cpu_loras=st.integers(0, 5),
        max_lora_rank=st.sampled_from([64, 64, 8]),
        max_num_seqs=st.integers(1, 3),
        max_queue=st.sampled_from([1, 2, 3, 0]),
    )


def pods(names: st.SearchStrategy[str] = pod_names) -> st.SearchStrategy[Pod]:
    """Pods of the small world; the same name may come back changed."""
    return st.builds(
        Pod,
        name=names,
        address=st.integers(1, 6).map(lambda host: f"10.0.0.{host}:8000"),
        role=st.sampled_from([*[Role.BOTH] * 4, Role.DECODE, Role.DECODE, Role.PREFILL, Role.PREFILL]),
        labels=labels(),
        engine=st.sampled_from([Engine.VLLM, Engine.SGLANG, Engine.SGLANG, Engine.TRTLLM, Engine.TRITON, Engine.LORAX]),
        base_model=st.sampled_from([*[BASES[0]] * 6, BASES[1]]),
        limits=limits(),
    )


def reports(
    shares: st.SearchStrategy[float | None] = wild_shares, counts: st.SearchStrategy[int | None] = wild_counts
) -> st.SearchStrategy[PodReport]:
    """Scrapes, lies included."""
    some = st.lists(adapter_names, max_size=4, unique=True).map(tuple)
    loaded = st.builds(LoadedAdapter, name=adapter_names, on_gpu=st.booleans(), pinned=st.booleans())
    return st.builds(
        PodReport,
        waiting=counts,
        running=counts,
        kv_usage=shares,
        gpu_utilization=shares,
        gpu_source=st.sampled_from([GpuSource.POD, GpuSource.UNKNOWN]),
        memory_pressure=shares,
        preemptions=counts,
        in_flight_adapters=st.none() | some,
        loaded=st.none() | st.lists(loaded, max_size=4).map(tuple),
        registered=st.none() | st.just(ADAPTER_NAMES) | st.just(ADAPTER_NAMES) | some,
        max_loras=st.none() | st.integers(0, 3),
        gpu_blocks=st.none() | st.integers(0, 6),
        process_start=st.sampled_from([None, 100.0, 100.0, 100.0, 200.0]),
    )


def finite_reports() -> st.SearchStrategy[PodReport]:
    """Scrapes whose shares are numbers, as JSON has them."""
    return reports(shares=st.none() | st.floats(0, 1))


def requests(request_id: RequestId, *, now: Seconds) -> st.SearchStrategy[Request]:
    """One request with that id, arriving at `now`; few have a deadline, a subset or a selector."""
    hosts = st.lists(st.integers(1, 6).map(lambda host: f"10.0.0.{host}"), max_size=3).map(tuple)
    return st.builds(
        Request,
        id=st.just(request_id),
        model=st.sampled_from(MODELS),
        blocks=st.lists(st.integers(0, 8), max_size=4).map(tuple),
        session=st.none() | st.sampled_from(["s1", "s2"]),
        deadline=st.sampled_from([None] * 8 + [-0.1, 0.2, 1.0, 3.0]).map(lambda s: None if s is None else now + s),
        subset=rarely(hosts, otherwise=None),
        selector=rarely(labels(), otherwise={}),
        priority=st.sampled_from([0, 0, 0, 0, 1, 1, -1]),
        fairness_id=st.none() | st.sampled_from(["team-a", "team-b"]),
        max_tokens=st.none() | st.integers(1, 50),
        prompt_tokens=prompts,
        prompt_bytes=st.sampled_from([None, 40, 4000]),
        body_bytes=st.sampled_from([None, 60, 6000]),
        stream=st.booleans(),
    )


def pins() -> st.SearchStrategy[PinSpec]:
    """Pins by count, by pod, by label, and empty ones."""
    return st.builds(
        PinSpec,
        replicas=st.none() | st.integers(1, 2),
        prefill_replicas=st.none() | st.integers(0, 2),
        pods=st.lists(pod_names, max_size=2, unique=True).map(tuple),
        selector=labels(),
        reserve=rarely(st.just(True), otherwise=False),
    )


def adapters() -> st.SearchStrategy[Adapter]:
    """Declared adapters of the small world."""
    return st.builds(
        Adapter,
        name=adapter_names,
        base_model=st.sampled_from([None, None, None, *BASES]),
        rank=st.sampled_from([None, 8, 16, 16, 128]),
        declared=st.just(True),
        pin=st.none() | pins(),
        source=st.none() | st.just("/adapters/some"),
        weekend=rarely(st.just("deprioritize"), otherwise=None),
    )


def placements() -> st.SearchStrategy[PlacementSettings]:
    """Placement in all its ways, with small budgets; rarely off."""
    return st.builds(
        PlacementSettings,
        enabled=rarely(st.just(False), otherwise=True),
        tick=st.sampled_from([1.0, 5.0]),
        replicas=st.sampled_from(["off", "auto"]),
        solve_every=st.sampled_from([2.0, 30.0]),
        moves_per_minute=st.sampled_from([10.0, 1.0, 0.0]),
        forecast=st.sampled_from(["off", "off", "last_hour", "seasonal", "blend"]),
        learn_groups=st.booleans(),
        warm_up=st.sampled_from([30.0, 2.0, 0.0]),
        handover=st.sampled_from([30.0, 2.0, 0.0]),
    )


def disaggregations() -> st.SearchStrategy[DisaggregationSettings]:
    """Requests split in all ways; most of them jointly, and whenever they may be."""
    return st.builds(
        DisaggregationSettings,
        decide=st.sampled_from([Decide.ALWAYS, Decide.ALWAYS, Decide.TOKENS, Decide.COST, Decide.NEVER]),
        choice=st.sampled_from([Choice.JOINT, Choice.JOINT, Choice.INDEPENDENT]),
        uncached_tokens=st.sampled_from([100, 1]),
    )


def groups() -> st.SearchStrategy[tuple[AffinityGroup, ...]]:
    """At most one: the first adapter, and one or two that follow."""
    then = st.lists(st.sampled_from(ADAPTER_NAMES[1:]), min_size=1, max_size=2, unique=True).map(tuple)
    return st.just(()) | then.map(lambda names: (AffinityGroup(name="chain", first=ADAPTER_NAMES[0], then=names),))


def schedules() -> st.SearchStrategy[tuple[Schedule, ...]]:
    """At most one, every other minute for half a minute."""
    every = st.builds(
        Schedule,
        adapters=adapter_names.map(lambda name: (name,)),
        cron=st.just("*/2 * * * *"),
        timezone=st.just("UTC"),
        replicas=st.integers(1, 2),
        lasts=st.just(30.0),
        selector=labels(),
    )
    return st.just(()) | every.map(lambda schedule: (schedule,))


def admissions() -> st.SearchStrategy[AdmissionSettings]:
    """Bounds that are met, and now and then what keeps requests back on a busy fleet."""
    return st.builds(
        AdmissionSettings,
        max_queued=st.sampled_from([4, 8, 1, 0]),
        max_bytes=st.sampled_from([None, None, None, 6100]),
        bands=rarely(st.just((Band(priority=1, max_queued=1, max_bytes=6000),)), otherwise=()),
        max_wait=st.sampled_from([5.0, 0.1, 0.0]),
        saturation=rarely(
            st.sampled_from([SaturationSettings(queue=3.0), SaturationSettings(requests=2, tokens=500)]),
            otherwise=None,
        ),
        chance=rarely(st.just(ChanceSettings(queue=3.0, power=1.0, factor=1.0)), otherwise=None),
        ceilings=rarely(
            st.builds(
                CeilingSettings,
                spread=st.sampled_from(Spread),
                least=st.just(0.1),
                most=st.sampled_from([1.0, 0.5]),
                full=st.booleans(),
            ),
            otherwise=None,
        ),
        slot_budget=st.sampled_from([True, True, True, False]),
        fairness=st.sampled_from(Fairness),
        patience=st.sampled_from([2.0, 0.1, 0.0]),
        probation_slots_share=st.sampled_from([0.1, 0.5]),
    )


def settings(policies: tuple[str, ...] = POLICY_NAMES) -> st.SearchStrategy[Settings]:
    """Small bounds, so that they are met."""
    targets = st.lists(st.builds(AliasTarget, adapter=adapter_names, weight=st.integers(1, 3)), min_size=1, max_size=3)
    return st.builds(
        Settings,
        adapters=st.lists(adapters(), max_size=4, unique_by=lambda adapter: adapter.name).map(tuple),
        aliases=targets.map(lambda to: (Alias(name=ALIAS, to=tuple(to)),)),
        picking=st.builds(
            PickingSettings,
            policy=st.sampled_from(policies),
            profiles=rarely(st.sampled_from(PROFILES), otherwise=None) if policies is POLICY_NAMES else st.none(),
            fallbacks=st.integers(0, 3),
            prefix_blocks_per_pod=st.integers(1, 6),
        ),
        admission=admissions(),
        alerts=st.builds(
            AlertSettings,
            after=st.sampled_from([0.0, 1.0]),
            clear_after=st.sampled_from([0.0, 3.0]),
            new_adapters_share=st.sampled_from([0.0, 0.3]),
            queue_share=st.sampled_from([0.5, 0.0]),
        ),
        budgets=st.builds(
            BudgetSettings,
            pods_loading_share=st.sampled_from([0.25, 0.5, 1.0]),
            loads_at_once=st.sampled_from([1, 1, 2]),
            loads_per_pod_per_minute=st.sampled_from([30.0, 2.0]),
        ),
        retention=st.builds(RetentionSettings, policy=st.sampled_from(["window", "cost", "lru", "lfu"])),
        scrape=st.builds(ScrapeSettings, stale_after=st.sampled_from([5.0, 50.0, 0.5])),
        placement=placements(),
        disaggregation=disaggregations(),
        groups=groups(),
        schedules=schedules(),
        triggers=st.just((Trigger(event="upload", preload="{adapter}", lasts=20.0),)),
    )
