"""Ask before a load of an adapter that no pod of a side has, and wait for the answer.

In: a case that is about to be dispatched; commands that are about to be given. Out: ClaimLoad and Hold effects, who
waits; or nothing, and then it may go. Only where policies leave it to us who follows whom (`Policy.coalesces`).
Not here: answers (see `core.peers.listening`).

A further copy, beside pods of its side that have the adapter or load it, is not claimed: what that costs is weighed as
with one picker, and peers' marks say within moments that it is under way.
"""

from lorapick.core import splitting
from lorapick.core.case import Case, journal, pick_value
from lorapick.core.columns import TIER_BITS
from lorapick.core.peers.claims import MOST_WAITING, Claim, Key, Standing
from lorapick.core.picking.filters import veto
from lorapick.core.picking.pick import NOBODY, Choice
from lorapick.core.placement import sides
from lorapick.core.placement.targets import Target
from lorapick.core.state import FleetState
from lorapick.model.effects import ClaimLoad, Effect, Hold
from lorapick.model.placement import Side
from lorapick.model.reasons import Reason
from lorapick.model.tiers import Tier
from lorapick.model.units import AdapterName, Seconds

LOADING = Tier.LOADING


def ask_first(case: Case, choice: Choice) -> list[Effect] | None:
    """What to ask, and that the request waits, before it goes to its choice; None: it may go."""
    state, claims = case.state, case.state.peers.claims
    name = case.flight.adapter_name
    if name is None or not case.policy.coalesces:
        return None
    rows = _loads(case, choice, name=name)
    keys: list[Key] = []
    effects: list[Effect] = []
    for side, row in rows.items():
        key = (name, side)
        claim = claims.by_key.get(key)
        if claim is None and not _may_ask(case):
            continue
        if claim is None:
            claim, asks = _ask(state, key, row=row, now=case.now, cause=case.cause)
            effects.append(asks)
        if claim.standing is Standing.ASKED:
            keys.append(key)
    return [*effects, *_wait(case, tuple(keys))] if keys else None


def where_claimed(case: Case, choice: Choice) -> int:
    """Row that we said we would load the adapter on, if the request may still go there; else that of the choice.

    Others follow us to the claimed pod. Where it must be another one, `moved` tells them.
    """
    name, codes = case.flight.adapter_name, case.query.codes
    claims = case.state.peers.claims
    if not claims.ours or name is None or codes is None or (codes[choice.row] & TIER_BITS) >= LOADING:
        return choice.row
    side = sides.of(case.state, choice.row)
    claim = claims.by_key.get((name, side)) if side is not None else None
    if claim is None or claim.standing is not Standing.OURS or claim.began or claim.row == choice.row:
        return choice.row
    row = case.state.columns.row_of.get(claim.pod, -1)
    if row < 0 or veto(case.query, case.state.columns, row=row, now=case.now):
        return choice.row
    return row


def begin(case: Case, *, rows: tuple[int, ...]) -> list[Effect]:
    """A request goes to these rows (-1: none); what others must hear of loads that we have claimed."""
    name, codes = case.flight.adapter_name, case.query.codes
    effects: list[Effect] = []
    if name is not None and codes is not None:
        for row in rows:
            if row >= 0 and (codes[row] & TIER_BITS) < LOADING:
                effects += moved(case.state, name, row=row, cause=case.cause)
    return effects


def moved(state: FleetState, name: AdapterName, *, row: int, cause: int) -> list[Effect]:
    """A load that we have claimed is about to begin; tell others if it is on another pod than they were told."""
    side = sides.of(state, row)
    claim = state.peers.claims.by_key.get((name, side)) if side is not None else None
    if claim is None or side is None or claim.standing is not Standing.OURS or claim.began:
        return []
    claim.began = True
    pod = state.columns.targets[row].pod
    if claim.pod == pod:
        return []
    claim.row, claim.pod = row, pod
    return [ClaimLoad(cause=cause, claim=claim.number, adapter=name, side=side, pod=pod)]


def before_command(state: FleetState, target: Target, *, now: Seconds, cause: int) -> list[Effect] | None:
    """What to ask before the controller loads an adapter; None: it may. It comes back to it at its next tick."""
    claims, side = state.peers.claims, sides.of(state, target.row)
    if side is None or sides.holders(state, target.adapter, side=side):
        return None
    key = (target.adapter, side)
    claim = claims.by_key.get(key)
    if claim is None:
        if not claims.reachable:
            claims.counts["unreachable"] += 1
            return None
        _, asks = _ask(state, key, row=target.row, now=now, cause=cause, by_command=True)
        return [asks]
    return None if claim.standing in (Standing.OURS, Standing.ALONE) else []


def _loads(case: Case, choice: Choice, *, name: AdapterName) -> dict[Side, int]:
    """Sides that have the adapter nowhere, and the row of each that the choice would load it on."""
    state, codes = case.state, case.query.codes
    if codes is None:
        return {}
    rows = [choice.row]
    if state.splits:
        rows.append(
            splitting.would_prefill(
                state, case.query, row=choice.row, request=case.flight.request, policy=case.policy, draw=case.draw
            )
        )
    found: dict[Side, int] = {}
    for row in rows:
        side = sides.of(state, row) if row >= 0 and (codes[row] & TIER_BITS) < LOADING else None
        if side is not None and side not in found and not sides.holders(state, name, side=side):
            found[side] = row
    return found


def _may_ask(case: Case) -> bool:
    """Whether there is somebody to ask, and room to wait; counted where there is not."""
    claims = case.state.peers.claims
    if not claims.reachable:
        claims.counts["unreachable"] += 1
        return False
    if len(claims) >= MOST_WAITING and case.flight.request.id not in claims:
        claims.counts["crowded"] += 1
        return False
    return True


def _ask(
    state: FleetState, key: Key, *, row: int, now: Seconds, cause: int, by_command: bool = False
) -> tuple[Claim, ClaimLoad]:
    pod = state.columns.targets[row].pod
    claim = state.peers.claims.ask(key, row, pod=pod, now=now, by_command=by_command)
    return claim, ClaimLoad(cause=cause, claim=claim.number, adapter=key[0], side=key[1], pod=pod)


def _wait(case: Case, keys: tuple[Key, ...]) -> list[Effect]:
    """Let it wait; nothing to say when it does so already."""
    state, flight = case.state, case.flight
    claims, request_id = state.peers.claims, flight.request.id
    if request_id not in claims:
        state.stop_waiting(request_id)
    if claims.wait(request_id, keys):
        return []
    if flight.waits_since is None:
        flight.waits_since = case.now
    until = max(claims.by_key[key].until for key in keys)
    made = pick_value(case, NOBODY, reason=Reason.HELD_FOR_CLAIM)
    journal(case, made, outcome="held", until=until)
    return [Hold(cause=case.cause, request_id=request_id, until=until, reason=Reason.HELD_FOR_CLAIM, pick=made)]
