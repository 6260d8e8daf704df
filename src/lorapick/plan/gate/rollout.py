"""What is asked for afterwards: today's adapters and their traffic, with what a rollout adds, removes and splits.

In: adapters of today, the rollout, a total rate. Out: demand before and after. Not here: files (see `gate.reading`).

Where traffic comes from, in this order: an adapter's own `rate`; today's rate for one that is there today; its part of
a split; for a new one the mean of today's. Today's adapters without a rate share what is left of the total by Zipf's
law, in the order in which they are listed.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from lorapick.model.adapters import PinSpec
from lorapick.model.units import AdapterName
from lorapick.plan.prediction.values import Demand
from lorapick.wire.config.document import nearest_word

SHOWN = 3
"""Names that a message has, of many."""
MOST = 1e9
"""Of requests per second, and of weights: no sum or product of these leaves what a float can be."""
STEEPEST = 100.0
"""Exponent of Zipf's law beyond which the first has everything."""


class Listed(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One adapter of a list."""

    name: AdapterName
    rate: float | None = None
    """Requests per second; None: follows from the others."""
    pin: PinSpec | None = None
    rank: int | None = None
    base_model: str | None = None
    source: str | None = None


class Rollout(msgspec.Struct, frozen=True, kw_only=True):
    """What changes."""

    adapters: tuple[Listed, ...] | None = None
    """All that are active afterwards; None: today's, with the changes below."""
    added: tuple[Listed, ...] = ()
    removed: tuple[AdapterName, ...] = ()
    splits: tuple[Mapping[AdapterName, float], ...] = ()
    """Traffic of the adapters of each that are there today, dealt out anew by weight."""


class Traffic(msgspec.Struct, frozen=True, kw_only=True):
    """How much is asked for, where no list says so."""

    rate: float
    """Requests per second for today's adapters together."""
    zipf: float = 1.0
    """Exponent of their popularity."""


class RolloutError(ValueError):
    """A rollout contradicts itself or what there is; the message says how to mend it."""


def today(adapters: Sequence[Listed], traffic: Traffic) -> tuple[Demand, ...]:
    """Demand as it is.

    Raises:
        RolloutError: a name is there twice, a rate cannot be, or the rates leave nothing for the others.
    """
    if not (0 <= traffic.rate <= MOST and 0 <= traffic.zipf <= STEEPEST):
        raise RolloutError(
            f"{traffic.rate:g} requests per second by Zipf's law with exponent {traffic.zipf:g}: give a rate from 0 to "
            f"{MOST:g} (--rate), an exponent from 0 to {STEEPEST:g} (--zipf)"
        )
    _check(adapters)
    silent = [each.name for each in adapters if each.rate is None]
    listed = sum(each.rate for each in adapters if each.rate is not None)
    left = traffic.rate - listed
    if silent and traffic.rate == 0:
        of = f" for {silent[0]}{_more(silent)}" if listed > 0 else ""
        raise RolloutError(f"no requests per second are known{of}: give --rate, or rates in the list")
    if silent and left <= 0:
        raise RolloutError(
            f"the rates in the list leave nothing of {traffic.rate:g} requests per second for "
            f"{silent[0]}{_more(silent)}; give them rates too, or a larger total (--rate)"
        )
    weights = {name: place**-traffic.zipf for place, name in enumerate(silent, start=1)}
    whole = sum(weights.values())
    return tuple(
        Demand(
            adapter=each.name,
            rate=left * weights[each.name] / whole if each.rate is None else each.rate,
            pin=each.pin,
        )
        for each in adapters
    )


def after(before: Sequence[Demand], rollout: Rollout, *, traffic: Traffic) -> tuple[Demand, ...]:
    """Demand once the rollout is out.

    Raises:
        RolloutError: as of `today`; or the rollout removes or splits what is not there, or adds what is.
    """
    if rollout.adapters is not None and not before:
        # Nobody says what there is today: the list is, and the changes are changes of it.
        before, rollout = today(rollout.adapters, traffic), msgspec.structs.replace(rollout, adapters=None)
    known = {each.adapter: each for each in before}
    if rollout.adapters is not None:
        _check(rollout.adapters)
        known = {each.name: known[each.name] for each in rollout.adapters if each.name in known}
    listed = (*(rollout.adapters or ()), *rollout.added)
    _check(listed)
    for name in rollout.removed:
        if known.pop(name, None) is None:
            raise RolloutError(f"{name} is removed and not there today{near(name, known)}")
    taken = next((each.name for each in rollout.added if each.name in known), None)
    if taken is not None:
        raise RolloutError(f"{taken} is added and there today already; a rollout of a new version has another name")
    split = [name for weights in rollout.splits for name in weights]
    mean = sum(each.rate for each in before) / len(before) if before else traffic.rate
    for each in listed:
        old = known.get(each.name)
        if old is None and each.name in split and each.rate is None:
            known[each.name] = Demand(adapter=each.name, rate=0.0, pin=each.pin)
            continue
        rate = each.rate if each.rate is not None else old.rate if old is not None else mean
        known[each.name] = Demand(adapter=each.name, rate=rate, pin=each.pin or (old.pin if old else None))
    return _split(tuple(known.values()), rollout.splits)


def _more(names: Sequence[AdapterName]) -> str:
    """How many there are beside the first."""
    return f" and {len(names) - 1:,} more" if len(names) > 1 else ""


def _split(demand: Sequence[Demand], splits: Iterable[Mapping[AdapterName, float]]) -> tuple[Demand, ...]:
    found = {each.adapter: each for each in demand}
    for weights in splits:
        whole = sum(weights.values())
        if not all(0 <= weight <= MOST for weight in weights.values()) or whole <= 0:
            told = ", ".join(f"{name}: {weight:g}" for name, weight in weights.items())
            raise RolloutError(f"split {told}: weights are 0 or more, up to {MOST:g}, and one of them above 0")
        there = [name for name in weights if name in found]
        if not there:
            first = next(iter(weights))
            raise RolloutError(f"none of {', '.join(weights)} is there to be split{near(first, found)}")
        rate = sum(found[name].rate for name in there)
        for name, weight in weights.items():
            pin = found[name].pin if name in found else None
            found[name] = Demand(adapter=name, rate=rate * weight / whole, pin=pin)
    return tuple(found.values())


def _check(adapters: Sequence[Listed]) -> None:
    twice = [name for name, count in Counter(each.name for each in adapters).items() if count > 1]
    if twice:
        raise RolloutError(f"{', '.join(twice)} is listed more than once; list each adapter once")
    for each in adapters:
        if not each.name.strip():
            raise RolloutError("an adapter in the list has no name; give it one, or take the entry out")
        if each.rate is not None and not 0 <= each.rate <= MOST:
            raise RolloutError(
                f"{each.name} has a rate of {each.rate:g}; give requests per second, 0 or more, up to {MOST:g}"
            )
        if each.rank is not None and each.rank < 1:
            raise RolloutError(f"{each.name} has rank {each.rank}; a rank is 1 or more")
        if each.pin is not None and each.pin.replicas is not None and each.pin.replicas < 1:
            raise RolloutError(f"{each.name} is pinned with {each.pin.replicas} replicas; give 1 or more, or no pin")


def near(name: AdapterName, known: Iterable[AdapterName]) -> str:
    """The end of a message about a name that nobody has: what may be meant, else some that there are, or nothing."""
    names = list(known)
    hint = nearest_word(name, names)
    if hint or not names:
        return f"; {hint}" if hint else ""
    more = f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
    return f"; there {'is' if len(names) == 1 else 'are'} {', '.join(names[:SHOWN])}{more}"
