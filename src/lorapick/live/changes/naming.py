"""Adapters that are declared and retired while the picker runs, and aliases that move.

In: adapters and aliases as the configuration would have them. Out: `AdapterDeclared`, `AdapterChanged`,
`AdapterRetired`, `AliasSet`, `AliasCleared`; or `OperationError`. What is set here is kept until the picker ends.
Not here: whether files are what they should be (see `live.catalogue`), shares (see `core.placement.aliases`).

New weights never come under a name that pods know with others: engines go on serving what they have under it. They are
declared as `name@revision`, and an alias moves.
"""

import msgspec

from lorapick.core.placement import aliases
from lorapick.core.placement.guard import cannot_serve
from lorapick.core.placement.pinning import why_not
from lorapick.core.state import FleetState
from lorapick.live.changes.known import check_adapter, check_pods, is_known
from lorapick.live.changes.room import crowded
from lorapick.live.changes.submitting import Submitting
from lorapick.live.changes.wishes import pinned
from lorapick.live.operations import OperationError
from lorapick.live.problems import nearest
from lorapick.model.adapters import Adapter, Alias
from lorapick.model.events import AdapterChanged, AdapterDeclared, AdapterRetired, AliasCleared, AliasSet
from lorapick.model.placement import AdapterFacts
from lorapick.model.units import AdapterName
from lorapick.wire.admin_answers import AliasesAnswer, Done
from lorapick.wire.api import ApiReason, FieldProblem

_WEIGHTS = ("source", "revision", "sha256")
"""Fields that say which weights an adapter has."""


