"""The event log, both ways: a header, then every event of a run and what came of it, one JSON object a line.

In: settings, events and their effects, or lines of bytes. Out: lines, or a header and steps.
Not here: files (`live.eventlog` writes them, `plan.datafiles` opens them), applying events (see `sim.replay`).

The header carries the settings and the seed, so a log needs nothing beside it. Events are tagged by `type`. An event
that was decided upon is followed by a line of type `Decided`; one that the core failed on, by one of type `Failed`.
A log that has reached its size limit ends with a line of type `Full`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import msgspec
import xxhash

from lorapick import __version__
from lorapick.model.effects import Dispatch, Effect, Hold, Reject
from lorapick.model.events import AnyEvent, Event
from lorapick.model.reasons import Reason
from lorapick.model.settings import Settings
from lorapick.model.units import PodName, RequestId, Seconds
from lorapick.wire.config import settings_hash

FORMAT = 2
T = TypeVar("T")


class LogError(ValueError):
    """Lines that are no event log: the file's name, the line, what is wrong with it."""


class LogHeader(msgspec.Struct, frozen=True, kw_only=True):
    """First line of an event log."""

    version: int = FORMAT
    epoch: Seconds
    """Unix time of the driver's t = 0."""
    configuration: str
    """Hash of the settings."""
    seed: int
    written_by: str
    """Version of the package; another one may decide otherwise."""
    settings: Settings


class Answer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind"):
    """What one request got, in short."""

    request_id: RequestId


class Dispatched(Answer, frozen=True, kw_only=True, omit_defaults=True, tag="dispatch"):
    """A `Dispatch`."""

    pod: PodName
    fallbacks: tuple[PodName, ...] = ()
    model: str | None = None
    tier: str | None = None
    """Tier of the adapter on the pod as believed, as a word; None: the base model."""
    score: float | None = None
    prefill: PodName | None = None


class Held(Answer, frozen=True, kw_only=True, omit_defaults=True, tag="hold"):
    """A `Hold`."""

    reason: Reason
    until: Seconds


class Rejected(Answer, frozen=True, kw_only=True, omit_defaults=True, tag="reject"):
    """A `Reject`."""

    reason: Reason
    status: int


AnyAnswer = Dispatched | Held | Rejected


