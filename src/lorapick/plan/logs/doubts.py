"""Times in logs that are likely to be wrong.

In: counted logs. Out: a sentence, or a refusal. Not here: what pins make of logs (see `plan.pins.notes`).
"""

from collections.abc import Iterator
from datetime import UTC, datetime

from lorapick.plan.logs.options import LogError
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


def refuse_timeless(summary: LogSummary) -> None:
    """Refuse logs of which most rows have no time that can be read: what is left is no picture of them.

    Raises:
        LogError: with the counts, and the option that names another column.
    """
    timed = summary.requests + summary.without_adapter + summary.too_old
    if summary.without_time > timed:
        raise LogError(
            f"{summary.without_time:,} of {summary.without_time + timed:,} rows have no time that can be read in the "
            f"column {summary.columns.get('time', '?')!r}; name another one (--time-column), or remove such rows"
        )


def _moment(seconds: float) -> str:
    """As ISO 8601, in UTC; of years that calendars do not have, the seconds."""
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
    except (OverflowError, OSError, ValueError):
        return f"{seconds:,.0f} s since 1970"
