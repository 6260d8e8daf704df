"""The blend: several looks at the history, each believed as far as it was right about that adapter of late.

In: a history. Out: see `core.forecast.models.Forecast`.

Whose demand repeats daily, whose by the week, and whose not at all is learnt per adapter: after each bin every look is
charged the square of (its share of bins with a request - whether one came), old charges fade within a day, and weights
fall with the 16th power of the charge, so that a look that errs a tenth more weighs a fifth. A small share is always
spread evenly: what stopped repeating may begin again. Nothing is learnt that the history could not teach again: after a
restart the last day is gone through once, every third bin of it.
"""

import numpy as np

from lorapick.core.forecast.history import PER_DAY, Floats, History
from lorapick.core.forecast.looks import LOOKS, knows, looks
from lorapick.core.forecast.models import Columns
from lorapick.model.units import AdapterName

_FADES_IN: float = PER_DAY
"""Bins after which a charge counts half."""
_PRIOR_BINS = 12.0
_PRIOR_CHARGE = 0.01
"""Charges before the first bin: so little, for so many bins, that looks which never err count alike."""
_EVEN = 0.1
"""Share of the weight that all looks have alike."""
_CATCH_UP = PER_DAY
_EACH_OF_MANY = 3
_MANY = PER_DAY // 12


class Blend(Columns):
    """Per adapter, the looks that were right about it."""

    name = "blend"

    def __init__(self, history: History, *, every: bool = False) -> None:
        """Over a history, which may grow; what it has already is learnt from when a forecast is first asked for."""
        super().__init__(history, every=every)
        self._charges: Floats = np.zeros((len(LOOKS), 0))
        self._bins: Floats = np.zeros(0)
        """Bins learnt from by column, faded as charges are."""
        self._whose: list[AdapterName | None] = []
        self._learnt: int | None = None
        """The last bin that was learnt from."""
        self._foreseen: tuple[int, list[Floats]] = (0, [])
        """A bin, and what the looks said about requests in it before it began: what they are charged by."""

    def weights(self, adapter: AdapterName) -> dict[str, float] | None:
        """How far each look is believed about an adapter; they sum to 1. None: it is unknown."""
        column = self._history.adapters.get(adapter)
        if column is None:
            return None
        self._fit_columns()
        return dict(zip(LOOKS, self._weights()[:, column].tolist(), strict=True))

    def _expected(self, number: int, *, most: float) -> Floats:
        self._learn_until(number)
        total = np.zeros(self._history.columns)
        for weight, look in zip(self._weights(), self._looks(number, most=most), strict=True):
            total += weight * look
        return total

    def _learn_until(self, number: int) -> None:
        """Learn from the bins before this one that were not learnt from; of many, from some."""
        self._fit_columns()
        last = self._learnt
        first = number - _CATCH_UP if last is None else max(last + 1, number - _CATCH_UP)
        step = _EACH_OF_MANY if number - first > _MANY else 1
        for each in range(number - 1, first - 1, -step)[::-1]:
            self._learn(each)
        # A clock that went back is learnt from again: better twice than not until it is where it was.
        self._learnt = number - 1

    def _learn(self, number: int) -> None:
        if not knows(self._history, number):
            return
        fade = 0.5 ** (1.0 / _FADES_IN)
        happened = self._history.counts(number, most=1.0)
        self._charges *= fade
        self._bins = self._bins * fade + 1.0
        for charge, look in zip(self._charges, self._looks(number, most=1.0), strict=True):
            error = np.minimum(look, 1.0) - happened
            charge += error * error

    def _looks(self, number: int, *, most: float) -> list[Floats]:
        if most != 1.0:
            return looks(self._history, number, most=most)
        foreseen, said = self._foreseen
        if foreseen != number or len(said[0]) != self._history.columns:
            said = looks(self._history, number, most=most)
            self._foreseen = (number, said)
        return said

    def _weights(self) -> Floats:
        mean = (self._charges + _PRIOR_BINS * _PRIOR_CHARGE) / (self._bins + _PRIOR_BINS)
        ratio = mean.min(axis=0) / mean
        for _ in range(4):
            ratio = ratio * ratio
        total = np.zeros(ratio.shape[1])
        for row in ratio:
            total += row
        even: Floats = (1.0 - _EVEN) * ratio / total + _EVEN / len(LOOKS)
        return even

    def _fit_columns(self) -> None:
        """Columns that are new, or another adapter's now, have learnt nothing."""
        names = self._history.names
        if len(names) > len(self._whose):
            more = len(names) - len(self._whose)
            self._charges = np.hstack([self._charges, np.zeros((len(LOOKS), more))])
            self._bins = np.append(self._bins, np.zeros(more))
            self._whose += [None] * more
        for column, name in enumerate(names):
            if self._whose[column] != name:
                self._charges[:, column] = 0.0
                self._bins[column] = 0.0
                self._whose[column] = name