class Naming:
    """Declarations and aliases, over a driver."""

    def __init__(self, door: Submitting) -> None:
        """Tell of them through `door`."""
        self._door = door

    # -- adapters

    def declare(self, adapter: Adapter) -> Done:
        """Name an adapter, or say more of it."""
        state, name = self._door.state, adapter.name
        self._check_name(name)
        before = state.adapters.get(name)
        if before is not None and _as_written(before, adapter, facts=state.placement.facts.get(name)) == adapter:
            return self._door.unchanged(name, f"{name} is declared like this already")
        if before is not None and before.declared:
            self._check_weights(before, adapter)
        self._check_pin(adapter)
        event = self._say(adapter)
        understood = f"{'change' if before is not None else 'declare'} {name}"
        if adapter.pin is not None:
            understood += f", and keep it resident {pinned(adapter.pin)}"
        notes = [*self._of_declaring(adapter), *(crowded(state) if adapter.pin is not None else ())]
        return self._door.done(name, understood, event=event, notes=notes)

    def announce(self, adapter: Adapter) -> None:
        """Name an adapter, or say more of it, for who needs no answer: answers look at all pods, and many come at once.

        Whether its pin fits is found with all other pins at the next tick, and not here.
        """
        self._check_name(adapter.name)
        before = self._door.state.adapters.get(adapter.name)
        if before is not None and before.declared:
            self._check_weights(before, adapter)
        self._say(adapter)

    def _say(self, adapter: Adapter) -> int:
        """The event's id."""
        if adapter.name not in self._door.state.adapters:
            return self._door.submit(lambda t, i: AdapterDeclared(t=t, id=i, adapter=adapter))[0]
        return self._door.submit(lambda t, i: AdapterChanged(t=t, id=i, adapter=adapter))[0]

    def retire(self, name: AdapterName) -> Done:
        """Withdraw an adapter: no new requests; pods forget it when those in flight have ended."""
        state = self._door.state
        if name in state.placement.retiring:
            return self._door.unchanged(name, f"{name} is retired; pods are still to forget it")
        check_adapter(state, name)
        for alias in state.aliases.values():
            if any(target.adapter == name for target in alias.to):
                detail = f"the alias {alias.name} leads to {name}; move or clear the alias first"
                raise OperationError(409, ApiReason.IN_USE, detail=detail)
        if name not in state.adapters:
            detail = f"nobody declared {name}, pods serve it by themselves; take it from their own list of adapters"
            raise OperationError(409, ApiReason.IN_USE, detail=detail)
        notes = ["its pin goes with it"] if name in state.pins else []
        adapter = state.adapters[name]
        if adapter.source is None:
            notes.append("it has no source, so pods had it from elsewhere; they are not told to forget it")
        event, _ = self._door.submit(lambda t, i: AdapterRetired(t=t, id=i, adapter=name))
        return self._door.done(name, f"retire {name}", event=event, notes=notes)

    def _check_name(self, name: AdapterName) -> None:
        state = self._door.state
        if name in state.aliases:
            detail = f"{name} is an alias; declare the adapter under a name of its own, such as {name}@1"
            raise OperationError(409, ApiReason.NAME_TAKEN, detail=detail)
        if (name == state.settings.base_model or name in state.columns.base_models) and name in _base_models(state):
            detail = f"{name} is the name of a base model; engines would refuse such an adapter"
            raise OperationError(409, ApiReason.NAME_TAKEN, detail=detail)

    def _check_weights(self, before: Adapter, adapter: Adapter) -> None:
        """Other weights under a name that pods know would not be served: engines keep what they have under it."""
        state, name = self._door.state, adapter.name
        changed = [field for field in _WEIGHTS if getattr(before, field) not in (None, getattr(adapter, field))]
        known = [pod.name for row, pod in state.columns.live() if state.residency.registry.accepts(row, name)]
        if changed and known:
            field = changed[0]
            detail = (
                f"{field} of {name} is {getattr(before, field)!r}, and {len(known)} pods may hold these weights under "
                f"this name; declare the new ones as {name}@REVISION and move an alias, or retire {name} first"
            )
            raise OperationError(409, ApiReason.NAME_TAKEN, detail=detail)

    def _check_pin(self, adapter: Adapter) -> None:
        state, pin = self._door.state, adapter.pin
        if pin is None or state.pins.get(adapter.name) == pin:
            return
        check_pods(state, pin.pods)
        why = why_not(state, adapter.name, pin=pin)
        if why is not None:
            detail = f"{adapter.name} cannot be pinned {pinned(pin)}: {why}"
            raise OperationError(409, ApiReason.PIN_REFUSED, detail=detail)

    def _of_declaring(self, adapter: Adapter) -> list[str]:
        state = self._door.state
        notes = ["kept until the picker ends; write it into the configuration too"]
        if adapter.source is None:
            notes.append("without a source no pod can be told of it")
        else:
            notes.append(f"its files are looked at now; GET /v1/adapters/{adapter.name} says what is wrong with them")
        unfit = {pod.name: cannot_serve(state, row, name=adapter.name) for row, pod in state.columns.live()}
        if unfit and all(unfit.values()):
            pod, why = next(iter(unfit.items()))
            notes.append(f"no pod can serve it; {pod}: {why}")
        return notes

    # -- aliases

    def aliases(self) -> AliasesAnswer:
        """All of them, by name."""
        found = self._door.state.aliases
        return AliasesAnswer(aliases=tuple(found[name] for name in sorted(found)))

    def set_alias(self, alias: Alias) -> Done:
        """The next request by that name goes to what it leads to now."""
        state = self._door.state
        before = state.aliases.get(alias.name)
        if before == alias:
            return Done(changed=False, understood=aliases.moved(before, alias))
        known = dict.fromkeys([*state.residency.names(), *state.adapters])
        found = aliases.problems(
            alias,
            adapters=known,
            aliases=state.aliases,
            base_models=_base_models(state),
            servable=lambda name: _servable(state, name),
        )
        if found:
            errors = [FieldProblem(message=each) for each in found]
            unknown = [each.adapter for each in alias.to if not is_known(state, each.adapter)]
            near = nearest(unknown[0], [*known]) if unknown else ()
            raise OperationError(409, ApiReason.ALIAS_REFUSED, detail="; ".join(found), near=near, errors=errors)
        event, _ = self._door.submit(lambda t, i: AliasSet(t=t, id=i, alias=alias))
        return Done(changed=True, understood=aliases.moved(before, alias), event=event)

    def clear_alias(self, name: str) -> Done:
        """The name is unknown from now on."""
        found = self._door.state.aliases
        before = found.get(name)
        if before is None:
            detail = f"no alias {name!r} among {len(found)}; GET /v1/aliases lists them"
            raise OperationError(404, ApiReason.ALIAS_UNKNOWN, detail=detail, near=nearest(name, [*found]))
        event, _ = self._door.submit(lambda t, i: AliasCleared(t=t, id=i, name=name))
        return Done(changed=True, understood=aliases.moved(before, None), event=event)


def _base_models(state: FleetState) -> dict[str, None]:
    return dict.fromkeys([state.settings.base_model, *(pod.base_model for _, pod in state.columns.live())])


def _servable(state: FleetState, name: AdapterName) -> bool:
    live = state.columns.live()
    return not state.loads or any(cannot_serve(state, row, name=name) is None for row, _ in live)


def _as_written(before: Adapter, adapter: Adapter, *, facts: AdapterFacts | None) -> Adapter:
    """What is declared, without what its files said of it."""
    if adapter.rank is None and facts is not None and facts.rank == before.rank:
        return msgspec.structs.replace(before, rank=None)
    return before
