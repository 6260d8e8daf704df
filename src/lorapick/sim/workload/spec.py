"""What a workload is made of: values that a scenario file becomes.

In: numbers and names. Out: frozen values; a value that cannot be is refused when it is made (`ValueError` with the
value, the limit and the remedy; `msgspec.convert` adds the path). All are tagged with `type`, so that
`msgspec.convert(document, Workload)` reads them and `msgspec.to_builtins` writes them.
Not here: drawing from them (see `sim.workload.stream`), traces (see `sim.workload.replay`), scenario files (`wire`).

A workload is a set of flows, merged in order of time. A flow is a process of arrivals, an adapter for each, and sizes.
Adapters whose demand follows laws of their own are flows of their own: one stream split by popularity has other bursts
than streams added together (ServeGen, arXiv 2505.09999).
"""

import math
from enum import StrEnum
from itertools import pairwise
from typing import TypeAlias

import msgspec

from lorapick.model.units import AdapterName, Ratio, Seconds, Tokens


def require(holds: bool, what: str, value: object, needed: str) -> None:
    """Refuse a value.

    Raises:
        ValueError: `holds` is false.
    """
    if not holds:
        raise ValueError(f"{what} is {value}; {needed}")


def _require_rate(rate: float, what: str = "rate") -> None:
    require(math.isfinite(rate) and rate >= 0, what, rate, "requests per second, 0 or more")


def _require_cv(cv: float) -> None:
    require(math.isfinite(cv) and 0 <= cv <= 1000, "cv", cv, "a coefficient of variation from 0 (even gaps) to 1000")


def _require_length(tokens: Tokens, what: str) -> None:
    require(1 <= tokens <= 10**7, what, tokens, "a whole number of tokens, 1 to 10,000,000")


def _require_span(seconds: Seconds, what: str) -> None:
    require(math.isfinite(seconds) and seconds > 0, what, seconds, "seconds, more than 0")


def _require_time(seconds: Seconds, what: str) -> None:
    require(math.isfinite(seconds) and seconds >= 0, what, seconds, "seconds, 0 or more")


def _require_share(share: Ratio, what: str) -> None:
    require(0 <= share <= 1, what, share, "a share from 0 to 1")


# -- lengths of prompts and answers


class FixedLength(msgspec.Struct, frozen=True, tag="fixed"):
    """Always `tokens`."""

    tokens: Tokens

    def __post_init__(self) -> None:
        _require_length(self.tokens, "tokens")


class UniformLength(msgspec.Struct, frozen=True, tag="uniform"):
    """Every whole number from `low` to `high`, both included, is as likely."""

    low: Tokens
    high: Tokens

    def __post_init__(self) -> None:
        _require_length(self.low, "low")
        _require_length(self.high, "high")
        require(self.low <= self.high, "high", self.high, f"at least low, {self.low}")


class LogNormalLength(msgspec.Struct, frozen=True, tag="lognormal"):
    """Log-normal with this mean and coefficient of variation, then clipped to [low, high] (which moves the mean)."""

    mean: float
    cv: float
    low: Tokens = 1
    high: Tokens = 10**7

    def __post_init__(self) -> None:
        require(1 <= self.mean <= 10**7, "mean", self.mean, "tokens, 1 to 10,000,000")
        require(0 < self.cv <= 100, "cv", self.cv, "a coefficient of variation above 0, at most 100")
        _require_length(self.low, "low")
        _require_length(self.high, "high")
        require(self.low <= self.high, "high", self.high, f"at least low, {self.low}")


class TableLength(msgspec.Struct, frozen=True, tag="table"):
    """A cumulative distribution: (tokens, share of requests of at most so many), linear in between, from 0 tokens."""

    points: tuple[tuple[Tokens, Ratio], ...]

    def __post_init__(self) -> None:
        require(bool(self.points), "points", self.points, "at least one pair of tokens and share is needed")
        for tokens, share in self.points:
            _require_length(tokens, "tokens")
            _require_share(share, "share")
        for before, after in pairwise(self.points):
            rises = before[0] < after[0] and before[1] <= after[1]
            require(rises, "point", after, f"tokens must rise and the share not fall after {before}")
        require(self.points[-1][1] == 1, "the last share", self.points[-1][1], "it must be 1")


Length: TypeAlias = FixedLength | UniformLength | LogNormalLength | TableLength


class Sizes(msgspec.Struct, frozen=True, tag="independent"):
    """Prompt and answer drawn apart."""

    prompt: Length
    output: Length


