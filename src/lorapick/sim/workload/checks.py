"""Refusing values that cannot be, in words a person can act on.

In: a value, what it is, what it must be. Out: nothing, or `ValueError`. `msgspec.convert` adds the value's path.
"""

import math

from lorapick.model.units import Ratio, Seconds, Tokens

MOST_TOKENS = 10**7


def require(holds: bool, what: str, value: object, needed: str) -> None:
    """Refuse a value.

    Raises:
        ValueError: `holds` is false.
    """
    if not holds:
        raise ValueError(f"{what} is {value}; {needed}")


def require_rate(rate: float, what: str = "rate") -> None:
    """A finite rate, 0 included."""
    require(math.isfinite(rate) and rate >= 0, what, rate, "requests per second, 0 or more")


def require_cv(cv: float) -> None:
    """A coefficient of variation of gaps."""
    require(math.isfinite(cv) and 0 <= cv <= 1000, "cv", cv, "a coefficient of variation from 0 (even gaps) to 1000")


def require_length(tokens: Tokens, what: str) -> None:
    """Tokens of a prompt or an answer."""
    require(1 <= tokens <= MOST_TOKENS, what, tokens, f"a whole number of tokens, 1 to {MOST_TOKENS:,}")


def require_span(seconds: Seconds, what: str) -> None:
    """A length of time that is not nothing."""
    require(math.isfinite(seconds) and seconds > 0, what, seconds, "seconds, more than 0")


def require_time(seconds: Seconds, what: str) -> None:
    """A point in time or a length of time."""
    require(math.isfinite(seconds) and seconds >= 0, what, seconds, "seconds, 0 or more")


def require_count(count: int | None) -> None:
    """Most requests there may be; None: no bound."""
    require(count is None or count >= 0, "count", count, "requests, 0 or more, or none for no bound")


def require_share(share: Ratio, what: str) -> None:
    """A share of a whole."""
    require(0 <= share <= 1, what, share, "a share from 0 to 1")
