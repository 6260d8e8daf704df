"""Metric families about the API server: `lorapick_kubernetes_*` and `lorapick_leader`.

In: counts, watches, the leader. Out: prometheus_client families. Not here: what is counted (see `counts`).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from lorapick.live.families_kinds import PREFIX
from lorapick.live.kubernetes.counts import KubernetesCounts
from lorapick.live.kubernetes.leader import Leader
from lorapick.live.kubernetes.watching import Watching

_BY_KIND: tuple[tuple[str, str, Callable[[KubernetesCounts], Mapping[str, int]]], ...] = (
    ("kubernetes_lists", "Lists of objects read from the API server.", lambda counts: counts.lists),
    ("kubernetes_events", "Objects that were added, changed or deleted while watched.", lambda counts: counts.events),
    ("kubernetes_failures", "Requests that the API server refused or did not answer.", lambda counts: counts.failures),
    ("kubernetes_relists", "Watches that were too old to go on (410).", lambda counts: counts.relists),
    (
        "kubernetes_malformed",
        "Objects, or parts of them, that could not be read; what was known before stays.",
        lambda counts: counts.malformed,
    ),
)
_PLAIN: tuple[tuple[str, str, Callable[[KubernetesCounts], int]], ...] = (
    ("kubernetes_statuses", "Statuses of LoraAdapters written.", lambda counts: counts.statuses),
    (
        "kubernetes_status_conflicts",
        "Statuses not written because the object had changed; they are written later.",
        lambda counts: counts.status_conflicts,
    ),
    ("kubernetes_told", "Events made about LoraAdapters.", lambda counts: counts.told),
    ("kubernetes_untold", "Events left out, since there were too many.", lambda counts: counts.untold),
    (
        "kubernetes_fenced",
        "Commands to pods held back because this replica did not lead any more.",
        lambda counts: counts.fenced,
    ),
)


class KubernetesFamilies(Collector):
    """All of them, as they are when asked."""

    def __init__(
        self, counts: KubernetesCounts, *, watches: Callable[[], Sequence[Watching]], leader: Leader | None
    ) -> None:
        """Show these; without a leader this replica leads."""
        self._counts = counts
        self._watches = watches
        self._leader = leader

    def collect(self) -> Iterator[Metric]:
        """One family after the other; may run in another thread, so counters are copied first."""
        watches = self._watches()
        up = GaugeMetricFamily(
            f"{PREFIX}kubernetes_up",
            "Whether what is known of these objects is what the API server has.",
            labels=["kind"],
        )
        known = GaugeMetricFamily(f"{PREFIX}kubernetes_objects", "Objects known.", labels=["kind"])
        for each in watches:
            up.add_metric([each.kind], float(each.synced and each.problem is None))
            known.add_metric([each.kind], len(each.objects))
        yield up
        yield known
        for name, text, of in _BY_KIND:
            family = CounterMetricFamily(f"{PREFIX}{name}", text, labels=["kind"])
            for kind, count in sorted(dict(of(self._counts)).items()):
                family.add_metric([kind], count)
            yield family
        for name, text, count_of in _PLAIN:
            yield CounterMetricFamily(f"{PREFIX}{name}", text, value=count_of(self._counts))
        leads, losses = (True, 0) if self._leader is None else (self._leader.leads, self._leader.losses)
        yield GaugeMetricFamily(
            f"{PREFIX}leader", "Whether this replica tells pods what to load: 1 or 0.", value=float(leads)
        )
        text = "Times that this replica ceased to lead although it wanted to."
        yield CounterMetricFamily(f"{PREFIX}leader_losses", text, value=losses)
