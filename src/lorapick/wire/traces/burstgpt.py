"""BurstGPT: Timestamp (s),[Session ID,][Elapsed time,]Model,Request tokens,Response tokens,Total tokens,Log Type.

In: lines of bytes. Out: one `TraceRow` each. Source: github.com/HPMLL/BurstGPT (arXiv 2401.17644). A failed request
has 0 response tokens; files named without_fails have none of them.
"""

from collections.abc import Iterable, Iterator

from lorapick.wire.traces.rows import TraceRow, fault, number, table, whole

COLUMNS = ("Timestamp", "Model", "Request tokens", "Response tokens")


def burstgpt_rows(lines: Iterable[bytes], *, name: str = "trace") -> Iterator[TraceRow]:
    """Requests of a BurstGPT trace, as they are read.

    Raises:
        TraceError: a line cannot be read.
    """
    for line, record in table(lines, name=name, columns=COLUMNS):
        try:
            row = TraceRow(
                line=line,
                t=number(record["Timestamp"], "Timestamp"),
                prompt_tokens=whole(record["Request tokens"], "Request tokens"),
                output_tokens=whole(record["Response tokens"], "Response tokens"),
                session=record.get("Session ID") or None,
                model=record["Model"] or None,
            )
        except ValueError as error:
            raise fault(name, line, str(error)) from None
        yield row
