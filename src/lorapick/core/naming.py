"""Which adapter a request's model name means.

In: a request and the fleet's state. Out: an adapter, the base model, or `Unknown` with names that are near.
Not here: whether a pod can serve it now (see `core.picking.filters`).
"""

from typing import NamedTuple

from lorapick.core.draw import draw_for
from lorapick.core.state import FleetState
from lorapick.model.adapters import Adapter, AliasTarget
from lorapick.model.requests import Request
from lorapick.model.units import AdapterName, Seconds


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
        name = _by_weight(alias.to, draw_for(state.seed, request.id, purpose="alias:"))
    adapter = state.adapters.get(name)
    if adapter is None and state.residency.registry.known(name):
        adapter = state.adapters[name] = Adapter(name=name)
    return adapter if adapter is not None else Unknown(name)


def _by_weight(targets: tuple[AliasTarget, ...], draw: float) -> AdapterName:
    at = draw * sum(target.weight for target in targets)
    for target in targets:
        at -= target.weight
        if at < 0:
            return target.adapter
    return targets[-1].adapter


def near_names(state: FleetState, name: str, *, now: Seconds) -> list[str]:
    """At most three known names that look like this one, best first; none when too many wrong names came lately."""
    return state.near_names.of(
        name, lambda: [*state.residency.names(), *state.columns.base_models, *state.aliases], now=now
    )
