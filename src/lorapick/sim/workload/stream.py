"""A workload's arrivals, all flows together.

In: a `Workload` and a seed. Out: an iterator of `Arrival`, in order of time, that holds one batch of each flow and the
conversations under way, never what has passed. Same workload and seed, same arrivals. Not here: followers of an end,
which only the simulator knows (`follow.Followers.after_end`).
"""

from collections.abc import Callable, Iterable, Iterator
from heapq import merge
from itertools import islice, takewhile
from operator import attrgetter
from typing import TypeAlias

from lorapick.model.units import AdapterName
from lorapick.sim.arrivals import Arrival
from lorapick.sim.workload.changes import Split
from lorapick.sim.workload.flows import flow_arrivals
from lorapick.sim.workload.follow import Followers
from lorapick.sim.workload.mix import Mix
from lorapick.sim.workload.replay import replay
from lorapick.sim.workload.spec import After, Flow, Replay, Traced, Workload
from lorapick.wire.traces.reading import trace_rows

OpenLines: TypeAlias = Callable[[str], Iterable[bytes]]
"""Opens the file of a trace at its first line. Raises OSError when it cannot be read."""


def arrivals(workload: Workload, *, seed: int, open_lines: OpenLines | None = None) -> Iterator[Arrival]:
    """What comes, in order of time; endless when neither the workload nor its flows end.

    Raises:
        ValueError: the workload has traces and `open_lines` is missing; or a trace cannot be read (`TraceError`).
        OSError: a trace's file cannot be read.
    """
    streams = [flow_arrivals(flow, workload, seed=seed) for flow in workload.flows]
    streams += [_traced(trace, workload, seed=seed, open_lines=open_lines) for trace in workload.traces]
    stream = streams[0] if len(streams) == 1 else merge(*streams, key=attrgetter("t"))
    if any(follow.after is After.ARRIVAL for follow in workload.follows):
        stream = Followers(workload.follows, seed=seed, until=workload.until).along(stream)
    return islice(stream, workload.count)


def _traced(trace: Traced, workload: Workload, *, seed: int, open_lines: OpenLines | None) -> Iterator[Arrival]:
    if open_lines is None:
        raise ValueError(f"the workload replays {trace.file}, and nobody said how files are opened (open_lines)")
    rows = trace_rows(open_lines(trace.file), name=trace.file)
    stream = replay(rows, trace.replay, seed=seed, name=trace.name)
    until = workload.until
    return stream if until is None else takewhile(lambda each: each.t < until, stream)


def adapter_names(workload: Workload | Replay) -> tuple[AdapterName, ...]:
    """All adapters that can be asked for, variants of splits and followers included, in the order of the workload."""
    names: list[AdapterName | None] = []
    for part in _parts(workload):
        names += Mix(part.adapters, part.popularity, part.changes).names
    if isinstance(workload, Workload):
        names += [name for follow in workload.follows for name in (follow.first, follow.then)]
    return tuple(dict.fromkeys(name for name in names if name is not None))


def undeclared_names(workload: Workload, *, known: Iterable[AdapterName] = ()) -> tuple[AdapterName, ...]:
    """Variants of splits with `declared: false`, in the order of the workload; `known` are declared whoever asks.

    Raises:
        ValueError: one of them is the name of an adapter that is declared.
    """
    made: dict[AdapterName, None] = {}
    declared: dict[AdapterName | None, None] = dict.fromkeys(known)
    for part in _parts(workload):
        declared |= dict.fromkeys(part.adapters)
        for change in part.changes:
            if isinstance(change, Split):
                names = change.variants(part.adapters)
                (declared if change.declared else made).update(dict.fromkeys(names))
    declared |= dict.fromkeys(name for follow in workload.follows for name in (follow.first, follow.then))
    both = [name for name in made if name in declared]
    if both:
        raise ValueError(
            f"declared: false makes {both[0]}, which is declared as an adapter or by another split;"
            " give the variants another name (into)"
        )
    return tuple(made)


def _parts(workload: Workload | Replay) -> tuple[Flow | Replay, ...]:
    if isinstance(workload, Replay):
        return (workload,)
    return (*workload.flows, *(trace.replay for trace in workload.traces))
