"""The one door: everything that happens to a fleet goes through `Fleet.apply`.

In: events with their time. Out: effects for a driver to perform. State moves only here, and only by events;
the live picker feeds it from sockets, a simulator from a heap, and the same events give the same effects.
Not here: I/O, clocks, chance (the seed is an argument), or any rule (see the handlers and `core.picking`).

First reading path: `model.events`, `core.picking.pick`, this file, `core.requests`, `core.deciding`.
"""

from collections.abc import Sequence
from math import inf
from typing import Any, Protocol

from lorapick.core import alarms, intent, lost_slots, moving, operator, pods, prefilled, requests, splitting
from lorapick.core.invariants import check
from lorapick.core.peers import listening
from lorapick.core.placement import controller
from lorapick.core.state import FleetState
from lorapick.model import events
from lorapick.model.effects import Effect
from lorapick.model.settings import Settings
from lorapick.model.signals import Change
from lorapick.model.units import PodName, Seconds


class Handler(Protocol):
    """What one kind of event does."""

    def __call__(self, state: FleetState, event: Any, /, *, now: Seconds) -> list[Effect]:
        """Change the state and say what follows."""
        ...


HANDLERS: dict[type[events.Event], Handler] = {
    events.PodAppeared: pods.on_appeared,
    events.PodChanged: pods.on_changed,
    events.PodDraining: pods.on_draining,
    events.PodGone: pods.on_gone,
    events.PodReported: pods.on_reported,
    events.PodSilent: pods.on_silent,
    events.GpuReported: pods.on_gpu,
    events.KvStored: pods.on_kv_stored,
    events.KvRemoved: pods.on_kv_removed,
    events.KvCleared: pods.on_kv_cleared,
    events.RequestArrived: requests.on_arrived,
    events.RequestRefused: requests.on_refused,
    events.RequestDispatched: moving.on_dispatched,
    events.ResponseStarted: requests.on_response_started,
    events.BodyStarted: requests.on_body_started,
    events.PrefillEnded: prefilled.on_prefill_ended,
    events.RequestEnded: requests.on_ended,
    events.LoadStarted: operator.on_load_started,
    events.LoadSucceeded: operator.on_load_succeeded,
    events.LoadFailed: operator.on_load_failed,
    events.Evicted: operator.on_evicted,
    events.Unloaded: operator.on_unloaded,
    events.UnloadFailed: operator.on_unload_failed,
    events.PinSet: intent.on_pin_set,
    events.PinCleared: intent.on_pin_cleared,
    events.AdapterDeclared: intent.on_adapter_declared,
    events.AdapterChanged: intent.on_adapter_declared,
    events.AdapterRetired: intent.on_adapter_retired,
    events.ConfigChanged: intent.on_config_changed,
    events.LeadershipChanged: intent.on_leadership_changed,
    events.Ticked: operator.on_ticked,
    events.PeerReported: listening.on_reported,
    events.LoadClaimed: listening.on_claimed,
    events.PeersReached: listening.on_reachable,
    events.PlacementComputed: intent.on_placement_computed,
    events.TriggerFired: intent.on_trigger_fired,
    events.Registered: operator.on_registered,
    events.RegisterFailed: operator.on_register_failed,
    events.Touched: operator.on_touched,
    events.TouchFailed: operator.on_touch_failed,
    events.LoadAsked: intent.on_load_asked,
    events.UnloadAsked: intent.on_unload_asked,
    events.MoveAsked: intent.on_move_asked,
    events.AliasSet: intent.on_alias_set,
    events.AliasCleared: intent.on_alias_cleared,
    events.AdapterChecked: intent.on_adapter_checked,
    events.DemandRecalled: intent.on_demand_recalled,
}
"""Exactly one handler for each event (a test holds it)."""


class Fleet:
    """Decisions for one fleet of pods that share base models."""

    def __init__(self, settings: Settings, *, seed: int = 0, journal: bool = True) -> None:
        """Start without pods. Without `journal` no decision can be explained later, and each costs less."""
        self._state = FleetState(settings, seed=seed)
        self._state.journal.on = journal
        self._now: Seconds = float("-inf")
        self._owed: list[Effect] = []
        """Effects of time passing that an event which was refused did not bring out."""

    def apply(self, event: events.Event, now: Seconds) -> list[Effect]:
        """Take note of what happened and say what to do.

        `now` is in seconds on the driver's clock and never goes back.

        Raises:
            ValueError: time went back, a request id is in flight already, or settings name an unknown policy.
                The event changed nothing then.
        """
        if now < self._now:
            raise ValueError(
                f"time went back from {self._now} to {now} at event {event.id}; drivers give a monotonic clock"
            )
        self._now = now
        state = self._state
        state.now = now
        state.residency.changes.clear()
        if now >= state.residency.next_due:
            self._owed += operator.expire_loads(state, now=now, cause=event.id)
        if now >= state.legs.next_due:
            self._owed += prefilled.expire_legs(state, now=now, cause=event.id)
        if state.peers.on and now >= state.peers.next_due:
            self._owed += listening.expire(state, now=now, cause=event.id)
        changes = state.residency.changes
        state.signals.changed(changes)  # here already: an event that is refused takes nothing of this back
        expired = len(changes)
        answer = HANDLERS[type(event)](state, event, now=now)
        state.columns.version += 1
        if self._owed:
            there = [effect for effect in self._owed if getattr(effect, "pod", "") != self._left(event)]
            answer, self._owed = [*there, *answer], []
        if now >= state.placement.next_tick:
            answer = [*answer, *controller.tick(state, now=now, cause=event.id)]
        if state.residency.rows_absent:
            answer = [*answer, *splitting.bring_awaited(state, now=now, cause=event.id)]
        if state.peers.claims.ours:
            answer = [*answer, *listening.given_back(state, cause=event.id)]
        if state.residency.lost:
            answer = [*answer, *lost_slots.tell(state, cause=event.id)]
        if len(changes) > expired:
            state.signals.changed(changes[expired:])
        if alarms.due(state, now=now):
            answer = [*answer, *alarms.watch(state, now=now, cause=event.id)]
        return answer

    @staticmethod
    def _left(event: events.Event) -> PodName | None:
        """The pod that is no more: what was due to it before is due to nobody."""
        return event.pod if isinstance(event, events.PodGone) else None

    @property
    def changes(self) -> Sequence[Change]:
        """What came to another tier on some pod through the last event, in order; valid until the next one."""
        return self._state.residency.changes

    @property
    def state(self) -> FleetState:
        """The state, to be read only: for views, explanations and tests."""
        return self._state

    def next_wakeup(self) -> Seconds | None:
        """When a Ticked is needed at the latest, for a hold, the load it waits for or the controller; None: no need."""
        state = self._state
        holds = state.holds.next_due() if state.holds.held else None
        queues = state.queues.next_due() if len(state.queues) else None
        due = min(state.placement.next_tick, state.legs.next_due, state.peers.next_due)
        if holds is None and queues is None:
            return due if due < inf else None
        return min(each for each in (holds, queues, due, state.residency.next_due) if each is not None)

    def check(self) -> None:
        """Raise AssertionError with a story when an invariant is broken (see `core.invariants`)."""
        check(self._state)
