"""Who could prefill a request elsewhere than where it is decoded, and what that takes.

In: nothing. Out: plain values. Not here: how they are found (see `core.splitting`), the choice (see `pairing`).
"""

from collections.abc import Mapping
from typing import NamedTuple

from lorapick.model.disaggregation import DisaggregationSettings
from lorapick.model.pods import Pod
from lorapick.model.units import Seconds, Tokens


class Leg(NamedTuple):
    """One pod that could prefill."""

    row: int
    pod: Pod
    seconds: Seconds
    """Until the KV of the prompt is there: its queue, a load of the adapter, the prompt itself."""
    price: Seconds
    """What a load does to others there; 0 without one."""


class Legs(NamedTuple):
    """The pods that could prefill one request, the best of each place, and what goes into the choice."""

    settings: DisaggregationSettings
    tokens: Tokens
    """Of the prompt; an estimate where nobody counted them."""
    per_token: Seconds
    """Prefill of one token that is not cached."""
    best: Leg
    by_zone: Mapping[str, Leg]
    by_node: Mapping[str, Leg]
