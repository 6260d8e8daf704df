"""vLLM's KV events: what a pod publishes about its prefix cache, one batch for each engine step.

In: the frames of one message. Out: `Batch`. And back, for emulated pods. Not here: sockets (see `live.kv_events`),
what the picker makes of it.

A message has three frames: the topic, the sequence number (8 bytes, big-endian, from 0 in each process), and msgpack
of `[time, [event, ...], data-parallel rank]`. Events are maps tagged by `type` (vLLM 0.32) or arrays that begin with
the tag (0.9 to 0.11, and SGLang). Hashes are whole numbers or byte strings. A block that was computed under an adapter
has its `lora_name`; versions that give only `lora_id`, a number of that process, do not say whose block it is.
"""

from collections.abc import Iterable, Sequence

import msgspec

from lorapick.model.units import AdapterName, BlockId

FRAMES = 3
MOST_EVENTS = 65_536
"""Events of one batch; a step stores at most one for each of its requests."""
_SEQUENCE_BYTES = 8
_MASK = (1 << 64) - 1
_Hash = int | bytes


class KvEventsError(ValueError):
    """The message is no batch of KV events; the text says where it differs."""


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """What one message says."""

    sequence: int
    adapters: tuple[AdapterName, ...] = ()
    """Adapters under which blocks were stored, the last one last. All of them ran in this step."""
    stored: int = 0
    """Blocks stored, whoever they belong to."""
    removed: int = 0
    """Blocks removed."""
    cleared: bool = False
    """The whole cache was dropped."""
    unnamed: int = 0
    """Events of an adapter that has only a number."""
    unknown: int = 0
    """Events of other kinds or shapes."""


class _Batch(msgspec.Struct, array_like=True):
    ts: float
    events: list[msgspec.Raw]
    data_parallel_rank: int | None = None


class _StoredMap(msgspec.Struct, tag="BlockStored"):
    block_hashes: list[_Hash]
    lora_id: int | None = None
    lora_name: str | None = None


class _RemovedMap(msgspec.Struct, tag="BlockRemoved"):
    block_hashes: list[_Hash]


class _ClearedMap(msgspec.Struct, tag="AllBlocksCleared"):
    pass


class _StoredArray(msgspec.Struct, array_like=True, tag="BlockStored"):
    block_hashes: list[_Hash]
    parent_block_hash: msgspec.Raw
    token_ids: msgspec.Raw
    block_size: int
    lora_id: int | None = None
    medium: str | None = None
    lora_name: str | None = None


class _RemovedArray(msgspec.Struct, array_like=True, tag="BlockRemoved"):
    block_hashes: list[_Hash]


class _ClearedArray(msgspec.Struct, array_like=True, tag="AllBlocksCleared"):
    pass


_batches = msgspec.msgpack.Decoder(_Batch)
_maps = msgspec.msgpack.Decoder(_StoredMap | _RemovedMap | _ClearedMap)
_arrays = msgspec.msgpack.Decoder(_StoredArray | _RemovedArray | _ClearedArray)
_MAP_BYTES = frozenset([*range(0x80, 0x90), 0xDE, 0xDF])
"""First bytes of a msgpack map."""


def decode(frames: Sequence[bytes]) -> Batch:
    """Read one message. An event that cannot be read is counted, and the others are taken.

    Raises:
        KvEventsError: another number of frames, or no batch.
    """
    if len(frames) != FRAMES or len(frames[1]) != _SEQUENCE_BYTES:
        raise KvEventsError(f"{len(frames)} frames; KV events come as topic, sequence number of 8 bytes, and batch")
    try:
        batch = _batches.decode(frames[2])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise KvEventsError(f"no batch of KV events: {error}") from error
    if len(batch.events) > MOST_EVENTS:
        raise KvEventsError(f"a batch of {len(batch.events)} events; the limit is {MOST_EVENTS}")
    return _summary(int.from_bytes(frames[1], "big"), batch.events)


def _summary(sequence: int, events: Iterable[msgspec.Raw]) -> Batch:
    adapters: dict[AdapterName, None] = {}
    stored = removed = unnamed = unknown = 0
    cleared = False
    for raw in events:
        event = _event(raw)
        if event is None:
            unknown += 1
        elif isinstance(event, _StoredMap | _StoredArray):
            stored += len(event.block_hashes)
            if event.lora_name:
                adapters.pop(event.lora_name, None)
                adapters[event.lora_name] = None
            elif event.lora_id is not None:
                unnamed += 1
        elif isinstance(event, _RemovedMap | _RemovedArray):
            removed += len(event.block_hashes)
        else:
            cleared = True
    return Batch(
        sequence=sequence,
        adapters=tuple(adapters),
        stored=stored,
        removed=removed,
        cleared=cleared,
        unnamed=unnamed,
        unknown=unknown,
    )


_Event = _StoredMap | _RemovedMap | _ClearedMap | _StoredArray | _RemovedArray | _ClearedArray


def _event(raw: msgspec.Raw) -> _Event | None:
    data = memoryview(raw)
    is_map = bool(data) and data[0] in _MAP_BYTES
    try:
        found: _Event = _maps.decode(data) if is_map else _arrays.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return found


class Stored(msgspec.Struct, tag="BlockStored", tag_field="type"):
    """A `BlockStored` as vLLM 0.32 writes it."""

    block_hashes: list[BlockId]
    parent_block_hash: BlockId | None
    token_ids: list[int]
    block_size: int
    lora_id: int | None
    medium: str
    lora_name: AdapterName | None
    extra_keys: list[tuple[str, ...] | None]
    group_idx: int = 0
    kv_cache_spec_kind: str = "full_attention"


def encode(sequence: int, events: Sequence[Stored], *, topic: str, wall: float) -> tuple[bytes, bytes, bytes]:
    """The frames of one message; `wall`: Unix time."""
    batch = msgspec.msgpack.encode([wall, events, 0])
    return topic.encode(), (sequence & _MASK).to_bytes(_SEQUENCE_BYTES, "big"), batch
