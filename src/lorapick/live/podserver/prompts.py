"""Stand-ins for a tokenizer and a language model: counts, prefix blocks and words that depend on nothing but input.

In: what a client sent as its prompt, the adapter that answers.
Out: token counts, KV block ids chained from the prompt's start and seeded with the adapter, words.
Not here: HTTP bodies (see `dialects`), time.

Four bytes of UTF-8 text count as one token, as they roughly do in English. The words are hashes of adapter, prompt
and position, so a test can tell from an answer which adapter really ran, on any pod, at any speed.
"""

from collections.abc import Sequence

import msgspec
from xxhash import xxh64_intdigest

from lorapick.model.units import AdapterName, BlockId, Tokens

BYTES_PER_TOKEN = 4
_BYTES_PER_ID = 8
_SYLLABLES = (
    *("ba", "co", "de", "fi", "gu", "ha", "jo", "ke", "li", "mu", "na", "po", "re", "si", "tu", "va"),
    *("bra", "cle", "dri", "flo", "gru", "ple", "sta", "tro", "wen", "xil", "yor", "zam", "qui", "nor", "mel", "kas"),
)


class Prompt(msgspec.Struct, frozen=True):
    """A prompt as bytes whose every `width` bytes are one token."""

    data: bytes
    width: int

    @classmethod
    def of_text(cls, text: str) -> "Prompt":
        """A prompt sent as text."""
        return cls(text.encode("utf-8", "surrogatepass"), BYTES_PER_TOKEN)

    @classmethod
    def of_ids(cls, ids: Sequence[int]) -> "Prompt":
        """A prompt sent as token ids."""
        return cls(b"".join((i % 2**64).to_bytes(_BYTES_PER_ID, "little") for i in ids), _BYTES_PER_ID)

    @property
    def tokens(self) -> Tokens:
        """Length in tokens, a last partial one included."""
        return -(-len(self.data) // self.width)

    def blocks(self, adapter: AdapterName | None, *, block_size: Tokens) -> tuple[BlockId, ...]:
        """Ids of the full KV blocks; another adapter gives other ids, since KV is useless across adapters."""
        step = block_size * self.width
        link = xxh64_intdigest((adapter or "").encode())
        chain = []
        for start in range(0, len(self.data) - step + 1, step):
            link = xxh64_intdigest(self.data[start : start + step], seed=link)
            chain.append(link)
        return tuple(chain)


class Voice:
    """What one adapter says to one prompt."""

    def __init__(self, adapter: AdapterName | None, prompt: Prompt) -> None:
        self._seed = xxh64_intdigest(prompt.data, seed=xxh64_intdigest((adapter or "").encode()))

    def word(self, position: int) -> str:
        """The token at `position`, with the space before it."""
        drawn = xxh64_intdigest(position.to_bytes(8, "little"), seed=self._seed)
        count = 1 + (drawn >> 60) % 3
        return " " + "".join(_SYLLABLES[(drawn >> (5 * place)) % len(_SYLLABLES)] for place in range(count))

    def text(self, start: int, stop: int) -> str:
        """Tokens `start` to `stop`, without `stop`."""
        return "".join(self.word(position) for position in range(start, stop))

    def natural_length(self) -> Tokens:
        """Where the answer would end by itself when the client sets no limit: 32 to 127 tokens."""
        return 32 + self._seed % 96

    def numbers(self, count: int) -> list[float]:
        """`count` numbers in [-1, 1): an embedding."""
        raw = (xxh64_intdigest(place.to_bytes(8, "big"), seed=self._seed) for place in range(count))
        return [value / 2**63 - 1.0 for value in raw]
