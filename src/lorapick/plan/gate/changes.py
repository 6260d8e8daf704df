"""What would pass: the smallest change of each kind, cheapest kind first.

In: the plan that fails, how plans are judged. Out: changes with what they would lead to. Not here: the rules.

Kinds, by what they cost: a policy that knows where adapters are and pins are configuration; slots take KV memory; pods
cost money; fewer adapters are what nobody asked for. Of each kind the smallest amount that passes is searched with the
prediction, by halving: more slots and pods, and fewer adapters, never hit less. Pins are tried by themselves and with
slots. One that does not pass is told as well, with how far it comes: of pods and adapters the most that is tried, of
slots as many as can help.
"""

from collections.abc import Callable, Collection, Iterator, Sequence

import msgspec

from lorapick.model.adapters import PinSpec
from lorapick.model.pods import Pod
from lorapick.model.units import AdapterName
from lorapick.plan.gate.rules import worst
from lorapick.plan.gate.values import Change, Finding, Level, Plan
from lorapick.plan.prediction.routing import KINDS, Kind
from lorapick.plan.prediction.values import Demand, FleetShape, Prediction

TOP = 10
"""Adapters that are pinned in one go: the article's."""
MOST_SLOTS = 128
MOST_PODS = 1
"""New pods for each that is there, up to which it is searched: twice as many."""
POLICY = "weighted"
Judged = Callable[[Plan], tuple[Prediction, tuple[Finding, ...]]]


def changes(plan: Plan, judged: Judged, *, new: Collection[AdapterName]) -> tuple[Change, ...]:
    """Every kind, those that pass first, each group cheapest first.

    Args:
        plan: what fails.
        judged: what a plan leads to, and what the rules say of that.
        new: adapters of the rollout: they are given up before others.
    """
    found = list(_all(plan, judged, new=new))
    return tuple(sorted(found, key=lambda change: not change.passes))


def _all(plan: Plan, judged: Judged, *, new: Collection[AdapterName]) -> Iterator[Change]:
    if KINDS[plan.fleet.policy] is not Kind.POOLED:
        words = f"picking.policy: {POLICY} instead of {plan.fleet.policy}"
        routed = with_policy(plan)
        yield _change(routed, judged, kind="policy", words=words)
        more = None if passes(routed, judged) else _least_slots(routed, judged)
        if more:
            words = f"{words}, and {_slots(plan, more)}"
            yield _change(with_slots(routed, more), judged, kind="policy+slots", words=words)
    slots = _least_slots(plan, judged)
    yield from _pinning(plan, judged, slots=slots, new=new)
    enough = slots or _useful_slots(plan)
    yield _change(with_slots(plan, enough), judged, kind="slots", words=_slots(plan, enough))
    if slots:
        yield from _fitting(plan, judged, above=slots)
    count = len(plan.fleet.pods)
    pods = _least(lambda extra: passes(with_pods(plan, extra), judged), most=MOST_PODS * count) or MOST_PODS * count
    words = f"{count + pods} pods instead of {count}"
    yield _change(with_pods(plan, pods), judged, kind="pods", words=words)
    order = _droppable(plan, new=new)
    drop = _least(lambda extra: passes(without(plan, order[:extra]), judged), most=len(order)) or len(order)
    if drop:
        left = len(plan.demand) - drop
        words = (
            f"{left} adapter{'s' if left > 1 else ''} instead of {len(plan.demand)}: without {_listed(order[:drop])}"
        )
        yield _change(without(plan, order[:drop]), judged, kind="fewer", words=words)


def _useful_slots(plan: Plan) -> int:
    """More slots on each pod from which on still more change nothing: everybody has one wherever requests come."""
    active, pods = sum(each.rate > 0 for each in plan.demand), plan.fleet.pods
    extra = _for_all(plan) if KINDS[plan.fleet.policy] is Kind.POOLED else active - min(_slots_of(pods))
    return min(max(extra, 1), MOST_SLOTS)


