"""What plugins of profiles know of a request and of the pods besides columns: of one decision, to be explained later.

In: numbers that the fleet keeps anyway. Out: `Facts`, carried by the query. Not here: who collects them (`core.facts`).
"""

from collections.abc import Mapping
from typing import NamedTuple

from lorapick.model.units import Tokens

IN_FLIGHT, TOKENS_IN_FLIGHT, COLD = "in_flight", "tokens_in_flight", "cold"
"""Names of facts that cost something to collect; a plugin says in `needs` which it wants."""


class Facts(NamedTuple):
    """Rows are those of the view that the query was prepared on."""

    prompt_tokens: Tokens = 0
    """Counted, or a quarter of the prompt's bytes; 0 when nobody knows."""
    blocks: int = 0
    """Prefix blocks of the request."""
    in_flight: Mapping[int, int] = {}
    """Own requests that a pod has, by row."""
    tokens_in_flight: Mapping[int, float] = {}
    """Tokens of those: prompts, and one and a half times as much for the answers, as llm-d reckons."""
    cold: tuple[int, ...] = ()
    """Rows that were given a request with nothing cached anywhere, the one for which that is longest ago first."""
    headers: Mapping[str, str] = {}
    """Of the request: those that profiles read."""
    peer: int = -1
    """Row that decodes, when a pod is looked for that prefills for it; -1: none."""


NO_FACTS = Facts()
