"""The `arrivals:` of a scenario file, and the changes of traffic among its `phases:`.

In: nodes. Out: flows and changes of `sim.workload`. Not here: fleets, pins and restarts (see `sim.scenario_text`).
"""

from typing import Any

import msgspec

from lorapick.model.units import AdapterName, Seconds
from lorapick.sim.scenario import AdapterPlan
from lorapick.sim.scenario_readers import built, clock, length, made, moment, one_of, popularity, rate, raw, tokens
from lorapick.sim.workload.lengths import Sizes
from lorapick.sim.workload.processes import (
    Burst,
    Diurnal,
    FlashCrowd,
    Gamma,
    Hawkes,
    MarkovModulated,
    Poisson,
    Process,
    Profile,
    State,
)
from lorapick.sim.workload.spec import Flow, Sessions
from lorapick.wire.config.document import At, Refused
from lorapick.wire.config.readers import (
    Reader,
    adapter_name,
    duration,
    fields,
    integer,
    list_of,
    number,
    record,
    text,
    word,
)

MAIN = "main"
"""Name of the flow when there is only one."""
_cv = number(least=0.0, most=1000.0, what="a coefficient of variation")


class When(msgspec.Struct, frozen=True, kw_only=True):
    """Where the run lies in the day."""

    begin: Seconds
    length: Seconds

    @property
    def moment(self) -> Reader[Seconds]:
        """Reader of a time within it."""
        return moment(begin=self.begin, length=self.length)


def chosen(plan: AdapterPlan) -> Reader[tuple[AdapterName, ...]]:
    """Some of the adapters: a list of names, `{top: 10}` the most popular, `{last: 2}` the least."""

    def first(at: At) -> tuple[AdapterName, ...]:
        return plan.names[: _count(at)]

    def last(at: At) -> tuple[AdapterName, ...]:
        return plan.names[-_count(at) :]

    def _count(at: At) -> int:
        return integer(least=1, most=len(plan.names))(at)

    def read(at: At) -> tuple[AdapterName, ...]:
        if not at.tag.endswith(":seq"):
            return one_of(at, {"top": first, "last": last}, what="choice of adapters")
        names = list_of(adapter_name, least=1, unique="")(at)
        known = dict.fromkeys(plan.names)
        for item, name in zip(at.items(), names, strict=True):
            if name not in known:
                item.refuse("is no adapter of this scenario", hint=f"they are {plan.names[0]} to {plan.names[-1]}")
        return names

    return read


def flows(at: At, plan: AdapterPlan, when: When) -> tuple[Flow, ...]:
    """One flow, or a list of flows, each with a name."""
    if at.tag.endswith(":seq"):
        return list_of(lambda item: _flow(item, plan, when, required=("name", "tokens")), least=1, unique="name")(at)
    return (_flow(at, plan, when, required=("tokens",)),)


def _flow(at: At, plan: AdapterPlan, when: When, *, required: tuple[str, ...]) -> Flow:
    before = len(at.report.problems)
    values = fields(
        at,
        {
            "name": word,
            "rate": rate,
            "process": lambda node: node,
            "tokens": record(Sizes, {"prompt": length, "output": length}, required=("prompt", "output")),
            "adapters": chosen(plan),
            "popularity": popularity,
            "shared_prefix": tokens,
            "sessions": _sessions,
            "priority": integer(least=-1000, most=1000),
            "tenant": text,
            "start": when.moment,
            "until": when.moment,
        },
        required=required,
    )
    if len(at.report.problems) > before:
        raise Refused
    process = _process(at, values.pop("process", None), values.pop("rate", None), when)
    adapters = values.pop("adapters", plan.names)
    law = values.pop("popularity", plan.popularity if adapters == plan.names else None)
    if law is not None:
        values["popularity"] = law
    sizes, name = values.pop("tokens"), values.pop("name", MAIN)
    return made(at, lambda: Flow(name=name, adapters=adapters, process=process, sizes=sizes, **values))


_sessions: Reader[Sessions] = built(
    Sessions,
    {
        "turns": number(least=1.0, most=1e6, what="a mean number of requests"),
        "think": duration(),
        "most_prompt_tokens": tokens,
    },
    required=("turns", "think"),
)


def _process(at: At, place: At | None, per_second: float | None, when: When) -> Process:
    """The process; those without a rate of their own take the flow's."""
    if place is None or place.is_scalar:
        if place is not None and raw(place) != "poisson":
            place.refuse("must be poisson or a process", hint="for example {gamma: {cv: 2}}")
        return Poisson(_needed(at, per_second))
    ways: dict[str, Reader[Process]] = {
        "gamma": lambda node: _rated(node, Gamma, {"cv": _cv}, ("cv",), _needed(at, per_second)),
        "diurnal": lambda node: _rated(node, Diurnal, _DIURNAL, ("ratio",), _needed(at, per_second)),
        "flash": lambda node: _rated(
            node,
            FlashCrowd,
            {"at": when.moment, "factor": number(least=1.0, most=1e6), "decay": duration(), "cv": _cv},
            ("at", "factor", "decay"),
            _needed(at, per_second),
        ),
        "hawkes": lambda node: _rated(node, Hawkes, _HAWKES, ("branching", "decay"), _needed(at, per_second)),
        "mmpp": built(MarkovModulated, {"states": list_of(_STATE)}, required=("states",)),
        "profile": built(Profile, {"rates": list_of(rate), "step": duration(), "cv": _cv}, required=("rates",)),
        "burst": built(
            Burst,
            {"count": integer(least=1, most=10_000_000), "at": when.moment, "over": duration()},
            required=("count", "at"),
        ),
    }
    return one_of(place, ways, what="process")


def _needed(at: At, per_second: float | None) -> float:
    if per_second is None:
        at.refuse('the key "rate" is missing', hint='for example rate: "50/s"', value="")
    return per_second


def _rated(
    at: At, build: Any, readers: dict[str, Reader[Any]], required: tuple[str, ...], per_second: float
) -> Process:
    process: Process = built(lambda **values: build(rate=per_second, **values), readers, required=required)(at)
    return process


_DIURNAL: dict[str, Reader[Any]] = {
    "ratio": number(least=1.0, most=1e6, what="highest through lowest rate"),
    "peak": clock,
    "period": duration(),
    "cv": _cv,
}
_HAWKES: dict[str, Reader[Any]] = {
    "branching": number(least=0.0, most=0.99, what="a branching ratio"),
    "decay": duration(),
}
_STATE = built(State, {"rate": rate, "dwell": duration()}, required=("rate", "dwell"))
