"""One flow's arrivals.

In: a flow and what its workload says about all of them. Out: arrivals in order of time, made as they are asked for.
Not here: other flows and followers (`stream`).
"""

import math
from collections.abc import Iterator

from lorapick.model.units import Seconds
from lorapick.sim.arrivals import Arrival
from lorapick.sim.workload.chance import FloatArray
from lorapick.sim.workload.changes import Scale
from lorapick.sim.workload.draws import Draws, within
from lorapick.sim.workload.sessions import Conversations
from lorapick.sim.workload.spec import Flow, Workload
from lorapick.sim.workload.times import Timing, times


def flow_arrivals(flow: Flow, workload: Workload, *, seed: int) -> Iterator[Arrival]:
    """Arrivals of one flow of a workload."""
    ends = (flow.until, workload.until)
    until: Seconds = min((each for each in ends if each is not None), default=math.inf)
    timing = Timing(
        seed=seed,
        flow=flow.name,
        changes=[each for each in flow.changes if isinstance(each, Scale)],
        clock=workload.clock,
        scale=1.0 if flow.sessions is None else 1 / flow.sessions.turns,
        until=until,
    )
    begins = within(times(flow.process, timing), flow.start, until)
    draws = Draws(flow, seed=seed, block_tokens=workload.block_tokens)
    if flow.sessions is None:
        return _requests(flow, draws, begins)
    talks = Conversations(flow, flow.sessions, draws, seed=seed, block_tokens=workload.block_tokens)
    return talks.turns(begins, until=until)


def _requests(flow: Flow, draws: Draws, begins: Iterator[FloatArray]) -> Iterator[Arrival]:
    name, priority, shared = flow.name, flow.priority, flow.shared_prefix
    adapters, tenants, prefix = draws.names, draws.tenants(), draws.prefix
    count = 0
    for batch in begins:
        prompts, outputs = draws.sizes(len(batch))
        columns = (batch.tolist(), draws.places(batch), (prompts + shared).tolist(), outputs.tolist())
        for time, place, prompt, output in zip(*columns, strict=True):
            count += 1
            yield Arrival(
                t=time,
                id=f"{name}-{count}",
                adapter=adapters[place],
                prompt_tokens=prompt,
                output_tokens=output,
                blocks=prefix(place),
                priority=priority,
                tenant=tenants[place],
            )
