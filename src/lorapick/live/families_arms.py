"""The metric families of a trial: both arms, and what would have been.

In: the core's counts, at each scrape. Out: families; none while there is no trial, and never was one. Names and labels:
docs/metrics.md. Not here: counting (see `core.arms`).
"""

from collections.abc import Iterator

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from lorapick.core.arms import Arms
from lorapick.core.arms_tally import ArmTally, Durations
from lorapick.live.families_kinds import PREFIX
from lorapick.model.arms import Arm

_PICKS = PREFIX + "arm_picks"


class ArmFamilies(Collector):
    """What a page shows of a trial."""

    def __init__(self) -> None:
        self._shown: list[Metric] = []

    def take(self, arms: Arms | None) -> None:
        """Show the counts as they are now: pages are made in another thread, while counting goes on."""
        self._shown = [] if arms is None or not arms.on else [*_of_arms(arms.tallies), *_of_would(arms)]

    def collect(self) -> Iterator[Metric]:
        """The families as of the last `take`."""
        yield from self._shown


def _of_arms(tallies: dict[Arm, ArmTally]) -> Iterator[Metric]:
    requests = CounterMetricFamily(PREFIX + "arm_requests", "Requests that left, by arm.", labels=("arm", "outcome"))
    picks = CounterMetricFamily(
        _PICKS, "Requests by arm and tier of the adapter on their pod when they came.", labels=("arm", "tier")
    )
    hits = CounterMetricFamily(
        PREFIX + "arm_hits", "Served requests whose adapter was in a GPU slot when they came, by arm.", labels=("arm",)
    )
    for arm, tally in tallies.items():
        for outcome, count in tally.outcomes.items():
            requests.add_metric((arm.value, outcome.value), count)
        for tier, count in tally.by_tier.items():
            picks.add_metric((arm.value, tier), count)
        hits.add_metric((arm.value,), tally.hits)
    yield from (requests, picks, hits)
    latencies = {arm: tally.latency for arm, tally in tallies.items()}
    yield _histogram("arm_latency_seconds", "Of served requests, from arrival to end, by arm.", of=latencies)
    firsts = {arm: tally.ttft for arm, tally in tallies.items()}
    yield _histogram(
        "arm_ttft_seconds", "From arrival to the first byte, where bodies are looked at, by arm.", of=firsts
    )


def _histogram(name: str, text: str, *, of: dict[Arm, Durations]) -> Metric:
    family = HistogramMetricFamily(PREFIX + name, text, labels=("arm",))
    for arm, durations in of.items():
        buckets = [(f"{bound}", float(count)) for bound, count in durations.cumulative()]
        family.add_metric((arm.value,), [*buckets, ("+Inf", float(durations.count))], durations.total)
    return family


def _of_would(arms: Arms) -> Iterator[Metric]:
    would = arms.would
    enforced = GaugeMetricFamily(PREFIX + "enforced_ratio", "Share of the requests that picks are in force for.")
    enforced.add_metric((), arms.mode.enforced)
    results = CounterMetricFamily(
        PREFIX + "would_picks", "Of the observed arm, what would have been decided.", labels=("result",)
    )
    for result, count in would.by_result.items():
        results.add_metric((result,), count)
    yield from (enforced, results)
    for name, text, count in (
        ("would_hits", "Of the observed arm, requests that would have found their adapter in a GPU slot.", would.hits),
        ("would_compared", "Of the observed arm, requests of which both pods are known.", would.compared),
        ("would_agreed", "Of these, the ones that went where they would have gone.", would.agreed),
    ):
        family = CounterMetricFamily(PREFIX + name, text)
        family.add_metric((), count)
        yield family
