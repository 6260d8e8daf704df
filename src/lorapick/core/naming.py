"""Which adapter a request's model name means.

In: a request and the fleet's state. Out: an adapter, the base model, or `Unknown` with names that are near.
Not here: whether a pod can serve it now (see `core.picking.filters`).
"""

from typing import NamedTuple

from lorapick.core.placement.aliases import chosen, key_of
from lorapick.core.state import FleetState
from lorapick.model.adapters import Adapter
from lorapick.model.requests import Request
from lorapick.model.units import Seconds


class Unknown(NamedTuple):
    """Nobody serves this name."""

    name: str


def resolve(state: FleetState, request: Request) -> Adapter | Unknown | None:
    """The adapter that a request's model names; None: a base model."""
    name = request.model
    if name in state.columns.base_models:
        return None
    alias = state.aliases.get(name)
    if alias is not None and alias.to:
        name = chosen(alias, key=key_of(request), seed=state.seed)
    if name in state.placement.retiring:
        return Unknown(name)
    adapter = state.adapters.get(name)
    if adapter is None and state.residency.registry.known(name):
        adapter = state.adapters[name] = Adapter(name=name)
    return adapter if adapter is not None else Unknown(name)


def near_names(state: FleetState, name: str, *, now: Seconds) -> list[str]:
    """At most three known names that look like this one, best first; none when too many wrong names came lately."""
    return state.near_names.of(
        name, lambda: [*state.residency.names(), *state.columns.base_models, *state.aliases], now=now
    )
