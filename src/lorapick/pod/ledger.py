"""Counters of a pod and where its time went.

In: what the machine reports as it happens. Out: totals, and `TimeSpent` up to any moment.
Not here: gauges (they are read off the machine).
"""

from lorapick.model.units import Seconds, Tokens
from lorapick.pod.swaps import Load
from lorapick.pod.values import TimeSpent


class Ledger:
    """Totals since the pod's start; seconds of phases that have ended."""

    __slots__ = (
        "cached_tokens",
        "deallocation",
        "decode",
        "drain",
        "evictions",
        "finished",
        "hits",
        "idle",
        "initialisation",
        "load_failures",
        "loads",
        "merge",
        "misses",
        "output_tokens",
        "preemptions",
        "prefill",
        "prompt_tokens",
        "queried_tokens",
        "swaps",
        "transfer",
        "warm_up",
    )

    def __init__(self) -> None:
        self.swaps = self.loads = self.load_failures = self.evictions = self.preemptions = 0
        self.prompt_tokens = self.output_tokens = self.cached_tokens = self.queried_tokens = 0
        self.finished = self.hits = self.misses = 0
        self.prefill = self.decode = self.drain = self.idle = self.merge = 0.0
        self.deallocation = self.transfer = self.initialisation = self.warm_up = 0.0

    def began(self, prompt: Tokens, *, cached: Tokens, hit: bool) -> None:
        """A request has joined the batch for the first time."""
        self.queried_tokens += prompt
        self.cached_tokens += cached
        if hit:
            self.hits += 1
        else:
            self.misses += 1

    def charge_load(self, load: Load, now: Seconds) -> None:
        """Add a load's phases up to `now`."""
        deallocation, transfer, initialisation, warm_up = load.spent(now)
        self.deallocation += deallocation
        self.transfer += transfer
        self.initialisation += initialisation
        self.warm_up += warm_up

    def charge_steps(self, seconds: Seconds, empty_share: float) -> None:
        """Add decode time, of which `empty_share` is a drain's idle room."""
        room = seconds * empty_share
        self.drain += room
        self.decode += seconds - room

    def copy_time(self) -> "Ledger":
        """A ledger with the same times, to add a phase in progress to."""
        other = Ledger()
        other.prefill, other.decode, other.drain, other.idle = self.prefill, self.decode, self.drain, self.idle
        other.deallocation, other.transfer = self.deallocation, self.transfer
        other.initialisation, other.warm_up, other.merge = self.initialisation, self.warm_up, self.merge
        return other

    def time(self) -> TimeSpent:
        """The times as a value."""
        return TimeSpent(
            prefill=self.prefill,
            decode=self.decode,
            drain=self.drain,
            deallocation=self.deallocation,
            transfer=self.transfer,
            initialisation=self.initialisation,
            warm_up=self.warm_up,
            idle=self.idle,
            merge=self.merge,
        )
