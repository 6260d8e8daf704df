"""Recordings of scenario files: `trace:` plays requests again, `clients:` asks as clients did, `tokens:` has lengths.

In: nodes, and how files are opened. Out: a `Traced` stream, flows, sizes. Not here: laws of arrivals (`traffic_text`).
Files are read when a scenario is: clients whole, of a trace the first row, so that what is none is told with its line.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from lorapick.model.units import AdapterName, Ratio, Seconds, Tokens
from lorapick.sim.scenario_readers import built, length, made
from lorapick.sim.workload.clients import client_flows
from lorapick.sim.workload.lengths import AnySizes, Sizes, SizeSplit, TableLength, pairs_of
from lorapick.sim.workload.spec import Flow, Replay, ReplayKey, Traced
from lorapick.sim.workload.stream import OpenLines
from lorapick.wire.config.document import At, Refused
from lorapick.wire.config.readers import Reader, choice, duration, integer, list_of, number, record, share, text
from lorapick.wire.traces.cdf import cdf_points
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


def sizes(recordings: Recordings) -> Reader[AnySizes]:
    """Reader of `tokens:`.

    `{prompt, output}`: by laws. `{trace: FILE}`: the pairs of a trace's rows. `{cdf: FILE, prompt_share: 0.8}`: a table
    of prompt and answer together, of which the prompt has that share.
    """

    def read(at: At) -> AnySizes:
        if at.find("trace") is not None:
            file = _PAIRS(at)
            with _told(at.nearest("trace")):
                return pairs_of(trace_rows(recordings.open_lines(file), name=file))
        if at.find("cdf") is not None:
            file, prompt_share = _TOTALS(at)
            with _told(at.nearest("cdf")):
                points = cdf_points(b"".join(recordings.open_lines(file)), name=file)
                return SizeSplit(TableLength(points), prompt_share)
        return _LAWS(at)

    return read


def _pairs(trace: str) -> str:
    return trace


def _totals(cdf: str, prompt_share: Ratio) -> tuple[str, Ratio]:
    return cdf, prompt_share


_PAIRS: Reader[str] = record(_pairs, {"trace": text}, required=("trace",))
_TOTALS: Reader[tuple[str, Ratio]] = record(
    _totals, {"cdf": text, "prompt_share": share}, required=("cdf", "prompt_share")
)
_LAWS: Reader[Sizes] = record(Sizes, {"prompt": length, "output": length}, required=("prompt", "output"))
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
    at: At, adapters: Sequence[AdapterName], *, recordings: Recordings, rate: float | None, sizes: AnySizes
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
