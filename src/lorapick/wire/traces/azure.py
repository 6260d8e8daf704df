"""Azure LLM inference traces (2023, 2024): TIMESTAMP,ContextTokens,GeneratedTokens.

In: lines of bytes. Out: one `TraceRow` each; t counts from the first row. Source: github.com/Azure/AzurePublicDataset.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from lorapick.wire.traces.rows import TraceRow, fault, shown, table, whole

COLUMNS = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")


def azure_rows(lines: Iterable[bytes], *, name: str = "trace") -> Iterator[TraceRow]:
    """Requests of an Azure trace, as they are read.

    Raises:
        TraceError: a line cannot be read, or is earlier than the first.
    """
    first: datetime | None = None
    for line, record in table(lines, name=name, columns=COLUMNS):
        try:
            when = _moment(record["TIMESTAMP"])
            first = first or when
            row = TraceRow(
                line=line,
                t=_since(first, when),
                prompt_tokens=whole(record["ContextTokens"], "ContextTokens"),
                output_tokens=whole(record["GeneratedTokens"], "GeneratedTokens"),
            )
        except ValueError as error:
            raise fault(name, line, str(error)) from None
        yield row


def _moment(text: str) -> datetime:
    """The 2023 files have no offset, the 2024 files have one; digits beyond microseconds are cut."""
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f'TIMESTAMP is {shown(text)}; a date and time such as "2023-11-16 18:15:46.6805900" is needed'
        ) from None
    return when if when.tzinfo is not None else when.replace(tzinfo=UTC)


def _since(first: datetime, when: datetime) -> float:
    try:
        passed = (when - first).total_seconds()
    except OverflowError:
        passed = -1.0
    if passed < 0:
        raise ValueError(f"TIMESTAMP is {when}, before the first row's {first}; the rows must be in order of time")
    return passed
