"""Recorded arrivals of scenario files: `trace:` plays requests again, `clients:` asks as measured clients did.

In: nodes, and how files are opened. Out: a `Traced` stream, or flows. Not here: arrivals from laws (`traffic_text`).
Files are read when a scenario is: clients whole, of a trace the first row, so that what is none is told with its line.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from lorapick.model.units import AdapterName, Seconds, Tokens
from lorapick.sim.scenario_readers import built, made
from lorapick.sim.workload.clients import client_flows
from lorapick.sim.workload.lengths import Sizes
from lorapick.sim.workload.spec import Flow, Replay, ReplayKey, Traced
from lorapick.sim.workload.stream import OpenLines
from lorapick.wire.config.document import At, Refused
from lorapick.wire.config.readers import Reader, choice, duration, integer, list_of, number, record, text
from lorapick.wire.traces.reading import trace_rows
from lorapick.wire.traces.servegen import all_windows

_YEAR: Seconds = 366 * 86_400.0


class Recordings(msgspec.Struct, frozen=True, kw_only=True):
    """What reading recorded arrivals needs."""

    open_lines: OpenLines
    block_tokens: Tokens
    """Of the pods' prefix blocks."""


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """Clients whose demand was measured, and when."""

    file: str
    span: tuple[Seconds, ...]
    """Begin and end in the recording; t = 0 of the run is its begin."""

    def __post_init__(self) -> None:
        if len(self.span) != 2 or self.span[0] >= self.span[1]:
            raise ValueError("span must be [begin, end] in the recording's time, for example [48h, 72h]")


measured: Reader[Measured] = built(
    Measured, {"file": text, "span": list_of(duration(most=_YEAR))}, required=("file", "span")
)


def traced(at: At, *, recordings: Recordings, name: str, values: dict[str, Any]) -> Traced:
    """The stream that `trace:` at a node means; `values` are the entry's `adapters`, `popularity` and `priority`."""
    found: dict[str, Any] = record(
        dict,
        {
            "file": text,
            "key": choice(*(key.value for key in ReplayKey)),
            "prefix_blocks": integer(least=1, most=1_000_000),
            "speed": number(least=1e-3, most=1e3, what="trace seconds per second"),
            "spread": duration(),
        },
        required=("file",),
    )(at)
    file, key = found.pop("file"), ReplayKey(found.pop("key", ReplayKey.ROW))
    law = made(at, lambda: Replay(key=key, block_tokens=recordings.block_tokens, **found, **values))
    with _told(at.nearest("file")):
        next(trace_rows(recordings.open_lines(file), name=file), None)
    return Traced(name=name, file=file, replay=law)


def demanded(
    at: At, adapters: Sequence[AdapterName], *, recordings: Recordings, rate: float | None, sizes: Sizes
) -> tuple[Flow, ...]:
    """A flow for each adapter: the first is asked for as the busiest client asked, and so on.

    Further clients are left out; when there are fewer, the last adapters have no flow.
    """
    who = measured(at)
    begin, end = who.span
    with _told(at.nearest("file")):
        windows = all_windows(recordings.open_lines(who.file), name=who.file)
        flows = client_flows(windows, sizes=sizes, rate=rate, span=(begin, end), most=len(adapters))
    return tuple(
        msgspec.structs.replace(flow, name=name, adapters=(name,)) for flow, name in zip(flows, adapters, strict=False)
    )


@contextmanager
def _told(at: At) -> Iterator[None]:
    """What is wrong with a file is said of the place that names it."""
    try:
        yield
    except Refused:
        raise
    except (OSError, ValueError) as error:
        at.refuse(str(error))
