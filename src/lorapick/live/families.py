"""The metric families of the picker that events feed: names, labels, help texts, buckets.

In: nothing. Out: families to be fed. Not here: when they are fed (see `live.metrics_counting`), gauges of one instant
(`live.families_gauges`), the names of other endpoint pickers (`live.families_epp`). All are in docs/metrics.md.
"""

from collections.abc import Iterator

from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from lorapick.live.families_kinds import Counts, Histograms, Sums
from lorapick.model.settings import SloSettings
from lorapick.model.units import Seconds

PICK_BUCKETS = (5e-6, 10e-6, 20e-6, 50e-6, 100e-6, 200e-6, 500e-6, 1e-3, 5e-3, 25e-3)
HOLD_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
LATENCY_BUCKETS = (0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0, 15.0, 30.0, 60.0, 120.0, 300.0)
"""Of answers; the same for first bytes. What was promised is a bound too (see `promised_bounds`)."""
STAY_BUCKETS = (5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 14_400.0, 86_400.0)
"""Of residencies; the bounds of the alerts (30 s, 60 s, 300 s) are among them."""
UNUSED_BUCKETS = (0.1, 1.0, 5.0, 15.0, 60.0, 300.0, 600.0, 1800.0, 3600.0, 14_400.0)
"""From a request to the eviction."""


def promised_bounds(promised: Seconds | None) -> tuple[Seconds, ...]:
    """Bounds for latencies, among them what was promised, and one above it.

    A quantile that Prometheus takes of a histogram is on the right side of a bound, and anywhere between two of them.
    """
    if promised is None:
        return LATENCY_BUCKETS
    above = {2 * promised} if promised >= LATENCY_BUCKETS[-1] else set()
    return (*sorted({*LATENCY_BUCKETS, promised, *above}),)


