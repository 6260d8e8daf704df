"""The fleet as columns: one row per pod, changed only by `Fleet.apply`, read by picking.

In: pods as discovery names them and the numbers that events bring. Out: columns that one decision reads
(`FleetView`), as plain arrays for a loop over few pods and as numpy views of the same memory for many.
Not here: what the numbers mean for a decision (see `core.picking`), or who may change them (see `core.fleet`).

A row stays with its pod until the pod is gone; freed rows are reused, lowest first, so equal event
sequences give equal rows. Inside, unknown is NaN; at the edges it is None.
"""

from array import array
from collections.abc import Iterator
from math import inf

import numpy as np
from numpy.typing import NDArray

from lorapick.core.picking.places import Places
from lorapick.core.scraped import NEVER_SCRAPED, Scraped
from lorapick.model.pods import GpuSource, Pod, Role
from lorapick.model.reasons import Reason
from lorapick.model.requests import Target
from lorapick.model.tiers import Source, Tier
from lorapick.model.units import AdapterName, PodName, Seconds

REASONS: tuple[Reason | None, ...] = (None, *Reason)
"""Reason of a veto code; code 0 is "no veto"."""
CODE: dict[Reason, int] = {reason: code for code, reason in enumerate(REASONS) if reason is not None}
EMPTY = CODE[Reason.NOT_READY]
"""Gate of a row without a pod."""
TIER_BITS = 7
"""Low bits of a residency code: the `Tier`."""
PINNED = 8
"""Bit of a residency code: the adapter is pinned on this pod."""
SOURCES = (Source.INFERRED, Source.COMMANDED, Source.REPORTED, Source.PEER)
SOURCE_SHIFT = 4
"""Above tier and pin: how we know, as an index into SOURCES (0 when nobody ever said anything)."""
CODES = len(SOURCES) << SOURCE_SHIFT
"""Every residency code is below this."""

_DOUBLES = (
    "fresh_until",
    "queue",
    "max_queue",
    "gpu",
    "max_rank",
    "free_slots",
    "load",
    "load_price",
    "slots_left",
    "kept",
)
_SHORTS = ("base",)
_BYTES = ("gate", "pressure", "prefill_only", "decode_only", "shut")
_EMPTY_ROW = {"slots_left": inf}
"""What a double means in a row without a pod, where it is not 0."""
NO_BASE = 65_535
"""Code of a base model that no pod has."""


class Vectors:
    """Numpy views over the columns' memory, one element per row; valid until the columns grow."""

    __slots__ = (
        "base",
        "decode_only",
        "free_slots",
        "fresh_until",
        "gate",
        "gpu",
        "kept",
        "load",
        "load_price",
        "max_queue",
        "max_rank",
        "prefill_only",
        "pressure",
        "queue",
        "shut",
        "slots_left",
    )

    def __init__(self, columns: "PodColumns") -> None:
        rows = columns.rows
        for name in _DOUBLES:
            setattr(self, name, np.frombuffer(getattr(columns, name), dtype=np.float64)[:rows])
        for name in _SHORTS:
            setattr(self, name, np.frombuffer(getattr(columns, name), dtype=np.uint16)[:rows])
        for name in _BYTES:
            setattr(self, name, np.frombuffer(getattr(columns, name), dtype=np.uint8)[:rows])

    base: NDArray[np.uint16]
    decode_only: NDArray[np.uint8]
    free_slots: NDArray[np.float64]
    fresh_until: NDArray[np.float64]
    gate: NDArray[np.uint8]
    gpu: NDArray[np.float64]
    kept: NDArray[np.float64]
    load: NDArray[np.float64]
    load_price: NDArray[np.float64]
    max_queue: NDArray[np.float64]
    max_rank: NDArray[np.float64]
    prefill_only: NDArray[np.uint8]
    pressure: NDArray[np.uint8]
    queue: NDArray[np.float64]
    shut: NDArray[np.uint8]
    slots_left: NDArray[np.float64]


