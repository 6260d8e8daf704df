"""Times in logs that are likely to be wrong.

In: counted logs. Out: a sentence. Not here: what pins make of logs (see `plan.pins.notes`).
"""

from collections.abc import Iterator
from datetime import UTC, datetime

from lorapick.plan.logs.values import LogSummary


def doubts(summary: LogSummary) -> Iterator[str]:
    """That most rows are too old: days are counted back from the newest, so one that is wrong leaves out all others."""
    rows = summary.requests + summary.without_adapter + summary.too_old
    if 2 * summary.too_old > rows:
        yield (
            f"{summary.too_old:,} of {rows:,} rows with a time are older than the days asked for, counted back from "
            f"the newest, {_moment(summary.end)}. If that one is wrong, so is all that follows: correct or remove rows "
            "with such times, or read more days (--days)."
        )


def _moment(seconds: float) -> str:
    """As ISO 8601, in UTC; of years that calendars do not have, the seconds."""
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
    except (OverflowError, OSError, ValueError):
        return f"{seconds:,.0f} s since 1970"
