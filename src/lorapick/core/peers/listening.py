"""What other pickers say, what the store that all share answers, and what time says of both.

In: PeerReported, LoadClaimed, PeersReached; the clock. Out: decisions that waited for it, claims to give back, notes.
Not here: questions (see `core.peers.claiming`), the wire (see `live.peers`).
"""

from itertools import islice

from lorapick.core import modes
from lorapick.core.arms_routing import Moment
from lorapick.core.deciding import decide
from lorapick.core.peers.claims import SETTLED, Key, Standing
from lorapick.core.peers.marks import MOST_PODS, Mark, Peer
from lorapick.core.placement import sides
from lorapick.core.placement.commands import Kind
from lorapick.core.placement.controller import wake
from lorapick.core.releasing import load_over, release
from lorapick.core.state import FleetState
from lorapick.model.effects import Effect, Note, ReleaseClaim
from lorapick.model.events import LoadClaimed, PeerReported, PeersReached
from lorapick.model.units import PodName, Seconds

MOST_LOADS = 1_000
"""Loads of one pod in a peer's report that are read."""


def on_reported(state: FleetState, event: PeerReported, *, now: Seconds) -> list[Effect]:
    """Take over all that a peer says it has now."""
    marks = state.peers.marks
    if not state.peers.on:
        return [Note(cause=event.id, kind="peers_off", facts={"peer": event.peer, "why": "no `peers` in the settings"})]
    first = event.peer not in marks.peers
    peer = marks.hear(event.peer, now=now)
    if peer is None:
        return []
    effects: list[Effect] = []
    if first:
        effects.append(Note(cause=event.id, kind="peer_heard", facts={"peer": event.peer, "peers": len(marks.peers)}))
    for pod in marks.count(peer, event.in_flight, now=now, first=first):
        _recount(state, pod)
    peer.pins = event.pins
    if marks.pin():
        wake(state, now=now)
    effects += modes.heard(state, event.mode, peer=event.peer, at=Moment(now, event.id))
    return [*effects, *_loads(state, peer, event=event, now=now)]


def _loads(state: FleetState, peer: Peer, *, event: PeerReported, now: Seconds) -> list[Effect]:
    """Loads that began and ended since its last report."""
    before = peer.loads
    peer.loads = {
        (pod, name): None for pod, names in islice(event.loads.items(), MOST_PODS) for name in islice(names, MOST_LOADS)
    }
    effects: list[Effect] = []
    for mark in [each for each in before if each not in peer.loads]:
        effects += _ended(state, mark, now=now, cause=event.id)
    for pod, name in [each for each in peer.loads if each not in before]:
        row = state.columns.row_of.get(pod)
        if row is not None and state.residency.peer_loads(row, name, now=now):
            state.refresh(row)
    return effects


def _ended(state: FleetState, mark: Mark, *, now: Seconds, cause: int) -> list[Effect]:
    row = state.columns.row_of.get(mark[0])
    if row is None or state.peers.marks.loads(mark):
        return []
    load = state.residency.peer_loaded(row, mark[1], now=now)
    return load_over(state, load, now=now, cause=cause) if load is not None else []


def _recount(state: FleetState, pod: PodName) -> None:
    """Tell a pod's load how many requests of peers it has."""
    row = state.columns.row_of.get(pod)
    if row is not None:
        load = state.loads[row]
        load.others, load.others_delta = state.peers.marks.on(pod)
        state.refresh(row)


def scraped(state: FleetState, row: int, *, since: Seconds) -> None:
    """A scrape that was sent at `since` shows what peers had there then."""
    pod = state.columns.targets[row].pod
    state.peers.marks.scraped(pod, since=since)
    load = state.loads[row]
    load.others, load.others_delta = state.peers.marks.on(pod)


# -- claims


def on_claimed(state: FleetState, event: LoadClaimed, *, now: Seconds) -> list[Effect]:
    """The answer to a question: we load it, or follow whoever does."""
    claims, key = state.peers.claims, (event.adapter, event.side)
    claim = claims.by_key.get(key)
    if claim is None or claim.number != event.claim or claim.standing is not Standing.ASKED:
        return _late(state, event, key=key, now=now)
    claims.counts["granted" if event.granted else "denied"] += 1
    if event.granted:
        claims.stands(key, Standing.OURS, until=now + claims.lasts)
        return _settled(state, key, now=now, cause=event.id)
    claim.owner = event.owner
    claims.stands(key, Standing.THEIRS, until=now + state.peers.marks.stale_after)
    row = state.columns.row_of.get(event.pod)
    if row is not None and state.residency.peer_loads(row, event.adapter, now=now):
        state.refresh(row)
    return _settled(state, key, now=now, cause=event.id)


def _late(state: FleetState, event: LoadClaimed, *, key: Key, now: Seconds) -> list[Effect]:
    """Nobody waits for this answer any more. What it grants is ours while we load, and is given back if we do not."""
    claims = state.peers.claims
    claim = claims.by_key.get(key)
    if claim is not None and claim.number == event.claim and claim.standing is Standing.OURS:
        return []  # said again, of another pod
    claims.counts["late"] += 1
    if not event.granted or key in claims.ours or claims.open(key):
        return []
    if not we_load(state, key):
        return [ReleaseClaim(cause=event.id, adapter=event.adapter, side=event.side)]
    if claim is None:
        return []  # it ends with its time
    claim.began = True
    claims.stands(key, Standing.OURS, until=now + claims.lasts)
    return []


