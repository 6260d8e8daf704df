"""Whether adapters push each other out, and what makes room.

In: a picture. Out: findings with remedies and their prices. Not here: why there are more adapters than before (see
`core.doctor.changed`).
"""

from collections.abc import Iterator, Sequence
from math import ceil
from typing import NamedTuple

from lorapick.core.doctor.findings import Finding, Remedy, Urgency
from lorapick.core.doctor.harm import YOUNG, busy_share, harms, useful_share
from lorapick.core.doctor.picture import LoadPicture, Picture
from lorapick.core.doctor.pinned import pin
from lorapick.core.doctor.prices import in_words
from lorapick.core.doctor.saying import names, number, plural, seconds, share
from lorapick.core.doctor.waste import spare_rank
from lorapick.model.shifts import ShiftKind
from lorapick.model.signals import FleetSignals


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
    thrashes = picture.alert("thrash") is not None
    if picture.watched is not None and picture.watched < YOUNG and not thrashes:
        signs = [sign for sign in signs if not sign.moves]
        moving = []
    if not signs:
        return
    harm = harms(picture)
    broken = bool(moving) and (thrashes or (_broken(picture, fleet) and bool(harm)))
    yield Finding(
        check="thrash" if broken else "churn" if moving else "room",
        urgency=Urgency.PAGE if broken else Urgency.WARN,
        what=_what(fleet, moving=bool(moving), crowded=any(not sign.moves for sign in signs), broken=broken),
        arithmetic=(*(sign.text for sign in signs), *_cost(picture, fleet), *harm),
        remedies=tuple(_remedies(picture, fleet)),
        weight=10 + max(sign.beyond for sign in signs),
    )


def _signs(picture: Picture, fleet: FleetSignals) -> Iterator[_Sign]:
    bounds = picture.alert_bounds
    ratio = fleet.active_per_slot
    if ratio is not None and ratio > bounds.active_per_slot:
        crowd = _crowd(picture, fleet)
        counted = f"{crowd.active}/{crowd.slots} = " if crowd.slots else ""
        text = f"active adapters per slot {crowd.where}{counted}{ratio:.2f} > {number(bounds.active_per_slot)}"
        yield _Sign(text, ratio / max(bounds.active_per_slot, 1e-9), moves=False)
    fastest = max([fleet.swaps_per_second, *(pod.swaps_per_second for pod in picture.pod_signals)])
    if fastest > bounds.swap_rate:
        text = (
            f"swaps {number(fleet.swaps_per_second)}/s per pod{swaps_by_side(fleet)}, {number(fastest)}/s on the worst"
        )
        yield _Sign(f"{text} > {number(bounds.swap_rate)}/s", fastest / max(bounds.swap_rate, 1e-9), moves=True)
    if fleet.mean_residency is not None and fleet.mean_residency < bounds.residency:
        text = f"mean residency {seconds(fleet.mean_residency)} < {seconds(bounds.residency)}"
        yield _Sign(text, bounds.residency / max(fleet.mean_residency, 1e-3), moves=True)
    if fleet.hit_ratio is not None and fleet.hit_ratio < bounds.hit_ratio:
        text = f"hits {share(fleet.hit_ratio)} < {share(bounds.hit_ratio)}"
        yield _Sign(text, bounds.hit_ratio / max(fleet.hit_ratio, 1e-3), moves=True)


class _Crowd(NamedTuple):
    """Who wants slots, and where: of the side that has least room, where there are two."""

    where: str
    """`of pods that decode `; empty: everywhere."""
    pods: int
    active: int
    slots: int


def _crowd(picture: Picture, fleet: FleetSignals) -> _Crowd:
    tight = fleet.tightest
    if tight is None:
        return _Crowd("", len(picture.pods), fleet.active_adapters, fleet.slots)
    return _Crowd(f"of pods that {tight.side} ", tight.pods, tight.active_adapters, tight.slots)


def swaps_by_side(fleet: FleetSignals) -> str:
    """` (decode 1.5/s, prefill 0.2/s)`; empty where there is one side."""
    told = ", ".join(f"{side.side} {number(side.swaps_per_second)}/s" for side in fleet.sides if side.pods)
    return f" ({told})" if told else ""


def _broken(picture: Picture, fleet: FleetSignals) -> bool:
    bounds, residency = picture.alert_bounds, fleet.mean_residency
    return fleet.swaps_per_second > bounds.swap_rate_broken or (
        residency is not None and residency < bounds.residency_page
    )