class SizePairs(msgspec.Struct, frozen=True, tag="pairs"):
    """(prompt, output) tokens of real requests, drawn together with replacement (see `laws.pairs_of`)."""

    rows: tuple[tuple[Tokens, Tokens], ...]

    def __post_init__(self) -> None:
        require(bool(self.rows), "rows", self.rows, "at least one (prompt, output) pair is needed")
        for prompt, output in self.rows:
            _require_length(prompt, "prompt")
            _require_length(output, "output")


AnySizes: TypeAlias = Sizes | SizePairs


# -- popularity: shares of a flow's adapters, in the order in which the flow names them


class EqualShares(msgspec.Struct, frozen=True, tag="uniform"):
    """All the same."""


class Zipf(msgspec.Struct, frozen=True, tag="zipf"):
    """The i-th adapter has a share in proportion to i^-s. Measured on clients of ServeGen: s of 0.9 to 1.8."""

    s: float

    def __post_init__(self) -> None:
        require(0 <= self.s <= 20, "s", self.s, "an exponent from 0 (uniform) to 20")


class TopShare(msgspec.Struct, frozen=True, tag="top"):
    """The first `top` adapters have `share` of the requests; within the top and within the rest all the same."""

    top: int
    share: Ratio

    def __post_init__(self) -> None:
        require(self.top >= 1, "top", self.top, "at least 1 adapter")
        _require_share(self.share, "share")


class Weights(msgspec.Struct, frozen=True, tag="weights"):
    """Shares in proportion to these, one per adapter: measured shares, or rates of Poisson streams."""

    values: tuple[float, ...]

    def __post_init__(self) -> None:
        usable = all(math.isfinite(value) and value >= 0 for value in self.values)
        require(usable and any(self.values), "weights", self.values, "0 or more each, and one above 0")


class PowerLaw(msgspec.Struct, frozen=True, tag="power"):
    """S-LoRA's: adapter floor(n·x) with x of density alpha·x^(alpha-1); 1 is uniform, below 1 the first are popular."""

    alpha: float

    def __post_init__(self) -> None:
        require(0 < self.alpha <= 100, "alpha", self.alpha, "above 0, at most 100")


Popularity: TypeAlias = EqualShares | Zipf | TopShare | Weights | PowerLaw


# -- processes: when requests come. Rates are requests per second, cv is that of the gaps at a constant rate.


class Poisson(msgspec.Struct, frozen=True, tag="poisson"):
    """Independent arrivals at a constant rate."""

    rate: float

    def __post_init__(self) -> None:
        _require_rate(self.rate)


class Gamma(msgspec.Struct, frozen=True, tag="gamma"):
    """Gamma-distributed gaps; cv 1 is Poisson, 0 even gaps."""

    rate: float
    cv: float

    def __post_init__(self) -> None:
        _require_rate(self.rate)
        _require_cv(self.cv)


class State(msgspec.Struct, frozen=True):
    """One state of a Markov-modulated process: its rate, and how long it lasts in the mean."""

    rate: float
    dwell: Seconds

    def __post_init__(self) -> None:
        _require_rate(self.rate)
        _require_span(self.dwell, "dwell")


class MarkovModulated(msgspec.Struct, frozen=True, tag="mmpp"):
    """Poisson arrivals whose rate jumps between states (MMPP); begins in the first, then any other is as likely.

    The mean rate is Σ rate·dwell / Σ dwell.
    """

    states: tuple[State, ...]

    def __post_init__(self) -> None:
        require(len(self.states) >= 2, "states", len(self.states), "at least 2; for one state use poisson")


class Diurnal(msgspec.Struct, frozen=True, tag="diurnal"):
    """A sinusoid of mean `rate`, whose highest rate is `ratio` times its lowest."""

    rate: float
    ratio: float
    peak: Seconds = 14 * 3600.0
    """When the rate is highest, in seconds after midnight."""
    period: Seconds = 86_400.0
    cv: float = 1.0

    def __post_init__(self) -> None:
        _require_rate(self.rate)
        require(1 <= self.ratio <= 1e6, "ratio", self.ratio, "highest through lowest rate, 1 to 1,000,000")
        _require_time(self.peak, "peak")
        _require_span(self.period, "period")
        _require_cv(self.cv)


class Profile(msgspec.Struct, frozen=True, tag="profile"):
    """A rate for each hour of the day (or for steps of another length, from midnight), again and again."""

    rates: tuple[float, ...]
    step: Seconds = 3600.0
    cv: float = 1.0

    def __post_init__(self) -> None:
        require(bool(self.rates), "rates", self.rates, "at least one is needed")
        for rate in self.rates:
            _require_rate(rate, "a rate of the profile")
        require(any(self.rates), "rates", self.rates, "one must be above 0")
        _require_span(self.step, "step")
        _require_cv(self.cv)


