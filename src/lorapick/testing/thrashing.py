"""Published views of a fleet that thrashes, of any size, for tests of what shows them and for their cost.

In: sizes. Out: values that go on with time: adapters come and go, requests are decided. Not here: a picker; the
figures fit one another roughly, not by any law.
"""

import random

import msgspec

from lorapick.live.publish import AlertRow, DecisionRow, FleetSnapshot, PodRow, Totals
from lorapick.model.picks import Belief, Explanation
from lorapick.model.pods import GpuSource
from lorapick.model.signals import AdapterSignals, FleetSignals, PodSignals, SignalPoint, Signals
from lorapick.model.tiers import Source, Tier
from lorapick.model.units import PodName, RequestId, Seconds
from lorapick.testing.published import ValuesPublished, worked_example

QUEUE = 8
STARTED = 1_800_000_000.0
HOUR: Seconds = 3600.0
EVERY: Seconds = 5.0


class ThrashingFleet(ValuesPublished):
    """`pods` pods of `slots` slots each, and `adapters` adapters that do not fit."""

    def __init__(self, *, pods: int = 8, slots: int = 4, adapters: int = 60, seed: int = 1) -> None:
        self._random = random.Random(seed)
        self._names = [f"tenant-{number:04d}" for number in range(adapters)]
        self._pods = [f"pod-{number:03d}" for number in range(pods)]
        self._slots = slots
        self._grid: dict[PodName, list[Belief]] = {}
        self._decided = 0
        empty = FleetSnapshot(now=0.0, wall=STARTED, started_at=STARTED, version=1, policy="weighted", totals=Totals())
        super().__init__(fleet_now=empty)
        self.alert_rows = [
            AlertRow(name="thrash", since=HOUR - 300, severity="page", facts={"swaps_per_second": 0.62, "limit": 0.5}),
            AlertRow(name="new_adapters", since=HOUR - 1500, facts={"adapters": len(self._names) // 3}),
        ]
        self.points = [self._point(t * EVERY) for t in range(int(HOUR / EVERY) + 1)]
        self._now = HOUR
        for pod in self._pods:
            self._grid[pod] = [
                self._belief(pod, name, place=place)
                for place, name in enumerate(self._random.sample(self._names, 2 * slots))
            ]
        self.go_on(0.0)

    def go_on(self, seconds: Seconds) -> None:
        """Time passes: every fourth pod exchanges an adapter, requests come and go."""
        self._now += seconds
        for pod in self._pods:
            if self._random.random() < seconds / 4:
                self._exchange(pod)
        self.beliefs = [belief for pod in self._pods for belief in self._grid[pod]]
        self.decision_rows = [*(self._decision() for _ in range(max(1, int(5 * seconds)))), *self.decision_rows][:100]
        self.fleet_now = self._fleet()
        self.signals_now = self._signals()
        if self._now - self.points[-1].t >= EVERY:
            self.points = [*self.points[1:], self._point(self._now)]

    def _exchange(self, pod: PodName) -> None:
        beliefs = self._grid[pod]
        here = {belief.adapter for belief in beliefs}
        new = self._random.choice([name for name in self._names if name not in here])
        place = self._random.randrange(self._slots)
        beliefs[place] = Belief(pod=pod, adapter=new, tier=Tier.LOADING, since=self._now, source=Source.INFERRED)
        for other, belief in enumerate(beliefs[: self._slots]):
            if other != place and belief.tier is Tier.LOADING:
                beliefs[other] = msgspec.structs.replace(belief, tier=Tier.GPU_SERVING, in_flight=1, since=self._now)

    def _belief(self, pod: PodName, name: str, *, place: int) -> Belief:
        on_gpu = place < self._slots
        serving = on_gpu and self._random.random() < 0.6
        tier = Tier.GPU_SERVING if serving else Tier.GPU_IDLE if on_gpu else Tier.CPU
        return Belief(
            pod=pod, adapter=name, tier=tier, since=self._now - self._random.expovariate(1 / 40),
            source=Source.INFERRED, in_flight=self._random.randint(1, 4) if serving else 0,
            pinned=on_gpu and self._random.random() < 0.05,
        )  # fmt: skip

    def _decision(self) -> DecisionRow:
        self._decided += 1
        name = self._random.choice(self._names)
        return DecisionRow(
            request_id=f"req-{self._decided}", t=self._now, model=name, adapter=name,
            pod=self._random.choice(self._pods), outcome="dispatched", score=0.5,
            tier=self._random.choice(("gpu_serving", "gpu_idle", "cpu", "disk")),
        )  # fmt: skip

    def explain(self, request_id: RequestId) -> Explanation | None:
        """The worked example, as if it had been about this request's adapter."""
        row = next((row for row in self.decision_rows if row.request_id == request_id), None)
        if row is None:
            return None
        return msgspec.structs.replace(worked_example(request_id), model=row.model, adapter=row.adapter)

    def _fleet(self) -> FleetSnapshot:
        pods = tuple(
            PodRow(
                name=pod, address=f"127.0.0.1:{8100 + number}", ready=number != 2, max_queue=QUEUE, slots=self._slots,
                queue_depth=float(self._random.randint(0, QUEUE)), in_flight=self._random.randint(0, 12),
                gpu_utilization=0.94, gpu_source=GpuSource.POD, kv_usage=round(self._random.random(), 2),
                scrape_age_s=0.5,
            )
            for number, pod in enumerate(self._pods)
        )  # fmt: skip
        done = 50 * int(self._now)
        totals = Totals(arrivals=done + 40, served=done, in_flight=40, dispatched=done + 40)
        return msgspec.structs.replace(
            self.fleet_now, now=self._now, wall=STARTED + self._now, totals=totals, pods=pods
        )

    def _signals(self) -> Signals:
        share = 1 / len(self._names)
        return Signals(
            now=self._now,
            fleet=FleetSignals(
                requests_per_second=50.0, swaps_per_second=0.62, hit_ratio=0.41, believed_hit_ratio=0.55,
                mean_residency=41.0, latency_p50=1.4, latency_p95=8.2, error_ratio=0.01, useful_share=0.15,
                active_adapters=len(self._names), slots=len(self._pods) * self._slots,
                slots_used=len(self._pods) * self._slots, swap_queue=9, new_adapters=len(self._names) // 3,
                active_per_slot=len(self._names) / (len(self._pods) * self._slots),
            ),
            pods=tuple(self._pod_signals(pod) for pod in self._pods),
            adapters=tuple(
                AdapterSignals(
                    adapter=name, requests_per_second=round(50 * share * 2 * self._random.random(), 3), share=share,
                    hit_ratio=0.4, loads=number % 17, evictions=number % 13, mean_residency=40.0, latency_p95=8.0,
                    first_seen=0.0,
                )
                for number, name in enumerate(self._names)
            ),
        )  # fmt: skip

    def _pod_signals(self, pod: PodName) -> PodSignals:
        swaps = self._random.uniform(0.3, 0.9)
        return PodSignals(
            pod=pod, swaps_per_second=swaps, loads_per_second=swaps, evictions_per_second=swaps, hit_ratio=0.41,
            believed_hit_ratio=0.55, useful_share=0.15, mean_residency=self._slots / swaps, swap_queue=2,
        )  # fmt: skip

    def _point(self, t: Seconds) -> SignalPoint:
        worse = max(0.0, (t - 2100) / 1500)
        return SignalPoint(
            t=t, swaps_per_second=0.03 + 0.6 * min(1.0, worse), requests_per_second=50.0,
            hit_ratio=0.97 - 0.5 * min(1.0, worse), latency_p95=1.5 + 6.7 * min(1.0, worse * 0.9),
            useful_share=0.93 - 0.78 * min(1.0, worse), active_per_slot=1.25, mean_residency=400.0,
        )  # fmt: skip