class Families(Collector):
    """What events feed."""

    def __init__(self, slo: SloSettings | None = None) -> None:
        """`slo`: what users were promised."""
        self._slo = SloSettings() if slo is None else slo
        self.all: list[Counts | Sums | Histograms] = []
        """In the order of the page."""
        self._of_requests()
        self._of_loads()
        self._of_slots()
        self._of_adapters()
        self._of_the_rest()
        self.latency.begin()
        self.pick_seconds.begin()

    def _counts(self, name: str, text: str, *labels: str) -> Counts:
        counts = Counts(name, text, labels=labels)
        self.all.append(counts)
        return counts

    def _sums(self, name: str, text: str, *labels: str) -> Sums:
        sums = Sums(name, text, labels=labels)
        self.all.append(sums)
        return sums

    def _histograms(self, name: str, text: str, *labels: str, buckets: tuple[float, ...]) -> Histograms:
        histograms = Histograms(name, text, labels=labels, buckets=buckets)
        self.all.append(histograms)
        return histograms

    def _of_requests(self) -> None:
        self.requests = self._counts(
            "requests", "Requests that left, by outcome and, for rejections, reason.", "outcome", "reason"
        )
        self.decisions = self._counts(
            "decisions",
            "Decisions: sent to a pod, held, refused; and what for. A request that was held has several.",
            "outcome",
            "reason",
        )
        self.latency = self._histograms(
            "latency_seconds",
            "Of served requests, from the arrival at the picker to the end of the answer.",
            buckets=promised_bounds(self._slo.latency_p95),
        )
        self.ttft = self._histograms(
            "ttft_seconds",
            "From the arrival at the picker to the first bytes of the answer's body.",
            buckets=promised_bounds(self._slo.ttft_p95),
        )
        self.picks = self._counts(
            "picks",
            "Dispatches by adapter and by the tier in which the pod was believed to have it.",
            "adapter",
            "tier",
        )
        self.pod_picks = self._counts(
            "pod_picks",
            "Dispatches by pod and by the tier in which it was believed to have the adapter.",
            "pod",
            "tier",
        )
        on_gpu = "Requests whose adapter was on the GPU when they ran, by the tier at their dispatch."
        self.hits = self._counts("hits", on_gpu, "adapter", "tier")
        self.pod_hits = self._counts("pod_hits", on_gpu, "pod", "tier")

    def _of_loads(self) -> None:
        waited = "Loads begun while at least one request waited for them, by the tier they came from."
        self.swaps = self._counts("swaps", waited, "pod", "from")
        self.loads = self._counts(
            "loads",
            "Loads of an adapter into a GPU slot, by who caused them and the tier they came from.",
            "pod",
            "by",
            "from",
        )
        self.failures = self._counts("load_failures", "Loads that failed.", "pod")
        self.coalesced = self._counts(
            "loads_coalesced", "Requests that joined a load in progress instead of causing one.", "pod"
        )

        self.prefills_failed = self._counts(
            "prefills_failed",
            "Prefills that did not come to a good end, by the pod that was to do them and by why.",
            "pod",
            "why",
        )

    def _of_slots(self) -> None:
        self.evictions = self._counts(
            "evictions", "Adapters that left a GPU slot, as far as we believe, by what made them.", "pod", "by"
        )
        self.residency = self._histograms(
            "residency_seconds",
            "From the begin of an adapter's load to its leaving the slot; of those that have left.",
            "pod",
            buckets=STAY_BUCKETS,
        )
        self.unused = self._histograms(
            "hit_to_evict_seconds",
            "From the last use of an adapter on the pod, the end of a request, to its leaving its slot there.",
            "pod",
            buckets=UNUSED_BUCKETS,
        )

    def _of_adapters(self) -> None:
        self.adapter_loads = self._counts(
            "adapter_loads", "Loads into a GPU slot, by adapter and the tier they came from.", "adapter", "from"
        )
        self.adapter_swaps = self._counts(
            "adapter_swaps", "Loads begun while at least one request waited for them, by adapter.", "adapter"
        )
        self.adapter_evictions = self._counts("adapter_evictions", "Times that the adapter left a GPU slot.", "adapter")
        self.adapter_failures = self._counts("adapter_load_failures", "Loads of the adapter that failed.", "adapter")
        self.adapter_coalesced = self._counts(
            "adapter_loads_coalesced",
            "Requests for the adapter that joined a load in progress instead of causing one.",
            "adapter",
        )
        self.adapter_residency = self._histograms(
            "adapter_residency_seconds",
            "From the begin of a load of the adapter to its leaving the slot; of those that have left.",
            "adapter",
            buckets=STAY_BUCKETS,
        )
        self.adapter_unused = self._sums(
            "adapter_hit_to_evict_seconds",
            "From the last use of the adapter on a pod, the end of a request, to its leaving its slot there.",
            "adapter",
        )
        self.adapter_latency = self._sums(
            "adapter_latency_seconds",
            "Of served requests for the adapter, from the arrival at the picker to the end of the answer.",
            "adapter",
        )

    def _of_the_rest(self) -> None:
        self.pressure = self._counts(
            "pressure_changes", "Changes of a pod's pressure tier, by the tier that it came to.", "pod", "tier"
        )
        self.alerts = self._counts("alerts_raised", "Alerts raised.", "alert")
        self.refusals = self._counts(
            "placement_refusals", "Times that the guard began to refuse a load, by its reason.", "reason"
        )
        self.pick_seconds = self._histograms("pick_seconds", "Time of one decision.", buckets=PICK_BUCKETS)
        self.hold_seconds = self._histograms(
            "hold_seconds",
            "Time that requests waited at the picker, by what they waited for.",
            "for",
            buckets=HOLD_BUCKETS,
        )

    def freeze(self) -> None:
        """Show everything as it is now."""
        for family in self.all:
            family.freeze()

    def forget_pod(self, pod: str) -> None:
        """Drop the series of a pod that is gone."""
        for family in self.all:
            family.drop("pod", pod)

    def forget_adapter(self, adapter: str) -> None:
        """End the series of an adapter that has no label of its own any more."""
        for family in self.all:
            family.drop("adapter", adapter)

    def collect(self) -> Iterator[Metric]:
        """One family after the other, as frozen last."""
        for family in self.all:
            yield from family.collect()
