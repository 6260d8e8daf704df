"""The metric families of the picker: names, labels, help texts.

In: a registry. Out: counters and histograms that are fed by events, and a collector of gauges that reads one
fleet snapshot. Not here: when they are fed (see `live.metrics`). Names and labels are those of docs/metrics.md.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    InfoMetricFamily,
    Metric,
    SummaryMetricFamily,
)
from prometheus_client.registry import Collector

from lorapick import __version__
from lorapick.live.publish import FleetSnapshot, PlacementNow, PodRow, Totals
from lorapick.model.alerts import Alert
from lorapick.model.units import AdapterName, Seconds

WINDOWS: dict[str, Seconds] = {"10m": 600.0, "1h": 3600.0}
"""Windows of `distinct_active_adapters`; an adapter is *active* in the first."""
ACTIVE_WINDOW = WINDOWS["10m"]
PICK_BUCKETS = (5e-6, 10e-6, 20e-6, 50e-6, 100e-6, 200e-6, 500e-6, 1e-3, 5e-3, 25e-3)
HOLD_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Counts(Collector):
    """A labelled counter that costs one dictionary update: the library's own takes five times as long."""

    def __init__(self, name: str, text: str, *, labels: tuple[str, ...]) -> None:
        self._name, self._text, self._labels = name, text, labels
        self._values: dict[tuple[str, ...], int] = {}
        self._shown: dict[tuple[str, ...], int] = {}

    def add(self, *labels: str) -> None:
        """Count one; label values in the order of the labels."""
        self._values[labels] = self._values.get(labels, 0) + 1

    def freeze(self) -> None:
        """Show the counts as they are now: pages are made in another thread, while counting goes on."""
        self._shown = dict(self._values)

    def collect(self) -> Iterator[Metric]:
        """The counts that were frozen last."""
        family = CounterMetricFamily(f"lorapick_{self._name}", self._text, labels=self._labels)
        for labels, value in self._shown.items():
            family.add_metric(labels, value)
        yield family


class Families:
    """What events feed."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.requests = Counts(
            "requests", "Requests that left, by outcome and, for rejections, reason.", labels=("outcome", "reason")
        )
        self.picks = Counts(
            "picks",
            "Dispatches by adapter and by the tier in which the pod was believed to have it.",
            labels=("adapter", "tier"),
        )
        self.hits = Counts(
            "hits",
            "Requests whose adapter was on the GPU when they ran, by the tier at their dispatch.",
            labels=("adapter", "tier"),
        )
        self.swaps = Counts(
            "swaps",
            "Loads begun while at least one request waited for them, by the tier they came from.",
            labels=("pod", "from"),
        )
        self.loads = Counts(
            "loads",
            "Loads of an adapter into a GPU slot, by who caused them and the tier they came from.",
            labels=("pod", "by", "from"),
        )
        self.failures = Counts("load_failures", "Loads that failed.", labels=("pod",))
        self.coalesced = Counts(
            "loads_coalesced", "Requests that joined a load in progress instead of causing one.", labels=("pod",)
        )
        self.pressure = Counts(
            "pressure_changes", "Changes of a pod's pressure tier, by the tier that it came to.", labels=("pod", "tier")
        )
        self.alerts = Counts("alerts_raised", "Alerts raised.", labels=("alert",))
        self.refusals = Counts(
            "placement_refusals", "Times that the guard began to refuse a load, by its reason.", labels=("reason",)
        )
        self._counts = (
            self.requests, self.picks, self.hits, self.swaps, self.loads, self.failures, self.coalesced, self.pressure,
            self.alerts, self.refusals,
        )  # fmt: skip
        for counts in self._counts:
            registry.register(counts)
        self.pick_seconds = Histogram(
            "lorapick_pick_seconds", "Time of one decision.", buckets=PICK_BUCKETS, registry=registry
        )
        self.hold_seconds = Histogram(
            "lorapick_hold_seconds",
            "Time that requests waited at the picker, by what they waited for.",
            ("for",),
            buckets=HOLD_BUCKETS,
            registry=registry,
        )

    def freeze(self) -> None:
        """Show all counts as they are now."""
        for counts in self._counts:
            counts.freeze()


class WithoutCreated(Collector):
    """A registry without its `_created` series: they double the page and nothing reads them."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def collect(self) -> Iterator[Metric]:
        """The registry's families."""
        for family in self._registry.collect():
            family.samples = [sample for sample in family.samples if not sample.name.endswith("_created")]
            yield family


PRESSURE_TIERS = ("none", "soft", "hard", "critical")
"""By the number that the metric shows."""
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
    ("loads_in_flight", "Loads of adapters under way on the pod.", lambda pod: pod.loading),
    (
        "pressure_tier",
        "Pressure tier of the pod: 0 none, 1 soft, 2 hard, 3 critical.",
        lambda pod: PRESSURE_TIERS.index(pod.pressure) if pod.pressure is not None else None,
    ),
    ("scrape_age_seconds", "Age of the last good scrape of the pod.", lambda pod: pod.scrape_age_s),
)


