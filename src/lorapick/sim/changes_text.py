"""What phases do to pods, pins and orders.

In: nodes of a phase's `change`. Out: values of `sim.fleet_changes`. Not here: changes of traffic (see
`sim.phases_text`).
"""

from collections.abc import Callable, Collection
from typing import Any, TypeAlias

from lorapick.model.units import Seconds
from lorapick.sim.fleet_changes import (
    Ask,
    Drain,
    FailLoads,
    Fire,
    FleetChange,
    Join,
    Move,
    Pin,
    Restart,
    Unask,
    Unpin,
)
from lorapick.sim.intent_text import named, pinned, where, whom
from lorapick.sim.scenario import AdapterPlan, FleetPlan
from lorapick.sim.traffic_text import chosen, one
from lorapick.wire.config.document import At, Refused
from lorapick.wire.config.readers import Reader, choice, duration, fields, labels, share, word

Changes: TypeAlias = tuple[FleetChange, ...]


def fleet_changes(
    plan: AdapterPlan, fleet: FleetPlan, *, start: Seconds, length: Seconds
) -> dict[str, Reader[Changes]]:
    """A reader for each change of this kind; `start`: when it happens, `length`: of the run."""
    reading = _Reading(plan, fleet, start=start)
    return {
        "restart": reading.restart,
        "drain": reading.drain,
        "add": reading.add,
        "upgrade": lambda at: reading.upgrade(at, length=length),
        "pin": reading.pin,
        "unpin": lambda at: (Unpin(at=start, adapters=chosen(plan)(at)),),
        "load": reading.load,
        "unload": reading.unload,
        "move": reading.move,
        "trigger": reading.trigger,
        "fail_loads": reading.fail_loads,
    }


def _whole(at: At, readers: dict[str, Reader[Any]], *, required: Collection[str] = ()) -> dict[str, Any]:
    before = len(at.report.problems)
    values = fields(at, readers, required=required)
    if len(at.report.problems) > before:
        raise Refused
    return values


class _Reading:
    """Readers of the changes at one time."""

    def __init__(self, plan: AdapterPlan, fleet: FleetPlan, *, start: Seconds) -> None:
        self._plan = plan
        self._fleet = fleet
        self._start = start
        self._pod = choice(*fleet.all_names())

    def _one(self, build: Callable[..., FleetChange], at: At, **readers: Reader[Any]) -> Changes:
        """A change whose keys are all needed."""
        return (build(at=self._start, **_whole(at, readers, required=readers)),)

    def restart(self, at: At) -> Changes:
        return self._one(Restart, at, pod=self._pod, down=duration())

    def drain(self, at: At) -> Changes:
        readers = {"pod": self._pod, "grace": duration(), "down": duration()}
        return (Drain(at=self._start, **_whole(at, readers, required=("pod", "grace"))),)

    def add(self, at: At) -> Changes:
        return self._one(Join, at, pod=word)

    def upgrade(self, at: At, *, length: Seconds) -> Changes:
        """A pod every so often: told to drain, gone, and back after a while as another process."""
        readers = {"every": duration(least=1.0), "down": duration(), "drain": duration()}
        values = _whole(at, readers, required=readers)
        every, down, grace = values["every"], values["down"], values["drain"]
        if every < down + grace:
            at.nearest("every").refuse(
                f"must be at least drain and down together, which is {down + grace:g}s",
                hint="else two pods would be away at once",
            )
        starts = [self._start + every * number for number in range(self._fleet.pods)]
        if starts[-1] > length:
            at.refuse(f"reaches the last pod at {starts[-1]:g}s; the run lasts {length:g}s", value="")
        return tuple(
            Drain(at=start, pod=pod, grace=grace, down=down)
            for start, pod in zip(starts, self._fleet.names(), strict=True)
        )

    def pin(self, at: At) -> Changes:
        adapters, pin = pinned(self._plan, self._fleet)(at)
        return (Pin(at=self._start, adapters=adapters, pin=pin),)

    def load(self, at: At) -> Changes:
        values = _whole(at, {**whom(self._plan), **where(self._fleet), "for": duration(least=1.0)})
        adapters, lasts = named(at, values), values.pop("for", None)
        return (Ask(at=self._start, adapters=adapters, lasts=lasts, **values),)

    def unload(self, at: At) -> Changes:
        values = _whole(at, {**whom(self._plan), "pods": where(self._fleet)["pods"]})
        return (Unask(at=self._start, adapters=named(at, values), **values),)

    def move(self, at: At) -> Changes:
        readers = {"adapter": one(self._plan), "from": self._pod, "to": self._pod}
        values = _whole(at, readers, required=readers)
        return (Move(at=self._start, adapter=values["adapter"], source=values["from"], target=values["to"]),)

    def trigger(self, at: At) -> Changes:
        values = _whole(at, {"event": word, "attributes": labels}, required=("event",))
        return (Fire(at=self._start, **values),)

    def fail_loads(self, at: At) -> Changes:
        return self._one(FailLoads, at, share=share)
