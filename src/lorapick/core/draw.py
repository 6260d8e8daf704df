"""Chance as a function of the run's seed and the request, so that the order of arrivals cannot change it."""

import xxhash

from lorapick.model.units import Ratio, RequestId


def draw_for(seed: int, request_id: RequestId, *, purpose: str = "") -> Ratio:
    """A number in [0, 1), the same for the same seed, request and purpose."""
    text = f"{purpose}{request_id}" if purpose else request_id
    digest = xxhash.xxh64_intdigest(text.encode(), seed & 0xFFFF_FFFF_FFFF_FFFF)
    # 53 bits: dividing all 64 by 2^64 could round up to 1.0.
    return (digest >> 11) * 2.0**-53
