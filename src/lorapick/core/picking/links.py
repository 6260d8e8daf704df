"""How long KV takes from one pod to another.

In: two pods, tokens, settings. Out: seconds. A handover has its link to itself: what others send at the same time does
not slow it down. Not here: which pods make a pair (see `core.picking.pairing`).
"""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from lorapick.model.disaggregation import DisaggregationSettings
from lorapick.model.pods import Pod
from lorapick.model.units import Seconds

Amount = TypeVar("Amount", float, NDArray[np.float64])


def transfer_seconds(one: Pod, other: Pod, *, tokens: float, settings: DisaggregationSettings) -> Seconds:
    """Seconds of one handover of the KV of `tokens` prompt tokens, those that are not there; to itself: none."""
    if one.name == other.name:
        return 0.0
    return settings.link_latency + tokens * settings.kv_bytes_per_token / link_speed(one, other, settings=settings)


def link_speed(one: Pod, other: Pod, *, settings: DisaggregationSettings) -> float:
    """Bytes per second between two pods. Those that name no node, or no zone, share none."""
    links = settings.links
    node = one.labels.get(settings.node_label)
    if node is not None and node == other.labels.get(settings.node_label):
        return links.same_node
    if one.zone is not None and one.zone == other.zone:
        return links.same_zone
    return links.elsewhere


def transfers(tokens: Amount, *, settings: DisaggregationSettings) -> tuple[Amount, Amount, Amount]:
    """The same between any two pods that share a node, those that share a zone, and others; `tokens` may be many."""
    size, links, latency = tokens * settings.kv_bytes_per_token, settings.links, settings.link_latency
    return latency + size / links.same_node, latency + size / links.same_zone, latency + size / links.elsewhere
