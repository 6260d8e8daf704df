"""Whether the pods together are saturated, as llm-d's utilisation detector has it.

In: the columns, thresholds, which pods the gateway allows. Out: a level; from 1 on requests of priority below 0 are
shed. Not here: whether some pod has room (see `core.waiting`).
"""

from collections.abc import Mapping, Sequence

from lorapick.core.columns import PodColumns
from lorapick.core.picking.query import host_of
from lorapick.model.bands import SaturationSettings
from lorapick.model.units import Seconds

FULL = 1.0


def level(
    columns: PodColumns, thresholds: SaturationSettings, *, now: Seconds, subset: Sequence[str] | None = None
) -> float:
    """Mean over pods of max(queue / threshold, KV usage / threshold), of those in `subset` (by IP) where there is one.

    A pod whose last report is too old counts as full, and so do no pods at all.
    """
    rows = _rows(columns, subset)
    found = [_of(columns, row, thresholds=thresholds) if columns.fresh_until[row] >= now else FULL for row in rows]
    return sum(found) / len(found) if found else FULL


def share(
    columns: PodColumns, counts: Mapping[int, float], *, most: float, subset: Sequence[str] | None = None
) -> float:
    """What pods have in flight together, by row, as part of what they may have, each `most`; no pods are full."""
    rows = _rows(columns, subset)
    return sum(counts.get(row, 0.0) for row in rows) / (most * len(rows)) if rows else FULL


def _rows(columns: PodColumns, subset: Sequence[str] | None) -> list[int]:
    if subset is None:
        return [*columns.row_of.values()]
    hosts = [host_of(entry) for entry in subset]
    return [row for row, pod in columns.live() if host_of(pod.address) in hosts]


def _of(columns: PodColumns, row: int, *, thresholds: SaturationSettings) -> float:
    page = columns.scraped[row]
    return max(page.waiting / thresholds.queue, page.kv_usage / thresholds.kv)
