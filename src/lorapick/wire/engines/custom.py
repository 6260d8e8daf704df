"""Figures of metrics that a configuration names, as attributes of pods.

In: a metrics page, what is wanted. Out: values by attribute. Not here: metrics that lorapick knows itself (the dialect
of each engine), what is done with the values (`core.picking.epp`).
"""

import math
from collections.abc import Sequence

from lorapick.model.profiles import CustomMetric
from lorapick.wire.exposition import Sample, select


def read(page: bytes, wanted: Sequence[CustomMetric]) -> tuple[tuple[str, float], ...]:
    """Value of each that the page has: of the first series with these values of labels.

    Raises:
        ExpositionError: a line of such a metric is malformed.
    """
    if not wanted:
        return ()
    found = select(page, list(dict.fromkeys(each.family for each in wanted)))
    values = [(each.attribute, _first(found.get(each.family, ()), each)) for each in wanted]
    return tuple([(attribute, value) for attribute, value in values if value is not None])


def _first(samples: Sequence[Sample], wanted: CustomMetric) -> float | None:
    for sample in samples:
        if not wanted.labels or wanted.labels.items() <= dict(sample.labels()).items():
            return sample.value if math.isfinite(sample.value) else None
    return None