class FleetGauges(Collector):
    """Gauges of one snapshot; nothing until `take` was called with one."""

    def __init__(self) -> None:
        self._fleet: FleetSnapshot | None = None
        self._active: dict[AdapterName, Seconds] = {}
        self._alerts: tuple[str, ...] = ()

    def take(
        self, fleet: FleetSnapshot | None, active: dict[AdapterName, Seconds], *, alerts: Iterable[str] = ()
    ) -> None:
        """Show this snapshot; `active` holds each adapter's last request, on the driver's clock."""
        self._fleet, self._active, self._alerts = fleet, active, tuple(alerts)

    def collect(self) -> Iterator[Metric]:
        """One family after the other."""
        fleet = self._fleet
        if fleet is None:
            return
        yield InfoMetricFamily(
            "lorapick", "Version and policy.", value={"version": __version__, "policy": fleet.policy}
        )
        totals = fleet.totals
        yield CounterMetricFamily("lorapick_arrivals", "Requests that arrived.", totals.arrivals)
        yield _by_label(
            "passed", "Requests sent to any ready pod without a decision.", counts=totals.passed, label="why"
        )
        yield _by_label("faults", "What went wrong, by kind.", counts=totals.faults, label="kind")
        yield from _envoy_counters(totals)
        yield GaugeMetricFamily("lorapick_requests_in_flight", "Dispatched and not yet ended.", totals.in_flight)
        yield GaugeMetricFamily("lorapick_requests_held", "Requests that wait at the picker.", totals.held)
        yield from _admission(totals)
        yield from _placement(fleet.placement)
        yield _alerts(self._alerts)
        for gauge in POD_GAUGES:
            yield _pod_gauge(fleet, gauge)
        yield from self._adapter_gauges(fleet)

    def _adapter_gauges(self, fleet: FleetSnapshot) -> Iterator[Metric]:
        text = "Adapters with at least one request in the window."
        distinct = GaugeMetricFamily("lorapick_distinct_active_adapters", text, labels=["window"])
        for word, window in WINDOWS.items():
            distinct.add_metric([word], self._count(fleet.now - window))
        yield distinct
        active = self._count(fleet.now - ACTIVE_WINDOW)
        yield GaugeMetricFamily("lorapick_active_adapters", "Adapters with a request in the last 10 minutes.", active)
        ratio = GaugeMetricFamily(
            "lorapick_active_adapters_per_slot", "Active adapters per GPU slot of the fleet; absent without slots."
        )
        slots = sum(pod.slots for pod in fleet.pods)
        if slots:
            ratio.add_metric([], active / slots)
        yield ratio

    def _count(self, since: Seconds) -> int:
        return sum(last >= since for last in self._active.values())


def _admission(totals: Totals) -> Iterator[Metric]:
    text = "Requests that wait at the picker, by what for."
    waiting = GaugeMetricFamily("lorapick_requests_waiting", text, labels=["for"])
    for word, count in totals.waiting.items():
        waiting.add_metric([word], count)
    yield waiting
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
        yield CounterMetricFamily(f"lorapick_{name}", text, count)


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
        yield GaugeMetricFamily(f"lorapick_{name}", text, value)


def _by_two(name: str, text: str, *, counts: Mapping[str, Mapping[str, int]], labels: tuple[str, str]) -> Metric:
    family = CounterMetricFamily(f"lorapick_{name}", text, labels=labels)
    for first, by_second in counts.items():
        for second, count in by_second.items():
            family.add_metric([first, second], count)
    return family


def _alerts(standing: Collection[str]) -> Metric:
    family = GaugeMetricFamily("lorapick_alert", "Whether an alert stands: 1 or 0.", labels=["alert"])
    for alert in Alert:
        family.add_metric([alert], float(alert in standing))
    return family


def _by_label(name: str, text: str, *, counts: dict[str, int], label: str) -> Metric:
    family = CounterMetricFamily(f"lorapick_{name}", text, labels=[label])
    for word, count in counts.items():
        family.add_metric([word], count)
    return family


def _envoy_counters(totals: Totals) -> Iterator[Metric]:
    for name, text, count in (
        ("requests", "Requests that Envoy got from clients since its start.", totals.envoy_requests),
        ("without_picker", "Of these, requests that went on without a picker's word.", totals.envoy_without_picker),
    ):
        if count is not None:
            yield CounterMetricFamily(f"lorapick_envoy_{name}", text, count)


def _pod_gauge(fleet: FleetSnapshot, gauge: PodGauge) -> Metric:
    name, text, value = gauge
    family = GaugeMetricFamily(f"lorapick_{name}", text, labels=["pod"])
    for pod in fleet.pods:
        number = value(pod)
        if number is not None:
            family.add_metric([pod.name], number)
    return family