def _for_all(plan: Plan) -> int:
    """More slots on each pod from which on there is one for everybody."""
    active = sum(each.rate > 0 for each in plan.demand)
    return -(-(active - plan.fleet.slots) // len(plan.fleet.pods))


def _slots_of(pods: Sequence[Pod]) -> list[int]:
    return sorted({pod.limits.max_loras for pod in pods})


def _fitting(plan: Plan, judged: Judged, *, above: int) -> Iterator[Change]:
    """Slots for everybody, where fewer would do: what it takes to have no swaps at all."""
    extra = _for_all(plan)
    if above < extra <= MOST_SLOTS:
        words = f"{_slots(plan, extra)}, which is one for everybody"
        yield _change(with_slots(plan, extra), judged, kind="slots_for_all", words=words)


def _pinning(plan: Plan, judged: Judged, *, slots: int | None, new: Collection[AdapterName]) -> Iterator[Change]:
    """Pins alone, and with slots if fewer of those are enough then."""
    names = _pins_of(plan, new=new)[:TOP]
    if not names:
        return
    pinned = with_pins(plan, TOP, new=new)
    yield _change(pinned, judged, kind="pins", words=f"pin {_listed(names)}")
    fewer = _least_slots(pinned, judged, most=(slots or MOST_SLOTS + 1) - 1)
    if fewer:
        words = f"{_slots(plan, fewer)}, and pin {_listed(names)}"
        yield _change(with_slots(pinned, fewer), judged, kind="pins+slots", words=words)


COSTS = {
    "policy": "configuration", "policy+slots": "KV memory for the slots", "pins": "configuration",
    "pins+slots": "KV memory for the slots",
    "slots": "KV memory for the slots", "slots_for_all": "KV memory for the slots", "pods": "GPUs",
    "fewer": "the adapters left out",
}  # fmt: skip
"""What each kind costs; `lorapick plan slots` and `plan fleet` have the numbers."""


def _change(plan: Plan, judged: Judged, *, kind: str, words: str) -> Change:
    prediction, findings = judged(plan)
    level = worst(findings)
    return Change(
        kind=kind,
        words=words,
        costs=COSTS[kind],
        passes=level is not Level.FAIL,
        level=level,
        prediction=prediction,
        plan=plan,
        failing=tuple(each for each in findings if each.level is Level.FAIL),
        unsure=any(each.unsure for each in findings),
    )


def passes(plan: Plan, judged: Judged) -> bool:
    """Whether nothing fails."""
    return worst(judged(plan)[1]) is not Level.FAIL


def _least_slots(plan: Plan, judged: Judged, *, most: int = MOST_SLOTS) -> int | None:
    return _least(lambda extra: passes(with_slots(plan, extra), judged), most=most)


def _least(enough: Callable[[int], bool], *, most: int) -> int | None:
    """The smallest amount from 1 to `most` that is enough; None: not even `most` is."""
    high = 1
    while high < most and not enough(high):
        high = min(2 * high, most)
    if most < 1 or not enough(high):
        return None
    low = 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def with_policy(plan: Plan) -> Plan:
    """Routed to where adapters are."""
    return msgspec.structs.replace(plan, fleet=msgspec.structs.replace(plan.fleet, policy=POLICY))


def with_pins(plan: Plan, top: int, *, new: Collection[AdapterName] = ()) -> Plan:
    """The most popular adapters that have no pin, and are not new, pinned once each, as long as pods have room."""
    chosen = _pins_of(plan, new=new)[:top]
    pinned = (
        msgspec.structs.replace(each, pin=PinSpec(replicas=1)) if each.adapter in chosen else each
        for each in plan.demand
    )
    return msgspec.structs.replace(plan, demand=tuple(pinned))


def with_slots(plan: Plan, extra: int) -> Plan:
    """So many more slots on each pod."""
    pods = tuple(
        msgspec.structs.replace(pod, limits=msgspec.structs.replace(pod.limits, max_loras=pod.limits.max_loras + extra))
        for pod in plan.fleet.pods
    )
    return msgspec.structs.replace(plan, fleet=msgspec.structs.replace(plan.fleet, pods=pods))


def with_pods(plan: Plan, extra: int) -> Plan:
    """So many more pods like the last one."""
    fleet = plan.fleet
    there = len(fleet.pods)
    names = (f"new-pod-{number + 1:02d}" for number in range(there, there + extra))
    more = (msgspec.structs.replace(fleet.pods[-1], name=name) for name in names)
    return msgspec.structs.replace(plan, fleet=FleetShape(pods=(*fleet.pods, *more), policy=fleet.policy))


def without(plan: Plan, names: Collection[AdapterName]) -> Plan:
    """Without some adapters; their traffic goes to those that stay, in proportion."""
    total = sum(each.rate for each in plan.demand)
    stay = [each for each in plan.demand if each.adapter not in names]
    left = sum(each.rate for each in stay)
    factor = total / left if left else 1.0
    demand = tuple(msgspec.structs.replace(each, rate=each.rate * factor) for each in stay)
    return msgspec.structs.replace(plan, demand=demand)


def _pins_of(plan: Plan, *, new: Collection[AdapterName]) -> list[AdapterName]:
    """Adapters without a pin that are not new, most popular first; half of the slots stay free of pins.

    Pinning an experiment would protect what is to be tried from what has to work.
    """
    room = plan.fleet.slots // 2 - sum(each.pin is not None for each in plan.demand)
    return [each.adapter for each in _popular(plan.demand) if each.pin is None and each.adapter not in new][
        : max(room, 0)
    ]


def _droppable(plan: Plan, *, new: Collection[AdapterName]) -> list[AdapterName]:
    """Who is given up first: the least popular of the rollout, or of all when it brings nobody, or everybody."""
    rare = [each.adapter for each in reversed(_popular(plan.demand))]
    mine = [name for name in rare if name in new]
    return mine if 0 < len(mine) < len(rare) else rare[:-1]


def _popular(demand: Collection[Demand]) -> list[Demand]:
    return sorted((each for each in demand if each.rate > 0), key=lambda each: -each.rate)


def _slots(plan: Plan, extra: int) -> str:
    now = _slots_of(plan.fleet.pods)
    then = ", ".join(str(slots + extra) for slots in now)
    return f"{then} slots per pod instead of {', '.join(map(str, now))}"


def _listed(names: list[AdapterName]) -> str:
    shown = ", ".join(names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"
