"""Scheduling profiles: filters, weighted scorers and a picker, as llm-d's endpoint picker puts them together.

In: nothing. Out: values, after checking (see `wire.config.epp` for the file). Not here: what a plugin does (see
`core.picking.epp`); the types that exist are in its tables, and `parameters` are the arguments of what makes them.
"""

from typing import Any

import msgspec


class PluginSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One plugin of a profile."""

    type: str
    name: str
    """As the file calls it; explanations do too."""
    parameters: dict[str, Any] = {}
    weight: float = 1.0
    """Of scorers."""


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """Filters in their order, scorers whose values are clamped to [0, 1], weighed and added up, one picker."""

    name: str
    filters: tuple[PluginSpec, ...] = ()
    scorers: tuple[PluginSpec, ...] = ()
    picker: PluginSpec


class Profiles(msgspec.Struct, frozen=True, kw_only=True):
    """What picks the pods of a request."""

    decode: Profile
    """Picks the pod that answers; the only one where no other pod prefills."""
    prefill: Profile | None = None
    """Picks the pod that prefills for it; None: by `decode` too."""
    waits: bool = False
    """Whether a request that finds every pod full waits at the picker."""
