"""Pins: those that leave too little room for the others, and those that would pay.

In: a picture. Out: a finding, a remedy. Not here: pins that are missing or do not fit (see `core.doctor.upkeep`).
"""

from collections.abc import Iterator
from typing import NamedTuple

from lorapick.core.doctor.findings import Finding, Remedy, Urgency
from lorapick.core.doctor.harm import harms
from lorapick.core.doctor.picture import Picture
from lorapick.core.doctor.saying import names, number, plural, share
from lorapick.model.signals import AdapterSignals
from lorapick.model.units import AdapterName

PINNED = 10
"""Adapters that a remedy would pin, at most."""
WORSE = 1.25
"""Times as many adapters for each slot that is left as there would be without pins, from which on pins are to blame."""

CAUSE = 1000.0
"""Weight above that of what follows from it: thrash, latency, errors."""


class Left(NamedTuple):
    """What pins leave."""

    taken: int
    """Slots with a pin."""
    slots: int
    pinned: int
    """Adapters that are pinned."""
    others: int
    """Active adapters that are not."""

    @property
    def free(self) -> int:
        """Slots for the others."""
        return max(0, self.slots - self.taken)


def left_by_pins(picture: Picture) -> Left | None:
    """The arithmetic of pins; None: none are known, or slots are not."""
    if picture.signals is None:
        return None
    fleet = picture.signals.fleet
    by_pod = [pod.pinned for pod in picture.pods if pod.pinned is not None]
    taken = sum(by_pod) if by_pod else picture.pins_wanted
    if not taken or not fleet.slots:
        return None
    pinned = {adapter.name: None for adapter in picture.adapters if adapter.pinned}
    active = [each for each in picture.signals.adapters if each.adapter in pinned and each.requests_per_second > 0]
    return Left(taken, fleet.slots, len(pinned), max(0, fleet.active_adapters - len(active)))


def crowding(picture: Picture) -> Iterator[Finding]:
    """Pins that leave fewer slots than the others need."""
    left = left_by_pins(picture)
    if left is None or picture.signals is None or left.others <= left.free:
        return
    fleet = picture.signals.fleet
    before = fleet.active_adapters / left.slots
    if left.free and left.others / left.free < WORSE * before:
        return
    ratio = f" = {left.others / left.free:.2f}" if left.free else ""
    full = [pod.name for pod in picture.pods if pod.pinned is not None and pod.slots and pod.pinned >= pod.slots]
    unpinned = f"without pins {fleet.active_adapters}/{left.slots} = {before:.2f}"
    lines = [
        f"slots {left.slots} - {left.taken} with a pin = {left.free} for others",
        f"others per slot {left.others}/{left.free}{ratio}; {unpinned}",
    ]
    if full:
        lines.append(f"no slot left for others on {names(full)}")
    yield Finding(
        check="pins_crowd",
        urgency=Urgency.PAGE if harms(picture) else Urgency.WARN,
        what=f"pins take {left.taken} of {plural(left.slots, 'slot')}, and leave {left.free} for the other "
        f"{plural(left.others, 'active adapter')}: what is not pinned waits or is swapped",
        arithmetic=tuple(lines),
        remedies=(
            Remedy(
                action=f"take pins back, the least asked for first: {_unpin(picture)}",
                price="these are loaded again when their slots were needed",
            ),
        ),
        weight=CAUSE + (left.others / left.free if left.free else left.others),
        pods=tuple(full),
    )


def _unpin(picture: Picture) -> str:
    """Commands."""
    rates = {each.adapter: each.requests_per_second for each in _rows(picture)}
    pinned = sorted((rates.get(each.name, 0.0), each.name) for each in picture.adapters if each.pinned)
    if not pinned:
        return "`lorapick adapters unpin NAME`"
    more = f" and {len(pinned) - 3} more" if len(pinned) > 3 else ""
    return ", ".join(f"`lorapick adapters unpin {name}`" for _, name in pinned[:3]) + more


def pin(picture: Picture) -> Iterator[Remedy]:
    """The hottest, where pins remove more of the loads than they take of the slots, and most slots stay free."""
    if picture.signals is None:
        return
    pinned = {adapter.name: None for adapter in picture.adapters if adapter.pinned}
    loads, slots = sum(each.loads for each in _rows(picture)), picture.signals.fleet.slots
    left = left_by_pins(picture)
    free = slots if left is None else left.free
    hot = sorted(_rows(picture), key=lambda each: (-each.requests_per_second, each.adapter))
    hot = [each for each in hot if each.adapter not in pinned and each.requests_per_second > 0][
        : min(PINNED, free // 2)
    ]
    if not hot or not loads:
        return
    removed = sum(each.loads for each in hot) / loads
    taken = len(hot) / free
    if removed <= taken:
        return
    traffic = sum(each.share for each in hot)
    yield Remedy(
        action=f"pin {_these([each.adapter for each in hot])}: {share(traffic)} of the requests and {share(removed)} "
        f"of the loads are for {'it' if len(hot) == 1 else 'them'}; `lorapick adapters unpin NAME` takes a pin back",
        price=f"{plural(len(hot), 'slot')} of {free} that are free of pins ({share(taken)}), which the others have no "
        f"more: {free - len(hot)} stay for {number(max(0, _others(picture, left) - len(hot)))} others",
    )


def _these(many: list[AdapterName]) -> str:
    return names(many) if len(many) == 1 else f"these {len(many)}: {names(many)}"


def _others(picture: Picture, left: Left | None) -> int:
    if left is not None:
        return left.others
    return 0 if picture.signals is None else picture.signals.fleet.active_adapters


def _rows(picture: Picture) -> tuple[AdapterSignals, ...]:
    return () if picture.signals is None else picture.signals.adapters
