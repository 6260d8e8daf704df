"""Views of a running picker for people: the state of the core as the values of `live.publish`.

In: the driver. Out: snapshots that do not change. Not here: HTTP (see `live.admin`), or any way to change the picker.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from msgspec.structs import replace

from lorapick.core.columns import REASONS
from lorapick.core.explain import Decision
from lorapick.core.fleet import Fleet
from lorapick.core.picking.filters import STALE
from lorapick.core.placement import sides
from lorapick.core.placement.commands import Kind
from lorapick.core.signals.both_sides import unreached
from lorapick.core.signals.views import look
from lorapick.live.control.counts import ControlCounts
from lorapick.live.envoy.watch import EnvoyWatch
from lorapick.live.memory import in_memory
from lorapick.live.publish import (
    AdapterRow,
    AlertRow,
    DecisionRow,
    FleetSnapshot,
    InMemory,
    PlacementNow,
    PodRow,
    Splits,
    Totals,
)
from lorapick.live.transport_counts import TransportCounts
from lorapick.model.picks import OF_PREFILL, Belief, Explanation, What
from lorapick.model.pods import Pod
from lorapick.model.reasons import Reason
from lorapick.model.requests import Outcome
from lorapick.model.signals import SignalPoint, Signals
from lorapick.model.tiers import Tier
from lorapick.model.units import AdapterName, PodName, RequestId, Seconds


class Shown(Protocol):
    """What has a core to be shown: the driver, or a simulated fleet."""

    fleet: Fleet

    @property
    def started_at(self) -> float:
        """Unix time."""
        ...

    def now(self) -> Seconds:
        """The time on the core's clock."""
        ...


