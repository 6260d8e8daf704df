"""The `phases:` of a scenario file: what changes, and when.

In: nodes. Out: changes of traffic (`sim.workload`) and of pods and pins (`sim.scenario`). Not here: performing them.
"""

from typing import Any, TypeAlias

import msgspec

from lorapick.model.adapters import PinSpec
from lorapick.model.units import Seconds
from lorapick.sim.scenario import AdapterPlan, FleetChange, FleetPlan, Pin, Restart, Unpin
from lorapick.sim.scenario_readers import factor, made, popularity
from lorapick.sim.traffic_text import Stream, When, chosen
from lorapick.sim.workload.changes import Change, MixChange, Reweigh, Scale, Split
from lorapick.sim.workload.processes import Burst
from lorapick.sim.workload.spec import Traced
from lorapick.wire.config.document import At, Refused
from lorapick.wire.config.readers import (
    Reader,
    adapter_name,
    boolean,
    choice,
    duration,
    fields,
    integer,
    labels,
    list_of,
    share,
    word,
)

Traffic: TypeAlias = tuple[str | None, Change]
"""A change and the flow it is for; None: all that have a rate."""
Phase: TypeAlias = tuple[list[Traffic], list[FleetChange]]


def phase(plan: AdapterPlan, fleet: FleetPlan, *, when: When) -> Reader[Phase]:
    """Reader of one phase."""

    def read(at: At) -> Phase:
        values = fields(
            at,
            {"at": when.moment, "over": duration(), "flow": word, "change": lambda node: node},
            required=("at", "change"),
        )
        if not {"at", "change"} <= values.keys():
            raise Refused
        start, over, place = values["at"], values.get("over", 0.0), values["change"]
        found = fields(
            place,
            {
                "split": lambda node: _split(node, start=start, over=over),
                "rate": lambda node: Scale(at=start, factor=factor(node), over=over),
                "popularity": lambda node: Reweigh(at=start, popularity=popularity(node), over=over),
                "restart": lambda node: _restart(node, fleet, start=start),
                "pin": lambda node: _pin(node, plan, start=start),
                "unpin": lambda node: Unpin(at=start, adapters=chosen(plan)(node)),
            },
        )
        traffic = [(values.get("flow"), each) for each in found.values() if isinstance(each, Change)]
        return traffic, [each for each in found.values() if isinstance(each, FleetChange)]

    return read


def _split(at: At, *, start: Seconds, over: Seconds) -> Split:
    readers: dict[str, Reader[Any]] = {
        "top": integer(least=1),
        "share": share,
        "into": adapter_name,
        "declared": boolean,
    }
    values = fields(at, readers, required=("top", "share"))
    if not {"top", "share"} <= values.keys():
        raise Refused
    return made(at, lambda: Split(at=start, over=over, **values))


def _restart(at: At, fleet: FleetPlan, *, start: Seconds) -> Restart:
    values = fields(at, {"pod": choice(*fleet.names()), "down": duration()}, required=("pod", "down"))
    if not {"pod", "down"} <= values.keys():
        raise Refused
    return Restart(at=start, **values)


def _pin(at: At, plan: AdapterPlan, *, start: Seconds) -> Pin:
    readers: dict[str, Reader[Any]] = {
        "adapters": chosen(plan),
        "pods": list_of(word, least=1, unique=""),
        "replicas": integer(least=1, most=4096),
        "selector": labels,
        "reserve": boolean,
    }
    values = fields(at, readers, required=("adapters",))
    if "adapters" not in values:
        raise Refused
    adapters = values.pop("adapters")
    return Pin(at=start, adapters=adapters, pin=PinSpec(**values))


def changed(before: tuple[Stream, ...], traffic: list[Traffic]) -> tuple[Stream, ...]:
    """The streams with a phase's changes.

    Raises:
        ValueError: there is no such flow, or it cannot change so.
    """
    known = [stream.name for stream in before]
    for name, change in traffic:
        if name is not None and name not in known:
            raise ValueError(f'there is no flow "{name}"; flows are {", ".join(sorted(known))}')
        if isinstance(change, Scale) and all(isinstance(each, Traced) for each in before if name in (None, each.name)):
            raise ValueError("a trace has the rates that it has; trace.speed makes all of it faster or slower")
    return tuple(_changed(stream, traffic) for stream in before)


def _changed(stream: Stream, traffic: list[Traffic]) -> Stream:
    if isinstance(stream, Traced):
        mixes = [change for name, change in traffic if name in (None, stream.name) and isinstance(change, MixChange)]
        law = msgspec.structs.replace(stream.replay, changes=(*stream.replay.changes, *mixes))
        return msgspec.structs.replace(stream, replay=law)
    has_rate = not isinstance(stream.process, Burst)
    own = [change for name, change in traffic if name == stream.name or (name is None and has_rate)]
    return msgspec.structs.replace(stream, changes=(*stream.changes, *own)) if own else stream
