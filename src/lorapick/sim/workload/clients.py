"""Measured clients as adapters: one flow for each (ServeGen's demand per client is the best public stand-in).

In: windows of demand, a span of time, the total rate wanted. Out: flows, the busiest client first. Not here: reading
(`wire.traces.servegen`).
"""

from collections.abc import Iterable, Sequence

from lorapick.model.units import AdapterName, Seconds
from lorapick.sim.workload.checks import require
from lorapick.sim.workload.lengths import AnySizes
from lorapick.sim.workload.popularity import Weights
from lorapick.sim.workload.processes import Window, Windows
from lorapick.sim.workload.spec import Flow
from lorapick.wire.traces.rows import DemandWindow

WINDOW: Seconds = 600.0
"""Length of ServeGen's windows."""


def client_flows(
    demand: Iterable[DemandWindow],
    *,
    sizes: AnySizes,
    rate: float | None = None,
    span: tuple[Seconds, Seconds] = (0.0, 14 * 86_400.0),
    most: int | None = None,
    adapter: str = "client-{client}",
) -> tuple[Flow, ...]:
    """A flow per client that has a window in the span; clients that ask for nothing in it are idle adapters.

    Args:
        demand: windows, all of a client's together and in order.
        sizes: of all requests.
        rate: mean requests per second of all flows together over the span; None: as measured.
        span: from and to in the trace's seconds; t = 0 is its begin.
        most: keep only this many, the busiest.
        adapter: name of a client's adapter and flow; `{client}` stands for the client.

    Raises:
        ValueError: no client asks for anything in the span.
    """
    windows = _by_client(demand, span)
    volumes = {client: _volume(found) for client, found in windows.items()}
    busiest = sorted(windows, key=lambda client: -volumes[client])[:most]
    total = sum(volumes[client] for client in busiest) / (span[1] - span[0])
    require(total > 0, "requests in the span", total, "choose a span in which clients ask for something")
    factor = 1.0 if rate is None else rate / total
    return tuple(_flow(adapter.replace("{client}", client), windows[client], factor, sizes) for client in busiest)


def client_weights(flows: Sequence[Flow]) -> tuple[tuple[AdapterName | None, ...], Weights]:
    """Adapters of such flows and their measured shares, for one flow with one process."""
    names = tuple(flow.adapters[0] for flow in flows)
    return names, Weights(tuple(_volume(flow.process.windows) for flow in flows if isinstance(flow.process, Windows)))


def _by_client(demand: Iterable[DemandWindow], span: tuple[Seconds, Seconds]) -> dict[str, list[Window]]:
    begin, end = span
    found: dict[str, list[Window]] = {}
    for each in demand:
        start, stop = max(each.start, begin), min(each.start + WINDOW, end)
        if start < stop:
            cv = 1.0 if each.cv is None else min(each.cv, 1000.0)
            found.setdefault(each.client, []).append(Window(start - begin, stop - begin, each.rate, cv))
    return found


def _volume(windows: Sequence[Window]) -> float:
    return sum(each.rate * (each.end - each.start) for each in windows)


def _flow(name: AdapterName, windows: Sequence[Window], factor: float, sizes: AnySizes) -> Flow:
    busy = tuple(Window(each.start, each.end, each.rate * factor, each.cv) for each in windows if each.rate)
    return Flow(name=name, adapters=(name,), process=Windows(busy), sizes=sizes)
