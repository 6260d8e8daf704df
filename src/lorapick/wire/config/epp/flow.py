"""`flowControl`: who waits at the picker, as far as lorapick's admission means the same.

In: the node, the plugins, whether the gate is open. Out: `Flow`. With the gate closed, as by default, llm-d ignores the
section, and so does lorapick, whose admission holds anyway. Not here: lorapick's own admission (`model.settings`).
"""

from typing import Any

from msgspec.structs import replace

from lorapick.model.bands import Band, CeilingSettings, ChanceSettings, Ordering, SaturationSettings, Spread
from lorapick.model.settings import Fairness
from lorapick.model.units import Seconds
from lorapick.wire.config.document import At
from lorapick.wire.config.epp.reading import anything, go_duration, members, quantity, refused
from lorapick.wire.config.epp.registry import Registry
from lorapick.wire.config.epp.values import Flow, Kind, Plugin
from lorapick.wire.config.readers import Reader, boolean, integer, list_of

_HOUR = 3600.0
_DEFAULT_TTL: Seconds = 60.0
_MOST_QUEUED = 2**31 - 1
_FAIRNESS = {
    "global-strict-fairness-policy": (Fairness.ROUND_ROBIN, 0.0),
    "round-robin-fairness-policy": (Fairness.ROUND_ROBIN, None),
    "program-aware-fairness": (Fairness.LEAST_ATTAINED, None),
}
"""Fairness, and patience: with a patience of 0 whoever waits longest is next, whose turn it would be."""
_ORDERING = {
    "fcfs-ordering-policy": Ordering.FCFS,
    "edf-ordering-policy": Ordering.DEADLINE,
    "slo-deadline-ordering-policy": Ordering.SLO,
}


def read_flow(at: At | None, registry: Registry, *, open_gate: bool, detector: At | None) -> Flow:
    """What the section comes to; `detector` is the older place of `saturationDetector`.

    Raises:
        Refused: something in it is wrong, or with an open gate has no counterpart.
    """
    found: dict[str, Any] = members(at, _readers(registry, open_gate=open_gate)) if at is not None else {}
    chosen: Plugin | None = found.get("saturationDetector")
    if chosen is None and detector is not None:
        chosen = read_detector(detector, registry)
    chosen = chosen or registry.inject("utilization-detector")
    for each in ("fcfs-ordering-policy", "global-strict-fairness-policy"):
        registry.inject(each)
    limit: Plugin = found.get("usageLimitPolicyPluginRef") or registry.inject("static-usage-limit-policy")
    saturation, chance = _saturation(chosen), _chance(registry)
    if not open_gate:
        return Flow(saturation=saturation, chance=chance)
    fairness, patience = _FAIRNESS[_of_all(found, "fairnessPolicyRef") or "global-strict-fairness-policy"]
    ttl: Seconds = found.get("defaultRequestTTL", _DEFAULT_TTL)
    return Flow(
        max_queued=found.get("maxRequests") or None,
        max_bytes=found.get("maxBytes") or None,
        bands=_bounds(found) or None,
        max_wait=ttl,
        fairness=fairness,
        ordering=_ORDERING[_of_all(found, "orderingPolicyRef") or "fcfs-ordering-policy"],
        patience=patience,
        max_queue=_threshold(chosen),
        saturation=saturation,
        chance=chance,
        ceilings=_ceilings(limit, full="mode" in chosen.parameters),
    )


def _chance(registry: Registry) -> ChanceSettings | None:
    """Of the admitter, which llm-d asks because it is there, whatever names it; None: there is none."""
    admitters = [each for each in registry.plugins.values() if each.type.type == "probabilistic-admitter"]
    for other in admitters[1:]:
        assert other.at is not None
        other.at.refuse(f"there may be one probabilistic-admitter here; the other is {admitters[0].name}", value="")
    return ChanceSettings(**admitters[0].parameters) if admitters else None


def _ceilings(limit: Plugin, *, full: bool) -> CeilingSettings | None:
    """With `full` also where every ceiling is 1: of what is in flight no pod says by itself that it is too much."""
    found: CeilingSettings | None = limit.parameters["ceilings"]
    return replace(found or CeilingSettings(spread=Spread.SAME), full=True) if full else found


