"""Which pods probably hold a request's prompt prefix in their KV cache [R2.4].

In: block ids of requests as they are dispatched (chained, seeded by adapter, so equal prefixes under two
adapters never meet). Out: per pod, the share of a request's leading blocks believed cached there.
Approximate: it never sees the engine's real evictions, so each pod's memory is bounded by an LRU of blocks.
Of one request the last block is the oldest, as in engines: a prefix loses its tail before its head.
Not here: exact KV events' own accounting (they only add and remove blocks through the same calls).
"""

from collections import OrderedDict
from collections.abc import Iterable, Sequence

import xxhash

from lorapick.model.units import AdapterName, BlockId, Ratio


def salted(blocks: Sequence[BlockId], adapter: AdapterName) -> tuple[BlockId, ...]:
    """The blocks as this adapter's own: other ids for each adapter, the same ids each time."""
    salt = xxhash.xxh64_intdigest(adapter.encode("utf-8", "surrogatepass"))
    return tuple([block ^ salt for block in blocks])


class PrefixIndex:
    """Blocks to pods as bit masks (bit = row), and per pod an LRU of its blocks."""

    __slots__ = ("_bounds", "_holders", "_recency", "blocks_per_pod")

    def __init__(self, *, blocks_per_pod: int) -> None:
        self.blocks_per_pod = blocks_per_pod
        """Bound of pods that have not reported their own; takes effect at their next request."""
        self._holders: dict[BlockId, int] = {}
        self._recency: dict[int, OrderedDict[BlockId, None]] = {}
        self._bounds: dict[int, int] = {}

    def bound(self, row: int, blocks: int) -> None:
        """Set a pod's own bound (its KV blocks), once it reported one."""
        self._bounds[row] = blocks
        self._trim(row)

    def match(self, blocks: Sequence[BlockId]) -> dict[int, Ratio]:
        """Share of `blocks` that lead each pod's cache, by row; rows with none are absent."""
        holders = self._holders
        if not blocks or blocks[0] not in holders:
            return {}
        shares: dict[int, Ratio] = {}
        alive = holders[blocks[0]]
        total = len(blocks)
        for depth in range(1, total):
            still = alive & holders.get(blocks[depth], 0)
            if still != alive:
                _note(shares, alive & ~still, share=depth / total)
                alive = still
                if not alive:
                    return shares
        _note(shares, alive, share=1.0)
        return shares

    def record(self, row: int, blocks: Sequence[BlockId]) -> None:
        """The pod now computes these blocks of one prompt: it will hold them, oldest of its blocks first out."""
        recency = self._recency.get(row)
        if recency is None:
            recency = self._recency[row] = OrderedDict()
        holders = self._holders
        bit = 1 << row
        for block in reversed(blocks):
            if block in recency:
                recency.move_to_end(block)
            else:
                recency[block] = None
                holders[block] = holders.get(block, 0) | bit
        self._trim(row)

    def remove(self, row: int, blocks: Iterable[BlockId]) -> None:
        """The pod dropped these blocks."""
        recency = self._recency.get(row)
        if recency is None:
            return
        for block in blocks:
            if block in recency:
                del recency[block]
                self._drop(block, 1 << row)

    def clear(self, row: int) -> None:
        """The pod holds nothing: it restarted, or said so."""
        for block in self._recency.pop(row, ()):
            self._drop(block, 1 << row)

    def forget(self, row: int) -> None:
        """The pod is gone; the row's next pod has its own bound."""
        self.clear(row)
        self._bounds.pop(row, None)

    def _trim(self, row: int) -> None:
        recency = self._recency.get(row)
        if recency is None:
            return
        bound = self._bounds.get(row, self.blocks_per_pod)
        while len(recency) > bound:
            block, _ = recency.popitem(last=False)
            self._drop(block, 1 << row)

    def _drop(self, block: BlockId, bit: int) -> None:
        left = self._holders[block] & ~bit
        if left:
            self._holders[block] = left
        else:
            del self._holders[block]

    def check(self) -> None:
        """Holders and recency tell the same story, within the bounds that pods reported."""
        seen: dict[BlockId, int] = {}
        for row, blocks in self._recency.items():
            assert row not in self._bounds or len(blocks) <= self._bounds[row], f"row {row}: {len(blocks)} blocks"
            for block in blocks:
                seen[block] = seen.get(block, 0) | (1 << row)
        assert seen == self._holders, "prefix index: holders differ from the pods' own lists"


def _note(shares: dict[int, Ratio], rows: int, *, share: Ratio) -> None:
    while rows:
        low = rows & -rows
        shares[low.bit_length() - 1] = share
        rows ^= low
