"""The `periods:` and `expect:` of a scenario file.

In: nodes. Out: stretches that are reported by themselves, and what the article says of them. Not here: our figures.
"""

from collections.abc import Collection, Sequence

from lorapick.model.units import Seconds
from lorapick.sim.metrics import METRICS
from lorapick.sim.scenario import Expected, ExpectedCapacity, Period, RunPlan
from lorapick.sim.scenario_readers import moment, raw
from lorapick.sim.traffic_text import When
from lorapick.wire.config.document import At, Refused
from lorapick.wire.config.readers import Reader, choice, fields, record, text, word

CAPACITIES = ("gain", "share")
"""What a search for capacity can be asked for."""
BEFORE, AFTER = "before", "after"
"""Periods that need not be written: up to the first change, and from when the last one has happened in full."""


def period(when: When) -> Reader[Period]:
    """Reader of one period."""
    read_moment = moment(begin=when.begin, length=when.length)

    def read(at: At) -> Period:
        values = fields(at, {"name": word, "from": read_moment, "to": read_moment}, required=("name", "from", "to"))
        if len(values) < 3:
            raise Refused
        if values["to"] <= values["from"]:
            at.nearest("to").refuse("must be after from")
        return Period(name=values["name"], start=values["from"], end=values["to"])

    return read


def expected(at: At, policies: Collection[str]) -> tuple[Expected, ...]:
    """What the article says of runs, one figure for each metric, policy and period."""
    found: list[Expected] = []
    for item in at.items():
        if item.find("capacity") is not None:
            continue
        values = fields(
            item,
            {
                "metric": choice(*METRICS),
                "policy": choice(*policies),
                "retention": word,
                "note": text,
                "article": lambda node: node,
            },
            required=("metric", "article"),
        )
        if not {"metric", "article"} <= values.keys():
            raise Refused
        place: At = values.pop("article")
        if place.is_scalar:
            found.append(Expected(article=_figure(place), **values))
            continue
        for name, entry in place.entries().items():
            found.append(Expected(article=_figure(entry.value), period=name, **values))
    return tuple(found)


def expected_capacity(at: At, policies: Collection[str]) -> tuple[ExpectedCapacity, ...]:
    """What the article says of capacity: the entries with that key."""
    read = record(
        ExpectedCapacity,
        {"capacity": choice(*CAPACITIES), "policy": choice(*policies), "note": text, "article": _figure},
        required=("capacity", "article"),
    )
    return tuple(read(item) for item in at.items() if item.find("capacity") is not None)


def _figure(at: At) -> float | str:
    """A number, or the article's words."""
    value = raw(at)
    try:
        return float(value) if not at.tag.endswith(":str") else text(at)
    except ValueError:
        at.refuse("must be a number or words")


def check_expected(root: At, expect: tuple[Expected, ...], *, periods: tuple[Period, ...]) -> None:
    """Figures must speak of periods that there are.

    Raises:
        Refused: one does not.
    """
    known = [period.name for period in periods]
    for each in expect:
        if each.period is not None and each.period not in known:
            root.nearest("expect").refuse(
                f'"{each.period}" is no period', hint=f"periods are {', '.join(known) or 'none'}", value=""
            )


def with_usual(
    periods: tuple[Period, ...],
    expect: Sequence[Expected],
    *,
    run: RunPlan,
    phases: Sequence[tuple[Seconds, Seconds]],
) -> tuple[Period, ...]:
    """The periods, with `before` and `after` when the article's figures speak of them and nobody wrote them down."""
    if not phases:
        return periods
    usual = (
        Period(name=BEFORE, start=run.warm_up, end=min(begin for begin, _ in phases)),
        Period(name=AFTER, start=max(end for _, end in phases), end=run.length),
    )
    named = [each.period for each in expect]
    known = [each.name for each in periods]
    missing = (each for each in usual if each.name in named and each.name not in known and each.start < each.end)
    return (*periods, *missing)
