"""Gauges of one instant: what the picker publishes of the fleet, as metric families.

In: one `Moment`. Out: prometheus_client families. Not here: what events feed (see `live.families`), where the values
come from. Unknown values have no sample: a gauge of 0 would be a claim.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    InfoMetricFamily,
    Metric,
    SummaryMetricFamily,
)
from prometheus_client.registry import Collector

from lorapick import __version__
from lorapick.live.families_kinds import PREFIX
from lorapick.live.publish import FleetSnapshot, PlacementNow, PodRow, Splits, Totals
from lorapick.model.alerts import Alert
from lorapick.model.settings import SloSettings
from lorapick.model.signals import FleetSignals, PodSignals, Signals
from lorapick.model.units import AdapterName, PodName, Seconds

WINDOWS: dict[str, Seconds] = {"10m": 600.0, "1h": 3600.0}
"""Windows of `distinct_active_adapters`; an adapter is *active* in the first."""
ACTIVE_WINDOW = WINDOWS["10m"]
PRESSURE_TIERS = ("none", "soft", "hard", "critical")
"""By the number that the metric shows."""


class Moment(NamedTuple):
    """What is shown on one page."""

    fleet: FleetSnapshot
    signals: Signals
    active: Mapping[AdapterName, Seconds] = {}
    """Each adapter's last request, on the driver's clock."""
    alerts: Collection[str] = ()
    """Those that stand."""
    slots: Mapping[str, int] = {}
    """GPU slots by the label of the adapter that has them."""
    loads: Mapping[str, int] = {}
    """Loads under way by the label of their adapter."""
    waiting: Mapping[str, int] = {}
    """Requests that wait at the picker, by the label of their adapter."""
    times: Mapping[PodName, tuple[Seconds, Seconds]] = {}
    """Busy and useful seconds since the pod was first heard of."""
    slo: SloSettings = SloSettings()


PodGauge = tuple[str, str, Callable[[PodRow], float | None]]

POD_GAUGES: tuple[PodGauge, ...] = (
    ("ready", "Whether the pod may get requests: 1 or 0.", lambda pod: float(pod.ready)),
    (
        "queue_depth",
        "Requests that wait at the pod: reported, plus own dispatches less ends since, less the batch's free seats.",
        lambda pod: pod.queue_depth,
    ),
    ("in_flight", "Requests dispatched to the pod that have not ended.", lambda pod: pod.in_flight),
    ("slots", "GPU slots for adapters.", lambda pod: pod.slots),
    ("slots_used", "GPU slots believed to hold an adapter or to wait for one.", lambda pod: pod.slots_used),
    (
        "reserved_slots",
        "Adapters whose slot is kept for requests that another pod still prefills.",
        lambda pod: pod.reserved,
    ),
    ("prefill_tokens", "Prompt tokens that the pod prefills now for other pods.", lambda pod: pod.prefill_tokens),
    ("loads_in_flight", "Loads of adapters under way on the pod.", lambda pod: pod.loading),
    (
        "pressure_tier",
        "Pressure tier of the pod: 0 none, 1 soft, 2 hard, 3 critical.",
        lambda pod: PRESSURE_TIERS.index(pod.pressure) if pod.pressure is not None else None,
    ),
    ("scrape_age_seconds", "Age of the last good scrape of the pod.", lambda pod: pod.scrape_age_s),
)

PodSignal = tuple[str, str, Callable[[PodSignals], float | None]]

POD_SIGNALS: tuple[PodSignal, ...] = (
    (
        "swap_queue_depth",
        "Requests that wait, at the pod or at the picker, for an adapter to be loaded there.",
        lambda pod: pod.swap_queue,
    ),
    (
        "mean_residency_seconds",
        "Slots in use / evictions per second over 10 minutes; absent while nothing leaves a slot.",
        lambda pod: pod.mean_residency,
    ),
    (
        "useful_time_ratio",
        "Estimated share of the pod's busy time of the last minute that was inference; absent while it is idle.",
        lambda pod: pod.useful_share,
    ),
    (
        "queue_critical",
        "Whether as many requests wait at the pod as may: 1 or 0.",
        lambda pod: float(pod.queue_critical),
    ),
)

FleetSignal = tuple[str, str, Callable[[FleetSignals], float | None]]

FLEET_SIGNALS: tuple[FleetSignal, ...] = (
    (
        "new_adapters",
        "Adapters whose first request came within the last hour; absent during the picker's first hour.",
        lambda fleet: fleet.new_adapters if fleet.new_traffic_share is not None else None,
    ),
    (
        "new_adapters_traffic_share",
        "Of the requests of the last minute, the share for new adapters.",
        lambda fleet: fleet.new_traffic_share,
    ),
    (
        "slot_pressure",
        "Active adapters per GPU slot of the fleet, for autoscalers: above 0.8 there is no room for more.",
        lambda fleet: fleet.active_per_slot,
    ),
    (
        "fleet_useful_time_ratio",
        "Estimated share of all pods' busy time of the last minute that was inference; absent while all are idle.",
        lambda fleet: fleet.useful_share,
    ),
    (
        "critical_queues",
        "Pods at which as many requests wait as may.",
        lambda fleet: fleet.critical_queues,
    ),
)


class FleetGauges(Collector):
    """Gauges of one moment; nothing until `take` was called with one."""

    def __init__(self) -> None:
        self._moment: Moment | None = None

    def take(self, moment: Moment | None) -> None:
        """Show this moment."""
        self._moment = moment

    def collect(self) -> Iterator[Metric]:
        """One family after the other."""
        moment = self._moment
        if moment is None:
            return
        fleet, totals = moment.fleet, moment.fleet.totals
        yield InfoMetricFamily(
            "lorapick", "Version and policy.", value={"version": __version__, "policy": fleet.policy}
        )
        yield CounterMetricFamily("lorapick_arrivals", "Requests that arrived.", totals.arrivals)
        yield from _beside(totals)
        yield GaugeMetricFamily("lorapick_requests_in_flight", "Dispatched and not yet ended.", totals.in_flight)
        yield GaugeMetricFamily("lorapick_requests_held", "Requests that wait at the picker.", totals.held)
        yield from _admission(totals)
        yield from _placement(fleet.placement)
        yield from _splits(fleet.splits)
        yield _pod_info(fleet.pods)
        yield _alerts(moment.alerts)
        for name, text, value in POD_GAUGES:
            yield _gauge(name, text, values=[(pod.name, value(pod)) for pod in fleet.pods], label="pod")
        yield from _signals(moment)
        yield from _adapters(moment)


def _signals(moment: Moment) -> Iterator[Metric]:
    signals = moment.signals
    for name, text, value in POD_SIGNALS:
        yield _gauge(name, text, values=[(pod.pod, value(pod)) for pod in signals.pods], label="pod")
    yield _quantiles(signals.pods)
    for name, text, of_fleet in FLEET_SIGNALS:
        yield _of_fleet(name, text, value=of_fleet(signals.fleet))
    for place, name, text in (
        (0, "busy_seconds", "Time in which the pod had requests of ours."),
        (1, "useful_seconds", "Of the busy time, estimated: what was inference."),
    ):
        times = [(pod, both[place]) for pod, both in moment.times.items()]
        yield _by_label(name, text, counts=dict(times), label="pod")
    promised = (("latency_p95", moment.slo.latency_p95), ("ttft_p95", moment.slo.ttft_p95))
    yield _gauge("slo_seconds", "What users were promised; absent: nothing.", values=promised, label="objective")


def _quantiles(pods: Iterable[PodSignals]) -> Metric:
    text = "Of the residencies that ended within the last 10 minutes."
    family = GaugeMetricFamily(f"{PREFIX}residency_quantile_seconds", text, labels=["pod", "quantile"])
    for pod in pods:
        for word, value in (("0.5", pod.residency_p50), ("0.95", pod.residency_p95)):
            if value is not None:
                family.add_metric([pod.pod, word], value)
    return family


def _adapters(moment: Moment) -> Iterator[Metric]:
    fleet, last = moment.fleet, moment.active.values()
    counts = {word: sum(t >= fleet.now - window for t in last) for word, window in WINDOWS.items()}
    yield _gauge(
        "distinct_active_adapters",
        "Adapters with at least one request in the window.",
        values=counts.items(),
        label="window",
    )
    active, slots = counts["10m"], sum(pod.slots for pod in fleet.pods)
    yield GaugeMetricFamily("lorapick_active_adapters", "Adapters with a request in the last 10 minutes.", active)
    text = "Active adapters per GPU slot of the fleet; absent without slots."
    yield _of_fleet("active_adapters_per_slot", text, value=active / slots if slots else None)
    text = "GPU slots believed to hold the adapter, or to wait for it."
    yield _gauge("adapter_slots_used", text, values=moment.slots.items(), label="adapter")
    text = "Loads of the adapter under way."
    yield _gauge("adapter_loads_in_flight", text, values=moment.loads.items(), label="adapter")
    text = "Requests for the adapter that wait at the picker."
    yield _gauge("adapter_requests_waiting", text, values=moment.waiting.items(), label="adapter")


def _beside(totals: Totals) -> Iterator[Metric]:
    yield _by_label("passed", "Requests sent to any ready pod without a decision.", counts=totals.passed, label="why")
    yield _by_label("faults", "What went wrong, by kind.", counts=totals.faults, label="kind")
    for name, text, count in (
        ("requests", "Requests that Envoy got from clients since its start.", totals.envoy_requests),
        ("without_picker", "Of these, requests that went on without a picker's word.", totals.envoy_without_picker),
    ):
        family = CounterMetricFamily(f"lorapick_envoy_{name}", text, labels=[])
        if count is not None:
            family.add_metric([], count)
        yield family


def _admission(totals: Totals) -> Iterator[Metric]:
    text = "Requests that wait at the picker, by what for."
    yield _gauge("requests_waiting", text, values=totals.waiting.items(), label="for")
    yield _by_label(
        "holds_expired",
        "Requests that had waited at the picker for as long as they may.",
        counts=totals.expired,
        label="for",
    )
    for name, text, count in (
        ("probation_requests", "Requests for adapters on probation: nobody declared them.", totals.probation),
        ("turns", "Slots cleared for adapters whose requests had waited too long.", totals.turns),
        ("quarantines", "Times that a pod was left alone with an adapter it had failed to load.", totals.quarantines),
        ("unloads", "Unloads that pods under pressure were asked for.", totals.unloads),
        ("unload_failures", "Unloads that pods refused, or never answered.", totals.unload_failures),
        (
            "given_back",
            "Adapters that pods were asked to take again after an unload under pressure.",
            totals.given_back,
        ),
    ):
        yield CounterMetricFamily(PREFIX + name, text, count)


def _placement(now: PlacementNow) -> Iterator[Metric]:
    yield _by_two(
        "placement_commands", "Commands that the controller gave to pods.", counts=now.given, labels=("kind", "why")
    )
    yield _by_two(
        "placement_command_results", "What came of commands to pods.", counts=now.ended, labels=("kind", "outcome")
    )
    text = "Time of commands from their turn to their end; count: those whose turn came."
    seconds = SummaryMetricFamily("lorapick_placement_command_seconds", text, labels=["kind"])
    for kind, count in now.begun.items():
        seconds.add_metric([kind], count_value=count, sum_value=now.seconds[kind])
    yield seconds
    yield CounterMetricFamily("lorapick_touches", "Requests of one token that pods answered.", now.touches)
    for name, text, value in (
        ("pins_wanted", "Pairs of a pinned adapter and a pod that should have it.", now.pins_wanted),
        ("pins_missing", "Of these, those that are not in a slot there.", now.pins_missing),
        ("pins_without_place", "Pinned adapters that do not fit, or not wholly.", now.pins_without_place),
        ("pin_missing_seconds_max", "Longest time that one of these was missing.", now.pin_missing_longest),
        ("placement_moves_last_minute", "Loads that count against the churn budget.", now.moves_last_minute),
        ("placement_orders", "Orders of operators that are not done.", now.orders),
        ("warming_pods", "Pods that take no traffic yet: what they should have is not there.", len(now.warming)),
        ("leaving_pods", "Pods that drain and serve what nobody else has.", len(now.leaving)),
    ):
        yield GaugeMetricFamily(PREFIX + name, text, value)


def _splits(now: Splits) -> Iterator[Metric]:
    text = "Dispatches, by whether another pod prefills; none where all pods do both."
    yield _by_label("splits", text, counts=now.results, label="result")
    text = "Picks of a pod to prefill, by the tier in which it was believed to have the adapter."
    yield _by_label("prefill_picks", text, counts=now.picks_by_tier, label="tier")
    text = "Slots reserved on pods that were lost before they had the request, by what became of them."
    yield _by_label("reservations_moved", text, counts=now.reservations_moved, label="result")
    text = "Adapters that left a slot which was reserved for them, by how that is known."
    yield _by_label("reserved_lost", text, counts=now.reserved_lost, label="known")
    text = "Loads that began on a pod that decodes only when the prefill elsewhere was over."
    yield CounterMetricFamily(f"{PREFIX}late_loads", text, now.late_loads)
    text = "What one prompt token takes to prefill, as learnt; absent where no pod prefills for others."
    yield _of_fleet("prefill_seconds_per_token", text, value=now.seconds_per_token)


def _pod_info(pods: Iterable[PodRow]) -> Metric:
    family = GaugeMetricFamily(f"{PREFIX}pod_info", "What the pod is; always 1.", labels=["pod", "role", "zone"])
    for pod in pods:
        family.add_metric([pod.name, pod.role.value, pod.zone or ""], 1)
    return family


def _alerts(standing: Collection[str]) -> Metric:
    text = "Whether an alert stands: 1 or 0."
    return _gauge("alert", text, values=[(alert, float(alert in standing)) for alert in Alert], label="alert")


def _of_fleet(name: str, text: str, *, value: float | None) -> Metric:
    family = GaugeMetricFamily(PREFIX + name, text, labels=[])
    if value is not None:
        family.add_metric([], value)
    return family


def _by_two(name: str, text: str, *, counts: Mapping[str, Mapping[str, int]], labels: tuple[str, str]) -> Metric:
    family = CounterMetricFamily(PREFIX + name, text, labels=labels)
    for first, by_second in counts.items():
        for second, count in by_second.items():
            family.add_metric([first, second], count)
    return family


def _by_label(name: str, text: str, *, counts: Mapping[str, float], label: str) -> Metric:
    family = CounterMetricFamily(PREFIX + name, text, labels=[label])
    for word, count in counts.items():
        family.add_metric([word], count)
    return family


def _gauge(name: str, text: str, *, values: Iterable[tuple[str, float | None]], label: str) -> Metric:
    family = GaugeMetricFamily(PREFIX + name, text, labels=[label])
    for word, value in values:
        if value is not None:
            family.add_metric([word], value)
    return family
