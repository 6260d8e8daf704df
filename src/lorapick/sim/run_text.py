"""The `run:` of a scenario file: which stretch of which day is simulated.

In: nodes. Out: a `RunPlan`. Not here: stretches that are reported by themselves (see `sim.expect_text`).
"""

from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from lorapick.model.units import Seconds
from lorapick.sim.scenario import RunPlan
from lorapick.sim.scenario_readers import clock, raw
from lorapick.wire.config.document import At, Refused
from lorapick.wire.config.readers import duration, fields, integer, timezone

DAY: Seconds = 86_400.0
POINTS = 480
"""Most points of a time series."""
_STEPS = (1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 14_400.0, 86_400.0)


def run_plan(at: At) -> RunPlan:
    """Reader of the section."""
    values = fields(
        at,
        {
            "date": _day,
            "timezone": timezone,
            "from": clock,
            "to": clock,
            "for": duration(least=1.0, most=30 * DAY),
            "seed": integer(least=0),
            "warm_up": duration(),
            "window": duration(least=0.1),
        },
    )
    given = at.entries()
    if ("to" in given) == ("for" in given):
        at.refuse("must have either to (a time of day) or for (a duration)", value="")
    if values.keys() != given.keys():
        raise Refused
    day, zone = values.pop("date", None), values.pop("timezone", None)
    if day is None and zone is not None:
        at.nearest("timezone").refuse("says nothing without a date", hint='for example date: "2026-03-02"')
    begin = values.pop("from", 0.0)
    stretch: Seconds = values.pop("for") if "for" in values else values.pop("to") - begin
    if stretch <= 0:
        at.refuse("must end after it begins", value="")
    warm_up = values.get("warm_up", 0.0)
    if warm_up >= stretch:
        at.nearest("warm_up").refuse(f"must be shorter than the run, which lasts {stretch:g}s")
    values.setdefault("window", next(step for step in _STEPS if stretch / step <= POINTS))
    unix = None if day is None else _unix(day, begin, zone=zone or "UTC")
    return RunPlan(begin=begin, length=stretch, unix=unix, **values)


def _day(at: At) -> date:
    """`2026-03-02`; YAML may take it for a date."""
    value = raw(at)
    try:
        found = date.fromisoformat(value)
    except ValueError:
        at.refuse("must be a day", hint='for example "2026-03-02"')
    if not 1970 < found.year < 2400 or len(value) != 10:
        at.refuse("must be a day of the years 1971 to 2399, written YYYY-MM-DD")
    return found


def _unix(day: date, begin: Seconds, *, zone: str) -> Seconds:
    """Unix time of a time of day, as the clocks of that place show it."""
    midnight = datetime(day.year, day.month, day.day, tzinfo=ZoneInfo(zone))
    # Arithmetic within one zone is that of its clocks, so this holds on days on which they change too.
    return (midnight + timedelta(seconds=begin)).timestamp()
