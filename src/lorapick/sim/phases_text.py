"""The `phases:` of a scenario file: what changes, and when.

In: nodes. Out: changes of traffic (`sim.workload`) and of pods and pins (`sim.fleet_changes`). Not here: how the latter
are read (see `sim.changes_text`), performing them.
"""

from typing import Any, TypeAlias

import msgspec

from lorapick.model.units import PodName, Seconds
from lorapick.sim.changes_text import fleet_changes
from lorapick.sim.fleet_changes import FleetChange
from lorapick.sim.scenario import AdapterPlan, FleetPlan
from lorapick.sim.scenario_readers import factor, made, popularity, raw
from lorapick.sim.traffic_text import Stream, When
from lorapick.sim.workload.changes import Change, MixChange, Reweigh, Scale, Split
from lorapick.sim.workload.processes import Burst
from lorapick.sim.workload.spec import Traced
from lorapick.wire.config.document import At, Refused
from lorapick.wire.config.readers import (
    Reader,
    adapter_name,
    boolean,
    duration,
    fields,
    integer,
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
                **fleet_changes(plan, fleet, start=start, length=when.length),
            },
        )
        traffic = [(values.get("flow"), each) for each in found.values() if isinstance(each, Change)]
        return traffic, [change for each in found.values() if isinstance(each, tuple) for change in each]

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


def later_pods(root: At, fleet: FleetPlan) -> tuple[PodName, ...]:
    """Pods that phases add to those that are there at the begin."""
    places = [item.find("change", "add", "pod") for item in root.each("phases")]
    names = dict.fromkeys(raw(place) for place in places if place is not None and place.is_scalar)
    return tuple(name for name in names if name not in fleet.names())


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
