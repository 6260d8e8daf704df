"""Whether adapters push each other out, and what makes room.

In: a picture. Out: findings with remedies and their prices. Not here: why there are more adapters than before (see
`core.doctor.changed`).
"""

from collections.abc import Iterator
from math import ceil
from typing import NamedTuple

from lorapick.core.doctor.findings import Finding, Remedy, Urgency
from lorapick.core.doctor.harm import harms
from lorapick.core.doctor.picture import Picture
from lorapick.core.doctor.prices import in_words
from lorapick.core.doctor.saying import names, number, plural, seconds, share
from lorapick.core.doctor.waste import spare_rank
from lorapick.model.shifts import ShiftKind
from lorapick.model.signals import FleetSignals
from lorapick.model.units import Seconds

YOUNG: Seconds = 120.0
"""A picker that has watched for less sees the first load of everything."""
PINNED = 10
"""Adapters that a remedy would pin."""


class _Sign(NamedTuple):
    """One figure beyond its bound."""

    text: str
    beyond: float
    """How many times."""
    moves: bool
    """Whether adapters move for it: a sign of thrash, and not only of little room."""


def room(picture: Picture) -> Iterator[Finding]:
    """Active adapters per slot, swaps, residency, hits: one finding, since one cause moves them all."""
    if picture.signals is None:
        return
    fleet = picture.signals.fleet
    signs = [*_signs(picture, fleet)]
    moving = [sign for sign in signs if sign.moves]
    if picture.watched is not None and picture.watched < YOUNG:
        signs = [sign for sign in signs if not sign.moves]
        moving = []
    if not signs:
        return
    broken = moving and _broken(picture, fleet)
    harm = harms(picture)
    yield Finding(
        check="thrash" if moving else "room",
        urgency=Urgency.PAGE if broken and harm else Urgency.WARN,
        what=_what(fleet, moving=bool(moving), crowded=any(not sign.moves for sign in signs)),
        arithmetic=(*(sign.text for sign in signs), *_cost(picture, fleet), *harm),
        remedies=tuple(_remedies(picture, fleet)),
        weight=10 + max(sign.beyond for sign in signs),
    )


def _signs(picture: Picture, fleet: FleetSignals) -> Iterator[_Sign]:
    bounds = picture.alert_bounds
    ratio = fleet.active_per_slot
    if ratio is not None and ratio > bounds.active_per_slot:
        counted = f"{fleet.active_adapters}/{fleet.slots} = " if fleet.slots else ""
        text = f"active adapters per slot {counted}{ratio:.2f} > {number(bounds.active_per_slot)}"
        yield _Sign(text, ratio / max(bounds.active_per_slot, 1e-9), moves=False)
    fastest = max([fleet.swaps_per_second, *(pod.swaps_per_second for pod in picture.pod_signals)])
    if fastest > bounds.swap_rate:
        text = f"swaps {number(fleet.swaps_per_second)}/s per pod, {number(fastest)}/s on the worst"
        yield _Sign(f"{text} > {number(bounds.swap_rate)}/s", fastest / max(bounds.swap_rate, 1e-9), moves=True)
    if fleet.mean_residency is not None and fleet.mean_residency < bounds.residency:
        text = f"mean residency {seconds(fleet.mean_residency)} < {seconds(bounds.residency)}"
        yield _Sign(text, bounds.residency / max(fleet.mean_residency, 1e-3), moves=True)
    if fleet.hit_ratio is not None and fleet.hit_ratio < bounds.hit_ratio:
        text = f"hits {share(fleet.hit_ratio)} < {share(bounds.hit_ratio)}"
        yield _Sign(text, bounds.hit_ratio / max(fleet.hit_ratio, 1e-3), moves=True)


def _broken(picture: Picture, fleet: FleetSignals) -> bool:
    bounds, residency = picture.alert_bounds, fleet.mean_residency
    return fleet.swaps_per_second > bounds.swap_rate_broken or (
        residency is not None and residency < bounds.residency_page
    )


def _what(fleet: FleetSignals, *, moving: bool, crowded: bool) -> str:
    if not moving:
        return "nearly as many adapters are in use as there are slots, or more: there is no room for another"
    if crowded:
        return "thrash: more adapters are in use than there are slots for, and they push each other out"
    if fleet.active_per_slot is None:
        return "adapters leave their slots soon after they came"
    return "adapters leave their slots soon after they came, though there are slots enough for all in use"


def _cost(picture: Picture, fleet: FleetSignals) -> Iterator[str]:
    if picture.load_seconds is not None:
        lost = fleet.swaps_per_second * picture.load_seconds
        yield (
            f"each load costs {seconds(picture.load_seconds)}; {number(fleet.swaps_per_second)}/s of them take "
            f"{share(lost)} of a pod's time"
        )
    if fleet.swap_queue:
        yield f"{plural(fleet.swap_queue, 'request')} wait for loads now"


# -- what helps


def _remedies(picture: Picture, fleet: FleetSignals) -> Iterator[Remedy]:
    yield from _undo(picture, fleet)
    yield from _pin(picture)
    yield from _grow(picture, fleet)


