"""A workload's arrivals, all flows together.

In: a `Workload` and a seed. Out: an iterator of `Arrival`, in order of time, that holds one batch of each flow and the
conversations under way, never what has passed. Same workload and seed, same arrivals. Not here: followers of an end,
which only the simulator knows (`follow.Followers.after_end`).
"""

from collections.abc import Iterator
from heapq import merge
from itertools import islice
from operator import attrgetter

from lorapick.model.units import AdapterName
from lorapick.sim.arrivals import Arrival
from lorapick.sim.workload.flows import flow_arrivals
from lorapick.sim.workload.follow import Followers
from lorapick.sim.workload.mix import Mix
from lorapick.sim.workload.spec import After, Replay, Workload


def arrivals(workload: Workload, *, seed: int) -> Iterator[Arrival]:
    """What comes, in order of time; endless when neither the workload nor its flows end."""
    flows = [flow_arrivals(flow, workload, seed=seed) for flow in workload.flows]
    stream = flows[0] if len(flows) == 1 else merge(*flows, key=attrgetter("t"))
    if any(follow.after is After.ARRIVAL for follow in workload.follows):
        stream = Followers(workload.follows, seed=seed, until=workload.until).along(stream)
    return islice(stream, workload.count)


def adapter_names(workload: Workload | Replay) -> tuple[AdapterName, ...]:
    """All adapters that can be asked for, variants of splits and followers included, in the order of the workload."""
    parts = workload.flows if isinstance(workload, Workload) else (workload,)
    names = [name for part in parts for name in Mix(part.adapters, part.popularity, part.changes).names]
    if isinstance(workload, Workload):
        names += [name for follow in workload.follows for name in (follow.first, follow.then)]
    return tuple(dict.fromkeys(name for name in names if name is not None))
