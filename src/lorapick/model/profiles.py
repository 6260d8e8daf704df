"""Scheduling profiles: filters, weighted scorers and a picker, as llm-d's endpoint picker puts them together.

In: nothing. Out: values, after checking (see `wire.config.epp` for the file). Not here: what a plugin does (see
`core.picking.epp`); the types that exist are in its tables, and `parameters` are the arguments of what makes them.
"""

from typing import Any

import msgspec

from lorapick.model.pods import Engine


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


class CustomMetric(msgspec.Struct, frozen=True, kw_only=True):
    """A metric of pods' pages that becomes an attribute, for filters and scorers to compare."""

    engine: Engine
    """Of whose pods."""
    attribute: str
    family: str
    labels: dict[str, str] = {}
    """Values that a series must have; the first such one counts."""


class AttributeReport(msgspec.Struct, frozen=True, kw_only=True):
    """A figure that the gateway is told when an answer ends, worked out of the tokens that the answer counts."""

    namespace: str = "envoy.lb"
    """Of dynamic metadata."""
    name: str
    """Key in that namespace."""
    expression: str
    """CEL with `usage`; a number."""
    condition: str = ""
    """CEL with `usage`; only where it is true. Empty: always."""


class HttpNames(msgspec.Struct, frozen=True, kw_only=True):
    """Headers of requests and answers that plugins name, in lower case, and metadata of answers."""

    keep: tuple[str, ...] = ()
    """Of requests: what filters and scorers compare, and what names the profile."""
    session: tuple[str, ...] = ()
    """Of requests: ids of sessions, the first that is there before lorapick's own; `cookie:NAME` is a cookie."""
    fairness: tuple[str, ...] = ()
    """Of requests: fairness ids, the first that is there; only where the header for them is not."""
    token: str | None = None
    """Of both: names the pod that served a session last, and gets a new name with each answer; None: nothing does."""
    primary_port: int | None = None
    """Port at which a sidecar sends requests on to the rank that was picked; None: ranks are called themselves."""
    served: str | None = None
    """Of answers: gets the address that served, for conformance tests; None: nothing does."""
    reports: tuple[AttributeReport, ...] = ()
    """Of answers' ends."""


class Profiles(msgspec.Struct, frozen=True, kw_only=True):
    """What picks the pods of a request."""

    decode: Profile
    """Picks the pod that answers; the only one where no other pod prefills."""
    prefill: Profile | None = None
    """Picks the pod that prefills for it; None: by `decode` too."""
    chosen_by: str | None = None
    """Header of requests that names one of `named`; without it `decode` picks. None: nobody chooses."""
    named: tuple[Profile, ...] = ()
    names: HttpNames = HttpNames()
    metrics: tuple[CustomMetric, ...] = ()
    waits: bool = False
    """Whether a request that finds every pod full waits at the picker."""
