"""Adapters, pins, groups, aliases: operator intent about what may be served."""

import msgspec

from lorapick.model.units import AdapterName, Bytes, PodName


class PinSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Permanent residency [R3.4]: by count, by named pods, or by label selector."""

    replicas: int | None = None
    """Of pods that decode, or do both."""
    prefill_replicas: int | None = None
    """Of pods that only prefill. None: one where a count is given, where pods or labels are, those that they mean."""
    pods: tuple[PodName, ...] = ()
    selector: dict[str, str] = {}
    reserve: bool = False
    """Whether the pinned pods take only pinned adapters."""


class Adapter(msgspec.Struct, frozen=True, kw_only=True):
    """One LoRA adapter as the operator declared it, or as a pod named it."""

    name: AdapterName
    source: str | None = None
    """Path or reference that the engine loads from; None when only a pod knows it."""
    revision: str | None = None
    base_model: str | None = None
    """None: the fleet's default base model."""
    rank: int | None = None
    targets: tuple[str, ...] = ()
    size: Bytes | None = None
    sha256: str | None = None
    declared: bool = False
    """False: seen on a pod or in traffic only; on probation [R2.6]."""
    pin: PinSpec | None = None
    weekend: str | None = None


class AliasTarget(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One weighted target of an alias."""

    adapter: AdapterName
    weight: int = 1


class Alias(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A public name that stands for one or more adapters by weight (canary)."""

    name: str
    to: tuple[AliasTarget, ...]


class AffinityGroup(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Adapters called in sequence [R3.7]."""

    name: str
    first: AdapterName
    then: tuple[AdapterName, ...]


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """Preload at set times [R3.5]."""

    adapters: tuple[AdapterName, ...]
    cron: str
    timezone: str
    replicas: int = 1
    lasts: float = 0.0
    """Seconds that the preload is kept (`for:` in the file)."""
    selector: dict[str, str] = {}


class Trigger(msgspec.Struct, frozen=True, kw_only=True):
    """Preload on a named event; `preload` may hold `{attribute}` placeholders."""

    event: str
    preload: str
    replicas: int = 1
    lasts: float = 0.0
    selector: dict[str, str] = {}