def _readers(registry: Registry, *, open_gate: bool) -> dict[str, Reader[Any]]:
    def without(why: str) -> Reader[Any]:
        return refused(why) if open_gate else anything

    band = _band(registry)
    return {
        "maxBytes": quantity,
        "maxRequests": _most_queued,
        "defaultRequestTTL": _ttl if open_gate else go_duration,
        "noEndpointRequestTTL": without("remove it: without pods lorapick answers 503 at once"),
        "defaultPriorityBand": band,
        "defaultNegativePriorityBand": without("remove it: priorities below 0 never wait"),
        "priorityBands": list_of(band, unique="priority"),
        "usageLimitPolicyPluginRef": lambda at: registry.refer(at, Kind.LIMIT),
        "saturationDetector": lambda at: read_detector(at, registry),
        "enableEviction": _no_eviction if open_gate else boolean,
    }


Written = dict[str, Any]
"""One band as the file has it."""


def _band(registry: Registry) -> Reader[Written]:
    def read(at: At) -> Written:
        return members(
            at,
            {
                "priority": integer(least=-(2**31)),
                "maxBytes": quantity,
                "maxRequests": _most_queued,
                "fairnessPolicyRef": lambda ref: (ref, registry.refer(ref, Kind.FAIRNESS)),
                "orderingPolicyRef": lambda ref: (ref, registry.refer(ref, Kind.ORDERING)),
            },
        )

    return read


def _bounds(found: Written) -> tuple[Band, ...]:
    """Most requests of each priority, and most bytes; 0 is no bound, as with llm-d."""
    default: Written = found.get("defaultPriorityBand", {})
    written = [(each.get("priority", 0), each) for each in found.get("priorityBands", ())]
    bands = [
        Band(priority=priority, max_queued=band.get("maxRequests") or None, max_bytes=band.get("maxBytes") or None)
        for priority, band in [*written, (None, default)]
    ]
    # One that bounds nothing still keeps the default from its priority.
    return tuple([band for band in bands if band.priority is not None or band.max_queued or band.max_bytes])


def _of_all(found: dict[str, Any], key: str) -> str | None:
    """Type of all priorities' policy: lorapick has one for all of them. None: no priority names one."""
    bands: list[Written] = [found.get("defaultPriorityBand", {}), *found.get("priorityBands", ())]
    named = [band[key] for band in bands if key in band]
    types = [plugin.type.type for _, plugin in named]
    for (place, _), type_ in zip(named, types, strict=True):
        if type_ != types[0]:
            place.refuse(f"must be a {types[0]}, as of the other priorities: all share one policy here")
    return types[0] if types else None


def read_detector(at: At, registry: Registry) -> Plugin:
    """`saturationDetector: {pluginRef}`; the utilisation detector where it names none."""
    hint = 'define a plugin of type utilization-detector with it, and name that under "pluginRef"'
    old = dict.fromkeys(("queueDepthThreshold", "kvCacheUtilThreshold", "metricsStalenessThreshold"), hint)
    found = members(at, {"pluginRef": lambda ref: registry.refer(ref, Kind.DETECTOR)}, hints=old)
    chosen: Plugin = found.get("pluginRef") or registry.inject("utilization-detector")
    return chosen


def _saturation(detector: Plugin) -> SaturationSettings:
    """When priorities below 0 are shed, with the gate or without."""
    found = detector.parameters
    if "mode" not in found:
        return SaturationSettings(queue=float(found["queue"]), kv=float(found["kv"]))
    return SaturationSettings(
        requests=found["requests"] if found["mode"] != "tokens" else None,
        tokens=found["tokens"] if found["mode"] != "requests" else None,
    )


def _threshold(detector: Plugin) -> int | None:
    """Queue depth at which a pod takes no more, llm-d's default where the file says none."""
    value: int | None = detector.parameters.get("queue")
    return value


def _most_queued(at: At) -> int:
    value = quantity(at)
    if value > _MOST_QUEUED:
        at.refuse(f"must be at most {_MOST_QUEUED}")
    return value


def _ttl(at: At) -> Seconds:
    value = go_duration(at)
    if not 0.0 < value <= _HOUR:
        at.refuse("must be above 0 and at most 1h: every wait at the picker has an end")
    return value


def _no_eviction(at: At) -> bool:
    if boolean(at):
        at.refuse("must be false: lorapick ends no request that is under way", hint="objectives below 0 never wait")
    return False
