"""Replay: the events of a log go through the core again, and must lead to the same decisions.

In: a log of a live picker (or of a simulation). Out: how much was replayed, and the first difference.
Not here: files (lines come from `plan.datafiles`), the log's format (see `wire.eventlog`).

The core takes time, chance and settings as arguments, and the log has all three, so a difference means that this
version decides otherwise than the one that wrote the log, or that a decision depends on something it must not.
After the first one the two worlds are apart, so the replay ends there.
"""

from collections import Counter
from collections.abc import Callable

import msgspec
import xxhash

from lorapick.core.fleet import Fleet
from lorapick.model.effects import Effect, Raise
from lorapick.model.events import Event
from lorapick.model.units import Seconds
from lorapick.wire.eventlog import Decided, Failed, Full, LogReader, Result, Step, result_of

PROGRESS_EVERY = 500
"""Events between two calls of `progress`."""


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """An event on which log and replay disagree."""

    line: int
    """Where the log has the event."""
    event: Event
    logged: Result
    replayed: Result


class Replay(msgspec.Struct, frozen=True, kw_only=True):
    """What a replay found."""

    events: int
    seconds: Seconds
    """From the first event to the last."""
    answers: dict[str, int]
    """Answers of the replay by kind: `dispatch`, `hold`, `reject`."""
    alerts: dict[str, int]
    """Times that the replay raised each alert; the log has none, they follow from its events."""
    failures: int
    """Events that the core refused or broke on, in the log and in the replay alike."""
    digest: str
    """Hash of all effects in full, notes and explanations included: equal for every replay by the same version."""
    difference: Difference | None
    """The first one; None: none."""
    cut_at: int | None
    """The last line of the log when it is incomplete; None: it is whole."""
    full: Full | None
    """Where the log had reached its size limit; what the picker decided from there on is not compared."""


class _Core:
    """The core under replay, and what it did."""

    def __init__(self, log: LogReader) -> None:
        self._fleet = Fleet(log.header.settings, seed=log.header.seed, journal=False)
        self._digest = xxhash.xxh64()
        self._encode = msgspec.json.Encoder().encode
        self.answers: Counter[str] = Counter()
        self.alerts: Counter[str] = Counter()
        self.failures = 0

    @property
    def digest(self) -> str:
        return self._digest.hexdigest()

    def take(self, event: Event) -> Result:
        outcome: list[Effect] | Exception
        try:
            outcome = self._fleet.apply(event, event.t)
        except Exception as error:  # noqa: BLE001 - the live driver survived it too; the log says what it was
            outcome = error
        result = result_of(event, outcome)
        if not isinstance(outcome, Exception):
            self.alerts.update([effect.alert for effect in outcome if isinstance(effect, Raise)])
        if isinstance(result, Decided):
            self._digest.update(self._encode(outcome))
            self.answers.update([str(answer.__struct_config__.tag) for answer in result.answers])
        else:
            self._digest.update(result.error.encode())
            self.failures += 1
        return result


def replay(log: LogReader, *, progress: Callable[[], None] = lambda: None) -> Replay:
    """Replay a log up to its end or the first difference. `progress` is called now and then.

    Raises:
        LogError: a line cannot be read.
    """
    core = _Core(log)
    events, first, last = 0, None, 0.0
    difference = None
    for step in log:
        events += 1
        last = step.event.t
        first = last if first is None else first
        difference = _compare(step, core.take(step.event))
        if difference is not None:
            break
        if events % PROGRESS_EVERY == 0:
            progress()
    return Replay(
        events=events,
        seconds=last - first if first is not None else 0.0,
        answers=dict(core.answers),
        alerts={str(alert): count for alert, count in core.alerts.items()},
        failures=core.failures,
        digest=core.digest,
        difference=difference,
        cut_at=log.cut_at,
        full=log.full,
    )


def _compare(step: Step, replayed: Result) -> Difference | None:
    logged = step.result
    if logged is None or logged == replayed:
        return None
    if isinstance(logged, Failed) and isinstance(replayed, Failed) and logged.error == replayed.error:
        return None  # words of an exception may name what differs between processes
    return Difference(line=step.line, event=step.event, logged=logged, replayed=replayed)
