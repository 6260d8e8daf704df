"""What somebody may say about request logs, and the error that tells what is wrong with them.

In: nothing. Out: values. Not here: what is done with them (see `counting`).
"""

import msgspec

from lorapick.model.units import Bytes


class LogError(ValueError):
    """Logs cannot be counted: which file, which line where it is known, why, and what to do."""


class LogOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How logs are read. Columns within columns have dotted names: `usage.prompt_tokens`."""

    adapter: str | None = None
    """Column with the adapter's name; None: guessed by name, as the other columns are (see `names`)."""
    time: str | None = None
    """Column with the time of arrival."""
    prompt_tokens: str | None = None
    output_tokens: str | None = None
    days: float = 30.0
    """Only rows of so many days before the newest one count; above 0."""
    base: tuple[str, ...] = ()
    """Names in the adapter column that mean the base model."""
    sample: int = 20_000
    """Arrivals in the sample at most; 1 or more."""
    threads: int = 2
    memory: Bytes = 1_200_000_000
    """What DuckDB may take; the process takes some 200 MB more."""
    skip_damaged: bool = False
    """Whether to leave out damaged lines, and files of which not even lines can be told, instead of stopping."""

    def __post_init__(self) -> None:
        """Refuse what makes no sense.

        Raises:
            LogError: value, limit and remedy.
        """
        for name, value, least in (
            ("days", self.days, 1 / 24),
            ("sample", self.sample, 1),
            ("threads", self.threads, 1),
            ("memory", self.memory, LEAST_MEMORY),
        ):
            if not least <= value <= MOST[name]:
                raise LogError(f"{name}: {value:,} is not between {least:g} and {MOST[name]:g}")


LEAST_MEMORY: Bytes = 200_000_000
"""With less, DuckDB cannot read JSON with long lines."""
MOST = {"days": 36_500.0, "sample": 1_000_000.0, "threads": 256.0, "memory": 1e15}