def _undo(picture: Picture, fleet: FleetSignals) -> Iterator[Remedy]:
    """Without an experiment there would be so many adapters less."""
    for shift in picture.shifts:
        if shift.kind not in (ShiftKind.SPLIT, ShiftKind.REPLACED):
            continue
        ratio = ""
        if fleet.slots and fleet.active_adapters:
            left = max(0, fleet.active_adapters - len(shift.new))
            ratio = f": {left}/{fleet.slots} = {left / fleet.slots:.2f} adapters per slot"
        yield Remedy(
            action=f"end or merge what was split off ({names(shift.new, 4)}){ratio}",
            price=f"the experiment: {share(shift.share)} of the traffic goes back",
        )


def _pin(picture: Picture) -> Iterator[Remedy]:
    """The hottest, and what share of the loads was theirs."""
    if picture.signals is None:
        return
    pinned = {adapter.name: None for adapter in picture.adapters if adapter.pinned}
    hot = sorted(picture.signals.adapters, key=lambda each: (-each.requests_per_second, each.adapter))
    hot = [each for each in hot if each.adapter not in pinned and each.requests_per_second > 0][:PINNED]
    loads = sum(each.loads for each in picture.signals.adapters)
    slots = picture.signals.fleet.slots
    if not hot or not loads or (slots and len(hot) >= slots):
        return
    removed = sum(each.loads for each in hot) / loads
    traffic = sum(each.share for each in hot)
    yield Remedy(
        action=f"pin these {len(hot)}: {names([each.adapter for each in hot])}: they have {share(traffic)} of the "
        f"requests, and {share(removed)} of the loads were for them",
        price=f"{plural(len(hot), 'slot')}{f' of {slots}' if slots else ''}, which the others have no more: "
        "theirs are loaded more often",
    )


def _grow(picture: Picture, fleet: FleetSignals) -> Iterator[Remedy]:
    """Slots and pods that bring the ratio to its bound."""
    pods, bound = len(picture.pods), picture.alert_bounds.active_per_slot
    if not pods or not fleet.slots or not fleet.active_adapters or bound <= 0:
        return
    missing = ceil(fleet.active_adapters / bound - 1e-9) - fleet.slots
    if missing <= 0:
        return
    more = ceil(missing / pods)
    each = fleet.slots / pods
    new_ratio = fleet.active_adapters / (fleet.slots + more * pods)
    spare = spare_rank(picture)
    if spare is not None and each * spare.times >= each + more:
        yield Remedy(
            action=f"start the pods with max_lora_rank {spare.highest}, the highest in use, and {number(each + more)} "
            f"slots each: {fleet.active_adapters}/{fleet.slots + more * pods} = {new_ratio:.2f} adapters per slot",
            price=f"no memory: slots are reserved for rank {spare.reserved} now; a restart of each pod",
        )
    yield Remedy(
        action=f"add {plural(more, 'slot')} per pod: {fleet.active_adapters}/{fleet.slots + more * pods} = "
        f"{new_ratio:.2f} adapters per slot",
        price=in_words(picture, more),
    )
    yield Remedy(
        action=f"or add {plural(ceil(missing / each), 'pod')} with {number(each)} slots each",
        price=f"{plural(ceil(missing / each), 'GPU')}",
    )


def useful(picture: Picture) -> Iterator[Finding]:
    """What GPUs are busy with."""
    if picture.signals is None or picture.signals.fleet.useful_share is None:
        return
    found, bound = picture.signals.fleet.useful_share, picture.alert_bounds.useful_share
    busy = [pod.gpu_utilization for pod in picture.pods if pod.gpu_utilization is not None]
    if found >= bound:
        return
    what = f"{share(found)} of the time that pods are busy is inference"
    if busy:
        what = f"GPUs say {share(sum(busy) / len(busy))} busy, and {share(found)} of it is inference"
    yield Finding(
        check="useful_time",
        urgency=Urgency.WARN,
        what=what,
        arithmetic=(
            f"useful time of the last minute {share(found)} < {share(bound)} (an estimate)",
            "the rest is loads, and waiting for them",
        ),
        remedies=(Remedy(action="fewer loads: see the findings on slots and adapters", price="as there"),),
        weight=5 + bound / max(found, 1e-3),
    )


def swap_queue(picture: Picture) -> Iterator[Finding]:
    """Loads that requests wait for all the time."""
    alert = picture.alert("swap_queue")
    if alert is None or picture.signals is None:
        return
    waiting = {pod.pod: pod.swap_queue for pod in picture.pod_signals if pod.swap_queue}
    yield Finding(
        check="swap_queue",
        urgency=Urgency.WARN,
        what="requests wait for loads all the time: loading is the bottleneck",
        arithmetic=tuple(f"{pod}: {plural(count, 'request')}" for pod, count in [*waiting.items()][:5]),
        remedies=(Remedy(action="preload or pin what is asked for; faster storage for adapters", price="slots"),),
        pods=tuple(waiting),
    )
