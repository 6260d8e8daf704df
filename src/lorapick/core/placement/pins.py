"""Which pods each pinned adapter is pinned to [R3.4].

In: pins as the operator wrote them, and the pods there are. Out: pods by adapter, and the arithmetic of those that do
not fit. Level-based: worked out anew from what is there, but whoever has a place keeps it.

Pins to named pods and to selectors without a count mean all of these pods. A count takes as many: those it has, then
those that hold the adapter, then those with most room for pins. Not here: loading them (see
`core.placement.controller`).
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

import xxhash

from lorapick.core.placement.wants import fits
from lorapick.model.adapters import PinSpec
from lorapick.model.pods import Pod
from lorapick.model.units import AdapterName


class PinPod(NamedTuple):
    """One pod, as pins see it."""

    row: int
    pod: Pod
    slots: int
    leaving: bool = False
    """Takes no new pins by count."""


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


def place(pins: Mapping[AdapterName, PinSpec], pods: Sequence[PinPod], *, told: Told) -> Pinned:
    """Give each pin its pods, in the order: named pods, selectors, counts; among equals in the order of `pins`."""
    placing = _Placing(pins, pods, told=told)
    for name in sorted(pins, key=lambda name: _strictness(pins[name])):
        placing.place(name, pins[name])
    return Pinned(placing.rows, placing.problems)


def _strictness(pin: PinSpec) -> int:
    return 0 if pin.pods else 1 if pin.selector else 2


def meant(pin: PinSpec, pod: Pod) -> bool:
    """Whether a pin means this pod, by name or by labels; one by count alone means any, an empty one none."""
    if pin.pods:
        return pod.name in pin.pods
    return fits(pin.selector, pod) if pin.selector else pin.replicas is not None


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
