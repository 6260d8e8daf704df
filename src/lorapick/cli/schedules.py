"""`lorapick schedules FILE`: when each schedule of a configuration fires next, on local clocks and in UTC.

In: a configuration file, a time to begin at. Out: firings, with those around each clock change of the year to come,
and what is active at that time. Exit code 2 for bad input. Not here: when a schedule fires (see
`core.placement.calendar`), and who acts on it.
"""

import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from lorapick.cli.loading import load
from lorapick.core.placement.calendar import ClockChange, Firings, clock_changes, next_firings
from lorapick.core.placement.cron import Cron, parse_cron
from lorapick.core.placement.schedules import active
from lorapick.model.adapters import Schedule
from lorapick.model.units import Seconds
from lorapick.wire.config import ConfigError

_YEAR: Seconds = 366 * 86_400.0
_SKIPPED = "skipped: fires at the jump"
_TWICE = "comes twice: the first"


class Firing(msgspec.Struct, frozen=True, kw_only=True):
    """One preload."""

    local: str
    """ISO 8601 with the offset of that day."""
    utc: str
    until: str
    """Its end on local clocks."""
    note: str | None


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """Local clocks put forward or back."""

    utc: str
    before: str
    """What they show last, with its offset; exclusive."""
    after: str


class Upcoming(msgspec.Struct, frozen=True, kw_only=True):
    """What one schedule does next, as `--json` has it."""

    adapters: tuple[str, ...]
    cron: str
    timezone: str
    replicas: int
    selector: dict[str, str]
    for_seconds: Seconds
    active_until: str | None
    """On local clocks; None: it is not active at the time asked for."""
    firings: tuple[Firing, ...]
    clock_changes: tuple[Change, ...]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("schedules")(schedules)


def schedules(
    file: Annotated[Path, typer.Argument(help="The configuration, lorapick.yaml.")],
    at: Annotated[
        str | None, typer.Option(help="Time to begin at: ISO 8601, UTC unless it has an offset. Default: now.")
    ] = None,
    count: Annotated[int, typer.Option(min=1, max=1000, help="Firings of each schedule.")] = 3,
    as_json: Annotated[bool, typer.Option("--json", help="Say it as JSON.")] = False,
) -> None:
    """Say when each schedule fires next, on local clocks and in UTC, and around each clock change of the next year."""
    try:
        wall = _unix(at)
        found = [_upcoming(each, wall, count=count) for each in load(file).settings.schedules]
    except ConfigError as error:
        print(error, file=sys.stderr)
        raise typer.Exit(2) from None
    except ValueError as error:
        print(f"lorapick schedules: {error}", file=sys.stderr)
        raise typer.Exit(2) from None
    if as_json:
        print(json.dumps(msgspec.to_builtins(found), indent=2))
    elif not found:
        print(f"{file} has no schedules")
    else:
        print("\n\n".join("\n".join(_lines(each)) for each in found))


def _unix(text: str | None) -> Seconds:
    if text is None:
        return datetime.now(UTC).timestamp()
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f'--at "{text}" is no time; write for example 2026-03-28T12:00 or 2026-03-28T12:00+01:00'
        ) from None
    if not 1970 < time.year < 2900:
        raise ValueError(f'--at "{text}" is out of range; write a year from 1971 to 2899')
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


# -- what comes


def _upcoming(schedule: Schedule, wall: Seconds, *, count: int) -> Upcoming:
    cron = parse_cron(schedule.cron)
    firings = Firings(cron, schedule.timezone)
    changes = clock_changes(schedule.timezone, after=wall, until=wall + _YEAR)
    moments = dict.fromkeys(next_firings(firings, wall, count=count))
    for change in changes:
        moments.update(dict.fromkeys(_around(firings, change, wall)))
    span = active(firings, lasts=schedule.lasts, wall=wall)
    return Upcoming(
        adapters=schedule.adapters,
        cron=schedule.cron,
        timezone=schedule.timezone,
        replicas=schedule.replicas,
        selector=schedule.selector,
        for_seconds=schedule.lasts,
        active_until=None if span is None else firings.shown(span.end).isoformat(),
        firings=tuple(_firing(firings, cron, moment, lasts=schedule.lasts) for moment in sorted(moments)),
        clock_changes=tuple(_change(each) for each in changes),
    )


def _around(firings: Firings, change: ClockChange, wall: Seconds) -> Iterator[Seconds]:
    """The last firing before a clock change that is later than `wall`, and two from the change on."""
    before = firings.last(change.at - 1, within=change.at - wall)
    if before is not None and before > wall:
        yield before
    yield from next_firings(firings, change.at - 1, count=2)


def _firing(firings: Firings, cron: Cron, moment: Seconds, *, lasts: Seconds) -> Firing:
    local = firings.shown(moment)
    note = None
    if local.hour not in cron.hours or local.minute not in cron.minutes:
        note = _SKIPPED
    elif local.replace(fold=1).utcoffset() != local.utcoffset():
        note = _TWICE
    until = firings.shown(moment + lasts)
    return Firing(local=local.isoformat(), utc=_utc(moment), until=until.isoformat(), note=note)


def _change(change: ClockChange) -> Change:
    at = datetime.fromtimestamp(change.at, UTC)
    before, after = (f"{at + offset:%Y-%m-%d %H:%M} {_offset(offset)}" for offset in (change.before, change.after))
    return Change(utc=_utc(change.at), before=before, after=after)


def _utc(moment: Seconds) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat().replace("+00:00", "Z")


def _offset(offset: timedelta) -> str:
    minutes = round(offset.total_seconds() / 60)
    return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"


# -- what is shown


def _lines(found: Upcoming) -> Iterator[str]:
    pods = f"{found.replicas} pod{'' if found.replicas == 1 else 's'}"
    where = "".join(f" {key}={value}" for key, value in found.selector.items())
    yield f"{', '.join(found.adapters)}: {found.cron} in {found.timezone}, on {pods}{where and ' with' + where}"
    if found.active_until is not None:
        yield f"  active until {_clock(found.active_until)}"
    rows: list[tuple[str, str]] = [
        *((each.utc, _row(each)) for each in found.firings),
        *((each.utc, f"  -- clocks: {each.before} becomes {each.after}") for each in found.clock_changes),
    ]
    yield "  fires on local clocks        in UTC             until"
    # Of what comes at the same moment the change goes first: clocks show what they show since they changed.
    yield from (line for _, line in sorted(rows, key=lambda row: (row[0], not row[1].startswith("  --"))))
    if not found.clock_changes:
        yield "  -- no clock change within a year"


def _row(firing: Firing) -> str:
    utc = datetime.fromisoformat(firing.utc)
    note = f"  {firing.note}" if firing.note is not None else ""
    return f"  {_clock(firing.local)}  {utc:%Y-%m-%d %H:%M}   {_clock(firing.until)}{note}"


def _clock(iso: str) -> str:
    local = datetime.fromisoformat(iso)
    return f"{local:%a %Y-%m-%d %H:%M} {_offset(local.utcoffset() or timedelta(0))}"
