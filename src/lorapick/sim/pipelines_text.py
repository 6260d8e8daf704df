"""The `pipelines:` of a scenario file: which requests bring others.

In: nodes. Out: `Follow`s. Not here: when they come (`sim.workload.follow`).
"""

from lorapick.model.units import Seconds
from lorapick.sim.recorded_text import Recordings, sizes
from lorapick.sim.scenario import AdapterPlan
from lorapick.sim.scenario_readers import built
from lorapick.sim.traffic_text import one
from lorapick.sim.workload.lengths import AnySizes
from lorapick.sim.workload.spec import After, Follow
from lorapick.wire.config.document import At
from lorapick.wire.config.readers import Reader, choice, duration, list_of, share


def pipelines(plan: AdapterPlan, recordings: Recordings) -> Reader[tuple[Follow, ...]]:
    """Reader of all edges."""
    edge = built(
        _follow,
        {
            "first": one(plan),
            "then": one(plan),
            "probability": share,
            "after": choice(*(after.value for after in After)),
            "delay": _delay,
            "tokens": sizes(recordings),
        },
        required=("first", "then"),
    )
    return list_of(edge, least=1)


def _follow(*, after: str = After.END.value, tokens: AnySizes | None = None, **values: object) -> Follow:
    return Follow(after=After(after), sizes=tokens, **values)  # type: ignore[arg-type]


def _delay(at: At) -> tuple[Seconds, Seconds]:
    """One duration, or the shortest and the longest."""
    if at.is_scalar:
        only = duration()(at)
        return only, only
    found = list_of(duration())(at)
    if len(found) != 2 or found[0] > found[1]:
        at.refuse("must be a duration or [shortest, longest]", hint="for example [100ms, 2s]", value="")
    return found[0], found[1]
