"""Units, as aliases: a signature that says `Seconds` needs no comment."""

from typing import TypeAlias

Seconds: TypeAlias = float
"""A point on the driver's monotonic clock or a span on it; which one is said by the name (`now`, `until`, `age`)."""
Bytes: TypeAlias = int
Tokens: TypeAlias = int
Ratio: TypeAlias = float
"""In [0, 1] unless said otherwise. Percentages exist only at the edges."""
PodName: TypeAlias = str
"""Unique within a fleet; the identity of a pod over restarts at the same address."""
AdapterName: TypeAlias = str
"""The engine's name of an adapter (`name` or `name@revision`). Has no comma: vLLM joins names with one."""
RequestId: TypeAlias = str
BlockId: TypeAlias = int
"""xxh64 of a prompt prefix, chained from the block before it and seeded with the adapter's name."""
