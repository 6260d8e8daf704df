"""From prompt text to chained block ids, the key of KV affinity.

In: the model's name, then the prompt's bytes in order, in pieces of any size.
Out: at most 256 block ids. Block i is the xxh64 of its 64 bytes, seeded with the id before it; block 0 is seeded
with the xxh64 of the model's name. So an equal prefix gives equal leading ids, and KV computed under one adapter
never matches another. Only whole blocks count: the rest of a prompt shorter than a block names nothing.
Not here: tokens (nobody has a tokenizer), the engine's own block hashes, and who has which block (`core.picking`).
"""

from xxhash import xxh64_intdigest

from lorapick.model.units import BlockId

BLOCK_BYTES = 64
"""About 16 tokens of English, the usual KV block of engines."""
MAX_BLOCKS = 256
"""16 KiB of prompt: what is shared between requests (system prompts, documents) begins at the start."""


class PrefixChain:
    """Grows as text arrives; holds less than one block of text, whatever the prompt's size."""

    __slots__ = ("_blocks", "_carry", "_previous")

    def __init__(self, model: str) -> None:
        """Begin a chain for one model or adapter."""
        self._previous = xxh64_intdigest(model.encode("utf-8", "surrogatepass"))
        self._carry = b""
        self._blocks: list[BlockId] = []

    @property
    def blocks(self) -> tuple[BlockId, ...]:
        """Ids of the whole blocks so far, first block first."""
        return tuple(self._blocks)

    @property
    def full(self) -> bool:
        """Whether more text cannot add a block."""
        return len(self._blocks) >= MAX_BLOCKS

    def update(self, piece: bytes) -> None:
        """Add the next bytes of the prompt."""
        blocks = self._blocks
        room = (MAX_BLOCKS - len(blocks)) * BLOCK_BYTES - len(self._carry)
        if room <= 0:
            return
        # The slice bounds the copy: a prompt of megabytes adds its first 16 KiB only.
        text = self._carry + piece[:room]
        whole = len(text) - len(text) % BLOCK_BYTES
        previous = self._previous
        for start in range(0, whole, BLOCK_BYTES):
            previous = xxh64_intdigest(text[start : start + BLOCK_BYTES], previous)
            blocks.append(previous)
        self._previous = previous
        self._carry = text[whole:]
