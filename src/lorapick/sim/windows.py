"""What is counted in one stretch of a run, and of some adapters.

In: nothing but counts. Out: objects that are added to. Not here: who counts (see `sim.tally`).
"""

from collections import Counter
from typing import NamedTuple

from lorapick.model.units import PodName, Seconds
from lorapick.sim.histogram import Histogram
from lorapick.sim.observer import Handed


class Window:
    """What happened in one stretch of the run. Requests count in the window in which they arrived."""

    __slots__ = (
        "abandoned",
        "arrivals",
        "cold",
        "commanded",
        "failed",
        "first_ttft",
        "followed",
        "good",
        "handed",
        "held",
        "held_for",
        "hits",
        "latency",
        "loads",
        "misses",
        "output_tokens",
        "prefill_hits",
        "prefill_misses",
        "rejected",
        "served",
        "start",
        "swaps",
        "touches",
        "tpot",
        "transfer",
        "ttft",
        "unloads",
        "waited",
    )  # fmt: skip

    def __init__(self, start: Seconds) -> None:
        self.start = start
        self.arrivals = 0
        self.served = 0
        self.failed = 0
        self.rejected = 0
        self.abandoned = 0
        self.waited = 0
        """Requests that waited for a load at their pod."""
        self.cold = 0
        """Those, and the ones that waited for it at the picker."""
        self.commanded: Counter[str] = Counter()
        """Loads that the picker told pods to begin, by what for."""
        self.touches = 0
        """Requests of one token by the picker."""
        self.held = 0
        """Requests that waited at the picker, for whatever."""
        self.followed = 0
        """Requests that followed a load under way, where each would else have caused one."""
        self.hits = 0
        self.misses = 0
        self.output_tokens = 0
        self.good = 0
        """Served within what was promised."""
        self.handed: Counter[Handed] = Counter()
        """What became of requests that one pod was to prefill for another."""
        self.prefill_hits = 0
        """Of those, the ones whose adapter was on the pod that prefilled; `hits` are of the pod that decodes."""
        self.prefill_misses = 0
        self.transfer = Histogram()
        """Of the KV of one request."""
        self.swaps: Counter[PodName] = Counter()
        self.unloads = 0
        """Asked for by the picker."""
        self.loads = 0
        self.held_for = Histogram()
        """How long those that waited at the picker did so, until they were sent to a pod or refused."""
        self.latency = Histogram()
        self.ttft = Histogram()
        self.tpot = Histogram()
        """Time per output token after the first."""
        self.first_ttft = Histogram()
        """Of the first requests for an adapter after a quiet time."""


class Part:
    """What became of the requests for some adapters, in the whole run."""

    __slots__ = ("arrivals", "cold", "latency", "served", "ttft")

    def __init__(self) -> None:
        self.arrivals = 0
        self.served = 0
        self.cold = 0
        """Requests that waited for a load."""
        self.latency = Histogram()
        self.ttft = Histogram()


class Promise(NamedTuple):
    """What a good answer keeps; None: anything does."""

    ttft: Seconds | None = None
    latency: Seconds | None = None

    def kept(self, *, ttft: Seconds, latency: Seconds) -> bool:
        """Whether an answer does."""
        return (self.ttft is None or ttft <= self.ttft) and (self.latency is None or latency <= self.latency)
