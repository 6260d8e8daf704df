"""The configuration as a value, after parsing and checking (see `wire.config` for the file).

Defaults here are the documented ones. Durations are seconds, sizes bytes, shares in [0, 1].
"""

from enum import StrEnum

import msgspec

from lorapick.model.adapters import Adapter, AffinityGroup, Alias, Schedule, Trigger
from lorapick.model.arms import Mode
from lorapick.model.bands import Band, CeilingSettings, ChanceSettings, Ordering, SaturationSettings
from lorapick.model.disaggregation import DisaggregationSettings
from lorapick.model.pods import Pod, PodLimits
from lorapick.model.profiles import Profiles
from lorapick.model.tiers import Tier
from lorapick.model.tls import TlsSettings
from lorapick.model.units import Bytes, Ratio, Seconds


class Weights(msgspec.Struct, frozen=True, kw_only=True):
    """Weights of [R2.2]."""

    adapter: float = 0.50
    kv: float = 0.20
    queue: float = 0.15
    gpu: float = 0.15


class Affinity(msgspec.Struct, frozen=True, kw_only=True):
    """Value of each tier [R2.3]."""

    gpu_serving: float = 1.0
    gpu_idle: float = 0.8
    loading: float = 0.9
    cpu: float = 0.4
    disk_free_slot: float = 0.3
    disk_must_evict: float = 0.0
    pinned_bonus: float = 0.05

    def of(self, tier: Tier, *, free_slot: bool, pinned: bool = False) -> float:
        """Affinity of one (adapter, pod); may exceed 1 when pinned. Unregistered counts as must-evict."""
        value = {
            Tier.GPU_SERVING: self.gpu_serving,
            Tier.GPU_IDLE: self.gpu_idle,
            Tier.LOADING: self.loading,
            Tier.CPU: self.cpu,
        }.get(tier)
        if value is None:
            value = self.disk_free_slot if free_slot else self.disk_must_evict
        return value + self.pinned_bonus if pinned else value


class PickingSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How a pod is chosen."""

    policy: str = "weighted"
    weights: Weights = Weights()
    affinity: Affinity = Affinity()
    fallbacks: int = 2
    """Endpoints named after the winner, for Envoy's retries on connect failure."""
    prefix_blocks_per_pod: int = 31_250
    """LRU bound of the approximate prefix index; a pod's own cache size replaces it once reported."""
    endpoint_picker_config: str | None = None
    """File with an `EndpointPickerConfig` that says how pods are picked; None: `policy` does."""
    profiles: Profiles | None = None
    """What that file comes to; then `policy` decides nothing."""


