"""Placement: what should be where, as values. Problems for a solver, demand for forecasts, what commands were for.

Not here: who decides (see `core.placement`).
"""

from enum import StrEnum

import msgspec

from lorapick.model.units import AdapterName, Bytes, PodName, Seconds


class Why(StrEnum):
    """What a load, an unload or a touch is for; in effects, notes, metrics and the API. Earlier ones go first."""

    PIN = "pin"
    OPERATOR = "operator"
    HANDOVER = "handover"
    """Its pod is leaving."""
    SCHEDULE = "schedule"
    TRIGGER = "trigger"
    PAIR = "pair"
    """A request that is prefilled elsewhere is about to be decoded there."""
    GROUP = "group"
    """It follows one that was called."""
    WARM_UP = "warm_up"
    """Asked for often, on a pod that is about to take traffic."""
    DEMAND = "demand"
    """The placement by load."""
    FORECAST = "forecast"
    REBALANCE = "rebalance"
    REGISTER = "register"
    """The pod does not know its name."""
    RETIRED = "retired"


class Side(StrEnum):
    """Part of a fleet that splits requests [R4.1]; a fleet that does not has the first alone."""

    DECODE = "decode"
    """Pods of the roles `decode` and `both`; those of the latter count here alone, so that nothing is placed twice."""
    PREFILL = "prefill"
    """Pods of the role `prefill`."""


class PodRoom(msgspec.Struct, frozen=True, kw_only=True):
    """One pod, as a placement sees it."""

    pod: PodName
    slots: int
    """Adapters that may be placed there; slots of pins are not among them."""
    base_model: str = "base"
    max_rank: int = 64
    zone: str | None = None
    load: float = 0.0
    """Requests there now."""
    side: Side = Side.DECODE


class PlacedAdapter(msgspec.Struct, frozen=True, kw_only=True):
    """One adapter, as a placement sees it."""

    adapter: AdapterName
    replicas: int
    base_model: str = "base"
    rank: int | None = None
    """None: unknown; fits everywhere."""
    rate: float = 0.0
    """Requests per second."""
    load_seconds: Seconds = 0.7
    """What a load of it takes on a pod that does not hold it."""
    now_on: tuple[PodName, ...] = ()
    """Pods that hold it in a slot."""
    warm_on: tuple[PodName, ...] = ()
    """Pods that have it in host memory; a load there takes `warm_seconds`."""
    warm_seconds: Seconds = 0.1
    follows: AdapterName | None = None
    """Adapter that it is called after: better on a pod of that one."""
    side: Side = Side.DECODE
    """Where these replicas are; the same adapter may be wanted on both sides."""


class PlacementProblem(msgspec.Struct, frozen=True, kw_only=True):
    """What a solver is asked; its answer is a `PlacementComputed`. No adapter comes twice on one side."""

    version: int
    pods: tuple[PodRoom, ...]
    adapters: tuple[PlacedAdapter, ...]
    """Most important first: when slots do not suffice, the last go without."""


class DemandBin(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Requests of one adapter in one bin of wall-clock time."""

    start: Seconds
    """Unix time at which the bin begins; a multiple of its length."""
    adapter: AdapterName
    count: int


class AdapterFacts(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a look at an adapter's files told. None: they did not say."""

    rank: int | None = None
    alpha: float | None = None
    targets: tuple[str, ...] = ()
    size: Bytes | None = None
    fingerprint: str | None = None
    """Of the weights; another one under the same name is refused."""
    base_model: str | None = None
    path: str | None = None
    """What pods are told to load from."""
    needs: tuple[str, ...] = ()
    """What it asks of an engine beyond a pair of matrices for each module, in PEFT's words: `use_dora`,
    `modules_to_save=lm_head`, ..."""
