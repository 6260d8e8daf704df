"""What a workload is made of: values that a scenario file becomes.

In: numbers and names. Out: frozen values; a value that cannot be is refused when it is made (`ValueError` with the
value, the limit and the remedy; `msgspec.convert` adds the path). All are tagged with `type`, so that
`msgspec.convert(document, Workload)` reads them and `msgspec.to_builtins` writes them.
Not here: drawing from them (`stream`), traces as files (`wire.traces`), scenario files (`wire`).

A workload is a set of flows, merged in order of time. A flow is a process of arrivals, an adapter for each, and sizes.
Adapters whose demand follows laws of their own are flows of their own: one stream split by popularity has other bursts
than streams added together (ServeGen, arXiv 2505.09999).
"""

import math
from enum import StrEnum

import msgspec

from lorapick.model.units import AdapterName, Ratio, Seconds, Tokens
from lorapick.sim.workload.changes import Change, MixChange, Reweigh, Scale, Split
from lorapick.sim.workload.checks import require, require_count, require_length, require_share, require_time
from lorapick.sim.workload.lengths import (
    AnySizes,
    FixedLength,
    Length,
    LogNormalLength,
    SizePairs,
    Sizes,
    SizeSplit,
    TableLength,
    UniformLength,
)
from lorapick.sim.workload.popularity import EqualShares, Popularity, PowerLaw, TopShare, Weights, Zipf, require_fit
from lorapick.sim.workload.processes import (
    Burst,
    Diurnal,
    FlashCrowd,
    Gamma,
    Hawkes,
    MarkovModulated,
    Poisson,
    Process,
    Profile,
    State,
    Window,
    Windows,
)

__all__ = [
    "After",
    "AnySizes",
    "Burst",
    "Change",
    "Diurnal",
    "EqualShares",
    "FixedLength",
    "FlashCrowd",
    "Flow",
    "Follow",
    "Gamma",
    "Hawkes",
    "Length",
    "LogNormalLength",
    "MarkovModulated",
    "MixChange",
    "Poisson",
    "Popularity",
    "PowerLaw",
    "Process",
    "Profile",
    "Replay",
    "ReplayKey",
    "Reweigh",
    "Scale",
    "Sessions",
    "SizePairs",
    "SizeSplit",
    "Sizes",
    "Split",
    "State",
    "TableLength",
    "TopShare",
    "Traced",
    "UniformLength",
    "Weights",
    "Window",
    "Windows",
    "Workload",
    "Zipf",
]


class Sessions(msgspec.Struct, frozen=True):
    """Requests come in conversations whose prompts grow: what was said before is the prefix of what comes next.

    A turn's prompt is the flow's shared prefix, all earlier turns and answers, and the drawn prompt. Turns follow each
    other at exponential times whatever the answers take (open loop). The process makes conversations begin at its
    rate / `turns`, so its rate is still that of requests; at t = 0 no conversation is under way.
    """

    turns: float
    """Mean requests per conversation (geometric, at least 1)."""
    think: Seconds
    """Mean time from one request to the next of the conversation."""
    most_prompt_tokens: Tokens = 4096
    """A turn that would exceed this forgets all earlier ones and begins a prefix of its own."""

    def __post_init__(self) -> None:
        require(1 <= self.turns <= 1e6, "turns", self.turns, "a mean of 1 to 1,000,000 requests")
        require_time(self.think, "think")
        require_length(self.most_prompt_tokens, "most_prompt_tokens")


class Flow(msgspec.Struct, frozen=True, kw_only=True):
    """A stream of requests with one process."""

    name: str
    """Unique in its workload: begins the ids of the flow's requests and names its random numbers, so that another flow
    changes none of them."""
    adapters: tuple[AdapterName | None, ...]
    """In the order of the popularity, the most popular first; None is the base model."""
    process: Process
    sizes: AnySizes
    popularity: Popularity = EqualShares()
    shared_prefix: Tokens = 0
    """Tokens that begin every prompt of an adapter (its system prompt), added to the drawn ones."""
    sessions: Sessions | None = None
    changes: tuple[Change, ...] = ()
    priority: int = 0
    tenant: str | None = None
    """`{adapter}` stands for the adapter's name."""
    start: Seconds = 0.0
    """Nothing comes before; the process still counts its times from 0."""
    until: Seconds | None = None
    """Nothing comes at or after."""

    def __post_init__(self) -> None:
        require_adapters(self.adapters, self.popularity, self.changes)
        require_time(self.shared_prefix, "shared_prefix")
        require_time(self.start, "start")
        if isinstance(self.process, Burst):
            rated = [each for each in self.changes if isinstance(each, Scale)]
            require(not rated, "a change of rate", rated, "a burst has a count and no rate")
            require(self.sessions is None, "sessions", self.sessions, "a burst's requests have none")


