"""What is wrong with the fleet, in so far as somebody should look at it: the conditions of alerts.

In: the fleet's state, about once a second, at whatever event comes then. Out: Raise and Clear effects. An alert never
changes a decision. Not here: how long a condition must hold (see `core.admission.alerts`), swap rates, residency and
latency (see `core.thrash_alarms`).

Each look costs a pass over the pods, and over who waits; facts are put together only where there is something to say.
"""

from collections.abc import Callable, Iterable
from itertools import islice

from lorapick.core import thrash_alarms
from lorapick.core.admission.alerts import WINDOW, Facts, Finding
from lorapick.core.admission.pressure import Pressure
from lorapick.core.picking.prefill_verdicts import NOBODY
from lorapick.core.signals import both_sides
from lorapick.core.signals.views import new_names
from lorapick.core.state import FleetState
from lorapick.model.alerts import Alert
from lorapick.model.effects import Effect
from lorapick.model.units import Seconds

MOST_NAMES = 20
"""Names that an alert gives; where there are more, their number says so."""
LEAST_REQUESTS = 10
"""Requests for new adapters in the last minute below which nobody is told of them."""
FEW_NEW = 3
"""Adapters that nobody asked for before, below which that is no experiment but a customer."""
FEW_LOADS = 4
"""Loads in a row that a fleet may be busy with, however long they take, before that is a convoy."""

PEERS_DOWN_AFTER: Seconds = 3.0
"""For so long the shared store may be out of reach before somebody is told: a restart of it takes less."""

Condition = Callable[[FleetState, Seconds], Finding]


def watch(state: FleetState, *, now: Seconds, cause: int) -> list[Effect]:
    """Look at everything."""
    findings = [*(condition(state, now) for condition in CONDITIONS), *thrash_alarms.find(state, now)]
    # Every alert is about what pods do. And without pods there may be no more events, so nobody would look again.
    clear_after = state.settings.alerts.clear_after if state.loads else 0.0
    return state.alerts.look(findings, clear_after=clear_after, now=now, cause=cause)


def due(state: FleetState, *, now: Seconds) -> bool:
    """Whether it is time to look."""
    return now >= state.alerts.due or bool(state.alerts.standing and not state.loads)


def _new_adapters(state: FleetState, now: Seconds) -> Finding:
    tally, probation, alerts = state.tally, state.probation, state.alerts
    recent, share = alerts.traffic.look(tally.arrivals, tally.on_probation, now=now)
    facts: Facts = {}
    names = probation.asked_since(min(now - WINDOW, alerts.looked), now=now) if recent else []
    if names:
        facts = {"adapters": _listed(names), "count": len(names), "traffic_share": round(share, 4)}
    lasts = bool(state.loads) and bool(probation.asked_since(alerts.looked, now=now))
    least = state.settings.alerts.new_adapters_share
    begins = lasts and recent >= LEAST_REQUESTS and share >= least
    first, requests, part = new_names(state, now=now)
    if len(first) >= FEW_NEW and part is not None and part >= least and requests >= LEAST_REQUESTS:
        facts |= {"first_asked_for": _listed(first), "new": len(first), "new_traffic_share": round(part, 4)}
        begins = lasts = True
    return Finding(Alert.NEW_ADAPTERS, begins, lasts, after=0.0, facts=facts)


def _convoy(state: FleetState, now: Seconds) -> Finding:
    residency, columns = state.residency, state.columns
    facts: Facts = {}
    found = bool(state.loads) and residency.rows_loading >= state.gates.most_loading
    if found:
        # What a pod said long ago is no news of its queue.
        at_pods = sum(columns.queue[row] for row in state.loads if columns.fresh_until[row] >= now)
        found = state.waiting + at_pods > 0
        homes = [home for home in residency.homes() if home.loading]
        facts = {
            "pods": _listed(home.name for home in homes),
            "count": len(homes),
            "most": state.gates.most_loading,
            "waiting": state.waiting,
            "waiting_at_pods": at_pods,
            "adapters": _listed(dict.fromkeys(name for _, name, _ in residency.loads())),
        }
    after = max(state.settings.alerts.after, FEW_LOADS * state.prices.loads.disk)
    return Finding(Alert.CONVOY, found, found, after=after, facts=facts)


