"""Give commands to pods, and take note of what came of them.

In: targets that the guard accepted; answers of pods. Out: Load, Register, Touch and Unload effects with notes. What
begins is believed at once, as with a request that makes an engine load: the picker sends nobody elsewhere for it.
Not here: which commands (see `core.placement.controller`).
"""

from lorapick.core.placement.commands import Brings, Command, Failed, Kind
from lorapick.core.placement.targets import INSISTED, Target
from lorapick.core.state import FleetState
from lorapick.model.effects import Effect, Load, Note, Register, Touch, Unload
from lorapick.model.tiers import Source, Tier
from lorapick.model.units import AdapterName, Seconds


def load(state: FleetState, target: Target, *, now: Seconds, cause: int) -> list[Effect]:
    """Bring an adapter into a slot. Where a load ends in host memory, a touch brings it on from there."""
    home = state.residency.home(target.row)
    if home.caches.loads_to_host and home.cell(target.adapter).tier is Tier.CPU:
        return touch(state, target, now=now, cause=cause)
    _begin(state, target, kind=Kind.LOAD, now=now, brings=Brings.HALFWAY if home.caches.loads_to_host else Brings.IN)
    if home.caches.loads_to_host:
        state.placement.commands.load_began(target.row, now=now)
    else:
        _activating(state, target, now=now)
    pod = state.columns.targets[target.row].pod
    command = Load(cause=cause, pod=pod, adapters=(target.adapter,), why=target.why.value)
    return [_note(state, target, kind="load", cause=cause), command]


def register(state: FleetState, target: Target, *, now: Seconds, cause: int) -> list[Effect]:
    """Make a name known. On vLLM that brings the adapter into a slot too."""
    _begin(state, target, kind=Kind.REGISTER, now=now)
    if not state.residency.home(target.row).caches.loads_to_host:
        _activating(state, target, now=now)
    pod = state.columns.targets[target.row].pod
    note = _note(state, target, kind="register", cause=cause)
    return [note, Register(cause=cause, pod=pod, adapter=target.adapter)]


def touch(state: FleetState, target: Target, *, now: Seconds, cause: int) -> list[Effect]:
    """Have a pod use an adapter for one token."""
    if not state.placement.commands.may_touch(target.row, now=now):
        return []
    home = state.residency.home(target.row)
    brings = home.cell(target.adapter).tier < Tier.LOADING
    _begin(state, target, kind=Kind.TOUCH, now=now, brings=Brings.IN if brings else Brings.NOTHING)
    if brings:
        _activating(state, target, now=now)
    elif target.adapter in home.shadow.gpu:
        home.shadow.unsure[target.adapter] = None
        state.gates.refresh(target.row)
    touches = state.placement.commands.touches
    touches[target.row] = touches[target.row]._replace(uses=home.shadow.uses)
    pod = state.columns.targets[target.row].pod
    note = _note(state, target, kind="touch", cause=cause)
    return [note, Touch(cause=cause, pod=pod, adapter=target.adapter)]


def unload(state: FleetState, target: Target, *, now: Seconds, cause: int) -> list[Effect]:
    """Take an adapter away from a pod."""
    _begin(state, target, kind=Kind.UNLOAD, now=now)
    pod = state.columns.targets[target.row].pod
    note = _note(state, target, kind="unload", cause=cause)
    return [note, Unload(cause=cause, pod=pod, adapter=target.adapter, why=target.why.value)]


def _begin(state: FleetState, target: Target, *, kind: Kind, now: Seconds, brings: Brings = Brings.NOTHING) -> None:
    placement = state.placement
    command = Command(kind, target.adapter, target.why, now, brings)
    placement.commands.begin(target.row, command, insisted=target.why in INSISTED)
    if kind is not Kind.TOUCH:
        placement.refusals.pop((target.row, target.adapter), None)


def _activating(state: FleetState, target: Target, *, now: Seconds) -> None:
    state.tally.loads += state.residency.commanded(target.row, target.adapter, now=now)
    state.placement.commands.load_began(target.row, now=now)
    state.residency.home(target.row).excuse()
    state.refresh(target.row)


def _note(state: FleetState, target: Target, *, kind: str, cause: int) -> Note:
    facts: dict[str, str | float] = {
        "pod": state.columns.targets[target.row].pod,
        "adapter": target.adapter,
        "why": target.why.value,
    }
    if target.name:
        facts["of"] = target.name
    return Note(cause=cause, kind=kind, facts=facts)


# -- what came of them


def ended(
    state: FleetState, row: int, *, adapter: AdapterName, kind: Kind, now: Seconds, failed: Failed = Failed.NO
) -> Command | None:
    """A pod has answered; None: that was no command of ours. When it is done the next tick comes soon.

    After a failure it comes when it is due: an answer that came at once would else be asked for again at once.
    """
    command = state.placement.commands.end(row, adapter, kind=kind, now=now, failed=failed)
    if command is not None and failed is Failed.NO:
        state.placement.hurry_a_little(now)
        if kind is Kind.UNLOAD:
            state.placement.unloads.pop((row, adapter), None)
    return command


def give_up(state: FleetState, *, now: Seconds, cause: int) -> list[Effect]:
    """Commands of which nothing has been heard for too long have failed, as far as we know."""
    effects: list[Effect] = []
    for row, command in state.placement.commands.overdue(now):
        state.placement.commands.end(row, command.adapter, kind=command.kind, now=now, failed=Failed.THIS_TIME)
        undo(state, row, command=command, now=now)
        facts: dict[str, str | float] = {
            "pod": state.columns.targets[row].pod,
            "adapter": command.adapter,
            "why": f"nothing was heard of a {command.kind.value} for {now - command.asked:.0f} s",
        }
        effects.append(Note(cause=cause, kind="command_lost", facts=facts))
    return effects


def undo(state: FleetState, row: int, *, command: Command, now: Seconds, certain: bool = False) -> None:
    """A command that brought an adapter into a slot has failed, or nobody knows: it counts as being where it was.

    Unless that is `certain` its slot counts as taken: the pod may have done it and not have said so.
    That it should have been there by now is no evidence; a request that runs, or a word of the pod since, is.
    """
    cell = state.residency.home(row).cells.get(command.adapter)
    if cell is None or cell.in_flight > cell.reserved or cell.since < command.asked:
        return
    if cell.tier is Tier.LOADING or (cell.tier.on_gpu and not cell.proven):
        if certain:
            state.residency.left(row, command.adapter, tier=cell.came_from, now=now, source=Source.COMMANDED)
        else:
            state.residency.doubted(row, command.adapter, tier=cell.came_from, now=now)
        state.refresh(row)
