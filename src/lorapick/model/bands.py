"""Requests that wait: how many of a priority, who of a flow comes first, what the fleet's load keeps from whom.

In: nothing. Out: values of the section `admission`. Not here: who waits (see `core.admission.queues`).
"""

from enum import StrEnum

import msgspec

from lorapick.model.units import Bytes, Ratio, Tokens


class Ordering(StrEnum):
    """Who comes first of one flow (fairness id and adapter), and of those whose patience has ended."""

    FCFS = "fcfs"
    """Who waits longest."""
    DEADLINE = "deadline"
    """Whose wait ends first: its own deadline, or `max_wait`."""
    SLO = "slo"
    """Who is to have its first token first (`x-llm-d-slo-ttft-ms`); who says nothing comes last."""


class Band(msgspec.Struct, frozen=True, kw_only=True):
    """How many requests of one priority may wait, and how large."""

    priority: int | None = None
    """None: each of those that no other band names."""
    max_queued: int | None = None
    """None: as many as may wait at all."""
    max_bytes: Bytes | None = None
    """Of their bodies together; None: as many as may wait at all."""


class SaturationSettings(msgspec.Struct, frozen=True, kw_only=True):
    """When the pods together count as saturated: the mean over pods of max(queue / `queue`, KV usage / `kv`) is 1.

    Or by what this picker has sent, where `requests` or `tokens` say so: as much as all pods together may have.
    llm-d's utilisation detector and its defaults, and its concurrency detector.
    """

    queue: float = 5.0
    """Requests in a pod's queue."""
    kv: Ratio = 0.8
    requests: int | None = None
    """In flight at a pod; None: they do not count."""
    tokens: Tokens | None = None
    """Of requests in flight at a pod; None: they do not count. With `requests` the larger ratio counts."""


class ChanceSettings(SaturationSettings, frozen=True, kw_only=True):
    """How likely a priority below 0 is refused: min(1, `factor` x saturation ^ `power`), by thresholds of its own.

    llm-d's probabilistic admitter and its defaults.
    """

    power: float = 5.0
    factor: float = 300.0


class Spread(StrEnum):
    """How ceilings differ by priority."""

    SAME = "same"
    """`most` for all."""
    RANK = "rank"
    """From `most` for the highest down to `least` for the lowest, in equal steps."""
    VALUE = "value"
    """The same, as far apart as the priorities themselves."""
    LISTED = "listed"
    """As `listed` says; 0 for a priority that is not there."""
    REFLECTED = "reflected"
    """The busier the pods, the lower, and above it some of the requests are sent all the same; none for the highest."""


class Ceiling(msgspec.Struct, frozen=True, kw_only=True):
    """Of one priority."""

    priority: int
    most: Ratio


class CeilingSettings(msgspec.Struct, frozen=True, kw_only=True):
    """From which saturation on requests wait although some pod has room; 1: only as long as none has, but for `full`.

    llm-d's usage limit policies.
    """

    spread: Spread = Spread.RANK
    least: Ratio = 0.0
    most: Ratio = 1.0
    listed: tuple[Ceiling, ...] = ()
    full: bool = False
    """Whether a ceiling of 1 counts too: everybody waits while the pods together are full."""
