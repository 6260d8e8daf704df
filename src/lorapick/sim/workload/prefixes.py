"""Ids of the blocks that prompts begin with.

In: adapters, conversations, hash ids of traces. Out: `Arrival.blocks`: ids of a prompt's full blocks, different for
every adapter, since KV computed under one is of no use to another. Not here: prompts' lengths.
"""

from collections.abc import Sequence

import numpy as np
from xxhash import xxh64_intdigest

from lorapick.model.units import AdapterName, BlockId, Tokens
from lorapick.sim.workload.chance import block_ids, mix64, place_words
from lorapick.sim.workload.checks import require


def text_seed(*parts: str) -> int:
    """The number that stands for a text, told by what it belongs to."""
    return xxh64_intdigest("\0".join(parts).encode())


def adapter_blocks(adapter: AdapterName | None, *, tokens: Tokens, block_tokens: Tokens) -> tuple[BlockId, ...]:
    """Blocks of the system prompt that all requests of an adapter share."""
    return tuple(block_ids(text_seed("adapter", adapter or ""), 0, tokens // block_tokens))


class TraceBlocks:
    """Blocks of a trace's hash ids, cut to the pods' size."""

    __slots__ = ("_block_tokens", "_seeds")

    def __init__(self, names: Sequence[AdapterName | None], *, block_tokens: Tokens) -> None:
        """`names` are all adapters there are."""
        self._block_tokens = block_tokens
        self._seeds = {name: np.uint64(text_seed("trace", name or "")) for name in names}

    def of(
        self, adapter: AdapterName | None, hash_ids: Sequence[int], *, hash_tokens: Tokens, prompt_tokens: Tokens
    ) -> tuple[BlockId, ...]:
        """Ids of the prompt's full blocks.

        Raises:
            ValueError: the pods' blocks do not divide the trace's.
        """
        if not hash_ids:
            return ()
        each, left = divmod(hash_tokens, self._block_tokens)
        require(not left, "block_tokens", self._block_tokens, f"a divisor of the trace's {hash_tokens}")
        full = prompt_tokens // self._block_tokens
        known = np.array(hash_ids[: -(-full // each)], dtype=np.int64).astype(np.uint64)
        texts = mix64(self._seeds[adapter] + mix64(known))
        return tuple(mix64(texts[:, None] + place_words(0, each)).ravel()[:full].tolist())