class FlashCrowd(msgspec.Struct, frozen=True, tag="flash"):
    """`rate`, and from `at` on `rate`·(1 + (factor − 1)·e^−((t−at)/decay))."""

    rate: float
    at: Seconds
    factor: float
    decay: Seconds
    cv: float = 1.0

    def __post_init__(self) -> None:
        _require_rate(self.rate)
        _require_time(self.at, "at")
        require(1 <= self.factor <= 1e6, "factor", self.factor, "times the rate, 1 to 1,000,000")
        _require_span(self.decay, "decay")
        _require_cv(self.cv)


class Hawkes(msgspec.Struct, frozen=True, tag="hawkes"):
    """Arrivals that bring others: each has Poisson(branching) followers, after exponential delays of mean `decay`.

    `rate` is the long-run mean, followers included. Flash crowds are about 0.5 to 0.8.
    """

    rate: float
    branching: Ratio
    decay: Seconds

    def __post_init__(self) -> None:
        _require_rate(self.rate)
        require(0 <= self.branching <= 0.99, "branching", self.branching, "0 to 0.99 (at 1 the crowd never ends)")
        _require_span(self.decay, "decay")


class Window(msgspec.Struct, frozen=True):
    """A stretch of time with a measured rate and a measured cv."""

    start: Seconds
    end: Seconds
    rate: float
    cv: float = 1.0

    def __post_init__(self) -> None:
        _require_time(self.start, "start")
        require(self.start < self.end < math.inf, "end", self.end, f"after the start, {self.start}")
        _require_rate(self.rate)
        _require_cv(self.cv)


class Windows(msgspec.Struct, frozen=True, tag="windows"):
    """Measured demand (ServeGen): in each window rate·length requests, with Gamma gaps stretched to fill the window.

    So the counts are the measured ones whatever the cv; nothing comes between windows or after the last.
    """

    windows: tuple[Window, ...]

    def __post_init__(self) -> None:
        for before, after in pairwise(self.windows):
            require(before.end <= after.start, "start", after.start, f"not before the end of the last, {before.end}")


class Burst(msgspec.Struct, frozen=True, tag="burst"):
    """Exactly `count` requests, at random times between `at` and `at` + `over`."""

    count: int
    at: Seconds
    over: Seconds = 0.0

    def __post_init__(self) -> None:
        require(0 <= self.count <= 10**7, "count", self.count, "0 to 10,000,000 requests")
        _require_time(self.at, "at")
        _require_time(self.over, "over")


Process: TypeAlias = Poisson | Gamma | MarkovModulated | Diurnal | Profile | FlashCrowd | Hawkes | Windows | Burst


# -- planned changes: nothing before `at`, linear over `over` seconds, then all of it


class Scale(msgspec.Struct, frozen=True, tag="scale"):
    """The rate becomes `factor` times what it was (1.05: five per cent more). Several multiply."""

    at: Seconds
    factor: float
    over: Seconds = 0.0

    def __post_init__(self) -> None:
        _require_time(self.at, "at")
        require(0 <= self.factor <= 1e6, "factor", self.factor, "times the rate, 0 to 1,000,000")
        _require_time(self.over, "over")


class Split(msgspec.Struct, frozen=True, tag="split"):
    """`share` of the requests for each of the first `top` adapters goes to a variant of it instead."""

    at: Seconds
    top: int
    share: Ratio
    into: str = "{name}-experiment"
    over: Seconds = 0.0

    def __post_init__(self) -> None:
        _require_time(self.at, "at")
        require(self.top >= 1, "top", self.top, "at least 1 adapter")
        _require_share(self.share, "share")
        require("{name}" in self.into, "into", repr(self.into), "it must contain {name}")
        _require_time(self.over, "over")


class Reweigh(msgspec.Struct, frozen=True, tag="reweigh"):
    """Requests come to be spread by another popularity (over the same adapters)."""

    at: Seconds
    popularity: Popularity
    over: Seconds = 0.0

    def __post_init__(self) -> None:
        _require_time(self.at, "at")
        _require_time(self.over, "over")


Change: TypeAlias = Scale | Split | Reweigh


# -- flows