def require_adapters(
    adapters: tuple[AdapterName | None, ...], popularity: Popularity, changes: tuple[Change, ...]
) -> None:
    """Laws and changes must speak of adapters that there are.

    Raises:
        ValueError: they do not.
    """
    require(bool(adapters), "adapters", adapters, "at least one is needed")
    require(len(dict.fromkeys(adapters)) == len(adapters), "adapters", adapters, "each only once")
    require_fit(popularity, len(adapters))
    for change in changes:
        if isinstance(change, Reweigh):
            require_fit(change.popularity, len(adapters))
        elif isinstance(change, Split):
            count = len(adapters)
            require(change.top <= count, "top", change.top, f"at most the number of adapters, {count}")
            require(None not in adapters[: change.top], "top", change.top, "the base model cannot be split")


class After(StrEnum):
    """What a follower waits for."""

    ARRIVAL = "arrival"
    """The first request came: part of the stream."""
    END = "end"
    """The first request was answered: only the simulator knows when (see `follow.Followers`)."""


class Follow(msgspec.Struct, frozen=True, kw_only=True):
    """A pipeline's edge: after a request for `first`, one for `then`."""

    first: AdapterName
    then: AdapterName
    probability: Ratio = 1.0
    after: After = After.END
    delay: tuple[Seconds, Seconds] = (0.0, 0.0)
    """Shortest and longest; all between are as likely."""
    sizes: AnySizes | None = None
    """None: the same as the first request's."""

    def __post_init__(self) -> None:
        require_share(self.probability, "probability")
        low, high = self.delay
        require(0 <= low <= high < math.inf, "delay", self.delay, "shortest and longest seconds, 0 or more")


class ReplayKey(StrEnum):
    """What requests of a trace have in common when they are for the same adapter. No public trace names adapters."""

    ROW = "row"
    """Nothing: every request is drawn by itself."""
    SESSION = "session"
    """The trace's session; requests without one are drawn by themselves."""
    MODEL = "model"
    """The trace's model; requests without one are drawn by themselves."""
    PREFIX = "prefix"
    """The first `prefix_blocks` blocks of the prompt; shorter prompts are drawn by themselves."""


class Replay(msgspec.Struct, frozen=True, kw_only=True):
    """A trace with an adapter popularity law laid over it. The first request comes at t = 0."""

    adapters: tuple[AdapterName | None, ...]
    popularity: Popularity = EqualShares()
    key: ReplayKey = ReplayKey.ROW
    prefix_blocks: int = 2
    """The first block of Mooncake's conversations is the same in all."""
    speed: float = 1.0
    """Trace seconds per second: 2 makes twice the load."""
    spread: Seconds = 0.0
    """Requests with the same time are spread at random over this many trace seconds, not beyond the next time
    (Mooncake's come in steps of 3 s)."""
    changes: tuple[MixChange, ...] = ()
    """In seconds of the replay. A key that changes its adapter does so once."""
    priority: int = 0
    until: Seconds | None = None
    """In seconds of the replay."""
    count: int | None = None
    block_tokens: Tokens = 16
    """Tokens per prefix block; the pods' `block_size`. Must divide the trace's."""

    def __post_init__(self) -> None:
        require_adapters(self.adapters, self.popularity, self.changes)
        require_count(self.count)
        require(self.prefix_blocks >= 1, "prefix_blocks", self.prefix_blocks, "at least 1")
        require(0 < self.speed < math.inf, "speed", self.speed, "more than 0")
        require_time(self.spread, "spread")
        require_length(self.block_tokens, "block_tokens")


class Traced(msgspec.Struct, frozen=True, kw_only=True):
    """A stream of requests that a trace tells of."""

    name: str
    """Unique in its workload: begins the ids of its requests."""
    file: str
    """Whoever draws the workload opens it."""
    replay: Replay


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that comes."""

    flows: tuple[Flow, ...] = ()
    traces: tuple[Traced, ...] = ()
    follows: tuple[Follow, ...] = ()
    clock: Seconds = 0.0
    """Seconds after midnight at t = 0; diurnal processes and profiles need it."""
    until: Seconds | None = None
    """Nothing comes at or after; None: as long as the flows last, which may be for ever."""
    count: int | None = None
    """No more requests than this, followers included."""
    block_tokens: Tokens = 16
    """Tokens per prefix block; the pods' `block_size`."""

    def __post_init__(self) -> None:
        names = [flow.name for flow in self.flows] + [trace.name for trace in self.traces]
        require(len(dict.fromkeys(names)) == len(names), "names of the flows", names, "each only once")
        require_time(self.clock, "clock")
        require_count(self.count)
        require_length(self.block_tokens, "block_tokens")
        _refuse_loops(self.follows)


def _refuse_loops(follows: tuple[Follow, ...]) -> None:
    """A pipeline that comes back to its beginning would never end."""
    left = list(follows)
    while left:
        firsts = dict.fromkeys(each.first for each in left)
        stay = [each for each in left if each.then in firsts]
        loop = ", ".join(f"{each.first} -> {each.then}" for each in stay)
        require(len(stay) < len(left), "pipeline", loop, "it may not come back to an adapter that it began with")
        left = stay
