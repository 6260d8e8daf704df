"""Whether the pods together are saturated, as llm-d's utilisation detector has it.

In: the columns, thresholds. Out: a level; from 1 on requests of priority below 0 are shed. Not here: whether some pod
has room (see `core.waiting`).
"""

from lorapick.core.columns import PodColumns
from lorapick.model.bands import SaturationSettings
from lorapick.model.units import Seconds

FULL = 1.0


def level(columns: PodColumns, thresholds: SaturationSettings, *, now: Seconds) -> float:
    """Mean over pods of max(queue / threshold, KV usage / threshold).

    A pod whose last report is too old counts as full, and so does a fleet without pods.
    """
    rows = [*columns.row_of.values()]
    found = [_of(columns, row, thresholds=thresholds) if columns.fresh_until[row] >= now else FULL for row in rows]
    return sum(found) / len(found) if found else FULL


def _of(columns: PodColumns, row: int, *, thresholds: SaturationSettings) -> float:
    page = columns.scraped[row]
    return max(page.waiting / thresholds.queue, page.kv_usage / thresholds.kv)