def _pressure(state: FleetState, now: Seconds) -> Finding:
    columns, before = state.columns, state.alerts.pressed
    # What a pod said long ago is no news of its memory.
    rows = [
        row
        for row, load in state.loads.items()
        if load.pressure_tier >= Pressure.HARD and columns.fresh_until[row] >= now
    ]
    pressed = state.alerts.pressed = {pod: before.get(pod, now) for pod in [columns.targets[row].pod for row in rows]}
    begins = any(now - since >= state.settings.alerts.after for since in pressed.values())
    facts: Facts = {}
    if rows:
        words = [f"{columns.targets[row].pod} {state.loads[row].pressure_tier.name.lower()}" for row in rows]
        facts = {"pods": _listed(words), "count": len(words)}
    return Finding(Alert.PRESSURE, begins, bool(pressed), after=0.0, facts=facts)


def _queues(state: FleetState, now: Seconds) -> Finding:
    admission, share = state.settings.admission, state.settings.alerts.queue_share
    waiting = state.waiting
    begun = [state.queues.oldest(), *(state.flights[each].waits_since for each in islice(state.holds.held, 1))]
    oldest = now - min([each for each in begun if each is not None], default=now)
    found = waiting > 0 and (waiting >= share * admission.max_queued or oldest >= share * admission.max_wait)
    facts: Facts = {
        "waiting": waiting,
        "most": admission.max_queued,
        "oldest_seconds": round(oldest, 3),
        "longest_seconds": admission.max_wait,
    }
    return Finding(Alert.QUEUES, found, found, after=state.settings.alerts.after, facts=facts)


def _quarantine(state: FleetState, now: Seconds) -> Finding:
    pairs = state.quarantine.pairs(now)
    targets = state.columns.targets
    facts: Facts = {}
    if pairs:
        facts = {"pairs": _listed(f"{name} on {targets[row].pod}" for row, name in pairs), "count": len(pairs)}
    return Finding(Alert.QUARANTINE, bool(pairs), bool(pairs), after=state.settings.alerts.after, facts=facts)


def _peers_down(state: FleetState, now: Seconds) -> Finding:
    del now
    peers, counts = state.peers, state.peers.claims.counts
    found = peers.on and not peers.claims.reachable
    facts: Facts = {}
    if found:
        facts = {"why": peers.problem, "loads_unclaimed": counts["unreachable"] + counts["timeout"]}
    return Finding(
        Alert.PEERS_DOWN, found, found, after=min(PEERS_DOWN_AFTER, state.settings.alerts.after), facts=facts
    )


def _no_prefill(state: FleetState, now: Seconds) -> Finding:
    rows = both_sides.prefill_rows(state)
    facts: Facts = {}
    silent, unreached = (both_sides.silent(state, now=now), both_sides.unreached(state, now=now)) if rows else ([], {})
    # Nobody is to be woken for a fleet that nobody asks to split.
    lately = state.signals.handovers.lately(now) if silent else {}
    wanted = lately.get("split", 0) + lately.get(NOBODY, 0) > 0
    found = bool(unreached) or (wanted and len(silent) == len(rows))
    if found and silent:
        facts |= {"pods": _listed(f"{each.pod} {each.why}" for each in silent), "count": len(silent), "of": len(rows)}
    if unreached:
        facts |= {"unreached": _listed(f"{pod} ({times} times)" for pod, times in unreached.items())}
    return Finding(Alert.NO_PREFILL, found, found, after=state.settings.alerts.after, facts=facts)


def _listed(names: Iterable[str]) -> str:
    """The first of them, in the order given."""
    return ", ".join(name for name, _ in zip(names, range(MOST_NAMES), strict=False))


CONDITIONS: tuple[Condition, ...] = (_new_adapters, _convoy, _pressure, _queues, _quarantine, _peers_down, _no_prefill)
"""Of the alerts about admission, in the order of `Alert`; those of thrash come after them."""