def _what(fleet: FleetSignals, *, moving: bool, crowded: bool, broken: bool) -> str:
    """Thrash is what harms somebody: the word of the alert that pages."""
    if not moving:
        return "nearly as many adapters are in use as there are slots, or more: there is no room for another"
    begin, end = ("thrash: ", ", and users are harmed") if broken else ("", "; nothing is broken by it yet")
    if crowded:
        return f"{begin}more adapters are in use than there is room for, and they push each other out{end}"
    if fleet.active_per_slot is None:
        return f"{begin}adapters leave their slots soon after they came{end}"
    return f"{begin}adapters leave their slots soon after they came, though there are slots enough for all in use{end}"


def _cost(picture: Picture, fleet: FleetSignals) -> Iterator[str]:
    if picture.loads:
        yield _time_of_loads(picture.loads, fleet.swaps_per_second)
    if fleet.swap_queue:
        yield f"{plural(fleet.swap_queue, 'request')} {'waits' if fleet.swap_queue == 1 else 'wait'} for loads now"


def _time_of_loads(loads: Sequence[LoadPicture], rate: float) -> str:
    """What loads from each tier take, and how much of a pod's time that is."""
    told = []
    for each in loads:
        least = f"{seconds(each.quickest)} (the quickest of {each.seen}), " if each.quickest is not None else ""
        told.append(f"from {each.tier} {least}at most {seconds(each.at_most)}")
    bounds_only = any(each.quickest is None for each in loads)
    weighed = [(max(1, each.requests), each.at_most if each.quickest is None else each.quickest) for each in loads]
    lost = rate * sum(count * time for count, time in weighed) / sum(count for count, _ in weighed)
    word = "at most " if bounds_only else "about "
    # A pod has no more than all of its time, whatever bounds and overlapping loads add up to.
    taken = f"take {word}{share(lost)}" if lost < 1.0 else "may take all"
    if not rate:
        return f"a load takes {'; '.join(told)}; nobody waits for one now"
    return f"a load takes {'; '.join(told)}; {number(rate)}/s on each pod {taken} of a pod's time"


# -- what helps


def _remedies(picture: Picture, fleet: FleetSignals) -> Iterator[Remedy]:
    yield from _undo(picture, fleet)
    yield from pin(picture)
    yield from _grow(picture, fleet)


def _undo(picture: Picture, fleet: FleetSignals) -> Iterator[Remedy]:
    """Without an experiment there would be so many adapters less."""
    for shift in picture.shifts:
        if shift.kind not in (ShiftKind.SPLIT, ShiftKind.REPLACED):
            continue
        ratio = ""
        crowd = _crowd(picture, fleet)
        if crowd.slots and crowd.active:
            left = max(0, crowd.active - len(shift.new))
            ratio = f": {left}/{crowd.slots} = {left / crowd.slots:.2f} adapters per slot"
        yield Remedy(
            action=f"end or merge what was split off ({names(shift.new, 4)}){ratio}",
            price=f"the experiment: {share(shift.share)} of the traffic goes back",
        )


def _grow(picture: Picture, fleet: FleetSignals) -> Iterator[Remedy]:
    """Slots and pods that bring the ratio to its bound."""
    crowd, bound = _crowd(picture, fleet), picture.alert_bounds.active_per_slot
    pods, active, slots = crowd.pods, crowd.active, crowd.slots
    if not pods or not slots or not active or bound <= 0:
        return
    that = f" {crowd.where.removeprefix('of pods ').strip()}" if crowd.where else ""
    missing = ceil(active / bound - 1e-9) - slots
    if missing <= 0:
        return
    more = ceil(missing / pods)
    each = slots / pods
    new_ratio = active / (slots + more * pods)
    spare = spare_rank(picture)
    if spare is not None and each * spare.times >= each + more:
        yield Remedy(
            action=f"start the pods{that} with max_lora_rank {spare.highest}, the highest in use, and "
            f"{number(each + more)} slots each: {active}/{slots + more * pods} = {new_ratio:.2f} adapters per slot",
            price=f"no memory: slots are reserved for rank {spare.reserved} now; a restart of each pod",
        )
    yield Remedy(
        action=f"add {plural(more, 'slot')} per pod{f' of those{that}' if that else ''}: "
        f"{active}/{slots + more * pods} = {new_ratio:.2f} adapters per slot",
        price=in_words(picture, more),
    )
    yield Remedy(
        action=f"or add {plural(ceil(missing / each), 'pod')}{that} with {number(each)} slots each",
        price=f"{plural(ceil(missing / each), 'GPU')}",
    )


def useful(picture: Picture) -> Iterator[Finding]:
    """What GPUs are busy with."""
    found, bound = useful_share(picture), picture.alert_bounds.useful_share
    if found is None or found >= bound:
        return
    what, busy = f"{share(found)} of the time that pods are busy is inference", busy_share(picture)
    if busy is not None:
        what = f"GPUs say {share(busy)} busy, and {share(found)} of it is inference"
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
