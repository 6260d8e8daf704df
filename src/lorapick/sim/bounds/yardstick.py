"""What a run's loads are measured by: the bound for the order in which its requests were served, and for arrivals.

In: arrivals and beginnings of service as a run goes on. Out: two `LoadBound`s. Not here: counting a policy's loads (see
`sim.tally`).

The bound for the order of service holds for the run that had this order, whatever its policy: no replacement, with any
routing, needs fewer. The bound for the order of arrival does not: a policy that holds requests until several can share
one load serves in another order, and may do with fewer. So a run between the two has gained by its order, and what it
has above the first is what perfect routing and replacement would still save.

Successful loads count, whoever asked for them and whether or not anyone waited. A load that fails serves nobody, and
comes on top. Requests that are preempted and begin again are not asked about twice; requests for the base model never.
"""

from lorapick.model.units import AdapterName, Seconds
from lorapick.sim.arrivals import Arrival
from lorapick.sim.bounds.fewest import FewestLoads, LoadBound


class Yardstick:
    """Both bounds of one run; hand it to its `Tally`.

    Each pod's beginnings come in order; how those of different pods are mixed does not matter: slots of different pods
    have nothing to do with one another, so any mixture could have happened.
    """

    __slots__ = ("_arrived", "_served", "_start")

    def __init__(self, slots: int, *, start: Seconds = 0.0) -> None:
        """`slots` of the whole fleet; what happens before `start` is warm-up.

        With a warm-up, the bounds grant any content of the slots at its end. Raises ValueError: no slots.
        """
        self._start = start
        self._served = FewestLoads(slots, begins_empty=start <= 0)
        self._arrived = FewestLoads(slots, begins_empty=start <= 0)

    def arrived(self, arrival: Arrival) -> None:
        """A request arrived."""
        if arrival.adapter is not None and arrival.t >= self._start:
            self._arrived.add(arrival.adapter)

    def started(self, adapter: AdapterName, t: Seconds) -> None:
        """A request's service began on some pod."""
        if t >= self._start:
            self._served.add(adapter)

    def served(self) -> LoadBound:
        """The bound for the order of service: no run with this order has fewer loads after `start`."""
        return self._served.bound()

    def arrivals(self) -> LoadBound:
        """The bound for the order of arrival: what a policy that never reorders cannot beat."""
        return self._arrived.bound()
