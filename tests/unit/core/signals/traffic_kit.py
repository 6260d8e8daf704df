"""Traffic of whole days in a moment: counts per adapter and minute, drawn from rates, as the tables that picks leave.

In: rates. Out: `TrafficTable` at any minute. Not here: a picker.
"""

import numpy as np

from lorapick.core.signals.traffic import BIN, MOST_BINS, TrafficBin, TrafficTable

MINUTE = 60.0


def zipf(count, exponent=1.0):
    """Shares of so many adapters."""
    shares = 1.0 / np.arange(1, count + 1) ** exponent
    return shares / shares.sum()


class Course:
    """Requests of one fleet, minute by minute; names say nothing."""

    def __init__(self, rates, *, seed):
        """`rates`: requests per second, minutes x adapters."""
        chance = np.random.default_rng(seed)
        self.counts = chance.poisson(np.maximum(rates, 0.0) * MINUTE)
        letters = np.array(list("0123456789abcdef"))
        self.names = ["".join(chance.choice(letters, 6)) + f"{number:x}" for number in range(rates.shape[1])]
        asked = self.counts > 0
        self.first = np.where(asked.any(axis=0), asked.argmax(axis=0), -1) * MINUTE + chance.uniform(
            0, MINUTE, rates.shape[1]
        )

    def table(self, minute):
        """What is known at this minute."""
        now, counts = minute * MINUTE, self.counts[:minute]
        per_bin = int(BIN / MINUTE)
        bins = []
        for start in range(0, minute, per_bin):
            part = counts[start : start + per_bin]
            total = part.sum(axis=0)
            asked = {self.names[each]: int(total[each]) for each in np.flatnonzero(total)}
            bins.append(TrafficBin(start * MINUTE, len(part) * MINUTE, asked))
        bins = bins[-MOST_BINS:]
        names = {name for each in bins for name in each.counts}
        first = {name: float(self.first[each]) for each, name in enumerate(self.names) if name in names}
        return TrafficTable(now, tuple(bins), first)


def steady(minutes, shares, rate=50.0):
    """The same rates all the time."""
    return np.tile(shares * rate, (minutes, 1))


def split(rates, olds, *, at, share, over=0):
    """From minute `at` on, each of `olds` gives a share of its requests to a new one, growing for `over` minutes."""
    minutes = np.arange(len(rates))
    grown = np.clip((minutes - at) / over, 0, 1) if over else (minutes >= at).astype(float)
    part = (share * grown)[:, None]
    new = rates[:, olds] * part
    old = rates.copy()
    old[:, olds] -= new
    return np.hstack([old, new])


def added(rates, new, *, at, over=0):
    """From minute `at` on, new adapters come on top, at these rates."""
    minutes = np.arange(len(rates))
    grown = np.clip((minutes - at) / over, 0, 1) if over else (minutes >= at).astype(float)
    return np.hstack([rates, grown[:, None] * np.asarray(new)[None, :]])
