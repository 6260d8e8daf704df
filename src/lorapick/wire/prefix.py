"""From prompt text to chained block ids, the key of KV affinity.

In: the model's name, and the prompt's bytes in order, in pieces of any size.
Out: at most 256 block ids. Block i is the xxh64 of its 64 bytes, seeded with the id before it; block 0 is seeded
with the xxh64 of the model's name. So an equal prefix gives equal leading ids, and KV computed under one adapter
never matches another. Only whole blocks count: the rest of a prompt shorter than a block names nothing.
Not here: tokens (nobody has a tokenizer), the engine's own block hashes, and who has which block (`core.picking`).
"""

from collections.abc import Iterable

from xxhash import xxh64_intdigest

from lorapick.model.units import BlockId

BLOCK_BYTES = 64
"""About 16 tokens of English, the usual KV block of engines."""
MAX_BLOCKS = 256
"""16 KiB of prompt: what is shared between requests (system prompts, documents) begins at the start."""


def prefix_blocks(model: str, pieces: Iterable[bytes]) -> tuple[BlockId, ...]:
    """Ids of the whole blocks at the start of a prompt, first block first; `model` is the model or adapter asked for.

    Takes from `pieces` only what the bound has room for: a prompt of megabytes is neither joined nor read to its end.
    """
    room = BLOCK_BYTES * MAX_BLOCKS
    head: list[bytes] = []
    for piece in pieces:
        head.append(piece[:room])
        room -= len(piece)
        if room <= 0:
            break
    text = b"".join(head)
    block = xxh64_intdigest(model.encode("utf-8", "surrogatepass"))
    blocks: list[BlockId] = []
    for start in range(0, len(text) - BLOCK_BYTES + 1, BLOCK_BYTES):
        block = xxh64_intdigest(text[start : start + BLOCK_BYTES], block)
        blocks.append(block)
    return tuple(blocks)
