"""Who is meant, in a scenario file: `pins:`, `groups:`, `schedules:`, `triggers:`, `parts:`.

In: nodes. Out: what the same sections of `lorapick.yaml` become; names must be those of the scenario. Not here: what
operators say during a run (see `sim.phases_text`).
"""

from typing import Any

from lorapick.model.adapters import AffinityGroup, PinSpec, Schedule, Trigger
from lorapick.model.settings import Settings
from lorapick.model.units import AdapterName
from lorapick.sim.scenario import AdapterPlan, FleetPlan
from lorapick.sim.traffic_text import chosen, one
from lorapick.wire.config import intent
from lorapick.wire.config.document import At, Refused
from lorapick.wire.config.readers import Reader, boolean, choice, fields, integer, labels, list_of

NEEDS_DAY = "needs to know on which day the run begins"
DAY_HINT = 'for example run: {date: "2026-03-02", timezone: America/New_York, ...}'


def where(fleet: FleetPlan) -> dict[str, Reader[Any]]:
    """Readers of the keys that say on which pods, and on how many, adapters are to be."""
    return {
        "pods": list_of(choice(*fleet.all_names()), least=1, unique=""),
        "replicas": integer(least=1, most=4096),
        "selector": labels,
    }


def whom(plan: AdapterPlan) -> dict[str, Reader[Any]]:
    """Readers of the keys that say which adapters: one by name, or several."""
    return {"adapter": one(plan), "adapters": chosen(plan)}


def named(at: At, values: dict[str, Any]) -> tuple[AdapterName, ...]:
    """The adapters that a mapping speaks of; they are taken out of its values.

    Raises:
        Refused: it has both keys or none, or one that could not be read.
    """
    if (at.find("adapter") is None) == (at.find("adapters") is None):
        at.refuse("must have either adapter or adapters", value="")
    adapter, adapters = values.pop("adapter", None), values.pop("adapters", ())
    if adapter is None and not adapters:
        raise Refused
    return (adapter,) if adapter is not None else tuple(adapters)


def pinned(plan: AdapterPlan, fleet: FleetPlan) -> Reader[tuple[tuple[AdapterName, ...], PinSpec]]:
    """Reader of one pin."""
    readers = {**whom(plan), **where(fleet), "prefill_replicas": integer(least=0, most=4096), "reserve": boolean}

    def read(at: At) -> tuple[tuple[AdapterName, ...], PinSpec]:
        before = len(at.report.problems)
        values = fields(at, readers)
        names = named(at, values)
        pin = PinSpec(**values)
        if pin.replicas is None and not pin.prefill_replicas and not pin.pods and not pin.selector:
            at.note("a pin needs replicas, pods or selector", hint="for example {replicas: 2}", value="")
        if len(at.report.problems) > before:
            raise Refused
        return names, pin

    return read


def pins(plan: AdapterPlan, fleet: FleetPlan) -> Reader[dict[AdapterName, PinSpec]]:
    """Reader of `pins:`."""

    def read(at: At) -> dict[AdapterName, PinSpec]:
        found: dict[AdapterName, PinSpec] = {}
        for item, (names, pin) in zip(at.items(), list_of(pinned(plan, fleet))(at), strict=True):
            for name in names:
                if name in found:
                    item.refuse(f"pins {name}, which a pin before it does already", value="")
                found[name] = pin
        return found

    return read


def groups(plan: AdapterPlan) -> Reader[tuple[AffinityGroup, ...]]:
    """Reader of `groups:`."""
    every = one(plan)

    def read(at: At) -> AffinityGroup:
        group = intent.group(at)
        every(at.nearest("first"))
        list_of(every)(at.nearest("then"))
        return group

    return list_of(read, unique="name")


def schedules(plan: AdapterPlan) -> Reader[tuple[Schedule, ...]]:
    """Reader of `schedules:`."""

    def read(at: At) -> Schedule:
        schedule = intent.schedule(at)
        list_of(one(plan))(at.nearest("adapters"))
        return schedule

    return list_of(read)


def triggers(plan: AdapterPlan) -> Reader[tuple[Trigger, ...]]:
    """Reader of `triggers:`."""

    def read(at: At) -> Trigger:
        trigger = intent.trigger(at)
        if "{" not in trigger.preload:
            one(plan)(at.nearest("preload"))
        return trigger

    return list_of(read)


def parts(plan: AdapterPlan) -> Reader[dict[str, tuple[AdapterName, ...]]]:
    """Reader of `parts:`, adapters whose requests are reported by themselves."""

    def read(at: At) -> dict[str, tuple[AdapterName, ...]]:
        found: dict[AdapterName, str] = {}
        for name, entry in at.entries().items():
            for adapter in chosen(plan)(entry.value):
                if adapter in found:
                    entry.value.refuse(f"has {adapter}, which {found[adapter]} has already", value="")
                found[adapter] = name
        return {
            name: tuple(adapter for adapter, part in found.items() if part == name)
            for name in dict.fromkeys(found.values())
        }

    return read


def check_day(root: At, settings: Settings) -> None:
    """Who looks at calendars needs one.

    Raises:
        Refused: something depends on the time of day, and nobody says which day it is.
    """
    if root.find("run", "date") is not None:
        return
    if settings.schedules:
        root.nearest("schedules").refuse(NEEDS_DAY, hint=DAY_HINT, value="")
    if any(adapter.weekend is not None for adapter in settings.adapters):
        root.nearest("weekend").refuse(NEEDS_DAY, hint=DAY_HINT, value="")
    if settings.placement.forecast != "off":
        root.nearest("settings", "placement", "forecast").refuse(NEEDS_DAY, hint=DAY_HINT)
