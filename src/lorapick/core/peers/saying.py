"""What this picker tells its peers of itself.

In: the fleet's state. Out: its marks. What it knows from peers is not told on, as marks that were would never end; but
for the mode, of which there is one, so that it outlives the picker at which it was set.
Not here: to whom and how often (see `live.peers`).
"""

from lorapick.core.state import FleetState
from lorapick.model.peers import Marks
from lorapick.model.units import AdapterName, PodName


def own_marks(state: FleetState) -> Marks:
    """Everything, as it is now."""
    targets = state.columns.targets
    loads: dict[PodName, tuple[AdapterName, ...]] = {}
    for row, name, _ in state.residency.loads():
        if not state.residency.by_peer(row, name):
            pod = targets[row].pod
            loads[pod] = (*loads.get(pod, ()), name)
    in_flight = {targets[row].pod: load.in_flight for row, load in state.loads.items() if load.in_flight}
    declared = {name: adapter.pin for name, adapter in state.adapters.items() if adapter.pin is not None}
    pins = {name: pin for name, pin in state.pins.items() if declared.get(name) != pin}
    return Marks(loads=loads, in_flight=in_flight, pins=pins, mode=state.peers.mode)
