"""Which pods each pinned adapter is pinned to [R3.4].

In: pins as the operator wrote them, and the pods there are. Out: pods by adapter, and the arithmetic of those that do
not fit. Level-based: worked out anew from what is there, but whoever has a place keeps it.

Pins to named pods and to selectors without a count mean all of these pods. A count takes as many: those it has, then
those that hold the adapter, then those with most room for pins. In a fleet of two sides each is placed by itself:
`replicas` are of the one, `prefill_replicas` of the other, named pods and labels mean pods of either. Not here: loading
them (see `core.placement.controller`).
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

import msgspec
import xxhash

from lorapick.core.placement.wants import fits
from lorapick.model.adapters import PinSpec
from lorapick.model.placement import Side
from lorapick.model.pods import Pod
from lorapick.model.units import AdapterName

DECODE, PREFILL = Side.DECODE, Side.PREFILL
ONE_SIDE = (DECODE,)


class PinPod(NamedTuple):
    """One pod, as pins see it."""

    row: int
    pod: Pod
    slots: int
    leaving: bool = False
    """Takes no new pins by count."""
    side: Side = DECODE


class Pinned(NamedTuple):
    """Where pins are."""

    rows: dict[AdapterName, tuple[int, ...]]
    problems: dict[AdapterName, str]
    """Why a pin is not, or not wholly, where it was wanted."""


class Told(NamedTuple):
    """What pins need to know of adapters and of what was before."""

    may: Callable[[AdapterName, Pod], str | None]
    """Why a pod cannot serve an adapter at all; None: it can."""
    held: Mapping[AdapterName, Collection[int]]
    """Rows that have it in a slot."""
    before: Mapping[AdapterName, tuple[int, ...]]


def place(
    pins: Mapping[AdapterName, PinSpec], pods: Sequence[PinPod], *, told: Told, sides: Sequence[Side] = ONE_SIDE
) -> Pinned:
    """Give each pin its pods, in the order: named pods, selectors, counts; among equals in the order of `pins`.

    `sides` are those that the fleet has, and pods are of these.
    """
    found = Pinned({}, {})
    for side in sides:
        mine = [pod for pod in pods if pod.side is side]
        meant_here = ((name, on_side(pin, side, pods=[pod.pod for pod in mine])) for name, pin in pins.items())
        here = {name: pin for name, pin in meant_here if pin is not None}
        placing = _Placing(here, mine, told=told)
        for name in sorted(here, key=lambda name: _strictness(here[name])):
            placing.place(name, here[name])
        for name, rows in placing.rows.items():
            found.rows[name] = (*found.rows.get(name, ()), *rows)
        for name, problem in placing.problems.items():
            told_before = f"{found.problems[name]}; " if name in found.problems else ""
            found.problems[name] = f"{told_before}{'to prefill: ' if side is PREFILL else ''}{problem}"
    for name, pin in pins.items():
        found.rows.setdefault(name, ())
        nowhere = _nowhere(pin, [pod.pod for pod in pods], sides=sides)
        if nowhere is not None:
            found.problems.setdefault(name, nowhere)
    return found


def on_side(pin: PinSpec, side: Side, *, pods: Sequence[Pod]) -> PinSpec | None:
    """What a pin wants of one side, which has these pods; None: nothing.

    On the side that prefills, a count without more wants one copy, which reserves nothing. Pods and labels that mean
    none of its pods want none there, unless a number of them is given.
    """
    narrow = _strictness(pin) < 2
    mine = narrow and any(meant(pin, pod) for pod in pods)
    if side is DECODE:
        wanted = pin.replicas is not None or mine
        return msgspec.structs.replace(pin, prefill_replicas=None) if wanted else None
    count = pin.prefill_replicas
    reserve = pin.reserve and (narrow or count is not None)
    if count is None and pin.replicas is not None:
        count = 1 if mine or not narrow else 0
    if count == 0 or (count is None and not mine):
        return None
    return msgspec.structs.replace(pin, replicas=count, prefill_replicas=None, reserve=reserve)


def _nowhere(pin: PinSpec, pods: Sequence[Pod], *, sides: Sequence[Side]) -> str | None:
    """Why a pin is nowhere, or not where it says, for want of such pods; None: it is no such pin."""
    if _strictness(pin) < 2 and not any(meant(pin, pod) for pod in pods):
        return f"no pod fits {_written(pin)}"
    if pin.prefill_replicas and PREFILL not in sides:
        return f"it is to be on {_many(pin.prefill_replicas, 'pod')} that prefill for others, and none does"
    return None


def _strictness(pin: PinSpec) -> int:
    return 0 if pin.pods else 1 if pin.selector else 2


def meant(pin: PinSpec, pod: Pod) -> bool:
    """Whether a pin means this pod, by name or by labels; one by count alone means any, an empty one none."""
    if pin.pods:
        return pod.name in pin.pods
    return fits(pin.selector, pod) if pin.selector else pin.replicas is not None or bool(pin.prefill_replicas)


class _Placing:
    """Pins that are placed one after another."""

    def __init__(self, pins: Mapping[AdapterName, PinSpec], pods: Sequence[PinPod], *, told: Told) -> None:
        self.rows: dict[AdapterName, tuple[int, ...]] = {}
        self.problems: dict[AdapterName, str] = {}
        self._pods = pods
        self._told = told
        self._taken: dict[int, list[AdapterName]] = {pod.row: [] for pod in pods}
        reserving = [pin for pin in pins.values() if pin.reserve and _strictness(pin) < 2]
        self._reserved = {pod.row: None for pod in pods for pin in reserving if meant(pin, pod.pod)}

    def place(self, name: AdapterName, pin: PinSpec) -> None:
        chosen = [pod for pod in self._pods if meant(pin, pod.pod)]
        able = [pod for pod in chosen if self._able(name, pod)]
        if not chosen:
            self.problems[name] = f"no pod fits {_written(pin)}"
        rows = tuple(pod.row for pod in able) if pin.replicas is None else self._by_count(name, pin, able=able)
        self.rows[name] = rows
        for row in rows:
            self._taken[row].append(name)

    def _able(self, name: AdapterName, pod: PinPod) -> bool:
        why, there = self._told.may(name, pod.pod), self._taken[pod.row]
        if why is None and len(there) >= pod.slots:
            pins = ", ".join([*there, name])
            why = f"it has {_many(pod.slots, 'slot')} for {_many(len(there) + 1, 'pin')}: {pins}"
        if why is not None:
            self.problems.setdefault(name, f"pod {pod.pod.name}: {why}")
        return why is None

    def _by_count(self, name: AdapterName, pin: PinSpec, *, able: Sequence[PinPod]) -> tuple[int, ...]:
        assert pin.replicas is not None
        before, held = self._told.before.get(name, ()), self._told.held.get(name, ())
        anywhere = _strictness(pin) == 2
        open_to = [
            pod
            for pod in able
            if pod.row in before or not (pod.leaving or (anywhere and not pin.reserve and pod.row in self._reserved))
        ]

        def rank(pod: PinPod) -> tuple[bool, bool, bool, int, int]:
            full = len(self._taken[pod.row]) - pod.slots
            tie = xxhash.xxh64_intdigest(f"{name}\0{pod.pod.name}".encode())
            return pod.leaving, pod.row not in before, pod.row not in held, full, tie

        rows = tuple(pod.row for pod in sorted(open_to, key=rank)[: pin.replicas])
        if len(rows) == pin.replicas:
            self.problems.pop(name, None)
        else:
            why = f"; {self.problems[name]}" if name in self.problems else ""
            asked, have = _many(pin.replicas, "pod"), _many(len(rows), "pod")
            self.problems[name] = f"it is to be on {asked}, and {have} can take it{why}"
        return rows


def _many(count: int, thing: str) -> str:
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


def _written(pin: PinSpec) -> str:
    if pin.pods:
        return f"pods {', '.join(pin.pods)}"
    return f"selector {', '.join(f'{key}={value}' for key, value in pin.selector.items())}"
