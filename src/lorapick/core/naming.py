"""Which adapter a request's model name means.

In: a request and the fleet's state. Out: an adapter, the base model, or `Unknown` with names that are near.
Not here: whether a pod can serve it now (see `core.picking.filters`).
"""

from collections.abc import Iterable
from difflib import get_close_matches
from heapq import nsmallest
from typing import NamedTuple

from lorapick.core.draw import draw_for
from lorapick.core.state import FleetState
from lorapick.model.adapters import Adapter, AliasTarget
from lorapick.model.requests import Request
from lorapick.model.units import AdapterName, Seconds

NEAR_EVERY: Seconds = 0.1
"""Near names are looked for this often at most: a flood of wrong names must not take the picker's time."""
NEAR_AMONG = 64
"""Names compared letter by letter; comparing one takes some 0.1 ms."""


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
    """At most three known names that look like this one, best first; none when somebody asked a moment ago."""
    if now < state.near_names_from:
        return []
    state.near_names_from = now + NEAR_EVERY
    names = dict.fromkeys([*state.residency.names(), *state.columns.base_models, *state.aliases])
    names.pop(name, None)
    return get_close_matches(name, _shortlist(name, names), n=3, cutoff=0.5)


def _shortlist(name: str, names: Iterable[str]) -> list[str]:
    """Those that begin and end like `name`: one slip of the pen leaves both ends alone."""
    return nsmallest(
        NEAR_AMONG, names, key=lambda other: (-_alike(name, other) - _alike(name[::-1], other[::-1]), other)
    )


def _alike(one: str, other: str) -> int:
    """Number of equal leading letters."""
    for at, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return at
    return min(len(one), len(other))
