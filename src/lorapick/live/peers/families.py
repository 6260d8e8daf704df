"""Metric families about peers: `lorapick_peers_*`.

In: counts, the fleet. Out: prometheus_client families. Not here: what is counted (see `counts`, `core.peers.claims`).
"""

from collections.abc import Callable, Iterator

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from lorapick.core.fleet import Fleet
from lorapick.live.families_kinds import PREFIX
from lorapick.live.peers.counts import PeersCounts
from lorapick.live.peers.leading import StoreLeader

OUTCOMES = ("granted", "denied", "timeout", "unreachable", "crowded", "late")
_PLAIN: tuple[tuple[str, str, Callable[[PeersCounts], int]], ...] = (
    ("peers_said", "Messages to other pickers.", lambda counts: counts.said),
    ("peers_heard", "Messages of other pickers that counted.", lambda counts: counts.heard),
    ("peers_missed", "Of these, the ones that only a look at the store brought.", lambda counts: counts.missed),
    ("peers_malformed", "Messages that could not be read.", lambda counts: counts.malformed),
    ("peers_too_large", "Messages of ours that were not sent.", lambda counts: counts.too_large),
    ("peers_dropped", "Claims and releases that found too many before them.", lambda counts: counts.dropped),
    ("peers_fenced", "Commands to pods held back because this picker did not lead.", lambda counts: counts.fenced),
)


class PeersFamilies(Collector):
    """All of them, as they are when asked."""

    def __init__(self, counts: PeersCounts, fleet: Fleet, *, leader: StoreLeader | None) -> None:
        """Show these; without a leader, leading is none of this store's business."""
        self._counts = counts
        self._fleet = fleet
        self._leader = leader

    def collect(self) -> Iterator[Metric]:
        """One family after the other."""
        peers, counts = self._fleet.state.peers, self._counts
        up = float(peers.claims.reachable)
        yield GaugeMetricFamily(f"{PREFIX}peers_up", "Whether the store that pickers share is in reach.", value=up)
        known = len(peers.marks.peers)
        yield GaugeMetricFamily(f"{PREFIX}peers_known", "Other pickers that were heard of late.", value=known)
        claims = CounterMetricFamily(
            f"{PREFIX}peers_claims",
            "Loads of adapters that no pod had: what came of asking the other pickers.",
            labels=["outcome"],
        )
        for outcome in OUTCOMES:
            claims.add_metric([outcome], peers.claims.counts[outcome])
        yield claims
        losses = CounterMetricFamily(f"{PREFIX}peers_losses", "Times that the store was lost.", labels=["error"])
        for error, count in sorted(dict(counts.losses).items()):
            losses.add_metric([error], count)
        yield losses
        for name, text, of in _PLAIN:
            yield CounterMetricFamily(f"{PREFIX}{name}", text, value=of(counts))
        if self._leader is not None:
            leads = float(self._leader.leads)
            text = "Whether this picker tells pods what to load: 1 or 0."
            yield GaugeMetricFamily(f"{PREFIX}leader", text, value=leads)
