"""Metric families about certificates: `lorapick_tls_*`.

In: a keeper. Out: prometheus_client families. Not here: what is counted (see `live.tls.keeper`).
"""

from collections.abc import Iterator

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from lorapick.live.families_kinds import PREFIX
from lorapick.live.tls.keeper import Keeper


class TlsFamilies(Collector):
    """All of them, as they are when asked."""

    def __init__(self, keeper: Keeper) -> None:
        """Show this one's."""
        self._keeper = keeper

    def collect(self) -> Iterator[Metric]:
        """One family after the other."""
        keeper = self._keeper
        text = "Unix time at which the certificate that a server shows ends."
        until = GaugeMetricFamily(f"{PREFIX}tls_not_after_seconds", text, labels=["server"])
        for surface in keeper.surfaces:
            until.add_metric([surface], keeper.not_after)
        yield until
        text = "Changed files of certificates: taken, or refused while the last good stay."
        reloads = CounterMetricFamily(f"{PREFIX}tls_reloads", text, labels=["outcome"])
        reloads.add_metric(["taken"], keeper.reloads)
        reloads.add_metric(["refused"], keeper.failures)
        yield reloads
        text = "Whether the certificate's files, as they are now, cannot be used: 1 or 0."
        yield GaugeMetricFamily(f"{PREFIX}tls_files_broken", text, value=float(keeper.problem is not None))
