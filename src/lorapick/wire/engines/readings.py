"""What all engine dialects need to make figures out of samples.

In: samples of one page. Out: counts, shares and labels, where a figure that cannot be true is unknown and noted.
Not here: names of any engine's families.
"""

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from lorapick.model.units import Ratio, Seconds
from lorapick.wire.exposition import ExpositionError, Sample, select

PROCESS_START = "process_start_time_seconds"
"""Of every Prometheus client library; absent where several processes share a page."""
EMULATOR_GPU = "lorapick_pod_gpu_utilization"
"""Ratio, in an emulated pod's own page; no real engine has such a family."""
EMULATOR_PRESSURE = "lorapick_pod_memory_pressure"
"""Ratio: memory pressure as the emulated pod has it in `drain` mode."""
_EMULATOR = b"lorapick_pod_"
_EMULATOR_TAIL = 4 * 1024
"""Emulated pods print their own families last, within this many bytes; real pages are not searched in full for them."""
MOST_NAMES = 4096
"""Adapters that one page may name as in flight or as loaded; the picker answers nobody while it takes them over."""
_MOST_LABELLED = 4096
"""Series of one family whose labels are read; each costs some 5 µs."""
NO_FILTER: Mapping[str, str] = MappingProxyType({})
_ROUNDING = 0.05
"""Shares may exceed 1 by this much (blocks counted while they move) and are then 1."""


class Readings:
    """Chosen families of one page. Every method returns None for what the page does not say."""

    def __init__(self, page: bytes, families: Sequence[str]) -> None:
        """Select the families.

        Raises:
            ExpositionError: see `exposition.select`.
        """
        self._page = page
        self._found = select(page, families)
        self._doubts: list[str] = []

    @property
    def doubts(self) -> tuple[str, ...]:
        """Figures that were not believed."""
        return tuple(self._doubts)

    def also(self, families: Sequence[str]) -> None:
        """Select more families, which few pages have."""
        self._found.update(select(self._page, families))

    def declared(self, family: str) -> bool:
        """Whether the page knows the family, with or without samples."""
        return family in self._found

    def samples(self, *families: str) -> list[Sample]:
        """Samples of the first of these families that has any (an engine's newer name first)."""
        return next((found for family in families if (found := self._found.get(family))), [])

    def labelled(self, *families: str) -> list[Sample]:
        """`samples`, when their labels are wanted too.

        Raises:
            ExpositionError: there are so many that reading their labels would take the picker's time.
        """
        found = self.samples(*families)
        if len(found) > _MOST_LABELLED:
            raise ExpositionError(f"{families[0]} has {len(found)} series; the limit is {_MOST_LABELLED}")
        return found

    def need(self, families: Sequence[str], *, engine: str) -> None:
        """Refuse a page that has none of the families without which it is no page of this engine.

        Raises:
            ExpositionError: none is there; the message says what is.
        """
        if not any(self._found.get(family) for family in families):
            start = self._page[:60].decode(errors="backslashreplace")
            raise ExpositionError(
                f"no {' or '.join(families)} in a page of {len(self._page)} bytes that begins with {start!r}: "
                f"not the metrics of {engine}, or an engine that is not up yet"
            )

    def count(self, *families: str, where: Mapping[str, str] = NO_FILTER) -> int | None:
        """Sum over series (one per data-parallel engine) of the first family that has any.

        `where` keeps series whose labels have these values or lack the label.
        """
        values = self._values(families, where, most=math.inf, rule="a count is finite and at least 0")
        return round(math.fsum(values)) if values else None

    def largest(self, *families: str, where: Mapping[str, str] = NO_FILTER) -> int | None:
        """Like `count`, for sizes that every engine of the pod has alike."""
        values = self._values(families, where, most=math.inf, rule="a size is finite and at least 0")
        return round(max(values)) if values else None

    def share(self, *families: str, where: Mapping[str, str] = NO_FILTER, whole: float = 1.0) -> Ratio | None:
        """Mean over series, as part of `whole` (100 for percentages): engines of one pod have equal parts."""
        most = whole * (1 + _ROUNDING)
        values = self._values(families, where, most=most, rule=f"a share is between 0 and {whole:g}")
        return min(1.0, math.fsum(values) / len(values) / whole) if values else None

    def _values(self, families: Sequence[str], where: Mapping[str, str], *, most: float, rule: str) -> list[float]:
        """Values of the first family that has samples; none when one of them cannot be true."""
        samples = self.labelled(*families) if where else self.samples(*families)
        values = [sample.value for sample in samples if not where or _matches(sample.labels(), where)]
        for value in values:
            if not (0 <= value <= most and value < math.inf):
                self._doubts.append(f"{families[0]} is {value:g}; {rule}")
                return []
        return values

    def label_number(self, family: str, label: str, *, total: bool) -> int | None:
        """A whole number that stands in a label; over series the sum or the largest. `None` and the like: unknown."""
        texts = [sample.labels().get(label, "") for sample in self.labelled(family)]
        numbers = [int(text) for text in texts if text.isascii() and text.isdigit() and len(text) < 19]
        if not numbers:
            return None
        return sum(numbers) if total else max(numbers)

    def process_start(self) -> Seconds | None:
        """Unix time at which the pod's process began."""
        values = [sample.value for sample in self.samples(PROCESS_START) if 0 < sample.value < math.inf]
        return max(values, default=None)

    def emulated(self) -> tuple[Ratio | None, Ratio | None]:
        """GPU utilisation and memory pressure that a pod states in its own page; no real engine does today."""
        if self._page.find(_EMULATOR, -_EMULATOR_TAIL) < 0:
            return None, None
        self.also([EMULATOR_GPU, EMULATOR_PRESSURE])
        return self.share(EMULATOR_GPU), self.share(EMULATOR_PRESSURE)


def _matches(labels: Mapping[str, str], where: Mapping[str, str]) -> bool:
    return all(labels.get(name, value) == value for name, value in where.items())
