"""Orders of operators: load, preload, unload, move.

In: an adapter's name and the body. Out: `LoadAsked`, `UnloadAsked`, `MoveAsked`, and what came of them; or
`OperationError`, and nothing changed. Not here: when a pod is told (see `core.placement.guard`).

There is one order for an adapter at a time: a new one takes the place of the one before, which the answer tells.
"""

from collections.abc import Mapping, Sequence

from lorapick.core.placement import sides
from lorapick.core.placement.assigning import candidates
from lorapick.core.placement.registering import may_come_back
from lorapick.core.placement.state import Order
from lorapick.core.placement.wants import Want
from lorapick.core.state import FleetState
from lorapick.live.changes.known import (
    check_adapter,
    check_enabled,
    check_fit,
    check_pods,
    is_resident,
    meant,
    pods_of,
    resident_rows,
    wanted_rows,
)
from lorapick.live.changes.submitting import Submitting
from lorapick.live.operations import OperationError
from lorapick.model.events import LoadAsked, MoveAsked, UnloadAsked
from lorapick.model.placement import Side, Why
from lorapick.model.units import AdapterName, PodName
from lorapick.wire.admin_answers import Done
from lorapick.wire.admin_bodies import LoadBody, MoveBody, PreloadBody
from lorapick.wire.api import ApiReason


class Loads:
    """Orders, over a driver."""

    def __init__(self, door: Submitting) -> None:
        """Give them through `door`."""
        self._door = door

    def load(self, name: AdapterName, body: LoadBody) -> Done:
        """Load once, on each named pod or on so many."""
        self._check(name, body.pods)
        check_fit(self._door.state, name, pods=body.pods, selector=body.selector)
        where = _where(body.pods, body.replicas, selector=body.selector)
        if self._is_loaded(name, body):
            return self._door.unchanged(name, f"{name} is loaded {where} already")
        standing = self._door.order_of(name)
        if standing is not None and _same(standing, body):
            ago = self._door.now - standing.asked
            return self._door.unchanged(name, f"{name} is being loaded {where}, as was asked for {ago:.0f} s ago")
        notes = self._replaced(name)
        event, _ = self._door.submit(
            lambda t, i: LoadAsked(
                t=t, id=i, adapter=name, pods=body.pods, replicas=body.replicas, selector=body.selector
            )
        )
        notes += self._few(name, {None: len(body.pods)} if body.pods else _asked(self._door.state, name, body=body))
        return self._door.done(name, f"load {name} {where}, once", event=event, notes=notes)

    def preload(self, name: AdapterName, body: PreloadBody) -> Done:
        """Load, and keep for a while; the same again counts from now."""
        self._check(name)
        check_fit(self._door.state, name, pods=(), selector=body.selector)
        notes = self._replaced(name)
        event, _ = self._door.submit(
            lambda t, i: LoadAsked(
                t=t, id=i, adapter=name, replicas=body.replicas, selector=body.selector, lasts=body.lasts
            )
        )
        where = _where((), body.replicas, selector=body.selector)
        understood = f"load {name} {where}, and keep it for {body.lasts:g} s"
        notes += self._few(name, _asked(self._door.state, name, body=body))
        return self._door.done(name, understood, event=event, notes=notes)

    def unload(self, name: AdapterName, pods: Sequence[PodName]) -> Done:
        """Take from pods, once no request for it is in flight there."""
        self._check(name, pods)
        rows = [row for row, _ in meant(self._door.state, pods, selector={})]
        self._check_not_pinned(name, rows)
        where = f"on {', '.join(pods)}" if pods else "on all pods"
        if self._door.order_of(name) is None and not any(self._has(row, name) for row in rows):
            return self._door.unchanged(name, f"nothing knows {name} {where}")
        self._check_may_come_back(name, rows)
        event, _ = self._door.submit(lambda t, i: UnloadAsked(t=t, id=i, adapter=name, pods=tuple(pods)))
        notes = self._of_unloading(name, rows)
        return self._door.done(name, f"unload {name} {where}", event=event, notes=notes)

    def move(self, name: AdapterName, body: MoveBody) -> Done:
        """Load there first, then unload here."""
        self._check(name, (body.source, body.target))
        state = self._door.state
        source, target = (state.columns.row_of[pod] for pod in (body.source, body.target))
        self._check_not_pinned(name, [source])
        if not self._has(source, name):
            if is_resident(state, name, row=target):
                return self._door.unchanged(name, f"{name} is on {body.target}, and not on {body.source}")
            there = ", ".join(pods_of(state, resident_rows(state, name))) or "no pod"
            detail = f"{name} is not on {body.source}, so it cannot leave it; it is in a slot of {there}"
            raise OperationError(409, ApiReason.NOT_THERE, detail=detail)
        check_fit(state, name, pods=(body.target,))
        self._check_may_come_back(name, [source])
        notes = self._replaced(name)
        event, _ = self._door.submit(
            lambda t, i: MoveAsked(t=t, id=i, adapter=name, source=body.source, target=body.target)
        )
        understood = f"load {name} on {body.target}, then unload it on {body.source}"
        return self._door.done(name, understood, event=event, notes=[*notes, *self._of_unloading(name, [source])])

    # -- checks

    def _check(self, name: AdapterName, pods: Sequence[PodName] = ()) -> None:
        check_enabled(self._door.state)
        check_adapter(self._door.state, name)
        check_pods(self._door.state, pods)

    def _check_may_come_back(self, name: AdapterName, rows: Sequence[int]) -> None:
        """Refuse to take a name from the last pods that accept it when nobody could give it back to any."""
        state = self._door.state
        if any(self._has(row, name) for row in state.loads if row not in rows):
            return
        lost = [row for row in rows if self._has(row, name) and not may_come_back(state, row, name=name)]
        if lost:
            pods = ", ".join(pods_of(state, lost))
            detail = f"nobody knows a source of {name}: it could be loaded neither on {pods} again nor elsewhere"
            raise OperationError(409, ApiReason.IN_USE, detail=f"{detail}; declare it with one")

    def _check_not_pinned(self, name: AdapterName, rows: Sequence[int]) -> None:
        state = self._door.state
        pinned = [row for row in state.placement.pinned.rows.get(name, ()) if row in rows]
        if pinned:
            detail = f"{name} is pinned on {', '.join(pods_of(state, pinned))}, so it would come back; unpin it first"
            raise OperationError(409, ApiReason.PINNED, detail=detail)

    def _is_loaded(self, name: AdapterName, body: LoadBody) -> bool:
        state = self._door.state
        rows = [row for row, _ in meant(state, body.pods, selector=body.selector)]
        there = [row for row in rows if is_resident(state, name, row=row)]
        if body.pods:
            return there == rows
        return all(_count(state, there, side=side) >= copies for side, copies in _asked(state, name, body=body).items())

    def _has(self, row: int, name: AdapterName) -> bool:
        """Whether a pod knows an adapter's name, or is being told."""
        state = self._door.state
        under_way = state.placement.commands.under_way.get(row)
        told = under_way is not None and under_way.adapter == name
        return told or state.residency.registry.accepts(row, name)

    # -- what the caller should know

    def _replaced(self, name: AdapterName) -> list[str]:
        order = self._door.order_of(name)
        return [] if order is None else [f"takes the place of the order before, {order.want.name}"]

    def _few(self, name: AdapterName, asked: Mapping[Side | None, int]) -> list[str]:
        """Where fewer pods are to hold it than were asked for, by side; None: on whichever."""
        state, notes = self._door.state, list[str]()
        for side, wanted in asked.items():
            found = _count(state, wanted_rows(state, name), side=side)
            where = f" of those that {side.value}" if side is not None and len(asked) > 1 else ""
            if found < wanted:
                notes.append(f"{wanted} pods{where} were asked for; {found} can hold it now")
        return notes

    def _of_unloading(self, name: AdapterName, rows: Sequence[int]) -> list[str]:
        state, notes = self._door.state, list[str]()
        for row in rows:
            home = state.residency.home(row)
            cell = home.cells.get(name)
            if not home.caches.unloads:
                notes.append(f"{home.name} cannot be told to unload over HTTP")
            elif cell is not None and cell.in_flight:
                notes.append(f"{home.name} unloads it when {cell.in_flight} requests for it have ended")
        frees = [state.residency.home(row).caches for row in rows]
        if any(caches.unloads and not caches.unload_frees for caches in frees):
            notes.append("vLLM forgets the name only: the weights leave its memory when others need the place")
        return notes


