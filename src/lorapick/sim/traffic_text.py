"""The `arrivals:` of a scenario file, and the changes of traffic among its `phases:`.

In: nodes. Out: flows and changes of `sim.workload`. Not here: fleets, pins and restarts (see `sim.scenario_text`).
"""

from collections.abc import Callable
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


def flows(at: At, plan: AdapterPlan, *, when: When) -> tuple[Flow, ...]:
    """One flow, or a list of flows, each with a name."""
    if at.tag.endswith(":seq"):
        return list_of(lambda item: _flow(item, plan, when=when, required=("name", "tokens")), least=1, unique="name")(
            at
        )
    return (_flow(at, plan, when=when, required=("tokens",)),)


def _flow(at: At, plan: AdapterPlan, *, when: When, required: tuple[str, ...]) -> Flow:
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
    process = _process(at, values.pop("process", None), per_second=values.pop("rate", None), when=when)
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


def _process(at: At, place: At | None, *, per_second: float | None, when: When) -> Process:
    """The process; those without rates of their own take the flow's."""
    if place is None or place.is_scalar:
        if place is not None and raw(place) != "poisson":
            place.refuse("must be poisson or a process", hint="for example {gamma: {cv: 2}}")
        return Poisson(_needed(at, per_second))
    own = _with_rates(when)
    name = next(iter(place.entries()), None)
    if name in own:
        if per_second is not None:
            at.nearest("rate").refuse(f"must not stand beside {name}, which says by itself how many come", value="")
        return one_of(place, own, what="process")
    return one_of(place, {**own, **_without_rates(when, lambda: _needed(at, per_second))}, what="process")


def _needed(at: At, per_second: float | None) -> float:
    if per_second is None:
        at.refuse('the key "rate" is missing', hint='for example rate: "50/s"', value="")
    return per_second


def _with_rates(when: When) -> dict[str, Reader[Process]]:
    burst = {"count": integer(least=1, most=10_000_000), "at": when.moment, "over": duration()}
    profile = {"rates": list_of(rate, least=1), "step": duration(), "cv": _cv}
    return {
        "mmpp": built(MarkovModulated, {"states": list_of(_STATE)}, required=("states",)),
        "profile": built(Profile, profile, required=("rates",)),
        "burst": built(Burst, burst, required=("count", "at")),
    }


def _without_rates(when: When, per_second: Callable[[], float]) -> dict[str, Reader[Process]]:
    def rated(build: Callable[..., Process], readers: dict[str, Reader[Any]]) -> Reader[Process]:
        required = tuple(name for name in readers if name not in ("cv", "peak", "period") or build is Gamma)
        return built(lambda **values: build(rate=per_second(), **values), readers, required=required)

    factor = number(least=1.0, most=1e6, what="a factor")
    return {
        "gamma": rated(Gamma, {"cv": _cv}),
        "diurnal": rated(Diurnal, {"ratio": _RATIO, "peak": clock, "period": duration(), "cv": _cv}),
        "flash": rated(FlashCrowd, {"at": when.moment, "factor": factor, "decay": duration(), "cv": _cv}),
        "hawkes": rated(Hawkes, {"branching": _BRANCHING, "decay": duration()}),
    }


_RATIO = number(least=1.0, most=1e6, what="highest through lowest rate")
_BRANCHING = number(least=0.0, most=0.99, what="a branching ratio")
_STATE = built(State, {"rate": rate, "dwell": duration()}, required=("rate", "dwell"))
