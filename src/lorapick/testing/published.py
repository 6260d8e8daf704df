"""A picker's published views made of values, for tests of everything that shows them.

In: the values. Out: an object with the shape of `live.publish.Published`. Not here: a picker.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lorapick.live.publish import AdapterRow, AlertRow, DecisionRow, FleetSnapshot, InMemory, PodRow, Totals
from lorapick.model.picks import Belief, Explanation, PodVerdict, Terms
from lorapick.model.pods import GpuSource
from lorapick.model.reasons import Reason
from lorapick.model.signals import FleetSignals, SignalPoint, Signals
from lorapick.model.tiers import Evidence, Source, Tier
from lorapick.model.units import PodName, RequestId


@dataclass
class ValuesPublished:
    """Gives back what it was given; fields may be replaced at any time."""

    fleet_now: FleetSnapshot
    beliefs: Sequence[Belief] = ()
    adapter_rows: Sequence[AdapterRow] = ()
    decision_rows: Sequence[DecisionRow] = ()
    explanations: dict[RequestId, Explanation] = field(default_factory=dict)
    alert_rows: Sequence[AlertRow] = ()
    signals_now: Signals | None = None
    points: Sequence[SignalPoint] = ()
    ledger_file: Path | None = None

    def fleet(self) -> FleetSnapshot:
        """See `Published`."""
        return self.fleet_now

    def residency(self) -> Sequence[Belief]:
        """See `Published`."""
        return self.beliefs

    def memory(self, *, least: Tier = Tier.CPU) -> dict[PodName, list[InMemory]]:
        """See `Published`: made of the beliefs."""
        found: dict[PodName, list[InMemory]] = {}
        for belief in self.beliefs:
            if belief.tier >= least:
                here = InMemory(
                    belief.adapter, belief.tier, belief.since, belief.source, belief.in_flight, belief.pinned
                )
                found.setdefault(belief.pod, []).append(here)
        return found

    def adapters(self) -> Sequence[AdapterRow]:
        """See `Published`."""
        return self.adapter_rows

    def decisions(self, limit: int) -> Sequence[DecisionRow]:
        """See `Published`."""
        return self.decision_rows[:limit]

    def explain(self, request_id: RequestId) -> Explanation | None:
        """See `Published`."""
        return self.explanations.get(request_id)

    def alerts(self) -> Sequence[AlertRow]:
        """See `Published`."""
        return self.alert_rows

    def ledger(self) -> Path | None:
        """See `Published`."""
        return self.ledger_file

    def signals(self) -> Signals:
        """See `Published`."""
        return self.signals_now or Signals(
            now=self.fleet_now.now, fleet=FleetSignals(requests_per_second=0.0, swaps_per_second=0.0)
        )

    def history(self) -> Sequence[SignalPoint]:
        """See `Published`."""
        return self.points


WEIGHTS = {"adapter": 0.50, "kv": 0.20, "queue": 0.15, "gpu": 0.15}


def worked_example(request_id: RequestId = "req-1") -> Explanation:
    """The article's decision: pod-02 wins with 0.79625 against pod-05's 0.282; pod-07 is filtered out."""
    winner = PodVerdict(
        pod="pod-02", won=True, reason=None, score=0.79625, tier=Tier.GPU_SERVING, source=Source.INFERRED,
        terms=Terms(adapter=1.0, kv=0.6, queue=0.625, gpu=0.55), queue_depth=3.0, max_queue=8, gpu_source=GpuSource.POD,
        since=20.0, last_evidence=98.6, evidence=Evidence.SCRAPE,
    )  # fmt: skip
    loser = PodVerdict(
        pod="pod-05", won=False, reason=Reason.OUTSCORED, score=0.282, tier=Tier.DISK, source=Source.REPORTED,
        terms=Terms(adapter=0.0, kv=0.0, queue=1.0, gpu=0.88), queue_depth=0.0, max_queue=8,
        gpu_source=GpuSource.STAND_IN,
    )  # fmt: skip
    filtered = PodVerdict(
        pod="pod-07", won=False, reason=Reason.QUEUE_FULL, score=None, tier=None, source=None, terms=None,
        queue_depth=8.0, max_queue=8, gpu_source=GpuSource.UNKNOWN,
    )  # fmt: skip
    return Explanation(
        request_id=request_id, t=99.0, model="legal", adapter="legal-assistant-v2", policy="weighted", weights=WEIGHTS,
        outcome="dispatched", reason=None, verdicts=(winner, loser, filtered), fallbacks=("pod-05",),
    )  # fmt: skip


def small_fleet() -> ValuesPublished:
    """Three pods with four slots each, two adapters, three decisions."""
    explanation = worked_example()
    held = worked_example("req-2")
    return ValuesPublished(
        fleet_now=FleetSnapshot(
            now=100.0, wall=1_800_000_100.0, started_at=1_800_000_000.0, version=42, policy="weighted",
            totals=Totals(
                arrivals=10, served=5, failed=1, rejected=1, abandoned=1, in_flight=1, held=1, dispatched=8,
                picks_by_tier={"gpu_serving": 5, "disk": 3}, loads_inferred=3,
            ),
            pods=(
                PodRow(name="pod-02", address="127.0.0.1:8102", ready=True, queue_depth=3.0, max_queue=8, running=5,
                       in_flight=1, gpu_utilization=0.45, gpu_source=GpuSource.POD, kv_usage=0.3, slots=4,
                       slots_used=2, free_slots=2, scrape_age_s=0.4),
                PodRow(name="pod-05", address="127.0.0.1:8105", ready=True, queue_depth=0.0, max_queue=8, slots=4,
                       slots_used=4, free_slots=0, scrape_age_s=0.9, restarts=1),
                PodRow(name="pod-07", address="127.0.0.1:8107", ready=False, reason=Reason.STALE, max_queue=8, slots=4,
                       last_error="refused"),
            ),
        ),
        beliefs=(
            Belief(pod="pod-02", adapter="legal-assistant-v2", tier=Tier.GPU_SERVING, since=20.0,
                   source=Source.INFERRED, in_flight=1),
            Belief(pod="pod-02", adapter="acme/code@7", tier=Tier.LOADING, since=99.9, source=Source.COMMANDED),
            Belief(pod="pod-05", adapter="legal-assistant-v2", tier=Tier.CPU, since=50.0, source=Source.REPORTED),
        ),
        adapter_rows=(
            AdapterRow(name="acme/code@7", pods={"loading": ("pod-02",)}, requests=2),
            AdapterRow(name="legal-assistant-v2", declared=True, rank=16,
                       pods={"gpu_serving": ("pod-02",), "cpu": ("pod-05",)}, requests=8, in_flight=1),
        ),
        decision_rows=(
            DecisionRow(request_id="req-3", t=99.5, model="legal", adapter="legal-assistant-v2", pod="pod-02",
                        tier="gpu_serving", outcome="dispatched", score=0.79625, explained=False),
            DecisionRow(request_id="req-2", t=99.2, model="acme/code@7", adapter="acme/code@7", outcome="held",
                        reason=Reason.HELD_FOR_LOAD),
            DecisionRow(request_id="req-1", t=99.0, model="legal", adapter="legal-assistant-v2", pod="pod-02",
                        tier="gpu_serving", outcome="dispatched", score=0.79625),
        ),
        explanations={"req-1": explanation, "req-2": held},
    )  # fmt: skip
