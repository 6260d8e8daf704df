"""What pickers of one fleet tell each other through the shared store: marks and claims, as bytes.

In: marks, or bytes that another picker wrote. Out: bytes, or marks; None when they are not of this format. Nothing that
is read is trusted: sizes are bounded, counts are not negative. No times are told: receivers count from when they heard.
Not here: keys and commands of the store (see `live.peers`).
"""

import msgspec

from lorapick.model.peers import Marks
from lorapick.model.units import PodName

VERSION = 1
LARGEST = 1 << 20
"""Bytes of a message; larger ones are neither written nor read."""
_SEPARATOR = "\n"


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """Marks, who has them, and in which order they were written."""

    v: int = VERSION
    peer: str
    """Of one process: another one after a restart."""
    number: int
    """Counts up; a message that does not is an old one."""
    marks: Marks


class Owner(msgspec.Struct, frozen=True):
    """Who has claimed a load, and where it is."""

    peer: str
    pod: PodName


_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(Message)


def write(message: Message) -> bytes | None:
    """Bytes of a message; None: there would be too many."""
    data = _ENCODER.encode(message)
    return data if len(data) <= LARGEST else None


def read(data: bytes) -> Message | None:
    """The message; None: it is none of this version."""
    if len(data) > LARGEST:
        return None
    try:
        message = _DECODER.decode(data)
    except (msgspec.DecodeError, RecursionError):
        return None
    good = message.v == VERSION and bool(message.peer) and all(count >= 0 for count in message.marks.in_flight.values())
    return message if good else None


def write_owner(owner: Owner) -> str:
    """The value of a claim. The peer comes first, and a line of its own, so that the store can compare it."""
    return f"{owner.peer}{_SEPARATOR}{owner.pod}"


def read_owner(value: str) -> Owner:
    """Who has it; somebody nameless when the value is no claim."""
    peer, _, pod = value.partition(_SEPARATOR)
    return Owner(peer, pod)
