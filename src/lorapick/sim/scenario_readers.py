"""Readers of the words that scenario files use: rates, times of day, laws of popularity and length.

In: nodes of a YAML tree. Out: values of `sim.workload`; or a problem in the report.
Not here: the sections of a file (see `sim.traffic_text`, `sim.scenario_text`).
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from lorapick.model.units import Seconds
from lorapick.sim.workload.lengths import FixedLength, Length, LogNormalLength, TableLength, UniformLength
from lorapick.sim.workload.popularity import EqualShares, Popularity, PowerLaw, TopShare, Weights, Zipf
from lorapick.wire.config.document import At, Refused, nearest_word
from lorapick.wire.config.readers import Reader, fields, integer, list_of, number, share
from lorapick.wire.units import UnitError, parse_duration

T = TypeVar("T")

_CLOCK = re.compile(r"([01]?\d|2[0-4]):([0-5]\d)(?::([0-5]\d))?", re.ASCII)
_RATE = re.compile(r"(\d+(?:\.\d+)?) ?/ ?(s|min|h|day)", re.ASCII)
_PER = {"s": 1.0, "min": 60.0, "h": 3600.0, "day": 86_400.0}
_PERCENT = re.compile(r"([+-])(\d+(?:\.\d+)?) ?%", re.ASCII)
_DAY = 86_400.0
_MOST = 18
"""More characters than any rate or percentage needs."""

tokens = integer(least=1, most=10_000_000)


def raw(at: At) -> str:
    """What stands here, whatever YAML takes it for (10:15 is a number to it)."""
    if not at.is_scalar:
        at.refuse("must be a single value")
    return str(at.node.value)


def made(at: At, build: Callable[[], T]) -> T:
    """A value whose own checks speak of this node."""
    try:
        return build()
    except ValueError as error:
        at.refuse(str(error), value="")


def built(build: Callable[..., T], readers: Mapping[str, Reader[Any]], *, required: tuple[str, ...] = ()) -> Reader[T]:
    """A mapping as a value that checks itself."""

    def read(at: At) -> T:
        before = len(at.report.problems)
        values = fields(at, readers, required=required)
        if len(at.report.problems) > before:
            raise Refused
        return made(at, lambda: build(**values))

    return read


def one_of(at: At, ways: Mapping[str, Reader[T]], *, what: str) -> T:
    """A mapping with exactly one key, which says what its value is."""
    entries = at.entries()
    if len(entries) != 1:
        at.refuse(f"must have exactly one of {', '.join(ways)}", value=", ".join(entries) or "nothing")
    name, entry = next(iter(entries.items()))
    if name not in ways:
        entry.key.refuse(f"unknown {what}", hint=nearest_word(name, ways))
    return ways[name](entry.value)


def clock(at: At) -> Seconds:
    """A time of day, `09:00` or `09:00:30`, as seconds after midnight; 24:00 is the end of the day."""
    match = _CLOCK.fullmatch(raw(at))
    if match is None:
        at.refuse("must be a time of day", hint='for example "09:00" or "14:31:02"')
    hours, minutes, seconds = (int(part or 0) for part in match.groups())
    value = hours * 3600.0 + minutes * 60.0 + seconds
    if value > _DAY:
        at.refuse("must be a time of day, at most 24:00")
    return value


def moment(*, begin: Seconds, length: Seconds) -> Reader[Seconds]:
    """A time within the run: a time of day, or a duration since its begin. In seconds since its begin."""

    def read(at: At) -> Seconds:
        text = raw(at)
        if ":" in text:
            value = clock(at) - begin
        else:
            try:
                value = parse_duration(text)
            except UnitError:
                at.refuse('must be a time of day ("10:15") or a duration since the begin ("90s")')
        if not 0 <= value <= length:
            at.refuse(f"must lie within the run, which lasts {length:g}s; this is at {value:g}s")
        return value

    return read


def rate(at: At) -> float:
    """Requests per second, written with a unit."""
    text = raw(at)
    match = _RATE.fullmatch(text) if len(text) <= _MOST else None
    if match is None:
        at.refuse("must be a rate", hint='write a number per time, such as "50/s", "2000/min" or "50000/day"')
    return float(match.group(1)) / _PER[match.group(2)]


def factor(at: At) -> float:
    """A change of rate: `+5%`, `-20%`, or a factor such as `2`."""
    text = raw(at)
    match = _PERCENT.fullmatch(text) if len(text) <= _MOST else None
    if match is not None:
        change = float(match.group(2)) / 100
        if match.group(1) == "-" and change > 1:
            at.refuse("cannot fall by more than 100%")
        return 1 + change if match.group(1) == "+" else 1 - change
    return number(least=0.0, most=1e6, what='a change such as "+5%", or a factor')(at)


def length(at: At) -> Length:
    """Tokens: a number, `[low, high]`, `{lognormal: {mean, cv}}` or `{table: [[tokens, share], ...]}`."""
    if at.is_scalar:
        return FixedLength(tokens(at))
    if at.tag.endswith(":seq"):
        ends = list_of(tokens)(at)
        if len(ends) != 2:
            at.refuse("must have two numbers, the least and the most tokens", value=f"{len(ends)} numbers")
        return made(at, lambda: UniformLength(*ends))
    return one_of(at, _LENGTHS, what="law of lengths")


def _table(at: At) -> TableLength:
    points = []
    for item in at.items():
        pair = item.items()
        if len(pair) != 2:
            item.refuse("must be [tokens, share of requests of at most so many]")
        points.append((tokens(pair[0]), share(pair[1])))
    return made(at, lambda: TableLength(tuple(points)))


_LENGTHS: dict[str, Reader[Length]] = {
    "lognormal": built(
        LogNormalLength,
        {
            "mean": number(least=1.0, most=1e7, what="a mean in tokens"),
            "cv": number(least=0.0, most=100.0, what="a coefficient of variation"),
            "low": tokens,
            "high": tokens,
        },
        required=("mean", "cv"),
    ),
    "table": _table,
}


def popularity(at: At) -> Popularity:
    """`uniform`, `{zipf: 1.0}`, `{top: 10, share: 0.7}`, `{power: 0.6}` or `{weights: [...]}`."""
    if at.is_scalar:
        if raw(at) != "uniform":
            at.refuse("must be uniform or a law", hint="for example {zipf: 1.0} or {top: 10, share: 0.7}")
        return EqualShares()
    if at.find("top") is not None:
        return _TOP(at)
    return one_of(at, _POPULARITIES, what="law of popularity")


def _zipf(at: At) -> Zipf:
    exponent = number(least=0.0, most=20.0, what="an exponent")(at)
    return Zipf(exponent)


def _power(at: At) -> PowerLaw:
    alpha = number(least=0.0, most=100.0, what="an alpha")(at)
    return made(at, lambda: PowerLaw(alpha))


def _weights(at: At) -> Weights:
    values = list_of(number(least=0.0, what="a weight"))(at)
    return made(at, lambda: Weights(values))


_TOP: Reader[TopShare] = built(
    TopShare, {"top": integer(least=1, most=1_000_000), "share": share}, required=("top", "share")
)
_POPULARITIES: dict[str, Reader[Popularity]] = {"zipf": _zipf, "power": _power, "weights": _weights}
