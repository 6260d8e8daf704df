"""What plugins of scheduling profiles know besides columns, collected for one decision.

In: the fleet's state. Out: `Facts`; who was given a request that nobody had cached. Only what the plugins need is
collected: tokens in flight cost a pass over all requests in flight. Not here: the plugins (`core.picking.epp`).
"""

from lorapick.core.picking.epp.facts import COLD, IN_FLIGHT, TOKENS_IN_FLIGHT, Facts
from lorapick.core.picking.epp.policy import ProfilePolicy
from lorapick.core.picking.query import Query
from lorapick.core.placement.prompts import tokens_of
from lorapick.core.state import FleetState, Flight
from lorapick.model.requests import Request

ANSWER = 1.5
"""Tokens of an answer for each of its prompt, as llm-d's in-flight load producer reckons."""


def collect(state: FleetState, flight: Flight, *, policy: ProfilePolicy) -> Facts:
    """Facts for one request."""
    needs = policy.needs
    return Facts(
        prompt_tokens=tokens_of(flight.request) or 0,
        blocks=len(flight.blocks),
        in_flight={row: load.in_flight for row, load in state.loads.items()} if IN_FLIGHT in needs else {},
        tokens_in_flight=tokens_in_flight(state) if TOKENS_IN_FLIGHT in needs else {},
        cold=tuple(state.cold) if COLD in needs else (),
        headers=flight.request.headers,
    )


def tokens_in_flight(state: FleetState) -> dict[int, float]:
    """Tokens of requests under way, prompts and what is expected of answers, by row of the pod."""
    found: dict[int, float] = {}
    for flight in state.flights.values():
        if flight.row >= 0:
            found[flight.row] = found.get(flight.row, 0.0) + _reckoned(flight.request)
        if flight.leg is not None:
            found[flight.leg.row] = found.get(flight.leg.row, 0.0) + _reckoned(flight.request)
    return found


def _reckoned(request: Request) -> float:
    return (tokens_of(request) or 0) * (1.0 + ANSWER)


def note_cold(state: FleetState, query: Query, *, rows: tuple[int, ...]) -> None:
    """The pods of these rows (-1: none) were given a request; remember whom nobody's cache could help."""
    policy = state.policy
    if not isinstance(policy, ProfilePolicy) or COLD not in policy.needs or any(query.kv.values()):
        return
    for row in rows:
        if row >= 0:
            state.cold.pop(row, None)
            state.cold[row] = None