def on_reachable(state: FleetState, event: PeersReached, *, now: Seconds) -> list[Effect]:
    """Without the store everybody goes on alone; nobody waits for an answer that will not come."""
    claims = state.peers.claims
    was, claims.reachable = claims.reachable, event.up
    state.peers.problem = "" if event.up else event.why or "it is out of reach"
    effects: list[Effect] = []
    if was != event.up:
        facts: dict[str, str | float] = {"up": "yes"} if event.up else {"up": "no", "why": event.why}
        effects.append(Note(cause=event.id, kind="peers_reachable", facts=facts))
    for key in [] if event.up else [key for key in claims.by_key if claims.open(key)]:
        claims.counts["unreachable"] += 1
        claims.stands(key, Standing.ALONE, until=now + SETTLED)
        effects += _settled(state, key, now=now, cause=event.id)
    return effects


def _settled(state: FleetState, key: Key, *, now: Seconds, cause: int) -> list[Effect]:
    """A question is open no longer: decide about those who waited for the answer, oldest first."""
    claims = state.peers.claims
    waiting = claims.waiting_for(key)
    claims.by_key[key].waiting.clear()
    effects: list[Effect] = []
    for request_id in waiting:
        if request_id not in claims.waits:
            continue  # it had to make room for one before it
        rest = tuple(each for each in claims.waits[request_id] if each != key)
        if rest:
            claims.waits[request_id] = rest
            claims.by_key[key].kept_for.append(request_id)
        else:
            del claims.waits[request_id]
            effects += decide(state, state.flights[request_id], now=now, cause=cause)
    if claims.by_key[key].by_command:
        state.placement.hurry(now)
    return [*effects, *given_back(state, cause=cause)]


def given_back(state: FleetState, *, cause: int) -> list[Effect]:
    """Claims of ours whose load is over, or never began."""
    claims = state.peers.claims
    effects: list[Effect] = []
    for key in [*claims.ours]:
        claim = claims.by_key[key]
        if we_load(state, key):
            claim.began = True
        elif claim.began or not (claim.by_command or any(each in claims.waits for each in claim.kept_for)):
            claims.drop(key)
            effects.append(ReleaseClaim(cause=cause, adapter=key[0], side=key[1]))
    return effects


def we_load(state: FleetState, key: Key) -> bool:
    """Whether an adapter is on its way to a pod of a side by what we did."""
    name, side = key
    residency, told = state.residency, state.placement.commands.under_way
    rows = [row for row in residency.loading_rows(name) if not residency.by_peer(row, name)]
    rows += [row for row, command in told.items() if command.adapter == name and command.kind is Kind.LOAD]
    return any(sides.of(state, row) is side for row in rows)


# -- time


def expire(state: FleetState, *, now: Seconds, cause: int) -> list[Effect]:
    """End questions that nobody answered, standings whose time is over, and marks of silent peers."""
    effects: list[Effect] = []
    for name in state.peers.marks.stale(now):
        effects += _vanished(state, name, now=now, cause=cause)
    state.peers.marks.look_again()
    claims = state.peers.claims
    for key in claims.due(now):
        claim = claims.by_key.get(key)
        if claim is None:
            continue  # given back meanwhile
        if claim.standing is Standing.ASKED:
            claims.counts["timeout"] += 1
            claims.stands(key, Standing.ALONE, until=now + SETTLED)
            effects += _settled(state, key, now=now, cause=cause)
        elif claim.standing is Standing.OURS and we_load(state, key):
            claims.stands(key, Standing.OURS, until=now + claims.lasts)  # it is renewed as long as the load lasts
        else:
            ours = claim.standing is Standing.OURS
            claims.drop(key)
            effects += [ReleaseClaim(cause=cause, adapter=key[0], side=key[1])] if ours else []
    claims.look_again()
    return effects


def _vanished(state: FleetState, name: str, *, now: Seconds, cause: int) -> list[Effect]:
    """A peer has been silent for too long: what it said counts for nothing."""
    marks = state.peers.marks
    peer = marks.forget(name)
    facts: dict[str, str | float] = {"peer": name, "silent_seconds": now - peer.heard, "peers": len(marks.peers)}
    effects: list[Effect] = [Note(cause=cause, kind="peer_silent", facts=facts)]
    for pod in peer.in_flight:
        _recount(state, pod)
    if marks.pin():
        wake(state, now=now)
    for mark in peer.loads:
        row = state.columns.row_of.get(mark[0])
        if row is not None and not marks.loads(mark) and state.residency.peer_vanished(row, mark[1], now=now):
            state.refresh(row)
            effects += release(state, row, now=now, cause=cause)
    return effects


def configured(state: FleetState, *, now: Seconds, cause: int) -> list[Effect]:
    """Other settings are in force: without `peers` nobody is listened to, nor asked."""
    if state.peers.on:
        return []
    effects: list[Effect] = []
    for name in [*state.peers.marks.peers]:
        effects += _vanished(state, name, now=now, cause=cause)
    claims = state.peers.claims
    for key in [*claims.by_key]:
        if claims.open(key):
            claims.stands(key, Standing.ALONE, until=now + SETTLED)
            effects += _settled(state, key, now=now, cause=cause)
    for key in [*claims.by_key]:
        ours = key in claims.ours
        claims.drop(key)
        effects += [ReleaseClaim(cause=cause, adapter=key[0], side=key[1])] if ours else []
    return effects
