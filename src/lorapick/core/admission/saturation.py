"""Whether the pods together are saturated, as llm-d's utilisation detector has it.

In: the columns, thresholds, which pods the gateway allows. Out: a level; from 1 on requests of priority below 0 are
shed. Not here: whether some pod has room (see `core.waiting`).
"""

from collections.abc import Sequence

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
    rows = [*columns.row_of.values()]
    if subset is not None:
        hosts = [host_of(entry) for entry in subset]
        rows = [row for row, pod in columns.live() if host_of(pod.address) in hosts]
    found = [_of(columns, row, thresholds=thresholds) if columns.fresh_until[row] >= now else FULL for row in rows]
    return sum(found) / len(found) if found else FULL


def _of(columns: PodColumns, row: int, *, thresholds: SaturationSettings) -> float:
    page = columns.scraped[row]
    return max(page.waiting / thresholds.queue, page.kv_usage / thresholds.kv)
