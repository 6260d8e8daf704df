"""A scenario as a value: a fleet, adapters, traffic, what changes when, and what the article says of it.

In: numbers and names. Out: frozen values. Times are seconds since the run's begin unless said otherwise.
Not here: reading a file (see `sim.scenario_text`), making a world of it (see `sim.build`).
"""

import msgspec

from lorapick.model.pods import Engine, PodLimits, Role
from lorapick.model.settings import Settings
from lorapick.model.units import AdapterName, Bytes, PodName, Seconds, Tokens
from lorapick.pod.values import Kernel, Memory, Merging, SwapMode
from lorapick.sim.fleet_changes import FleetChange
from lorapick.sim.workload.popularity import EqualShares, Popularity
from lorapick.sim.workload.spec import Workload
from lorapick.sim.workload.stream import OpenLines, adapter_names

LLM_D_INTERVALS: dict[str, Seconds] = {"gie-default": 0.05, "gie-lora": 0.05}
"""Policies that do as llm-d does, and how often llm-d looks at pods (`refresh-metrics-interval`); at lorapick's second,
all requests of a second would see the same fleet and herd, and it would not be llm-d that one compares with."""

PODS_OWN = "lru"
"""What pods do by themselves when a level of their memory is full."""


class RolePlan(msgspec.Struct, frozen=True, kw_only=True):
    """Some of the pods of a fleet, which play one part of it."""

    role: Role
    pods: int
    slots: int | None = None
    """None: as many as the fleet's other pods."""


class FleetPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Equal pods, but for their roles."""

    pods: int
    limits: PodLimits
    mode: SwapMode = SwapMode.DRAIN
    engine: Engine = Engine.VLLM
    """Whose adapter memory the pods have, and the picker takes them to have; times and pages are the same for all."""
    hardware: str = "h100-llama8b"
    """Name of a preset of `sim.hardware`."""
    memory: Memory = Memory.SLOTS
    kernel: Kernel = Kernel.DISTINCT
    merging: Merging = Merging.NEVER
    retention: str | None = None
    """Who leaves a pod's memory levels, by a name of `core.retention.policies`; None: its own LRU, as in vLLM."""
    max_model_len: Tokens = 8192
    """Longest prompt and answer together; longer ones are refused by the pod, as vLLM does."""
    prefix_caching: bool = True
    reports_loaded: bool = False
    """Whether pods say what they hold (`vllm:lora_adapter_loaded`); vLLM 0.32 does not."""
    storage_bandwidth: float | None = None
    """Bytes per second of what adapters come from that are not in host memory; None: the hardware's NVMe."""
    kv_blocks: int | None = None
    """KV blocks of a pod beside its slots; None: as many as the hardware has (see `Hardware.kv_blocks`)."""
    zones: tuple[str, ...] = ()
    """Dealt out to the pods in turn."""
    labels: dict[str, tuple[str, ...]] = {}
    """Of each, values that are dealt out to the pods in turn."""
    roles: tuple[RolePlan, ...] = ()
    """Of the first pods, in this order; the others, and those that come later, prefill and decode."""
    later: tuple[PodName, ...] = ()
    """Pods that are not there at the begin; phases let them appear."""

    def names(self) -> tuple[PodName, ...]:
        """Names of the pods that are there at the begin, in order."""
        width = max(2, len(str(self.pods)))
        return tuple(f"pod-{number:0{width}d}" for number in range(1, self.pods + 1))

    def all_names(self) -> tuple[PodName, ...]:
        """Of the others too."""
        return (*self.names(), *self.later)

    @property
    def count(self) -> int:
        """Pods, those that come later too."""
        return self.pods + len(self.later)

    def all_roles(self) -> tuple[RolePlan, ...]:
        """Of each pod, in the order of `all_names`."""
        found = [each for each in self.roles for _ in range(each.pods)]
        both = RolePlan(role=Role.BOTH, pods=1)
        return (*found, *[both] * (self.count - len(found)))

    def limits_of(self, plan: RolePlan) -> PodLimits:
        """Limits of a pod of a role."""
        slots = self.limits.max_loras if plan.slots is None else plan.slots
        host = max(slots, self.limits.max_cpu_loras)
        return msgspec.structs.replace(self.limits, max_loras=slots, max_cpu_loras=host)


class AdapterPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The adapters that every pod has on its disk. Variants that a split makes are added to them."""

    names: tuple[AdapterName, ...]
    """Most popular first."""
    ranks: tuple[int, ...] = (16,)
    """Go round over the adapters."""
    size: Bytes | None = None
    """None: the hardware's adapter at its rank."""
    popularity: Popularity = EqualShares()

    def rank_of(self, place: int) -> int:
        """Rank of the adapter at a place; variants of splits follow the adapters."""
        return self.ranks[place % len(self.ranks)]


class RunPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Which stretch of the day is simulated."""

    begin: Seconds = 0.0
    """Seconds after midnight at t = 0."""
    unix: Seconds | None = None
    """Unix time at t = 0; None: on no day in particular, and nobody tells the time."""
    length: Seconds
    seed: int = 1
    warm_up: Seconds = 0.0
    """What arrives before is served, and counted nowhere."""
    window: Seconds
    """Length of one point of the time series."""


class Period(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch that is reported by itself."""

    name: str
    start: Seconds
    end: Seconds


class Expected(msgspec.Struct, frozen=True, kw_only=True):
    """A figure of the article, to stand beside ours. Never a target."""

    metric: str
    """Name of a metric of `sim.metrics`."""
    article: float | str
    """A number in the metric's unit, or its words ("under 10 %")."""
    period: str | None = None
    """None: the whole run."""
    policy: str | None = None
    """None: any."""
    retention: str | None = None
    """Only said when this policy says who stays in slots; None: always."""
    note: str = ""


class ExpectedCapacity(msgspec.Struct, frozen=True, kw_only=True):
    """A figure of the article for `--capacity`. Never a target."""

    capacity: str
    """`gain`: over round-robin, a share of its rate; `share`: of what the fleet bears when nothing is swapped."""
    article: float | str
    policy: str | None = None
    """None: any."""
    note: str = ""


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a run needs but the policy and the seed."""

    name: str
    title: str
    source: str
    assumes: tuple[str, ...]
    """Assumptions, and which of contradictory numbers were kept."""
    fleet: FleetPlan
    adapters: AdapterPlan
    workload: Workload
    settings: Settings
    """The picker's own configuration; its policy is the scenario's default."""
    changes: tuple[FleetChange, ...] = ()
    run: RunPlan
    periods: tuple[Period, ...] = ()
    in_periods: tuple[str, ...] = ()
    """Metrics that tables show for each period."""
    parts: dict[str, tuple[AdapterName, ...]] = {}
    """Adapters whose requests are reported by themselves, by a name of theirs; none stands in two."""
    expect: tuple[Expected, ...] = ()
    expect_capacity: tuple[ExpectedCapacity, ...] = ()
    without_swaps: dict[str, str] = {}
    """Keys of the file with values that leave the same fleet nothing to swap: its rate is what could be at best."""
    policies: tuple[str, ...] = ()
    """What `--compare` compares; never empty after parsing."""
    scrape_intervals: dict[str, Seconds] = {}
    """Of policies that look at pods at an interval of their own; the others do as `settings.scrape` says."""
    latency_limit: Seconds | None = None
    """P95 that defines capacity; None: the scenario does not ask for it."""
    grid: dict[str, tuple[str, ...]] = {}
    """Of a family: keys of the file, each with the values that it takes."""
    suites: dict[str, dict[str, tuple[str, ...]]] = {}
    """Further grids, by name."""
    open_lines: OpenLines | None = None
    """Opens the traces of the workload; a function of a module, so that it can be sent to another process."""

    def names(self) -> tuple[AdapterName, ...]:
        """Every adapter that pods have, variants of splits last; `settings.adapters` are those that are declared."""
        return names_of(self.adapters, self.workload)

    def scrape_interval(self, policy: str) -> Seconds:
        """How often pods are looked at when this policy picks."""
        return self.scrape_intervals.get(policy, self.settings.scrape.interval)


def names_of(plan: AdapterPlan, workload: Workload) -> tuple[AdapterName, ...]:
    """The adapters of a plan, and what else a workload can ask for."""
    return tuple(dict.fromkeys((*plan.names, *adapter_names(workload))))


def shortened(scenario: Scenario, length: Seconds) -> Scenario:
    """The scenario's first `length` seconds; periods and changes beyond are left out.

    Raises:
        ValueError: nothing but the warm-up would be left, or it is longer than the scenario.
    """
    run = scenario.run
    if not run.warm_up < length <= run.length:
        raise ValueError(f"must be more than the warm-up of {run.warm_up:g}s and at most {run.length:g}s")
    kept = tuple(each for each in scenario.periods if each.end <= length)
    names = [None, *(each.name for each in kept)]
    return msgspec.structs.replace(
        scenario,
        run=msgspec.structs.replace(run, length=length),
        workload=msgspec.structs.replace(scenario.workload, until=length),
        changes=tuple(each for each in scenario.changes if each.at <= length),
        periods=kept,
        expect=tuple(each for each in scenario.expect if each.period in names),
    )
