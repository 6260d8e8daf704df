"""The statements that count requests, in SQL that DuckDB and warehouses understand alike.

In: `queries.sql`. Out: its text and its parts. Not here: who runs them (`counting`, or a warehouse).
"""

import functools
import re
from importlib.resources import files
from typing import Literal, TypeAlias

Statement: TypeAlias = Literal["adapters", "hours", "sample"]
STATEMENTS: tuple[Statement, ...] = ("adapters", "hours", "sample")
COLUMNS: dict[Statement, tuple[str, ...]] = {
    "adapters": (
        "adapter",
        "request_count",
        "without_time",
        "first_seconds",
        "last_seconds",
        "peak_minute",
        "squares",
        "prompt_count",
        "prompt_sum",
        "output_count",
        "output_sum",
    ),
    "hours": ("hour_start", "request_count", "adapter_count"),
    "sample": ("time_seconds", "adapter", "prompt_tokens", "output_tokens", "from_seconds", "until_seconds"),
}
"""Of each statement's result, in order."""


@functools.cache
def _text() -> str:
    return (files("lorapick.plan.logs") / "queries.sql").read_text(encoding="utf-8")


def whole(*, days: float, sample: int) -> str:
    """The file, with its numbers put in."""
    return _text().replace(":days", f"{days:g}").replace(":sample", str(sample))


def statement(name: Statement, *, sample: int) -> str:
    """One of its statements, without the semicolon at its end."""
    parts = re.split(r"^-- statement: (\w+)\n", _text(), flags=re.MULTILINE)
    found = dict(zip(parts[1::2], parts[2::2], strict=True))
    return found[name].replace(":sample", str(sample)).strip().removesuffix(";")
