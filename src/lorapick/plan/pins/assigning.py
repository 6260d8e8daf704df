"""How many copies of each pinned adapter, and on which pods.

In: chosen adapters, pods. Out: `Advice`. Not here: who is chosen (see `choosing`).

Replicas are what the adapter's busiest minute asks for, by the rule that the picker's own placement by load has. Every
adapter gets one copy before any gets two; what room is left then goes to those with most requests. Pods are chosen by
the controller's own solver.
"""

from collections.abc import Mapping, Sequence

import msgspec

from lorapick.core.placement.pins import PinPod, Told, place
from lorapick.core.placement.replicas import ReplicaRules, wanted
from lorapick.core.placement.solving import solve
from lorapick.model.adapters import Adapter
from lorapick.model.placement import PlacedAdapter, PlacementProblem, PodRoom
from lorapick.model.pods import Pod
from lorapick.model.units import AdapterName, PodName
from lorapick.plan.logs.values import LogAdapter, LogSummary
from lorapick.plan.pins.choosing import choose, remark_of
from lorapick.plan.pins.service import service_of
from lorapick.plan.pins.values import FREE, Advice, LeftOut, PinFleet, Pinned, PinOptions, PodPins

MINUTE = 60.0
BURST = 1.0
"""Of the requests within the busiest minute: its rate has the bursts between minutes in it already, and those of days
and nights, which a variance over all minutes would count a second time."""


def advise(summary: LogSummary, fleet: PinFleet, *, options: PinOptions) -> Advice:
    """Choose, count and place.

    Raises:
        ValueError: there is no pod.
    """
    if not fleet.pods:
        raise ValueError("the fleet has no pods; pins need slots: list pods in the configuration, or give --pods")
    own = own_pins(fleet)
    pods = [_room(pod, own) for pod in fleet.pods]
    chosen = choose(summary, fleet, options=options, own=[name for name, rows in own.items() if rows])
    room = sum(pod.room for pod in pods)
    slots = max(pod.limits.max_loras for pod in fleet.pods)
    drafts = [_draft(each, summary, options=options, slots=slots) for each in chosen.adapters]
    open_to = sum(pod.room > 0 for pod in pods)
    problem = _problem(fleet, pods, counted=_bounded(drafts[:room], open_to, room=room))
    placed = solve(problem).placed if problem.adapters else {}
    asked = {each.adapter: each.replicas for each in problem.adapters}
    pins = tuple(
        msgspec.structs.replace(each, asked=asked[each.adapter], pods=placed[each.adapter])
        for each in drafts[:room]
        if placed[each.adapter]
    )
    return Advice(
        pins=pins,
        left_out=(*chosen.left_out, *(_homeless(each) for each in drafts[:room] if not placed[each.adapter])),
        pods=tuple(_taken(pod, pins) for pod in pods),
        own=tuple(name for name, rows in own.items() if rows),
        current=chosen.current,
        covered=chosen.before + sum(each.log.requests for each in pins),
        needed=len(chosen.adapters),
        pinnable=chosen.enough,
    )


def own_pins(fleet: PinFleet) -> dict[AdapterName, tuple[PodName, ...]]:
    """Where the picker places the pins that the configuration has."""
    pins = {each.name: each.pin for each in fleet.declared if each.pin is not None}
    pods = [PinPod(row, pod, pod.limits.max_loras) for row, pod in enumerate(fleet.pods)]
    nobody: Mapping[AdapterName, list[int]] = {name: [] for name in pins}
    found = place(pins, pods, told=Told(lambda _name, _pod: None, nobody, {}))
    return {name: tuple(fleet.pods[row].name for row in rows) for name, rows in found.rows.items()}


def _room(pod: Pod, own: Mapping[AdapterName, Sequence[PodName]]) -> PodPins:
    slots, taken = pod.limits.max_loras, sum(pod.name in pods for pods in own.values())
    room = max(0, int(slots * (1 - FREE)) - taken)
    return PodPins(pod=pod.name, slots=slots, own=taken, room=room, pins=())


def _draft(adapter: LogAdapter, summary: LogSummary, *, options: PinOptions, slots: int) -> Pinned:
    service = service_of(adapter, options, slots=slots)
    load = adapter.peak / MINUTE * service
    return Pinned(
        log=adapter,
        share=adapter.requests / summary.requests,
        service=service,
        load=load,
        wanted=wanted(load, burst=BURST, rules=ReplicaRules(target=options.target)),
        asked=0,
        pods=(),
        remark=remark_of(adapter, summary),
    )


def _bounded(drafts: Sequence[Pinned], pods: int, *, room: int) -> list[tuple[Pinned, int]]:
    """Each with its replicas: one for everybody, then as many more as are wanted and there is room for."""
    left, counted = room - len(drafts), []
    for each in drafts:
        more = max(0, min(each.wanted, pods) - 1)
        counted.append((each, 1 + min(more, left)))
        left -= min(more, left)
    return counted


def _problem(fleet: PinFleet, pods: Sequence[PodPins], *, counted: Sequence[tuple[Pinned, int]]) -> PlacementProblem:
    declared = {each.name: each for each in fleet.declared}
    return PlacementProblem(
        version=0,
        pods=tuple(
            PodRoom(
                pod=pod.name,
                slots=own.room,
                base_model=pod.base_model,
                max_rank=pod.limits.max_lora_rank,
                zone=pod.zone,
            )
            for pod, own in zip(fleet.pods, pods, strict=True)
        ),
        adapters=tuple(
            _placed(each, replicas, known=declared.get(each.adapter, Adapter(name=each.adapter)), fleet=fleet)
            for each, replicas in counted
        ),
    )


def _placed(each: Pinned, replicas: int, *, known: Adapter, fleet: PinFleet) -> PlacedAdapter:
    return PlacedAdapter(
        adapter=each.adapter,
        replicas=replicas,
        base_model=known.base_model if known.base_model is not None else fleet.base_model,
        rank=known.rank,
        rate=each.log.peak / MINUTE,
    )


def _homeless(draft: Pinned) -> LeftOut:
    why = "no pod that has room may serve it: look at its base model and its rank in the configuration"
    return LeftOut(adapter=draft.adapter, share=draft.share, why=why)


def _taken(pod: PodPins, pins: Sequence[Pinned]) -> PodPins:
    names = tuple(each.adapter for each in pins if pod.pod in each.pods)
    return msgspec.structs.replace(pod, pins=names)
