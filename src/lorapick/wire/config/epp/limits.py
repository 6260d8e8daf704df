"""Parameters of plugins that keep requests back while the fleet is busy: usage limit policies, admission by chance.

In: nodes. Out: arguments of `CeilingSettings` and `ChanceSettings`, with llm-d's defaults. Not here: the entries of the
catalogue (see `further`), what they do (`core.holding_back`).
"""

import itertools
from typing import Any

from lorapick.model.bands import Ceiling, CeilingSettings, Spread
from lorapick.wire.config.document import At
from lorapick.wire.config.epp.reading import MissingParameters, parameters
from lorapick.wire.config.epp.values import ReadParameters
from lorapick.wire.config.readers import choice, integer, number, share

_above_zero = number(least=1e-9, most=1e9, what="a number above 0")
chance: ReadParameters = parameters(
    {
        "queueDepthThreshold": ("queue", integer(least=1)),
        "kvCacheUtilThreshold": ("kv", _above_zero),
        "power": ("power", _above_zero),
        "k": ("factor", _above_zero),
    },
    {"queue": 5.0, "kv": 0.8, "power": 5.0, "factor": 300.0},
)
"""Of `probabilistic-admitter`."""

_read_static: ReadParameters = parameters({"threshold": ("most", number(least=0.0, most=1e6))}, {"most": 1.0})


def static(at: At | None) -> dict[str, Any]:
    """`ceilings` of `static-usage-limit-policy`; None: from 1 on each pod says by itself that it is full."""
    most = _read_static(at)["most"]
    return {"ceilings": CeilingSettings(spread=Spread.SAME, most=most) if most < 1.0 else None}


def reflected(at: At | None) -> dict[str, Any]:
    """`ceilings` of `soft-reflective-ceiling-policy`, which has no parameters."""
    return parameters({})(at) | {"ceilings": CeilingSettings(spread=Spread.REFLECTED)}


def _listed(at: At) -> tuple[Ceiling, ...]:
    found: list[tuple[int, Ceiling, At]] = []
    for name, entry in at.entries(numbers=True).items():
        try:
            priority = int(name)
        except ValueError:
            entry.key.refuse("must be a priority", hint='a whole number, such as "10"')
        found.append((priority, Ceiling(priority=priority, most=share(entry.value)), entry.value))
    found.sort(key=lambda each: each[0], reverse=True)
    for (higher, above, _), (_, ceiling, place) in itertools.pairwise(found):
        if ceiling.most > above.most:
            place.refuse(f"must be at most that of priority {higher}, which is {above.most:g}")
    return tuple([ceiling for _, ceiling, _ in found])


_read_holdback: ReadParameters = parameters(
    {
        "shape": ("shape", choice("linear")),
        "domain": ("domain", choice("rank", "value", "explicit")),
        "minCeiling": ("least", share),
        "maxCeiling": ("most", share),
        "ceilings": ("listed", _listed),
    }
)
_OF_LISTED = ("shape", "minCeiling", "maxCeiling")


def holdback(at: At | None) -> dict[str, Any]:
    """`ceilings` of `priority-holdback-policy`."""
    if at is None:
        raise MissingParameters(("minCeiling",))
    found = _read_holdback(at)
    if found.get("domain") == "explicit":
        for name in (each for each in _OF_LISTED if at.find(each) is not None):
            at.nearest(name).refuse('must not be there with domain "explicit"', hint='"ceilings" says it all', value="")
        if not found.get("listed"):
            at.refuse('the key "ceilings" is missing', hint='domain "explicit" needs one of each priority', value="")
        return {"ceilings": CeilingSettings(spread=Spread.LISTED, listed=found["listed"])}
    if "listed" in found:
        at.nearest("ceilings").refuse('must not be there without domain "explicit"', value="")
    if "least" not in found:
        at.refuse('the key "minCeiling" is missing', value="")
    least, most = found["least"], found.get("most", 1.0)
    if least >= most:
        at.nearest("minCeiling").refuse(f"must be below maxCeiling, which is {most:g}")
    spread = Spread.VALUE if found.get("domain") == "value" else Spread.RANK
    return {"ceilings": CeilingSettings(spread=spread, least=least, most=most)}
