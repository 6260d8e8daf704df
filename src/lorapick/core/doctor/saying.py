"""Figures in words: shares, times, sizes, lists of names.

In: numbers. Out: short text. Not here: sentences.
"""

from collections.abc import Mapping, Sequence

from lorapick.core.doctor.picture import Picture
from lorapick.model.units import Bytes, Ratio, Seconds

MOST_NAMES = 10
_DAY = 86_400


def share(value: Ratio) -> str:
    """A ratio in percent."""
    percent = value * 100
    return f"{percent:.2g} %" if abs(percent) < 10 else f"{percent:.0f} %"


def number(value: float) -> str:
    """Three figures."""
    return f"{value:.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"


def seconds(value: Seconds) -> str:
    """A time, in the unit that people would use."""
    if value < 1:
        return f"{value * 1000:.0f} ms"
    if value < 600:
        return f"{number(value)} s"
    return f"{value / 60:.0f} min" if value < 7200 else f"{value / 3600:.1f} h"


def size(value: Bytes | float) -> str:
    """Bytes, in decimal units."""
    return f"{value / 1e9:.3g} GB" if value >= 1e9 else f"{value / 1e6:.3g} MB"


def names(many: Sequence[str], most: int = MOST_NAMES) -> str:
    """The first of them, and how many more."""
    more = len(many) - most
    return ", ".join(many[:most]) + (f" and {more} more" if more > 0 else "")


def plural(count: int, word: str) -> str:
    """`1 pod`, `2 pods`."""
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


FACTS = {
    "waiting": "waiting at the picker", "most": "at most", "oldest_seconds": "the oldest waits for (s)",
    "longest_seconds": "given up after (s)", "waiting_at_pods": "waiting at pods", "harm": "harm by",
    "worst_swaps_per_second": "swaps per second on the worst", "shortest_residency_seconds": "shortest residency (s)",
    "latency_p95_seconds": "P95 (s)", "latency_p95_promised": "promised (s)", "ttft_p95_seconds": "first token P95 (s)",
    "ttft_p95_promised": "promised for it (s)",
}  # fmt: skip
"""Keys of alerts' facts that do not speak for themselves."""


def facts_in_words(facts: Mapping[str, str | float]) -> tuple[str, ...]:
    """What an alert knows, a line each."""
    return tuple(
        f"{FACTS.get(key, key.replace('_', ' '))}: {number(value) if isinstance(value, float | int) else value}"
        for key, value in facts.items()
    )


def clock(picture: Picture, t: Seconds) -> str:
    """Time of day in UTC of a time on the driver's clock; else how long ago it was."""
    if picture.now is None:
        return "some time ago"
    if picture.wall is None:
        return f"{seconds(max(0.0, picture.now - t))} ago"
    of_day = int(picture.wall - picture.now + t) % _DAY
    return f"{of_day // 3600:02}:{of_day // 60 % 60:02} UTC"
