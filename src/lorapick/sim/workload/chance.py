"""Random numbers: a stream of their own for every purpose.

In: a seed and the names of a purpose. Out: numpy's PCG64 for that purpose, or one number for one key. Same seed and
purpose, same numbers, whatever else is drawn and however many at a time. Not here: where the seed comes from (`cli`).
"""

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from xxhash import xxh3_128_intdigest, xxh64_intdigest

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]
WordArray: TypeAlias = npt.NDArray[np.uint64]

FIRST_BATCH = 64
LARGEST_BATCH = 4096
_ALL = 2**64
_GOLDEN, _FIRST, _SECOND = np.array([0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB], dtype=np.uint64)
_SHIFTS = np.array([30, 27, 31], dtype=np.uint64)


def chance(seed: int, *purpose: str) -> np.random.Generator:
    """The generator for a purpose."""
    return np.random.Generator(np.random.PCG64(xxh3_128_intdigest("\0".join((str(seed), *purpose)).encode())))


def unit(seed: int, key: str) -> float:
    """A number in [0, 1) that belongs to `key`, whenever and in whatever order it is asked for."""
    # 53 bits: all 64 would round up to 1 now and then.
    return (xxh64_intdigest(key.encode(), seed % _ALL) >> 11) / 2**53


def batch_sizes() -> Iterator[int]:
    """How many to draw at a time: few at first, so that many slow streams stay small."""
    size = FIRST_BATCH
    while True:
        yield size
        size = min(size * 2, LARGEST_BATCH)


def one_by_one(draw: Callable[[int], FloatArray | IntArray]) -> Iterator[float]:
    """Numbers of a stream one at a time, drawn many at a time."""
    for size in batch_sizes():
        yield from draw(size).tolist()


def mix64(words: WordArray) -> WordArray:
    """The finishing step of splitmix64: equal words stay equal, others become unlike each other."""
    words = (words ^ (words >> _SHIFTS[0])) * _FIRST
    words = (words ^ (words >> _SHIFTS[1])) * _SECOND
    mixed: WordArray = words ^ (words >> _SHIFTS[2])
    return mixed


def place_words(first: int, count: int) -> WordArray:
    """What places `first` to `first + count` of a text add to the number that stands for it (splitmix64)."""
    words: WordArray = np.arange(first + 1, first + count + 1, dtype=np.uint64) * _GOLDEN
    return words


def block_ids(seed: int, first: int, count: int) -> list[int]:
    """Ids of blocks `first` to `first + count` of the one endless text that `seed` stands for.

    An id says as much as a chained hash: two are equal only when the text up to them is.
    """
    ids: list[int] = mix64(np.uint64(seed % _ALL) + place_words(first, count)).tolist()
    return ids
