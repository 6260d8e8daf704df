"""How many tokens of each adapter's prompts are prefilled elsewhere than they are decoded.

In: prompts as they come. Out: how long one is, and how much of it its prefix blocks stand for; the share of them that
is long enough, and the mean length of those, by adapter; of all adapters together for one that is not known. Prefixes
that are cached are not taken off: which pod has them is not known here. Not here: whether one request is split (see
`core.picking.pairing`).
"""

from typing import NamedTuple

from lorapick.model.requests import Request
from lorapick.model.units import AdapterName, Ratio, Tokens

BYTES_PER_TOKEN = 4
"""Of English text; where nobody counted tokens."""
BLOCK_BYTES = 64
"""Of a prompt's prefix block (see `wire.prefix`)."""
BLOCK_TOKENS = BLOCK_BYTES // BYTES_PER_TOKEN
"""Of a block of a prompt whose bytes nobody knows: what the emulated pods' KV blocks hold."""
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


def hashed_share(request: Request) -> Ratio:
    """Share of the prompt that its prefix blocks stand for: they end after 16 KiB, and with the last whole block.

    What is beyond them nobody can believe cached. 1 where there are none, or neither bytes nor tokens are known.
    """
    blocks = len(request.blocks)
    if not blocks:
        return 1.0
    if request.prompt_bytes:
        return min(1.0, blocks * BLOCK_BYTES / request.prompt_bytes)
    tokens = tokens_of(request)
    return min(1.0, blocks * BLOCK_TOKENS / tokens) if tokens else 1.0


def uncached(tokens: float, *, cached: Ratio, hashed: Ratio) -> float:
    """Of so many prompt tokens those that a pod must compute: `cached` of the blocks are there, `hashed` is in blocks.

    A share of the blocks is none of the prompt: whatever is beyond them is computed.
    """
    return tokens * (1.0 - hashed * cached)


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
