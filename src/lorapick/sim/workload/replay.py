"""A trace played again, with an adapter popularity law laid over it: no public trace names adapters.

In: rows of a trace one by one, in order of time. Out: arrivals, made as rows come, so that a trace longer than memory
replays; rows of one time are held together when they are to be spread. The adapter of a request is told by the seed
and its key. Not here: reading (`wire.traces`).
"""

from collections.abc import Iterable, Iterator
from itertools import islice, takewhile

import numpy as np

from lorapick.model.units import Seconds
from lorapick.sim.arrivals import Arrival
from lorapick.sim.workload.chance import FloatArray, chance, unit
from lorapick.sim.workload.mix import Mix
from lorapick.sim.workload.prefixes import TraceBlocks
from lorapick.sim.workload.spec import Replay, ReplayKey
from lorapick.wire.traces.rows import TraceError, TraceRow

_BATCH = 256


def replay(rows: Iterable[TraceRow], spec: Replay, *, seed: int, name: str = "row") -> Iterator[Arrival]:
    """Arrivals of a trace; their ids are `name` and the line.

    A row without prompt or answer tokens becomes a request with one.

    Raises:
        TraceError: a row is earlier than the one before it.
        ValueError: `block_tokens` does not divide the trace's blocks.
    """
    timed = _timed(rows, spec, seed)
    until = spec.until
    if until is not None:
        timed = takewhile(lambda each: each[0] < until, timed)
    return islice(_arrivals(timed, spec, seed, name=name), spec.count)


def _arrivals(timed: Iterator[tuple[Seconds, TraceRow]], spec: Replay, seed: int, *, name: str) -> Iterator[Arrival]:
    mix = Mix(spec.adapters, spec.popularity, spec.changes)
    blocks = TraceBlocks(mix.names, block_tokens=spec.block_tokens)
    while batch := list(islice(timed, _BATCH)):
        keys = [_key(row, spec) for _, row in batch]
        choices = [_units(seed, keys, f"change {number}") for number in range(len(mix.steps))]
        places = mix.pick(np.array([time for time, _ in batch]), _units(seed, keys, "adapter"), choices)
        for (time, row), place in zip(batch, places.tolist(), strict=True):
            adapter, prompt = mix.names[place], max(row.prompt_tokens, 1)
            yield Arrival(
                t=time,
                id=f"{name}-{row.line}",
                adapter=adapter,
                prompt_tokens=prompt,
                output_tokens=max(row.output_tokens, 1),
                blocks=blocks.of(adapter, row.hash_ids, hash_tokens=row.hash_tokens, prompt_tokens=prompt),
                session=row.session,
                priority=spec.priority,
            )


def _units(seed: int, keys: list[str], what: str) -> FloatArray:
    return np.array([unit(seed, f"{what}\0{key}") for key in keys])


def _key(row: TraceRow, spec: Replay) -> str:
    match spec.key:
        case ReplayKey.SESSION if row.session is not None:
            return f"session {row.session}"
        case ReplayKey.MODEL if row.model is not None:
            return f"model {row.model}"
        case ReplayKey.PREFIX if len(row.hash_ids) >= spec.prefix_blocks:
            return f"prefix {row.hash_ids[: spec.prefix_blocks]}"
        case _:
            return f"row {row.line}"


def _timed(rows: Iterable[TraceRow], spec: Replay, seed: int) -> Iterator[tuple[Seconds, TraceRow]]:
    """Rows with the time of their arrival."""
    spread = chance(seed, "spread")
    first: Seconds | None = None
    for group, ahead in _groups(rows, together=spec.spread > 0):
        first = group[0].t if first is None else first
        room = min(spec.spread, ahead)
        later = np.sort(spread.random(len(group))) * room if room else np.zeros(len(group))
        for row, more in zip(group, later.tolist(), strict=True):
            yield (row.t - first + more) / spec.speed, row


def _groups(rows: Iterable[TraceRow], *, together: bool) -> Iterator[tuple[list[TraceRow], Seconds]]:
    """Rows of one time, and how far the next time is; row by row when they need not be `together`."""
    group: list[TraceRow] = []
    for row in rows:
        if group and row.t < group[-1].t:
            raise TraceError(f"line {row.line}: t is {row.t:g} s, after a row of {group[-1].t:g} s; sort the trace")
        if group and (row.t > group[-1].t or not together):
            yield group, row.t - group[-1].t
            group = []
        group.append(row)
    if group:
        yield group, float("inf")
