"""The `arrivals:` of a scenario file, and the changes of traffic among its `phases:`.

In: nodes. Out: flows and traces of `sim.workload`. Not here: fleets, pins and restarts (see `sim.scenario_text`).
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec

from lorapick.model.units import AdapterName, Seconds
from lorapick.sim.recorded_text import Recordings, demanded, sizes, traced
from lorapick.sim.scenario import AdapterPlan
from lorapick.sim.scenario_readers import built, clock, made, moment, one_of, popularity, rate, raw, tokens
from lorapick.sim.workload.clients import client_weights
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
from lorapick.sim.workload.spec import Flow, Sessions, Traced
from lorapick.wire.config.document import At, Refused
from lorapick.wire.config.readers import (
    Reader,
    adapter_name,
    duration,
    fields,
    integer,
    list_of,
    number,
    text,
    word,
)

Stream: TypeAlias = Flow | Traced
"""What one entry can become."""
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
        return list_of(one(plan), least=1, unique="")(at)

    return read


def one(plan: AdapterPlan) -> Reader[AdapterName]:
    """Reader of the name of one of the adapters."""
    known = dict.fromkeys(plan.names)

    def read(at: At) -> AdapterName:
        name = adapter_name(at)
        if name not in known:
            at.refuse("is no adapter of this scenario", hint=f"they are {plan.names[0]} to {plan.names[-1]}")
        return name

    return read


def streams(at: At, plan: AdapterPlan, *, when: When, recordings: Recordings) -> tuple[Stream, ...]:
    """One stream of requests, or a list of them, each with a name."""
    if not at.tag.endswith(":seq"):
        return _Entry(plan, when=when, recordings=recordings).read(at)
    reader = _Entry(plan, when=when, recordings=recordings, required=("name",))
    return tuple(stream for found in list_of(reader.read, least=1, unique="name")(at) for stream in found)


class _Entry:
    """Reader of one entry: a flow from laws, a trace, or the flows of measured clients."""

    def __init__(
        self, plan: AdapterPlan, *, when: When, recordings: Recordings, required: tuple[str, ...] = ()
    ) -> None:
        self._plan = plan
        self._when = when
        self._recordings = recordings
        self._required = required
        self._whose: dict[str, Reader[Any]] = {
            "name": word,
            "adapters": chosen(plan),
            "popularity": popularity,
            "priority": integer(least=-1000, most=1000),
        }
        self._law: dict[str, Reader[Any]] = {
            "rate": rate,
            "process": lambda node: node,
            "tokens": sizes(recordings),
            "shared_prefix": tokens,
            "sessions": _sessions,
            "tenant": text,
            "start": when.moment,
            "until": when.moment,
        }

    def read(self, at: At) -> tuple[Stream, ...]:
        if at.find("trace") is not None:
            return (self._traced(at),)
        return self._clients(at) if at.find("clients") is not None else (self._flow(at),)

    def _values(self, at: At, own: dict[str, Reader[Any]], *, required: tuple[str, ...]) -> dict[str, Any]:
        """What stands there, with the scenario's adapters and their popularity where it says no other."""
        before = len(at.report.problems)
        values = fields(at, self._whose | own, required=(*self._required, *required))
        if len(at.report.problems) > before:
            raise Refused
        adapters = values.setdefault("adapters", self._plan.names)
        if adapters == self._plan.names:
            values.setdefault("popularity", self._plan.popularity)
        return values

    def _traced(self, at: At) -> Traced:
        values = self._values(at, {"trace": lambda node: node}, required=())
        place, name = values.pop("trace"), values.pop("name", MAIN)
        return traced(place, recordings=self._recordings, name=name, values=values)

    def _flow(self, at: At) -> Flow:
        values = self._values(at, self._law, required=("tokens",))
        process = _process(at, values.pop("process", None), per_second=values.pop("rate", None), when=self._when)
        lengths, name = values.pop("tokens"), values.pop("name", MAIN)
        return made(at, lambda: Flow(name=name, process=process, sizes=lengths, **values))

    def _clients(self, at: At) -> tuple[Flow, ...]:
        """Flows as measured; or with a process of its own one flow that has their shares."""
        own = {"clients": lambda node: node, **self._law}
        values = self._values(at, own, required=("tokens",))
        if (place := at.find("popularity")) is not None:
            place.refuse("must not stand beside clients, whose shares were measured", value="")
        del values["popularity"]
        per_second, process = values.pop("rate", None), values.pop("process", None)
        found = demanded(
            values.pop("clients"),
            values.pop("adapters"),
            recordings=self._recordings,
            rate=per_second,
            sizes=values.pop("tokens"),
        )
        name = values.pop("name", None)
        if process is not None:
            names, shares = client_weights(found)
            law = _process(at, process, per_second=per_second, when=self._when)
            changes = {"adapters": names, "popularity": shares, "process": law, "name": name or MAIN}
            return (msgspec.structs.replace(found[0], **changes, **values),)
        prefix = f"{name}-" if name else ""
        return tuple(msgspec.structs.replace(flow, name=prefix + flow.name, **values) for flow in found)


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
