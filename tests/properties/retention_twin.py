"""Retention policies written a second time, from the whole history and as plainly as can be.

In: everything that happened, in order. Out: what each adapter is worth. No code of `core.retention`.
"""

import itertools
from math import exp, expm1, inf, log1p
from typing import NamedTuple


class Happened(NamedTuple):
    kind: str
    """`used`, `touched`, `loaded`, `removed`"""
    adapter: str
    now: float


def since_removed(history, adapter):
    """What happened to it after it was last removed."""
    own = [each for each in history if each.adapter == adapter]
    removed = [index for index, each in enumerate(own) if each.kind == "removed"]
    return own[removed[-1] + 1 :] if removed else own


def last_use(history, adapter):
    own = since_removed(history, adapter)
    return own[-1].now if own else -inf


def requests(history, adapter):
    return [each.now for each in history if each.kind == "used" and each.adapter == adapter]


def lru(history, adapter, *, now, settings, facts):
    return last_use(history, adapter)


def lfu(history, adapter, *, now, settings, facts):
    return len([each for each in since_removed(history, adapter) if each.kind == "used"])


def window(history, adapter, *, now, settings, facts):
    count = len([t for t in requests(history, adapter) if now - settings.window < t <= now])
    recency = 1 / max(1.0, now - last_use(history, adapter))
    return settings.frequency_weight * count + settings.recency_weight * recency + settings.pinned_bonus * facts.pinned


def cost(history, adapter, *, now, settings, facts):
    times = requests(history, adapter)
    rate = max(min(long_rate(times, now=now, window=settings.window), silence(times, now)), stretch(times, now) / 2)
    return rate * facts.from_cpu / facts.room


def long_rate(times, *, now, window):
    span = window / 60
    present = now // span
    counts = {}
    for t in times:
        counts[t // span] = counts.get(t // span, 0) + 1
    newest = 1 - exp(-1 / 30)
    mean = sum(newest * exp(-(present - number) / 30) * log1p(count) for number, count in counts.items())
    return expm1(mean) / span


def silence(times, now):
    return 3 / max(now - times[-1], 0.01) if times else inf


def stretch(times, now):
    """The rate of the last run of requests without a break, by its usual gap."""
    gap = None
    for before, t in itertools.pairwise(times):
        if gap is None:
            gap = t - before
        elif t - before > max(2.0, 5 * gap):
            gap = None
        else:
            gap += (t - before - gap) / 8
    if gap is None or now - times[-1] > max(2.0, 5 * gap):
        return 0.0
    return 1 / max(gap, now - times[-1], 0.01)


TWINS = {"lru": lru, "lfu": lfu, "window": window, "cost": cost}
