"""The guard: every load that nobody's request causes is accepted or refused here, with a word that says why.

In: a target, and the fleet's state. Out: None, or why not. Whatever policies suggest, even at random:
- a pin, an adapter in use, one whose slot is reserved, and what is wanted there more are never thrown out;
- nor is the last copy, on its side, of an adapter that is asked for, unless an operator's pin or order leaves no other
  victim;
- a pod has one load, unload or registration under way, and no more loads in a minute than its budget;
- no more pods load at once than their share; a pod that serves nobody harms nobody;
- no load under memory pressure, nor on a pod that is away or has not reported yet (what would it throw out?), nor of
  an adapter that it cannot serve;
- what nobody insists on keeps to the churn budget, and does not come back to where it was just now.
Not here: what is wanted (see `core.placement.controller`).
"""

import msgspec

from lorapick.core.admission.pressure import Pressure
from lorapick.core.columns import TIER_BITS
from lorapick.core.placement import compat
from lorapick.core.placement.targets import INSISTED, ORDER, Target
from lorapick.core.residency.cells import PodResidency
from lorapick.core.state import FleetState
from lorapick.model.adapters import Adapter
from lorapick.model.placement import Why
from lorapick.model.tiers import Tier
from lorapick.model.units import AdapterName, Seconds

DEMAND_PER_MINUTE = 1.0
"""Requests a minute from which on an adapter's last copy counts as asked for."""
EXPECTED: dict[Why, None] = dict.fromkeys((Why.SCHEDULE, Why.TRIGGER, Why.GROUP, Why.REGISTER))
EXPECTED_PER_MINUTE = 4.0
"""The same, where somebody says that requests for the newcomer will come within minutes: one request in the last
minute is no reason to let these wait for a load."""
MOST_FITS = 200_000
"""Pairs of pod and adapter of which it is remembered whether they fit."""
SETTLING: Seconds = 60.0
"""What was brought to a pod by command and has gone since is not brought there again so soon, unless insisted on."""
THERE = "there"
EVICTS_KEPT = "evicts_kept"
EVICTS_LAST_COPY = "evicts_last_copy"
ALL_BUSY = "all_busy"
POD_BUSY = "pod_busy"
TOO_MANY_LOAD = "too_many_pods_load"


def refuse(state: FleetState, target: Target, *, now: Seconds) -> str | None:
    """Why the guard refuses a load; None: it may begin."""
    return (
        _unfit(state, target, now=now)
        or _unready(state, target, now=now)
        or _too_many(state, target, now=now)
        or _throws_out(state, target, now=now)
    )


def cannot_serve(state: FleetState, row: int, *, name: AdapterName) -> str | None:
    """Why a pod can never serve an adapter, whatever happens; None: it can. Remembered until something changes."""
    placement = state.placement
    if placement.fits_at != placement.looks or len(placement.fits) > MOST_FITS:
        placement.fits, placement.fits_at = {}, placement.looks
    if (row, name) not in placement.fits:
        placement.fits[row, name] = _misfit(state, row, name=name)
    return placement.fits[row, name]


def _misfit(state: FleetState, row: int, *, name: AdapterName) -> str | None:
    columns, pod = state.columns, state.columns.pods[row]
    assert pod is not None
    problem = state.placement.problems.get(name)
    if problem is not None:
        return problem
    adapter = state.adapters.get(name) or Adapter(name=name)
    if adapter.base_model is None:
        adapter = msgspec.structs.replace(adapter, base_model=state.settings.base_model)
    facts = state.placement.facts.get(name)
    misfits = compat.problems(adapter, pod, facts=facts, max_rank=int(columns.max_rank[row]))
    return misfits[0].message if misfits else None


def _unfit(state: FleetState, target: Target, *, now: Seconds) -> str | None:
    row, name = target.row, target.adapter
    if cannot_serve(state, row, name=name) is not None:
        return "unfit"
    registry = state.residency.registry
    adapter = state.adapters.get(name)
    told = state.residency.home(row).caches.registers and adapter is not None and adapter.source is not None
    if not registry.accepts(row, name) and not told:
        return "unregistered"
    if name in state.placement.retiring:
        return "retiring"
    if state.placement.commands.resting(row, name, now=now):
        return "keeps_failing"
    insisted = target.why in INSISTED
    if not insisted and (state.quarantine.closed(name, now=now) or row in state.quarantine.rows(name, now=now)):
        return "keeps_failing"
    return None


def _unready(state: FleetState, target: Target, *, now: Seconds) -> str | None:
    row = target.row
    load, columns = state.loads[row], state.columns
    if load.draining:
        return "draining"
    if load.circuit_open or columns.fresh_until[row] < now or load.last_report is None:
        return "away"
    if load.pressure_tier > Pressure.NONE:
        return "pressure"
    if not state.residency.home(row).caches.loads:
        return "no_load_api"
    return None