class PodColumns:
    """Rows of pods and, per adapter, a row of residency codes."""

    __slots__ = (
        "_capacity", "_free", "_full", "_least_rank", "_members", "_oldest", "_places", "_pressed", "_reserved",
        "_shut", "_vectors",
        "adapters", "base", "base_models", "decode_only", "every", "free_slots", "fresh_until", "gate", "gpu",
        "gpu_source", "idle",
        "kept", "leg_turn", "load", "load_price", "max_queue", "max_rank", "pods", "prefill_only", "pressure", "queue",
        "room", "row_of", "rows", "scraped", "shut", "slots_left", "targets", "turn", "version",
    )  # fmt: skip
    _places: Places | None
    _vectors: Vectors | None

    def __init__(self) -> None:
        self._capacity = 8
        self._free: list[int] = []
        self._members: tuple[PodName | None, ...] | None = None
        self._places, self._vectors = None, None
        self._shut = self._pressed = self._full = self._reserved = 0
        """Rows that are shut; rows where no load may begin; rows that have no slot left for anybody; reserved rows."""
        self._oldest = self._least_rank = float("inf")
        """No row's report is too old before this; no row's `max_rank` is below this."""
        self.rows = 0
        """Rows in use or freed; every column is read in [0, rows)."""
        self.version = 0
        """Events applied; a Pick names the version it was taken on."""
        self.turn = 0
        """Row after the last dispatch: where round-robin goes on."""
        self.leg_turn = 0
        """The same of the pods that prefill for others."""
        self.every: list[int] = []
        """All rows, in order."""
        self.row_of: dict[PodName, int] = {}
        self.pods: list[Pod | None] = []
        self.targets: list[Target] = []
        """Name and address of each row's pod; of a freed row, of the pod it had."""
        self.gpu_source: list[GpuSource] = []
        self.scraped: list[Scraped] = []
        """What a picker that only reads pages would know of each row's pod."""
        self.base_models: dict[str, int] = {}
        """Code of each base model, in order of first sight."""
        self.adapters: dict[AdapterName, array[int]] = {}
        """Residency codes (tier, pin and source), one byte per row."""
        self.fresh_until = array("d", bytes(8 * 8))
        """Time at which the pod's last good report becomes too old."""
        self.queue = array("d", bytes(8 * 8))
        self.max_queue = array("d", bytes(8 * 8))
        self.gpu = array("d", bytes(8 * 8))
        """Utilisation in [0, 1]; never NaN: the stand-in is always known."""
        self.max_rank = array("d", bytes(8 * 8))
        self.free_slots = array("d", bytes(8 * 8))
        self.load = array("d", bytes(8 * 8))
        """Requests that run or wait at the pod, as far as we know; a whole number."""
        self.load_price = array("d", bytes(8 * 8))
        """Seconds of harm that a load does to others there; 0 unless the policy reads it."""
        self.slots_left = array("d", [inf] * 8)
        """Adapters that may still come into use there beside those that are; infinity: nobody counts."""
        self.kept = array("d", bytes(8 * 8))
        """Of those, how many only pinned ones may; infinity: the whole pod is reserved for adapters pinned there."""
        self.gate = array("B", bytes(8))
        """Veto code of the pod for every request; 0: open."""
        self.pressure = array("B", bytes(8))
        """Veto code for requests that would load here; 0: none."""
        self.base = array("H", bytes(2 * 8))
        self.prefill_only = array("B", bytes(8))
        self.decode_only = array("B", bytes(8))
        # What follows from the above; see `settle`. Lists: a loop reads them twice as fast as arrays.
        self.room: list[float] = []
        """1 - queue/max_queue; 0 when no queue is allowed."""
        self.idle: list[float] = []
        """1 - gpu."""
        self.shut = array("B", bytes(8))
        """1: the pod takes no request now, for whatever adapter: its gate, its role or a full queue forbid it."""

    def add(self, pod: Pod) -> int:
        """Give a pod the lowest free row and return it; the caller fills the columns."""
        if self._free:
            row = min(self._free)
            self._free.remove(row)
        else:
            row = self.rows
            if row == self._capacity:
                self._grow()
            self.rows += 1
            self.every.append(row)
            self.room.append(1.0)
            self.idle.append(1.0)
            self.pods.append(None)
            self.targets.append(Target(pod=pod.name, address=pod.address))
            self.gpu_source.append(GpuSource.STAND_IN)
            self.scraped.append(NEVER_SCRAPED)
            self._vectors = None
        self._members = None
        self.row_of[pod.name] = row
        self.describe(row, pod)
        return row

    def describe(self, row: int, pod: Pod) -> None:
        """Write what discovery says of a pod into its row."""
        self._places = None
        self.pods[row] = pod
        self.targets[row] = Target(pod=pod.name, address=pod.address)
        self.max_queue[row] = pod.limits.max_queue
        self.max_rank[row] = pod.limits.max_lora_rank
        self._least_rank = min(self._least_rank, self.max_rank[row])
        self.base[row] = self._base_code(pod.base_model)
        self.prefill_only[row] = pod.role is Role.PREFILL
        self.decode_only[row] = pod.role is Role.DECODE
        self.settle(row)

    def _base_code(self, model: str) -> int:
        """Code of a base model. Raises ValueError when there are more than a code can tell apart."""
        if model not in self.base_models and len(self.base_models) >= NO_BASE:
            raise ValueError(f"more than {NO_BASE} base models cannot be told apart")
        return self.base_models.setdefault(model, len(self.base_models))

    def remove(self, name: PodName) -> int:
        """Free a pod's row; its gate says not_ready until it is reused."""
        row = self.row_of.pop(name)
        self._places = None
        self.pods[row] = None
        self.gate[row] = EMPTY
        self.press(row, 0)
        self.leave(row, inf, kept=0.0)
        self.queue[row] = self.gpu[row] = self.free_slots[row] = self.load[row] = self.load_price[row] = 0.0
        self.settle(row)
        self.scraped[row] = NEVER_SCRAPED
        self._members = None
        self._free.append(row)
        for codes in self.adapters.values():
            codes[row] = Tier.UNREGISTERED
        return row

    def settle(self, row: int) -> None:
        """Work out what follows from the gate, the role, the queue and the utilisation that were written to a row."""
        queue, most = self.queue[row], self.max_queue[row]
        self.room[row] = 1.0 - queue / most if most else 0.0
        self.idle[row] = 1.0 - self.gpu[row]
        shut = queue >= most or self.gate[row] > 0 or self.prefill_only[row] > 0
        if shut != self.shut[row]:
            self.shut[row] = shut
            self._shut += 1 if shut else -1

    def press(self, row: int, code: int) -> None:
        """Write a row's pressure."""
        before = self.pressure[row]
        if code != before:
            self.pressure[row] = code
            self._pressed += (code > 0) - (before > 0)

    def leave(self, row: int, slots: float, *, kept: float) -> None:
        """Write how many slots a row has left, and how many of these are kept for pinned adapters."""
        before, kept_before = self.slots_left[row], self.kept[row]
        if slots != before or kept != kept_before:
            self.slots_left[row], self.kept[row] = slots, kept
            self._full += (slots <= kept) - (before <= kept_before)
            self._reserved += (kept == inf) - (kept_before == inf)

    def good_until(self, row: int, time: Seconds) -> None:
        """Write until when a row's report is good."""
        self.fresh_until[row] = time
        if time < self._oldest:
            self._oldest = time

    def none_shut(self, now: Seconds) -> bool:
        """Whether no row is shut and no report too old."""
        if self._shut or not self.rows:
            return False
        if self._oldest < now:
            self._oldest = min(self.fresh_until[: self.rows])
        return self._oldest >= now

    @property
    def none_reserved(self) -> bool:
        """Whether no row is reserved for adapters that are pinned there."""
        return not self._reserved

    def none_refuses(self, rank: float) -> bool:
        """Whether every row would load an adapter of this rank: none is too small, or has no slot, or may not load."""
        return not self._pressed and not self._full and rank <= self._least_rank

    def adapter_row(self, name: AdapterName) -> "array[int]":
        """Residency codes of an adapter; made on first use with every row unregistered."""
        codes = self.adapters.get(name)
        if codes is None:
            codes = self.adapters[name] = array("B", bytes(self._capacity))
        return codes

    def live(self) -> Iterator[tuple[int, Pod]]:
        """Rows that hold a pod, in row order."""
        for row, pod in enumerate(self.pods):
            if pod is not None:
                yield row, pod

    @property
    def members(self) -> tuple[PodName | None, ...]:
        """Name of each row's pod, None for freed rows; the same object until a pod comes or goes."""
        if self._members is None:
            self._members = tuple([pod.name if pod is not None else None for pod in self.pods])
        return self._members

    def places(self, label: str) -> Places:
        """Where the pods are, with nodes by this label; the same object until a pod comes, goes or changes."""
        if self._places is None or self._places.label != label:
            self._places = Places(self.pods, label=label)
        return self._places

    def vectors(self) -> Vectors:
        """The columns as numpy views."""
        if self._vectors is None:
            self._vectors = Vectors(self)
        return self._vectors

    def _grow(self) -> None:
        # An array whose memory is exported cannot be resized, so growing makes new ones.
        self._vectors = None
        more = self._capacity
        for name in _DOUBLES:
            setattr(self, name, getattr(self, name) + array("d", [_EMPTY_ROW.get(name, 0.0)] * more))
        for name in _SHORTS:
            setattr(self, name, getattr(self, name) + array("H", bytes(2 * more)))
        for name in _BYTES:
            setattr(self, name, getattr(self, name) + array("B", bytes(more)))
        for adapter in self.adapters:
            self.adapters[adapter] = self.adapters[adapter] + array("B", bytes(more))
        self._capacity += more

    def bytes_per_pod(self, adapters: int) -> int:
        """Memory of one row: columns and one residency byte per adapter (Python objects of the pod not counted)."""
        return 8 * len(_DOUBLES) + 2 * len(_SHORTS) + len(_BYTES) + adapters
