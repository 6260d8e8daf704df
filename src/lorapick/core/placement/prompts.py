"""How many tokens of each adapter's prompts are prefilled elsewhere than they are decoded.

In: prompts as they come. Out: the share of them that is long enough, and the mean length of those, by adapter; of all
adapters together for one that is not known. Prefixes that are cached are not taken off: which pod has them is not known
here. Not here: whether one request is split (see `core.picking.pairing`).
"""

from typing import NamedTuple

from lorapick.model.requests import Request
from lorapick.model.units import AdapterName, Ratio, Tokens

BYTES_PER_TOKEN = 4
"""Of English text; where nobody counted tokens."""
STEP = 0.05
"""Weight of the newest prompt; the last twenty count most."""
MOST = 10_000
"""Adapters that are remembered; beyond, whoever was asked for longest ago is forgotten."""


def tokens_of(request: Request) -> Tokens | None:
    """Prompt tokens, counted or estimated from bytes; None: not even those are known."""
    if request.prompt_tokens is not None:
        return request.prompt_tokens
    size = request.prompt_bytes if request.prompt_bytes is not None else request.body_bytes
    return None if size is None else -(-size // BYTES_PER_TOKEN)


class Mean(NamedTuple):
    """Of the prompts of late."""

    share: Ratio
    """That are prefilled elsewhere."""
    tokens: float
    """Of one of those."""


class Prompts:
    """What the prompts of late were like."""

    __slots__ = ("_all", "_known", "least")

    def __init__(self) -> None:
        self.least: Tokens = 0
        """Shorter ones are prefilled where they are decoded."""
        self._all: Mean | None = None
        self._known: dict[AdapterName, Mean] = {}

    def came(self, name: AdapterName, tokens: Tokens | None) -> None:
        """A prompt; of unknown length it says nothing."""
        if tokens is None:
            return
        self._all = self._with(self._all, tokens)
        self._known[name] = self._with(self._known.pop(name, None), tokens)
        if len(self._known) > MOST:
            del self._known[next(iter(self._known))]

    def _with(self, mean: Mean | None, tokens: Tokens) -> Mean:
        long = tokens >= self.least
        if mean is None:
            return Mean(float(long), float(tokens) if long else 0.0)
        share = mean.share + STEP * (long - mean.share)
        length = mean.tokens if not long else tokens if not mean.tokens else mean.tokens + STEP * (tokens - mean.tokens)
        return Mean(share, length)

    def mean(self, name: AdapterName) -> Mean | None:
        """Of one adapter, or of all when nothing is known of it; None: nothing is known at all."""
        return self._known.get(name, self._all)
