"""What a workload yields: one request that comes at a time, for an adapter, with sizes.

In and out: values. Not here: how they are made (see `sim.workload`), what becomes of them (see `sim.world`).
"""

import msgspec

from lorapick.model.units import AdapterName, BlockId, RequestId, Seconds, Tokens


class Arrival(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One request of a workload. Arrivals of a stream come in order of time."""

    t: Seconds
    id: RequestId
    adapter: AdapterName | None
    """None: the base model."""
    prompt_tokens: Tokens
    output_tokens: Tokens
    blocks: tuple[BlockId, ...] = ()
    """Prefix blocks as the pod's KV cache has them (ids seeded by the adapter); () when prompts share nothing."""
    session: str | None = None
    priority: int = 0
    tenant: str | None = None
