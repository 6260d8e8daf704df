"""What a load costs those who did not ask for it, in seconds.

In: a pod's load and residency, demand, estimates. Out: the price of a load on each pod, in its column.
Not here: choosing by it (see `core.picking.cost`).

While a pod loads, whoever is there waits: its requests times the load's length. A load that joins one under way harms
them less. And the engine throws out its least recently used adapter that is idle: if that one is asked for again before
it would have been thrown out anyway, it costs another load, with all that this costs. A pod with a free slot throws out
nobody; one whose adapters are all in use can take no other.
"""

from math import exp

from lorapick.core.admission.demand import Demand
from lorapick.core.admission.estimates import Loads, Service
from lorapick.core.residency.cells import PodResidency
from lorapick.model.units import Seconds

JOINED = 0.2
"""Harm of a load that joins another, as a share of a load's: the pod stands still anyway."""


class Prices:
    """Prices of loads, from estimates that this fleet's own answers make."""

    __slots__ = ("demand", "loads", "service", "slots")

    def __init__(self, *, loads: Loads) -> None:
        self.demand = Demand()
        self.service = Service()
        self.loads = loads
        self.slots = 0
        """Of all pods together."""

    def of_load(self, home: PodResidency, load: float, *, now: Seconds) -> Seconds:
        """Harm that a load on a pod with `load` requests does to others."""
        seconds = self.loads.cpu
        harm = load * seconds * (JOINED if home.loading else 1.0)
        if home.shadow.free > 0:
            return harm
        victim = home.shadow.next_out(home.busy)
        if victim is None:
            return harm
        residence = self.demand.residence(self.slots, now=now)
        again = 1.0 - exp(-self.demand.rate(victim, now=now) * residence)
        return harm + again * (seconds + load * seconds)
