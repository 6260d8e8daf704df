"""Views of placement for people: what is wanted, where it is believed to be, and what stands in the way.

In: the driver. Out: the values of `wire.admin_answers`. Not here: HTTP (see `live.admin_changes`), changes (see
`live.changes`), or decisions (see `core.placement`).
"""

from collections.abc import Iterator, Mapping

from lorapick.core.placement.groups import Follower
from lorapick.core.placement.guard import rows_loading
from lorapick.core.placement.state import Order
from lorapick.core.state import FleetState
from lorapick.live.driver import Driver
from lorapick.model.placement import Why
from lorapick.model.tiers import Tier
from lorapick.model.units import AdapterName, PodName, Seconds
from lorapick.wire.admin_answers import (
    BudgetUse,
    CommandRow,
    FollowerRow,
    ForecastScore,
    ForecastState,
    GroupRow,
    GroupsAnswer,
    Intent,
    OrderRow,
    PinRow,
    PlacementAnswer,
    PlanState,
    RefusalRow,
    WantRow,
)

MOST_WANTS = 10_000


class PlacementViews:
    """Reads a driver's placement; gives values that do not change."""

    def __init__(self, driver: Driver) -> None:
        """Show `driver`."""
        self._driver = driver

    @property
    def _state(self) -> FleetState:
        return self._driver.fleet.state

    def placement(self) -> PlacementAnswer:
        """What should be where, beside what is believed."""
        state, now = self._state, self._driver.now()
        placement = state.placement
        wants = [*self._wants(placement.wanted)]
        unloads: dict[int, dict[AdapterName, Why]] = {}
        for (row, name), why in placement.unloads.items():
            unloads.setdefault(row, {})[name] = why
        return PlacementAnswer(
            now=now,
            enabled=state.settings.placement.enabled,
            pins=tuple(self._pin(name, now=now) for name in sorted(state.pins)),
            longest_pin_missing_s=placement.longest_missing,
            orders=tuple(_order(order, now=now) for order in placement.orders),
            wants_total=len(wants),
            wants=tuple(wants[:MOST_WANTS]),
            unloads=tuple(self._wants(unloads)),
            commands=tuple(self._commands(now=now)),
            refusals=tuple(self._refusals(now=now)),
            warming={self._pod(row): _age(since, now) for row, since in placement.warming.items()},
            leaving={self._pod(row): _age(now, until) for row, until in placement.leaving.items()},
            retiring=tuple(placement.retiring),
            problems=dict(placement.problems),
            plan=self._plan(),
            budgets=self._budgets(now=now),
            forecast=self._forecast(),
        )

    def groups(self) -> GroupsAnswer:
        """Who follows whom."""
        groups = self._state.placement.groups
        rows = [GroupRow(first=first, then=tuple(map(_follower, then))) for first, then in groups.everyone().items()]
        return GroupsAnswer(learning=groups.transitions is not None, groups=tuple(row for row in rows if row.then))

    def intents(self) -> Mapping[AdapterName, Intent]:
        """What is wanted of each adapter, and known of its files."""
        state = self._state
        placement = state.placement
        wanted: dict[AdapterName, dict[PodName, Why]] = {}
        for row, each in placement.wanted.items():
            for name, why in each.items():
                wanted.setdefault(name, {})[self._pod(row)] = why
        names = dict.fromkeys([*state.adapters, *state.pins, *wanted, *placement.problems, *placement.retiring])
        return {name: self._intent(name, wanted.get(name, {})) for name in names}

    def _intent(self, name: AdapterName, wanted: dict[PodName, Why]) -> Intent:
        placement, adapter = self._state.placement, self._state.adapters.get(name)
        return Intent(
            source=adapter.source if adapter is not None else None,
            revision=adapter.revision if adapter is not None else None,
            pin=self._state.pins.get(name),
            wanted=wanted,
            problem=placement.problems.get(name),
            facts=placement.facts.get(name),
            retiring=name in placement.retiring,
        )

    # -- parts of the placement

    def _pod(self, row: int) -> PodName:
        return self._state.columns.targets[row].pod

    def _pin(self, name: AdapterName, *, now: Seconds) -> PinRow:
        placement = self._state.placement
        rows = placement.pinned.rows.get(name, ())
        since = {row: placement.missing_since.get((row, name)) for row in rows}
        return PinRow(
            adapter=name,
            pin=self._state.pins[name],
            pods=tuple(map(self._pod, rows)),
            missing={self._pod(row): _age(at, now) for row, at in since.items() if at is not None},
            problem=placement.pinned.problems.get(name),
        )

    def _wants(self, wanted: Mapping[int, Mapping[AdapterName, Why]]) -> Iterator[WantRow]:
        for row in sorted(wanted):
            home = self._state.residency.home(row)
            for name, why in wanted[row].items():
                yield WantRow(pod=home.name, adapter=name, why=why, tier=self._tier(row, name))

    def _tier(self, row: int, name: AdapterName) -> str:
        cell = self._state.residency.home(row).cells.get(name)
        if cell is not None and cell.tier > Tier.DISK:
            return cell.tier.word
        known = self._state.residency.registry.accepts(row, name)
        return (Tier.DISK if known else Tier.UNREGISTERED).word

    def _commands(self, *, now: Seconds) -> Iterator[CommandRow]:
        commands = self._state.placement.commands
        for row, command in [*commands.under_way.items(), *commands.touches.items()]:
            yield CommandRow(
                pod=self._pod(row),
                kind=command.kind,
                adapter=command.adapter,
                why=command.why,
                age_s=_age(command.asked, now),
            )

    def _refusals(self, *, now: Seconds) -> Iterator[RefusalRow]:
        for (row, name), refusal in reversed(self._state.placement.refusals.items()):
            yield RefusalRow(
                pod=self._pod(row),
                adapter=name,
                why=refusal.why,
                reason=refusal.reason,
                age_s=_age(refusal.since, now),
            )

    def _plan(self) -> PlanState:
        placement, settings = self._state.placement, self._state.settings.placement
        return PlanState(
            on=placement.by_load,
            solver=settings.solver,
            version=placement.plan_version,
            asked=placement.asked_version,
            placed=dict(placement.plan),
        )

    def _budgets(self, *, now: Seconds) -> BudgetUse:
        state = self._state
        commands = state.placement.commands
        loads = {self._pod(row): commands.loads_in_last_minute(row, now=now) for row in state.loads}
        return BudgetUse(
            moves_last_minute=commands.moves_in_last_minute(now),
            moves_per_minute=state.settings.placement.moves_per_minute,
            pods_loading=rows_loading(state),
            most_pods_loading=state.gates.most_loading,
            loads_last_minute={pod: count for pod, count in loads.items() if count},
            loads_per_pod_per_minute=state.settings.budgets.loads_per_pod_per_minute,
        )

    def _forecast(self) -> ForecastState:
        scorer = self._state.placement.scorer
        days = scorer.report().days if scorer is not None else ()
        scores = [
            ForecastScore(
                day=each.day,
                model=each.model,
                requests=each.requests,
                held=each.held,
                cold_per_1000=each.cold_per_1000,
                regret=each.regret,
            )
            for each in days
        ]
        return ForecastState(uses=self._state.settings.placement.forecast, scores=tuple(scores))


def _order(order: Order, *, now: Seconds) -> OrderRow:
    want = order.want
    return OrderRow(
        adapter=want.adapter,
        order=want.name,
        replicas=len(want.pods) or want.replicas,
        pods=want.pods,
        selector=dict(want.selector),
        once=order.once,
        leaves=order.leaves,
        age_s=_age(order.asked, now),
        ends_in_s=None if want.until is None else _age(now, want.until),
    )


def _follower(follower: Follower) -> FollowerRow:
    return FollowerRow(
        adapter=follower.adapter,
        source=follower.source,
        group=follower.group,
        support=follower.support,
        confidence=follower.confidence,
    )


def _age(since: Seconds, now: Seconds) -> Seconds:
    return round(max(0.0, now - since), 3)
