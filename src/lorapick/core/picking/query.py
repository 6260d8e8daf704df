"""One request, prepared for picking: everything about it that does not depend on the pod looked at.

In: a request, the adapter it resolved to, the columns. Out: a `Query`. Not here: any decision.
"""

from array import array
from collections.abc import Mapping
from typing import NamedTuple, Protocol

from lorapick.core.columns import CODE, NO_BASE, PodColumns
from lorapick.core.picking.epp.facts import NO_FACTS, Facts
from lorapick.core.picking.legs import Legs
from lorapick.core.placement.prompts import hashed_share, uncached
from lorapick.core.scraped import Scraped
from lorapick.model.adapters import Adapter
from lorapick.model.pods import GpuSource, Pod
from lorapick.model.reasons import Reason
from lorapick.model.requests import Request
from lorapick.model.units import AdapterName, BlockId, PodName, Ratio, RequestId, Seconds


class FleetView(Protocol):
    """What picking reads: `PodColumns` live, `FrozenView` in explanations. Valid until the next `apply`.

    A frozen view has `load`, `load_price`, `members` and `scraped` only for policies that name them in `Policy.reads`.
    """

    rows: int
    version: int
    turn: int
    leg_turn: int
    pods: list[Pod | None]
    gpu_source: list[GpuSource]
    fresh_until: "array[float]"
    queue: "array[float]"
    max_queue: "array[float]"
    gpu: "array[float]"
    load: "array[float]"
    load_price: "array[float]"
    max_rank: "array[float]"
    free_slots: "array[float]"
    slots_left: "array[float]"
    kept: "array[float]"
    scraped: list[Scraped]
    gate: "array[int]"
    pressure: "array[int]"
    base: "array[int]"
    prefill_only: "array[int]"
    decode_only: "array[int]"

    @property
    def room(self) -> list[float]:
        """1 - queue/max_queue."""
        ...

    @property
    def idle(self) -> list[float]:
        """1 - gpu."""
        ...

    @property
    def members(self) -> tuple[PodName | None, ...]:
        """Name of each row's pod; the same object until a pod comes or goes."""
        ...


class Costs(NamedTuple):
    """Seconds, as the fleet's own answers have taught them (see `core.admission.estimates`)."""

    base: Seconds = 0.0
    """For a request whose adapter is there, on an idle pod."""
    each: Seconds = 0.0
    """More, for each request that is there."""
    prefill: Seconds = 0.0
    """For the whole prompt, nothing cached."""
    from_cpu: Seconds = 0.0
    """More, when the adapter must come from host memory."""
    from_disk: Seconds = 0.0
    remaining: Mapping[int, Seconds] = {}
    """What is left of loads of this adapter, by row."""


NO_COSTS = Costs()
NOTHING_CACHED: Mapping[int, Ratio] = {}
"""No pod holds a prefix of the request."""


class Query:
    """A request as filters and policies see it. Rows are those of the view it was prepared on."""

    __slots__ = (
        "adapter", "base", "codes", "costs", "facts", "first_block", "hashed", "ignore_full", "ignore_stale",
        "in_flight", "kv", "legs", "mask", "prefill", "rank", "request_id", "seed", "session_row",
    )  # fmt: skip

    def __init__(self, request_id: RequestId, adapter: AdapterName | None) -> None:
        self.request_id = request_id
        self.adapter = adapter
        self.codes: array[int] | None = None
        """Residency codes of the adapter by row; None for a base model."""
        self.base: int | None = None
        """Code of the base model that the pod must serve; None: any."""
        self.rank = 0.0
        """Rank of the adapter; 0 when unknown: then no pod is too small for it."""
        self.mask: bytearray | None = None
        """Veto code by row from the subset hint and the label selector; None: no such wish."""
        self.kv: Mapping[int, Ratio] = NOTHING_CACHED
        """Share of the request's prefix blocks believed cached, by row; absent rows have none."""
        self.hashed: Ratio = 1.0
        """Share of the prompt that those blocks stand for."""
        self.session_row = -1
        """Row that served this session last; -1: none."""
        self.costs: Costs = NO_COSTS
        """What things take on this fleet; only for policies that read `load_price`."""
        self.facts: Facts = NO_FACTS
        """What plugins of profiles know besides; only for policies that run profiles."""
        self.first_block: BlockId | None = None
        """First prefix block of a request for a base model; None for adapters, and when there is none."""
        self.in_flight = 0
        """Own requests for the adapter that pods have, all pods together; 0 unless `Policy.counts_in_flight`."""
        self.seed = 0
        """The run's seed, for chance of the policy's own (see `core.draw`)."""
        self.prefill = False
        """Whether a pod is looked for that does its prefill only."""
        self.legs: Legs | None = None
        """Who could prefill it elsewhere; None: nobody, or nobody is asked."""
        self.ignore_full = False
        """No queue is too long and no memory too short: for policies that neither hold nor shed."""
        self.ignore_stale = False
        """Last resort: pods with old reports may serve when no other can."""

    def uncached(self, row: int, tokens: float) -> float:
        """Of so many tokens of the prompt, those that the pod has not cached, as far as is known."""
        return uncached(tokens, cached=self.kv.get(row, 0.0), hashed=self.hashed)


def prepare(
    request: Request, adapter: Adapter | None, *, columns: PodColumns, kv: Mapping[int, Ratio], session_row: int = -1
) -> Query:
    """Build the query of a request for `adapter` (None: the base model that `request.model` names)."""
    query = Query(request.id, adapter.name if adapter is not None else None)
    query.kv = kv
    if kv:
        query.hashed = hashed_share(request)
    query.session_row = session_row
    if adapter is None:
        query.base = columns.base_models.get(request.model, NO_BASE)
        query.first_block = request.blocks[0] if request.blocks else None
    else:
        name = adapter.name
        query.codes = columns.adapters.get(name) or columns.adapter_row(name)
        query.rank = float(adapter.rank or 0)
        if adapter.base_model is not None:
            query.base = columns.base_models.get(adapter.base_model, NO_BASE)
    if request.subset is not None or request.selector:
        query.mask = wishes(request, columns)
    return query


def wishes(request: Request, columns: PodColumns) -> bytearray:
    """Veto codes by row from the gateway's subset hint (matched by IP, as llm-d does) and the label selector."""
    mask = bytearray(columns.rows)
    allowed = None if request.subset is None else [host_of(entry) for entry in request.subset]
    for row, pod in columns.live():
        if allowed is not None and host_of(pod.address) not in allowed:
            mask[row] = CODE[Reason.NOT_IN_SUBSET]
        elif any(pod.labels.get(key) != value for key, value in request.selector.items()):
            mask[row] = CODE[Reason.LABEL_MISMATCH]
    return mask


def host_of(address: str) -> str:
    """Host part of `host:port`; an address without a port is returned as it is. IPv6 is written in brackets."""
    if address.startswith("["):
        return address[1 : address.index("]")] if "]" in address else address
    host, colon, _ = address.rpartition(":")
    return host if colon else address
