"""Requests that wait: how many of a priority, who of a flow comes first, and when nobody below 0 is taken.

In: nothing. Out: values of the section `admission`. Not here: who waits (see `core.admission.queues`).
"""

from enum import StrEnum

import msgspec

from lorapick.model.units import Ratio


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


class SaturationSettings(msgspec.Struct, frozen=True, kw_only=True):
    """When the pods together count as saturated: the mean over pods of max(queue / `queue`, KV usage / `kv`) is 1.

    llm-d's utilisation detector and its defaults.
    """

    queue: float = 5.0
    """Requests in a pod's queue."""
    kv: Ratio = 0.8
