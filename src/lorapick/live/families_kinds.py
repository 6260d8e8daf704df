"""Kinds of metric families that events feed: counts, sums and histograms that can be read while counting goes on.

In: what happened, with label values. Out: prometheus_client families, as of the last `freeze`. Not here: which families
there are (see `live.families`), when they are fed (see `live.metrics`).

The library's own counters and histograms take a lock and cost about five times as much for each event.
"""

from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Generic, TypeVar

from prometheus_client.metrics_core import CounterMetricFamily, HistogramMetricFamily, Metric, SummaryMetricFamily
from prometheus_client.registry import Collector

PREFIX = "lorapick_"
Labels = tuple[str, ...]
"""Label values, in the order of the family's labels."""
Value = TypeVar("Value")


class Fed(Collector, Generic[Value]):
    """A family with one value for each combination of labels that has occurred."""

    def __init__(self, name: str, text: str, *, labels: Labels = ()) -> None:
        self.name, self.text, self.labels = PREFIX + name, text, labels
        self._values: dict[Labels, Value] = {}
        self._shown: Mapping[Labels, Value] = {}

    @abstractmethod
    def freeze(self) -> None:
        """Show the values as they are now: pages are made in another thread, while counting goes on."""

    def drop(self, label: str, value: str) -> None:
        """Forget all series with this value of this label; a family without the label keeps all."""
        if label in self.labels:
            place = self.labels.index(label)
            for key in [key for key in self._values if key[place] == value]:
                del self._values[key]


class Counts(Fed[int]):
    """A counter."""

    def add(self, *labels: str) -> None:
        """Count one."""
        self._values[labels] = self._values.get(labels, 0) + 1

    def freeze(self) -> None:
        """See `Fed`."""
        self._shown = dict(self._values)

    def collect(self) -> Iterator[Metric]:
        """The counts that were frozen last."""
        family = CounterMetricFamily(self.name, self.text, labels=self.labels)
        for labels, value in self._shown.items():
            family.add_metric(labels, value)
        yield family


class Sums(Fed[list[float]]):
    """A summary without quantiles: how many, and their sum."""

    def add(self, value: float, *labels: str) -> None:
        """Take note of one."""
        row = self._values.get(labels)
        if row is None:
            row = self._values[labels] = [0.0, 0.0]
        row[0] += 1.0
        row[1] += value

    def freeze(self) -> None:
        """See `Fed`."""
        self._shown = {labels: [*row] for labels, row in self._values.items()}

    def collect(self) -> Iterator[Metric]:
        """The sums that were frozen last."""
        family = SummaryMetricFamily(self.name, self.text, labels=self.labels)
        for labels, (count, total) in self._shown.items():
            family.add_metric(labels, count_value=int(count), sum_value=total)
        yield family


class Histograms(Fed[list[float]]):
    """A histogram; `buckets` are the upper bounds, without infinity."""

    def __init__(self, name: str, text: str, *, buckets: tuple[float, ...], labels: Labels = ()) -> None:
        super().__init__(name, text, labels=labels)
        self._bounds = buckets
        self._words = words_of(buckets)

    def begin(self, *labels: str) -> None:
        """Show the series before anything happened."""
        self._values.setdefault(labels, empty_row(self._bounds))

    def add(self, value: float, *labels: str) -> None:
        """Take note of one."""
        row = self._values.get(labels)
        if row is None:
            row = self._values[labels] = empty_row(self._bounds)
        row[bisect_left(self._bounds, value)] += 1.0
        row[-1] += value

    def freeze(self) -> None:
        """See `Fed`."""
        self._shown = {labels: [*row] for labels, row in self._values.items()}

    def collect(self) -> Iterator[Metric]:
        """What was frozen last."""
        family = HistogramMetricFamily(self.name, self.text, labels=self.labels)
        for labels, row in self._shown.items():
            add_row(family, labels, row=row, words=self._words)
        yield family


def empty_row(bounds: Sequence[float]) -> list[float]:
    """A histogram's row: a count for each bound, one for what is above all of them, and the sum."""
    return [0.0] * (len(bounds) + 2)


def words_of(bounds: Sequence[float]) -> tuple[str, ...]:
    """Values of the label `le`."""
    return (*(str(bound) for bound in bounds), "+Inf")


def add_row(family: HistogramMetricFamily, labels: Labels, *, row: Sequence[float], words: Sequence[str]) -> None:
    """Add one row's series to a family."""
    below, buckets = 0.0, []
    for word, count in zip(words, row, strict=False):  # the row's last value is its sum
        below += count
        buckets.append((word, below))
    family.add_metric(labels, buckets=buckets, sum_value=row[-1])