class LoadTimes(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds within which a load counts as over when nobody reports its end, by the tier it comes from.

    From host memory: activation 8 ms (vLLM 0.8.5, H100) plus a warm-up of 50-100 ms. From disk: the article's worst
    case of 670 ms, its drain included. A load that is over sooner and says so is believed sooner; nothing is learned.
    """

    cpu: Seconds = 0.1
    disk: Seconds = 0.7


class Fairness(StrEnum):
    """Whose turn it is among requests of one priority that wait."""

    ROUND_ROBIN = "round_robin"
    """Flows (fairness id and adapter) take turns."""
    LEAST_ATTAINED = "least_attained"
    """Whoever's fairness id has had the fewest tokens."""


class AdmissionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Who waits at the picker, how many, how long, in which order."""

    max_queued: int = 1000
    max_bytes: Bytes | None = None
    """Of the bodies of all that wait; None: no bound."""
    bands: tuple[Band, ...] = ()
    """Bounds by priority, within `max_queued`; without one for a priority only that bounds it."""
    max_wait: Seconds = 30.0
    slot_budget: bool = True
    """Never more adapters in use on a pod than it has slots: who would be one more goes elsewhere, or waits."""
    fairness: Fairness = Fairness.ROUND_ROBIN
    ordering: Ordering = Ordering.FCFS
    patience: Seconds = 2.0
    """Who has waited for so long comes before those of the same priority that have not."""
    saturation: SaturationSettings | None = None
    """From when on priorities below 0 are shed, whether or not some pod has room; None: when none has."""
    chance: ChanceSettings | None = None
    """How likely priorities below 0 are shed before that; None: never."""
    ceilings: CeilingSettings | None = None
    """From when on others wait, whether or not some pod has room; by `saturation`, or its defaults. None: never."""
    probation_slots_share: Ratio = 0.1


class PressureSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Pressure tiers [R3.8]."""

    enabled: bool = True
    """Whether a pod's pressure changes anything."""
    soft: Ratio = 0.85
    hard: Ratio = 0.90
    critical: Ratio = 0.95
    hysteresis: Ratio = 0.02
    """A tier is left this far below where it begins."""


class RetentionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Who stays [R3.2]."""

    policy: str = "window"
    window: Seconds = 600.0
    frequency_weight: float = 1.0
    recency_weight: float = 1.0
    pinned_bonus: float = 1000.0


class WeekendSettings(msgspec.Struct, frozen=True, kw_only=True):
    """When `weekend: deprioritize` holds; times of the week on local clocks."""

    timezone: str = "UTC"
    begins: str = "fri 18:00"
    ends: str = "mon 06:00"


class PlacementSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Loading, keeping and moving adapters on purpose [R3.4-R3.9]."""

    enabled: bool = True
    """Whether pins, schedules, triggers, groups and commands of operators lead to loads."""
    tick: Seconds = 1.0
    """How often what is wanted is compared with what is believed."""
    replicas: str = "off"
    """`auto`: adapters are placed by their load, and moved when that pays; `off`: requests decide."""
    solver: str = "flow"
    """`flow`: exact minimum-cost flow; `rendezvous`: by hashing, which needs no solver."""
    solve_every: Seconds = 30.0
    moves_per_minute: float = 10.0
    """Loads of the fleet for placement by load, forecast and rebalancing together: the churn budget."""
    forecast: str = "off"
    """Who is loaded ahead of need by what was asked for before: `off`, `last_hour`, `seasonal` or `blend`."""
    learn_groups: bool = False
    """Whether adapters that follow one another often enough are preloaded as declared groups are."""
    warm_up: Seconds = 30.0
    """For how long a new pod may be kept from traffic until it has its pins and the popular adapters."""
    handover: Seconds = 30.0
    """For how long a pod that leaves goes on serving what nobody else has yet."""
    weekend: WeekendSettings = WeekendSettings()
    history: str | None = None
    """SQLite file in which demand is kept; None: it is forgotten at the end."""
    store: str | None = None
    """Directory that pods read too, for weights that are fetched from elsewhere; None: nothing is fetched."""
    sources: tuple[str, ...] = ()
    """Where pods may be told to load from (prefixes of paths and URLs); none named: from what the file declares."""


class SloSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What users were promised; None: nothing."""

    ttft_p95: Seconds | None = None
    latency_p95: Seconds | None = None


class Objective(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A named priority; below 0 may be shed."""

    name: str
    priority: int = 0


class AlertSettings(msgspec.Struct, frozen=True, kw_only=True):
    """When the picker raises an alert of its own, and when that is over."""

    after: Seconds = 10.0
    """For how long a condition must hold. New adapters are told of at once."""
    clear_after: Seconds = 30.0
    """For how long it must be gone."""
    new_adapters_share: Ratio = 0.01
    """Of the requests of a minute, from which on adapters that nobody declared are worth an alert."""
    queue_share: Ratio = 0.8
    """Of `max_queued` and of `max_wait`, from which on a queue counts as near its bound."""
    swap_rate: float = 0.5
    """Swaps per second of one pod from which on it swaps too often; healthy is below 0.1."""
    swap_rate_broken: float = 1.0
    """From which on that is thrash, where users are harmed."""
    residency: Seconds = 300.0
    """Mean residency below which adapters leave too soon."""
    residency_page: Seconds = 60.0
    """Below which that is thrash, where users are harmed."""
    hit_ratio: Ratio = 0.8
    """Below which hits need tuning; the target is `hit_ratio_target`."""
    hit_ratio_target: Ratio = 0.9
    active_per_slot: float = 0.8
    """Active adapters per slot from which on there is no room for more."""
    useful_share: Ratio = 0.5
    """Share of busy time below which pods do something else than inference."""
    error_ratio: Ratio = 0.01
    """Of requests that failed or were refused."""
    critical_queues_share: Ratio = 0.5
    """Of the pods, whose queues are full, from which on that is worth waking somebody."""
    sustained: Seconds = 120.0
    """For how long rates and shares must be beyond their bounds."""


class BudgetSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What the system may spend on itself."""

    loads_per_pod_per_minute: float = 30.0
    pods_loading_share: Ratio = 0.25
    loads_at_once: int = 1
    """Of one pod. More are for engines that load all that wait in one go."""
    scrape_core_share: Ratio = 0.1


class LedgerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of requests, loads and evictions, for questions later."""

    path: str | None = None
    """SQLite file; None: nothing is kept."""
    max_size: Bytes = 1024 * 1024 * 1024
    """Of the file; its write-ahead log beside it takes some MiB more. The oldest goes first."""
    keep: Seconds = 7 * 86_400.0
    """Age at which rows go."""
    write_every: Seconds = 0.5
    """A killed picker loses so much at most."""


class ScrapeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How pods are watched."""

    interval: Seconds = 1.0
    timeout: Seconds = 1.0
    stale_after: Seconds = 5.0
    """Age of the last good report at which a pod takes no more requests."""
    models_every: Seconds = 10.0
    """Period of `/v1/models` look-ups (registered adapters)."""


class ServerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Where we listen. `host:port`, or `unix:PATH`; bare paths are relative to the working directory."""

    extproc: str = "unix:run/extproc.sock"
    health: str = "127.0.0.1:9003"
    body: str = "buffered"
    """`buffered` (fails open) or `full_duplex_streamed` (for gateways that ask for it)."""
    observe: str = "headers"
    """`headers`, or `bodies` to read token usage too."""
    endpoint: str = "127.0.0.1:8080"
    metrics: str = "127.0.0.1:9090"
    admin: str = "127.0.0.1:9091"
    admin_token: str | None = None
    """Environment variable that holds the bearer token for changes through the admin API, and beyond loopback for all
    calls; None: changes are taken on loopback addresses only, without one."""
    admin_token_file: str | None = None
    """File that holds it, in place of the variable; read again when it changes."""
    metrics_token: str | None = None
    """Environment variable that holds the bearer token for the metrics page; None: nobody is asked."""
    metrics_token_file: str | None = None
    envoy_admin: str | None = None
    """Envoy's admin API, to be read for what Envoy counts; None: those counts are unknown."""
    metrics_adapters: int = 50
    """Adapters with a metric label of their own, the busiest; the others share `other`."""
    metrics_compat: str = "both"
    """Under which other endpoint pickers' names the metrics page shows requests too: `llm-d`, `gie`, `both`, `off`."""
    max_body: Bytes = 10 * 1024 * 1024
    drain_timeout: Seconds = 30.0


class TracingSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Spans of requests for a collector of traces (see docs/tracing.md)."""

    enabled: bool = False
    endpoint: str = "http://127.0.0.1:4318/v1/traces"
    """Where an OTLP receiver takes spans over HTTP."""
    sample: Ratio = 0.1
    """Share of the requests without a traced caller that are traced; a caller's own decision counts before."""


class LeaderSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Which of several replicas tells pods to load, and writes status: whoever holds a Lease."""

    enabled: bool = True
    """False: this replica leads, whatever others do."""
    lease: str | None = None
    """Name of the Lease; None: `lorapick-POOL`."""
    duration: Seconds = 15.0
    """For how long others wait after the last renewal that they saw."""
    renew_within: Seconds = 10.0
    """A leader that has not renewed for so long stops; less than `duration`."""
    retry: Seconds = 2.0
    """Between two attempts to renew, or to become the leader."""


class KubernetesSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Pods from the API server: those of an InferencePool, or those that labels select."""

    pool: str | None = None
    """Name of the InferencePool; None: `selector` and `target_ports` say what it would."""
    selector: dict[str, str] = {}
    target_ports: tuple[int, ...] = ()
    namespace: str | None = None
    """None: the one that the picker runs in, or that the kubeconfig's context names."""
    kubeconfig: str | None = None
    """File for pickers outside the cluster; None: the service account's files."""
    context: str | None = None
    """Of the kubeconfig; None: the current one."""
    server: str | None = None
    """URL that needs no credentials, such as `kubectl proxy`'s; in place of both."""
    leader: LeaderSettings = LeaderSettings()


class PeersSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How pickers of one fleet agree: through a store that speaks Redis' protocol (see docs/peers.md)."""

    redis: str
    """`redis://HOST:PORT/DB`, `rediss://...` over TLS, or `unix:///PATH`; never with a password in it."""
    fleet: str = "lorapick"
    """Pickers with the same fleet name agree; those of other fleets may share the store."""
    id: str | None = None
    """What others call this picker; None: host name and process number."""
    stale_after: Seconds = 2.0
    """Age from which on what a peer said counts for nothing."""
    claim_timeout: Seconds = 0.05
    """Longest wait for the store's answer to a claim; after that the picker goes on alone."""
    claim_ttl: Seconds = 10.0
    """A claim whose owner is not heard of any more ends after so long."""
    username: str | None = None
    password: str | None = None
    """Environment variable that holds the password; None: none is needed."""
    tls_ca: str | None = None
    """File of authorities that the store's certificate is checked against; None: the system's."""
    tls_certificate: str | None = None
    tls_key: str | None = None
    leader: bool = True
    """Whether only one picker at a time tells pods to load, by a lease in the store. Kubernetes' election beats it."""


class DiscoverySettings(msgspec.Struct, frozen=True, kw_only=True):
    """Where pods come from: exactly one is set."""

    file: str | None = None
    pods: tuple[Pod, ...] = ()
    kubernetes: KubernetesSettings | None = None


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """All of `lorapick.yaml`."""

    base_model: str = "base"
    discovery: DiscoverySettings = DiscoverySettings()
    defaults: PodLimits = PodLimits()
    default_engine: str = "vllm"
    adapters: tuple[Adapter, ...] = ()
    catalogue: str | None = None
    aliases: tuple[Alias, ...] = ()
    groups: tuple[AffinityGroup, ...] = ()
    schedules: tuple[Schedule, ...] = ()
    triggers: tuple[Trigger, ...] = ()
    picking: PickingSettings = PickingSettings()
    load_times: LoadTimes = LoadTimes()
    retention: RetentionSettings = RetentionSettings()
    pressure: PressureSettings = PressureSettings()
    placement: PlacementSettings = PlacementSettings()
    admission: AdmissionSettings = AdmissionSettings()
    alerts: AlertSettings = AlertSettings()
    slo: SloSettings = SloSettings()
    objectives: tuple[Objective, ...] = ()
    budgets: BudgetSettings = BudgetSettings()
    scrape: ScrapeSettings = ScrapeSettings()
    ledger: LedgerSettings = LedgerSettings()
    tls: TlsSettings = TlsSettings()
    mode: Mode = Mode()
    """Which requests picks are in force for."""
    server: ServerSettings = ServerSettings()
    tracing: TracingSettings = TracingSettings()
    disaggregation: DisaggregationSettings = DisaggregationSettings()
    peers: PeersSettings | None = None
    """None: this picker is the only one of its fleet."""
    seed: int = 0
