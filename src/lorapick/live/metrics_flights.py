"""What the metrics remember of a request while it is under way.

In: nothing; `live.metrics` writes these. Out: plain state. Not here: counting.
"""

from typing import NamedTuple

from lorapick.live.families_epp import Series
from lorapick.live.metrics_epp import Asked
from lorapick.model.requests import Request
from lorapick.model.tiers import Tier
from lorapick.model.units import AdapterName, PodName, Seconds

PASSED_ON = "passed_on"
"""In place of the reason of a wait: it does not wait, the gateway has it and has not said where."""


class Flight:
    """A dispatched request, until it ends."""

    __slots__ = ("adapter", "answered", "arrived", "asked", "label", "pod", "prefill", "sent", "tier")

    def __init__(
        self, pod: PodName, adapter: AdapterName | None, *, tier: Tier | None, label: str, sent: Seconds
    ) -> None:
        self.pod = pod
        self.adapter = adapter
        self.tier = tier
        """As believed at the dispatch; None: base model, or a fallback serves, of which nothing was believed."""
        self.prefill: PodName | None = None
        """Pod that prefills for it, for an adapter."""
        self.label = label
        self.sent = sent
        self.arrived = sent
        """Earlier when it waited at the picker."""
        self.answered = False
        """Whether response headers without an error came."""
        self.asked: Asked | None = None
        """Its part in the other pickers' counts; None: nobody saw it arrive."""


class Wait(NamedTuple):
    """A request that is held."""

    since: Seconds
    reason: str
    adapter: AdapterName | None
    label: str
    request: Request | None
    """None: nobody saw it arrive; likewise the next one."""
    series: Series | None