def _too_many(state: FleetState, target: Target, *, now: Seconds) -> str | None:
    row, placement = target.row, state.placement
    home = state.residency.home(row)
    if holds(state, row, name=target.adapter):
        return THERE
    if placement.commands.busy(row) or home.loading or state.unloads.busy(row, now=now):
        return POD_BUSY
    if row not in placement.warming and state.loads[row].in_flight and rows_loading(state) >= state.gates.most_loading:
        return TOO_MANY_LOAD
    budgets = state.settings.budgets
    if placement.commands.loads_in_last_minute(row, now=now) >= budgets.loads_per_pod_per_minute:
        return "pod_budget"
    if target.why in INSISTED or _second_step(state, target):
        return None
    if placement.commands.moves_in_last_minute(now) >= state.settings.placement.moves_per_minute:
        return "churn_budget"
    brought = placement.commands.brought(row, target.adapter)
    return "flapping" if brought is not None and now - brought < SETTLING else None


def _second_step(state: FleetState, target: Target) -> bool:
    """Whether a command has brought it into host memory, so that only the slot is missing."""
    there = state.residency.home(target.row).cell(target.adapter).tier is Tier.CPU
    return there and state.placement.commands.halfway(target.row, target.adapter)


def holds(state: FleetState, row: int, *, name: AdapterName) -> bool:
    """Whether a pod has an adapter in a slot or loads it, and accepts its name."""
    return state.columns.adapter_row(name)[row] & TIER_BITS >= Tier.LOADING


def has(state: FleetState, row: int, *, name: AdapterName) -> bool:
    """Whether a pod has an adapter in a slot, by more than that it should have it by now."""
    if state.columns.adapter_row(name)[row] & TIER_BITS <= Tier.LOADING:
        return False
    return state.residency.home(row).cells[name].proven or not state.placement.commands.bringing(row, name)


def rows_loading(state: FleetState) -> int:
    """Pods that load, by request or by command, or are told to; those that take no traffic yet are not counted."""
    told, warming = state.placement.commands.under_way, state.placement.warming
    rows = dict.fromkeys([*told, *(row for row in state.loads if state.residency.home(row).loading)])
    return sum(row not in warming for row in rows)


def _throws_out(state: FleetState, target: Target, *, now: Seconds) -> str | None:
    home = state.residency.home(target.row)
    if home.caches.loads_to_host and home.cell(target.adapter).tier < Tier.CPU:
        return None  # it comes to host memory, and takes no slot yet
    if home.shadow.free > 0 or target.adapter in home.shadow.gpu:
        return None  # in the latter case only its name is missing
    victim = home.shadow.next_out(home.busy)
    # A pod may show more in its slots than it has slots: whoever goes then makes no room beside those in use.
    if victim is None or len(home.in_use) >= home.shadow.gpu_slots:
        return ALL_BUSY
    awaited = any(name != target.adapter for name in home.absent)
    if awaited or home.endangers_reserved() or protected(state, target, victim=victim):
        return EVICTS_KEPT
    if target.why is Why.REGISTER and not state.residency.registry.accepting(target.adapter):
        return None  # nobody can serve it at all
    if wanted_last_copy(state, target.row, name=victim, now=now, why=target.why) and not _last_resort(
        state, target, home=home
    ):
        return EVICTS_LAST_COPY
    return None


def protected(state: FleetState, target: Target, *, victim: AdapterName) -> bool:
    """Whether an adapter is pinned on the target's pod, wanted there at least as much, or its slot reserved.

    A reserved slot waits for a request that is being prefilled elsewhere: its engine may not know of it yet.
    A name that a pod does not know is answered with 404, and it is told once: only what somebody insists on is more.
    """
    placement = state.placement
    keeps = placement.keeps.get(target.row)
    if keeps is not None and victim in keeps.pinned:
        return True
    if victim in state.residency.home(target.row).reserved:
        return True
    why = placement.wanted.get(target.row, {}).get(victim)
    if target.why is Why.REGISTER:
        return why in (Why.OPERATOR, Why.SCHEDULE, Why.TRIGGER)
    return why is not None and ORDER[why] <= ORDER[target.why]


def wanted_last_copy(
    state: FleetState, row: int, *, name: AdapterName, now: Seconds, least: Tier = Tier.LOADING, why: Why | None = None
) -> bool:
    """Whether a pod has its side's only copy of an adapter that is asked for; elsewhere `least` makes a copy.

    What counts as asked for depends on what its slot is wanted for (`why`).
    """
    codes = state.columns.adapter_row(name)
    if codes[row] & TIER_BITS < Tier.LOADING:
        return False  # weights of a name that the pod does not accept any more serve nobody
    if state.prices.demand.rate(name, now=now) * 60.0 < (EXPECTED_PER_MINUTE if why in EXPECTED else DEMAND_PER_MINUTE):
        return False
    prefill_only = state.columns.prefill_only
    return not any(
        other != row
        and codes[other] & TIER_BITS >= least
        and prefill_only[other] == prefill_only[row]
        and not state.loads[other].draining
        for other, _ in state.columns.live()
    )


def _last_resort(state: FleetState, target: Target, *, home: PodResidency) -> bool:
    """Whether an operator's word leaves no other victim: all that is idle there is wanted or a last copy."""
    if target.why not in (Why.PIN, Why.OPERATOR):
        return False
    now = state.now
    return all(
        home.busy(name)
        or protected(state, target, victim=name)
        or wanted_last_copy(state, target.row, name=name, now=now, why=target.why)
        for name in home.shadow.gpu
    )
