"""Mooncake traces (FAST '25): JSON lines of timestamp (ms), input_length, output_length, hash_ids of 512-token blocks.

In: lines of bytes. Out: one `TraceRow` each. Source: github.com/kvcache-ai/Mooncake. Equal ids share a prefix;
timestamps come in steps of about 3 s.
"""

from collections.abc import Iterable, Iterator
from typing import Annotated

import msgspec
from msgspec import Meta

from lorapick.wire.traces.rows import LATEST, MOST_TOKENS, TraceRow, fault

BLOCK_TOKENS = 512
_Count = Annotated[int, Meta(ge=0, le=MOST_TOKENS)]


class _Line(msgspec.Struct):
    timestamp: Annotated[float, Meta(ge=0, le=LATEST * 1e3)]
    input_length: _Count
    output_length: _Count
    hash_ids: tuple[Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)], ...] = ()


def mooncake_rows(lines: Iterable[bytes], *, name: str = "trace") -> Iterator[TraceRow]:
    """Requests of a Mooncake trace, as they are read; empty lines are passed over.

    Raises:
        TraceError: a line cannot be read.
    """
    decoder = msgspec.json.Decoder(_Line)
    for number, content in enumerate(lines, start=1):
        if not content.strip():
            continue
        try:
            line = decoder.decode(content)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise fault(
                name, number, f"{error}; an object with timestamp, input_length, output_length is needed"
            ) from None
        yield TraceRow(
            line=number,
            t=line.timestamp / 1e3,
            prompt_tokens=line.input_length,
            output_tokens=line.output_length,
            hash_ids=line.hash_ids,
            hash_tokens=BLOCK_TOKENS,
        )