def _asked(state: FleetState, name: AdapterName, *, body: LoadBody | PreloadBody) -> dict[Side | None, int]:
    """Copies that are asked for by count, on each side: no more to prefill than pods that may have one."""
    want = Want(name, Why.OPERATOR, "", body.replicas, selector=body.selector)
    room = {side: len(candidates(state, want, side=side)) for side in sides.there(state)}
    prefill = min(body.replicas, room.get(Side.PREFILL, 0))
    if prefill and not room[Side.DECODE]:
        return {Side.PREFILL: prefill}  # the labels are of pods that prefill
    return {Side.DECODE: body.replicas, **({Side.PREFILL: prefill} if prefill else {})}


def _count(state: FleetState, rows: Sequence[int], *, side: Side | None) -> int:
    """Pods of a side among some; None: of whichever."""
    return len(rows) if side is None else sum(sides.of(state, row) is side for row in rows)


def _same(order: Order, body: LoadBody) -> bool:
    want = order.want
    asked = (want.pods, want.replicas, dict(want.selector))
    return order.once and order.leaves is None and asked == (body.pods, body.replicas, body.selector)


def _where(pods: Sequence[PodName], replicas: int, *, selector: Mapping[str, str]) -> str:
    if pods:
        return f"on {', '.join(pods)}"
    labels = " with " + ", ".join(f"{key}={value}" for key, value in selector.items()) if selector else ""
    return f"on {replicas} pod{'s' if replicas > 1 else ''}{labels}"