class PublishedViews:
    """Implements `live.publish.Published` over a driver."""

    def __init__(
        self,
        driver: Shown,
        *,
        transport: TransportCounts | None = None,
        envoy: EnvoyWatch | None = None,
        commands: Callable[[], ControlCounts] | None = None,
        ledger: Path | None = None,
    ) -> None:
        """Show `driver`, with what the transport, Envoy and the commands to pods count beside it, and its ledger."""
        self._driver = driver
        self._transport = TransportCounts() if transport is None else transport
        self._envoy = envoy
        self._commands = commands
        self._ledger = ledger

    def fleet(self) -> FleetSnapshot:
        """Pods and totals now."""
        state, now = self._driver.fleet.state, self._driver.now()
        return FleetSnapshot(
            now=now,
            wall=time.time(),
            started_at=self._driver.started_at,
            version=state.columns.version,
            policy=state.policy.name,
            totals=self._totals(),
            pods=tuple(self._pod(row, pod, now) for row, pod in state.columns.live()),
            placement=self._placement(now),
            splits=self._splits(now),
            bounds=state.settings.alerts,
            slo=state.settings.slo,
        )

    def _placement(self, now: Seconds) -> PlacementNow:
        state = self._driver.fleet.state
        placement, targets = state.placement, state.columns.targets
        commands = placement.commands
        done = None if self._commands is None else self._commands()
        longest = [now - since for since in placement.missing_since.values()]
        return PlacementNow(
            given=_nested(commands.given.items()),
            ended={} if done is None else _nested(done.ended.items()),
            begun={} if done is None else done.begun,
            seconds={} if done is None else done.seconds,
            touches=commands.succeeded.get(Kind.TOUCH, 0),
            pins_wanted=sum(len(rows) for rows in placement.pinned.rows.values()),
            pins_missing=len(placement.missing_since),
            pins_without_place=len(placement.pinned.problems),
            pin_missing_longest=max([placement.longest_missing, *longest]),
            moves_last_minute=commands.moves_in_last_minute(now),
            orders=len(placement.orders),
            warming=tuple(targets[row].pod for row in placement.warming),
            leaving=tuple(targets[row].pod for row in placement.leaving),
            plan_version=placement.plan_version,
        )

    def _splits(self, now: Seconds) -> Splits:
        state = self._driver.fleet.state
        tally = state.tally
        return Splits(
            results=dict(tally.splits),
            picks_by_tier=dict(tally.legs_by_tier),
            failed={"failed": tally.legs_failed, "lost": tally.legs_lost, "overdue": tally.legs_overdue},
            reservations_moved=dict(tally.reservations_moved),
            reserved_lost=dict(tally.reserved_lost),
            late_loads=tally.late_loads,
            seconds_per_token=state.legs.per_token if state.splits else None,
            lately=state.signals.handovers.lately(now) if state.splits else {},
            unreached=unreached(state, now=now),
        )

    def _totals(self) -> Totals:
        state = self._driver.fleet.state
        tally = state.tally
        envoy = None if self._envoy is None else self._envoy.counters
        return Totals(
            arrivals=tally.arrivals,
            served=tally.outcomes[Outcome.SERVED],
            failed=tally.outcomes[Outcome.FAILED],
            rejected=tally.outcomes[Outcome.REJECTED],
            abandoned=tally.outcomes[Outcome.ABANDONED],
            in_flight=len(state.flights) - state.waiting,
            held=state.waiting,
            dispatched=tally.dispatched,
            picks_by_tier=dict(tally.picks_by_tier),
            loads_inferred=tally.loads,
            waiting={
                Reason.HELD_FOR_LOAD: len(state.holds),
                Reason.HELD_FOR_SLOT: len(state.queues),
                **({Reason.HELD_FOR_CLAIM: len(state.peers.claims)} if state.peers.on else {}),
            },
            expired={reason: tally.expired[reason] for reason in (Reason.HELD_FOR_LOAD, Reason.HELD_FOR_SLOT)},
            probation=tally.on_probation,
            turns=tally.turns,
            quarantines=tally.quarantines,
            unloads=tally.unloads,
            unload_failures=tally.unload_failures,
            given_back=tally.given_back,
            passed=dict(self._transport.passed),
            faults={**self._transport.faults(), "scoring_error": tally.scoring_errors},
            envoy_requests=None if envoy is None else envoy.requests,
            envoy_without_picker=None if envoy is None else envoy.without_picker,
        )

    def _pod(self, row: int, pod: Pod, now: Seconds) -> PodRow:
        state = self._driver.fleet.state
        columns, load, home = state.columns, state.loads[row], state.residency.home(row)
        gpu, source = load.gpu_utilization()
        code = columns.gate[row] or (STALE if columns.fresh_until[row] < now else 0)
        return PodRow(
            name=pod.name,
            address=pod.address,
            role=pod.role,
            engine=pod.engine,
            zone=pod.zone,
            ready=code == 0,
            reason=REASONS[code],
            queue_depth=columns.queue[row],
            max_queue=pod.limits.max_queue,
            running=load.running,
            in_flight=load.in_flight,
            gpu_utilization=gpu,
            gpu_source=source,
            kv_usage=load.kv_usage,
            slots=home.shadow.gpu_slots,
            slots_used=home.shadow.gpu_slots - home.shadow.free,
            free_slots=home.shadow.free,
            reserved=len(home.reserved),
            prefill_tokens=state.legs.queued.get(row, 0),
            scrape_age_s=now - load.last_report if load.last_report is not None else None,
            last_error=load.detail or None,
            restarts=load.restarts,
            loading=home.loading,
            pressure=load.pressure_tier.word if load.last_report is not None else None,
            base_model=pod.base_model,
            max_lora_rank=int(columns.max_rank[row]),
            max_num_seqs=pod.limits.max_num_seqs,
            labels=pod.labels,
        )

    def residency(self) -> Sequence[Belief]:
        """Every belief, by pod and adapter."""
        state = self._driver.fleet.state
        beliefs = state.residency.beliefs()
        if len(sides.there(state)) == 1:
            return [*beliefs]
        of = {name: sides.of(state, row) for name, row in state.columns.row_of.items()}
        return [replace(belief, side=of[belief.pod]) for belief in beliefs]

    def memory(self, *, least: Tier = Tier.CPU) -> Mapping[PodName, Sequence[InMemory]]:
        """What each pod has in some memory, without making all that is believed of it."""
        return in_memory(self._driver.fleet.state, least=least)

    def adapters(self) -> Sequence[AdapterRow]:
        """Every adapter known, by name."""
        state = self._driver.fleet.state
        where: dict[AdapterName, dict[str, list[PodName]]] = {}
        in_flight: Counter[AdapterName] = Counter()
        on_side: dict[AdapterName, dict[str, list[PodName]]] = {}
        for belief in self.residency():
            where.setdefault(belief.adapter, {}).setdefault(belief.tier.word, []).append(belief.pod)
            if belief.side is not None and belief.tier.on_gpu:
                on_side.setdefault(belief.adapter, {}).setdefault(belief.side.value, []).append(belief.pod)
            in_flight[belief.adapter] += belief.in_flight
        return [
            AdapterRow(
                name=name,
                declared=name in state.adapters and state.adapters[name].declared,
                rank=state.adapters[name].rank if name in state.adapters else None,
                base_model=state.adapters[name].base_model if name in state.adapters else None,
                pods={tier: tuple(pods) for tier, pods in where.get(name, {}).items()},
                requests=state.tally.by_adapter[name],
                in_flight=in_flight[name],
                sides={side: tuple(pods) for side, pods in on_side.get(name, {}).items()},
            )
            for name in sorted({**dict.fromkeys(state.residency.names()), **dict.fromkeys(where)})
        ]

    def decisions(self, limit: int) -> Sequence[DecisionRow]:
        """The last decisions, newest first."""
        return [_decision_row(kept) for kept in self._driver.fleet.state.journal.latest(limit)]

    def explain(self, request_id: RequestId) -> Explanation | None:
        """One decision in full."""
        return self._driver.fleet.state.journal.explain(request_id)

    def alerts(self) -> Sequence[AlertRow]:
        """Alerts that stand, with the facts of the last look."""
        standing = self._driver.fleet.state.alerts.standing
        return [
            AlertRow(name=alert, since=since, severity=alert.severity, facts=facts)
            for alert, (since, facts) in standing.items()
        ]

    def ledger(self) -> Path | None:
        """The ledger's file, as `ledger.path` says."""
        return self._ledger

    def signals(self) -> Signals:
        """What shows thrash as thrash; at most a second old."""
        return look(self._driver.fleet.state, now=self._driver.now())

    def history(self) -> Sequence[SignalPoint]:
        """The lines of the last hour."""
        return tuple(self._driver.fleet.state.signals.points)


def _decision_row(kept: Decision) -> DecisionRow:
    pick = kept.pick
    of_prefill = [came.what.value for came in kept.came if came.what in OF_PREFILL]
    served = [came.pod for came in kept.came if came.what in (What.SERVED_BY, What.WENT)]
    return DecisionRow(
        request_id=pick.request_id,
        t=kept.t,
        model=kept.model,
        adapter=pick.adapter,
        pod=pick.pod,
        tier=pick.tier.word if pick.tier is not None else None,
        outcome=kept.outcome,
        reason=pick.reason,
        score=pick.score,
        prefill=pick.prefill,
        prefill_came=of_prefill[-1] if of_prefill else None,
        served_by=served[-1] if served else None,
    )


def _nested(counts: Iterable[tuple[tuple[str, str], int]]) -> dict[str, dict[str, int]]:
    """Counts by two words."""
    found: dict[str, dict[str, int]] = {}
    for (first, second), count in counts:
        found.setdefault(str(first), {})[str(second)] = count
    return found