class Sessions(msgspec.Struct, frozen=True):
    """Requests come in conversations whose prompts grow: what was said before is the prefix of what comes next.

    A turn's prompt is the flow's shared prefix, all earlier turns and answers, and the drawn prompt. Turns follow each
    other at exponential times whatever the answers take (open loop). The process makes conversations begin at its
    rate / `turns`, so its rate is still that of requests.
    """

    turns: float
    """Mean requests per conversation (geometric, at least 1)."""
    think: Seconds
    """Mean time from one request to the next of the conversation."""
    most_prompt_tokens: Tokens = 4096
    """A turn that would exceed this forgets all earlier ones and begins a prefix of its own."""

    def __post_init__(self) -> None:
        require(1 <= self.turns <= 1e6, "turns", self.turns, "a mean of 1 to 1,000,000 requests")
        _require_time(self.think, "think")
        _require_length(self.most_prompt_tokens, "most_prompt_tokens")


class Flow(msgspec.Struct, frozen=True, kw_only=True):
    """A stream of requests with one process."""

    name: str
    """Unique in its workload: names the flow's random numbers, so that another flow changes none of them."""
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
        require(bool(self.adapters), f"adapters of flow {self.name}", self.adapters, "at least one is needed")
        known = dict.fromkeys(self.adapters)
        require(len(known) == len(self.adapters), f"adapters of flow {self.name}", self.adapters, "each only once")
        _require_time(self.shared_prefix, "shared_prefix")
        _require_time(self.start, "start")
        for law in (self.popularity, *(each.popularity for each in self.changes if isinstance(each, Reweigh))):
            if isinstance(law, Weights):
                count = len(self.adapters)
                require(len(law.values) == count, "number of weights", len(law.values), f"one per adapter: {count}")
        for change in self.changes:
            fits = not isinstance(change, Scale) or not isinstance(self.process, Burst)
            require(fits, "a change of rate", change, "a burst has a count and no rate")


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
        _require_share(self.probability, "probability")
        low, high = self.delay
        require(0 <= low <= high < math.inf, "delay", self.delay, "shortest and longest seconds, 0 or more")


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that comes."""

    flows: tuple[Flow, ...]
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
        names = [flow.name for flow in self.flows]
        require(len(dict.fromkeys(names)) == len(names), "names of the flows", names, "each only once")
        _require_time(self.clock, "clock")
        _require_length(self.block_tokens, "block_tokens")
        _refuse_loops(self.follows)


def _refuse_loops(follows: tuple[Follow, ...]) -> None:
    """A pipeline that comes back to its beginning would never end."""
    left = list(follows)
    while left:
        targets = [each.then for each in left]
        stay = [each for each in left if each.first in targets]
        loop = " -> ".join(each.first for each in stay)
        require(len(stay) < len(left), "follows", loop, "a pipeline may not come back to an adapter it began with")
        left = stay


# -- traces


class ReplayKey(StrEnum):
    """What requests of a trace have in common when they are for the same adapter. No public trace names adapters."""

    ROW = "row"
    """Nothing: every request is drawn by itself."""
    SESSION = "session"
    """The trace's session; requests without one are drawn by themselves."""
    MODEL = "model"
    """The trace's model."""
    PREFIX = "prefix"
    """The first `prefix_blocks` blocks of the prompt; shorter prompts are drawn by themselves."""


class Replay(msgspec.Struct, frozen=True, kw_only=True):
    """A trace with an adapter popularity law laid over it."""

    adapters: tuple[AdapterName | None, ...]
    popularity: Popularity = EqualShares()
    key: ReplayKey = ReplayKey.ROW
    prefix_blocks: int = 2
    """The first block of Mooncake's conversations is the same in all."""
    speed: float = 1.0
    """Trace seconds per second: 2 makes twice the load."""
    spread: Seconds = 0.0
    """Requests with the same time are spread at random over this many trace seconds (Mooncake's come in steps of 3 s),
    but not beyond the next time."""
    changes: tuple[Split | Reweigh, ...] = ()
    """In seconds of the replay. `Reweigh` draws the adapter of a key anew."""
    priority: int = 0
    until: Seconds | None = None
    """In seconds of the replay."""
    count: int | None = None
    block_tokens: Tokens = 16

    def __post_init__(self) -> None:
        require(bool(self.adapters), "adapters", self.adapters, "at least one is needed")
        require(self.prefix_blocks >= 1, "prefix_blocks", self.prefix_blocks, "at least 1")
        require(0 < self.speed < math.inf, "speed", self.speed, "more than 0")
        _require_time(self.spread, "spread")
        _require_length(self.block_tokens, "block_tokens")
        if isinstance(self.popularity, Weights):
            given, count = len(self.popularity.values), len(self.adapters)
            require(given == count, "number of weights", given, f"one per adapter: {count}")
