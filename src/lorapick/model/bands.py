"""Requests that wait: how many of a priority, and who of a flow comes first.

In: nothing. Out: values of the section `admission`. Not here: who waits (see `core.admission.queues`).
"""

from enum import StrEnum

import msgspec


class Ordering(StrEnum):
    """Who comes first of one flow (fairness id and adapter), and of those whose patience has ended."""

    FCFS = "fcfs"
    """Who waits longest."""
    DEADLINE = "deadline"
    """Whose wait ends first: its own deadline, or `max_wait`."""
    SLO = "slo"
    """Who is to have its first token first (`x-llm-d-slo-ttft-ms`); who says nothing comes last."""


class Band(msgspec.Struct, frozen=True, kw_only=True):
    """How many requests of one priority may wait."""

    priority: int | None = None
    """None: each of those that no other band names."""
    max_queued: int
