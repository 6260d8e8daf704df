"""What is predicted from, and what is predicted.

In: nothing. Out: values. Not here: how one follows from the other (see `predict`).
"""

import msgspec

from lorapick.model.adapters import PinSpec
from lorapick.model.pods import Pod
from lorapick.model.units import AdapterName, Ratio, Seconds


class Demand(msgspec.Struct, frozen=True, kw_only=True):
    """One active adapter and its traffic."""

    adapter: AdapterName
    rate: float
    """Requests per second, of all pods together; 0 or more."""
    pin: PinSpec | None = None
    """Copies that never leave."""


class Costs(msgspec.Struct, frozen=True, kw_only=True):
    """Times that the prediction takes as given."""

    swap: Seconds = 0.35
    """What one load keeps its requests waiting, drain included. Assumed: the article has 200 to 500 ms."""
    latency: Seconds = 0.11
    """Median latency of requests that meet no swap. Assumed: half of P95, a log-normal with a sigma of 0.42."""
    latency_p95: Seconds = 0.22
    """Their 95th percentile. The article has 220 ms for a healthy fleet, swaps included (see `gate.fitting`)."""
    drains: bool = True
    """Whether a load keeps everybody on its pod waiting, and not only those who want that adapter."""


class FleetShape(msgspec.Struct, frozen=True, kw_only=True):
    """Pods that share the traffic, and how it is shared."""

    pods: tuple[Pod, ...]
    """Their slots are `limits.max_loras`."""
    policy: str
    """A name of `core.picking.policies`."""

    @property
    def slots(self) -> int:
        """Of all pods."""
        return sum(pod.limits.max_loras for pod in self.pods)


class Prediction(msgspec.Struct, frozen=True, kw_only=True):
    """What a fleet settles at when traffic stays as it is."""

    active: int
    slots: int
    requests: float
    """Per second."""
    hit_ratio: Ratio | None
    """Of the requests that run, those that find their adapter in a slot; None: there are no requests."""
    load_ratio: Ratio | None
    """Loads per request; lower than the share of misses where several requests wait for one load."""
    swap_rate: float
    """Loads per second and pod."""
    worst_swap_rate: float
    """Of the pod with the most, as far as the policy tells pods apart."""
    residency: Seconds | None
    """Mean stay in a slot, by conservation: slots in use / loads per second. None: nothing is ever loaded again."""
    busy: Ratio
    """Share of its time that the mean pod spends on swaps; 1 and more: it cannot."""
    p95: Seconds | None
    """Estimate (see `latency`); None: swaps take all the time there is, and queues grow without end."""
    error_points: float = 2.0
    """What `hit_ratio` may be off, in percentage points, as far as fleets of this kind were simulated."""
    note: str | None = None
    """Why that is more than two points; None: it is not."""

    @property
    def active_per_slot(self) -> float:
        """Active adapters / slots of the cluster."""
        return self.active / self.slots if self.slots else float("inf")