class Decided(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """What the event before it made the core decide, in order."""

    id: int
    """Of the event."""
    answers: tuple[AnyAnswer, ...]


class Failed(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The core refused the event before it, or broke on it."""

    id: int
    """Of the event."""
    error: str
    """Class of the exception."""
    detail: str = ""


class Full(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The log has reached its limit and ends here; the picker went on."""

    id: int
    """Of the first event that is not in it."""
    t: Seconds
    """When that was."""


Result = Decided | Failed
"""What came of an event; one that decided nothing has `Decided` with no answers, and no line of it in the log."""


# -- writing


def header_of(settings: Settings, *, seed: int, epoch: Seconds) -> LogHeader:
    """The header of a new log."""
    return LogHeader(
        epoch=epoch, configuration=settings_hash(settings), seed=seed, written_by=__version__, settings=settings
    )


class LineEncoder:
    """Makes lines of events and their results."""

    __slots__ = ("_buffer", "_encode_into")

    def __init__(self) -> None:
        self._encode_into = msgspec.json.Encoder().encode_into
        self._buffer = bytearray()

    def header(self, header: LogHeader) -> bytes:
        """The first line."""
        return msgspec.json.encode(header) + b"\n"

    def step(self, event: Event, outcome: Sequence[Effect] | Exception) -> bytearray:
        """Lines of one event and of what came of it: its effects, or what the core raised. Valid until the next call.

        Raises:
            ValueError: the event cannot be written (a text that is no Unicode).
        """
        buffer, encode_into = self._buffer, self._encode_into
        encode_into(event, buffer)
        buffer += b"\n"
        if outcome:
            result = result_of(event, outcome)
            if isinstance(result, Failed) or result.answers:
                encode_into(result, buffer, -1)
                buffer += b"\n"
        return buffer

    def full(self, event: Event) -> bytes:
        """The last line of a log that has no room for this event."""
        return msgspec.json.encode(Full(id=event.id, t=event.t)) + b"\n"


def result_of(event: Event, outcome: Sequence[Effect] | Exception) -> Result:
    """What came of an event, as the log has it."""
    if isinstance(outcome, Exception):
        return Failed(id=event.id, error=type(outcome).__name__, detail=str(outcome))
    answers = []
    for effect in outcome:
        shorten = _SHORTEN.get(type(effect))
        if shorten is not None:
            answers.append(shorten(effect))
    return Decided(id=event.id, answers=tuple(answers))


def _dispatched(effect: Dispatch) -> Dispatched:
    pick, fallbacks = effect.pick, effect.fallbacks
    return Dispatched(
        request_id=effect.request_id,
        pod=effect.target.pod,
        fallbacks=tuple([target.pod for target in fallbacks]),
        model=effect.model,
        tier=pick.tier.word if pick.tier is not None else None,
        score=pick.score,
        prefill=effect.prefill.pod if effect.prefill is not None else None,
    )


def _held(effect: Hold) -> Held:
    return Held(request_id=effect.request_id, reason=effect.reason, until=effect.until)


def _rejected(effect: Reject) -> Rejected:
    return Rejected(request_id=effect.request_id, reason=effect.reason, status=effect.status)


_SHORTEN: dict[type[Effect], Callable[[Any], AnyAnswer]] = {Dispatch: _dispatched, Hold: _held, Reject: _rejected}


# -- reading


class Step(msgspec.Struct, frozen=True):
    """One event with what came of it."""

    line: int
    """Where the event was read, 1 for the first line of the file."""
    event: Event
    result: Result | None
    """None: the log ends with the event, so whatever came of it may be lost."""


class _Version(msgspec.Struct):
    version: int


class _Raw(msgspec.Struct):
    settings: msgspec.Raw


class LogReader:
    """Steps of a log as they are read. Iterate once; `cut_at` and `full` are right when that has ended."""

    def __init__(self, lines: Iterable[bytes], *, name: str = "log") -> None:
        """Read the header; `name` is what errors call the log.

        Raises:
            LogError: it has none, one of another format, or one whose settings are not those that it names.
        """
        self.name = name
        self.cut_at: int | None = None
        """The last line when it is incomplete (the picker was killed while it wrote it); it counts for nothing."""
        self.full: Full | None = None
        """Where the log reached its limit; None: it did not."""
        self.lines = 1
        """Complete lines read so far."""
        self.size = 0
        """Bytes read so far."""
        self._lines = iter(lines)
        self.header = self._header(next(self._lines, b""))

    def _header(self, line: bytes) -> LogHeader:
        self.size += len(line)
        if not line:
            raise LogError(f"{self.name} is empty; an event log begins with a header")
        if not line.endswith(b"\n"):
            raise self._fault(1, "the header is cut off; without its settings nothing can be replayed")
        if self._begins_later(line):
            raise self._fault(1, "the log begins in its middle; a replay needs it from its header on")
        version = self._decoded(line, _Version).version
        if version != FORMAT:
            raise self._fault(1, f"an event log of format {version}; this version reads format {FORMAT}")
        # Logs of versions that knew one mode only have a word where it stands now.
        header = self._decoded(line.replace(b'"mode":"enforce"', b'"mode":{}'), LogHeader)
        # Of what is written and not of the settings read from it: a later version may know more keys.
        written = self._decoded(self._decoded(line, _Raw).settings, dict[str, Any])
        found = xxhash.xxh64_hexdigest(msgspec.json.encode(written, order="sorted"))
        if found != header.configuration:
            raise self._fault(
                1,
                f"the settings have the hash {found}, the events were recorded under {header.configuration}; a replay "
                "needs the picker's own settings, as it wrote them",
            )
        return header

    @staticmethod
    def _begins_later(line: bytes) -> bool:
        """Whether a line is of a log, and not its first."""
        try:
            msgspec.json.decode(line, type=AnyEvent | Decided | Failed | Full)
        except (msgspec.DecodeError, RecursionError):
            return False
        return True

    def _decoded(self, line: bytes | msgspec.Raw, kind: type[T]) -> T:
        try:
            return msgspec.json.decode(line, type=kind)
        except (msgspec.DecodeError, RecursionError) as error:
            raise self._fault(1, f"no header of an event log: {error}") from None

    def _fault(self, line: int, what: str) -> LogError:
        return LogError(f"{self.name}:{line}: {what}")

    def __iter__(self) -> Iterator[Step]:
        """Every event in order, with what came of it.

        Raises:
            LogError: a line is neither, or not where it belongs.
        """
        last: Event | None = None
        waiting: int | None = None
        """Line of `last` while it may still be followed by what came of it."""
        for number, entry in self._entries():
            if isinstance(entry, Event):
                if last is not None:
                    if waiting is not None:
                        yield Step(waiting, last, Decided(id=last.id, answers=()))
                    self._in_order(number, last, after=entry)
                last, waiting = entry, number
            elif last is not None and waiting is not None and entry.id == last.id:
                yield Step(waiting, last, entry)
                waiting = None
            else:
                raise self._fault(number, f"what came of event {entry.id} does not stand behind that event")
        if last is not None and waiting is not None:
            # Before the limit was reached, all that came of an event was written.
            yield Step(waiting, last, None if self.full is None else Decided(id=last.id, answers=()))

    def _in_order(self, line: int, before: Event, *, after: Event) -> None:
        if after.id <= before.id:
            raise self._fault(line, f"event {after.id} stands behind event {before.id}; ids only rise")
        if after.t < before.t:
            raise self._fault(line, f"t goes back from {before.t} to {after.t}; a picker's clock never does")

    def _entries(self) -> Iterator[tuple[int, Event | Result]]:
        decode = msgspec.json.Decoder(AnyEvent | Decided | Failed | Full).decode
        for number, line in enumerate(self._lines, start=2):
            self.size += len(line)
            try:
                entry = decode(line)
            except (msgspec.DecodeError, RecursionError) as error:
                if not line.endswith(b"\n"):
                    self.cut_at = number
                    return
                raise self._fault(number, f"no event: {error}") from None
            if self.full is not None:
                raise self._fault(number, "stands behind the line that ends the log")
            self.lines = number
            if isinstance(entry, Full):
                self.full = entry
            else:
                yield number, entry
