"""What operators want to be served: adapters, pins, aliases, groups, schedules, triggers.

In: nodes. Out: values of `model.adapters`. Not here: catalogue folders (the path is kept), and whether an adapter that
is named exists: pods and catalogues may know adapters that the file does not.
"""

import re
from collections.abc import Collection
from typing import Any

import msgspec

from lorapick.core.placement.cron import CronError, parse_cron
from lorapick.core.placement.triggers import PLACEHOLDER
from lorapick.model.adapters import Adapter, AffinityGroup, Alias, AliasTarget, PinSpec, Schedule, Trigger
from lorapick.wire.config.document import At, nearest_word
from lorapick.wire.config.readers import (
    Reader,
    adapter_name,
    boolean,
    choice,
    duration,
    integer,
    label_text,
    labels,
    list_of,
    record,
    size,
    text,
    timezone,
    word,
)

_SHA256 = re.compile(r"[0-9a-fA-F]{64}")
_MAX_WEIGHT = 1_000_000
_replicas = integer(least=1, most=100_000)


def _check_pin(at: At, pin: PinSpec) -> None:
    if pin.replicas is None and not pin.prefill_replicas and not pin.pods and not pin.selector:
        at.note("a pin needs replicas, pods or selector", hint="for example {replicas: 2}", value="")
    for key, count in (("replicas", pin.replicas), ("prefill_replicas", pin.prefill_replicas)):
        if count is not None and pin.pods and count > len(pin.pods):
            at.nearest(key).note(f"asks for more replicas than the {len(pin.pods)} pods that are named")


pin: Reader[PinSpec] = record(
    PinSpec,
    {
        "replicas": _replicas,
        "prefill_replicas": integer(least=0, most=100_000),
        "pods": list_of(word, least=1, unique=""),
        "selector": labels,
        "reserve": boolean,
    },
    check=_check_pin,
)
"""Permanent residency."""


def sha256(at: At) -> str:
    """64 hexadecimal digits."""
    value = text(at)
    if not _SHA256.fullmatch(value):
        at.refuse("must be a SHA-256 in 64 hexadecimal digits")
    return value.lower()


def _declared(**values: Any) -> Adapter:
    return Adapter(declared=True, **values)


adapter: Reader[Adapter] = record(
    _declared,
    {
        "name": adapter_name,
        "source": text,
        "revision": label_text,
        "base_model": text,
        "rank": integer(least=1, most=4096),
        "targets": list_of(word, least=1, unique=""),
        "size": size(),
        "sha256": sha256,
        "pin": pin,
        "weekend": choice("deprioritize"),
    },
    required=("name",),
)
"""One adapter that the file declares."""


class AdapterSource(msgspec.Struct, frozen=True, kw_only=True):
    """`adapters:` of the file."""

    catalogue: str | None = None
    list: tuple[Adapter, ...] = ()


adapters: Reader[AdapterSource] = record(AdapterSource, {"catalogue": text, "list": list_of(adapter, unique="name")})
"""`adapters:`: a folder, a list, or both."""


def _check_alias(at: At, found: Alias) -> None:
    if sum(target.weight for target in found.to) == 0:
        at.nearest("to").note("the weights add up to 0; give at least one adapter a weight", value="")


alias: Reader[Alias] = record(
    Alias,
    {
        "name": word,
        "to": list_of(
            record(
                AliasTarget,
                {"adapter": adapter_name, "weight": integer(least=0, most=_MAX_WEIGHT)},
                required=("adapter",),
            ),
            least=1,
            unique="adapter",
        ),
    },
    required=("name", "to"),
    check=_check_alias,
)
"""A public name that stands for adapters by weight."""


def _check_group(at: At, group: AffinityGroup) -> None:
    if group.first in group.then:
        at.nearest("then", group.then.index(group.first)).note("is the group's first adapter already")


group: Reader[AffinityGroup] = record(
    AffinityGroup,
    {"name": word, "first": adapter_name, "then": list_of(adapter_name, least=1, unique="")},
    required=("name", "first", "then"),
    check=_check_group,
)
"""Adapters that are called one after another."""


def cron(at: At) -> str:
    """Five fields of a cron line."""
    value = text(at)
    try:
        parse_cron(value)
    except CronError as error:
        at.refuse(str(error), hint='for example "45 8 * * mon-fri"')
    return value


schedule: Reader[Schedule] = record(
    Schedule,
    {
        "adapters": list_of(adapter_name, least=1, unique=""),
        "cron": cron,
        "timezone": timezone,
        "replicas": _replicas,
        "for": duration(least=1.0),
        "selector": labels,
    },
    required=("adapters", "cron", "timezone", "for"),
    names={"for": "lasts"},
)
"""A preload at set times."""


def _template(at: At) -> str:
    value = adapter_name(at)
    if "{" in PLACEHOLDER.sub("", value) or "}" in PLACEHOLDER.sub("", value):
        at.refuse('has a brace that is no placeholder; write an attribute of the event as "{tenant}"')
    return value


trigger: Reader[Trigger] = record(
    Trigger,
    {"event": word, "preload": _template, "replicas": _replicas, "for": duration(least=1.0), "selector": labels},
    required=("event", "preload", "for"),
    names={"for": "lasts"},
)
"""A preload on a named event."""


def check_names(root: At, *, base_model: str, pods: Collection[str] | None) -> None:
    """Note names that stand for two things (adapter, alias, base model), and pins to pods that are not among `pods`."""
    adapters_by_name = _by_name(root, "adapters", "list")
    aliases = _by_name(root, "aliases")
    for name, at in aliases.items():
        if name == base_model:
            at.note("is the base model's name; an alias needs a name of its own")
        elif name in adapters_by_name:
            line = adapters_by_name[name].node.start_mark.line + 1
            at.note(f"is the name of an adapter too (line {line}); an alias needs a name of its own")
    if base_model in adapters_by_name:
        adapters_by_name[base_model].note("is the base model's name; the engine would refuse such an adapter")
    for item in root.each("aliases"):
        for target in item.each("to"):
            at_target = target.find("adapter")
            if at_target is not None and at_target.is_scalar and str(at_target.node.value) in aliases:
                at_target.note("is an alias; an alias leads to adapters only")
    for item in root.each("adapters", "list"):
        for place in item.each("pin", "pods"):
            if pods is not None and place.is_scalar and place.node.value not in pods:
                place.note("no pod of discovery.pods has this name", hint=nearest_word(str(place.node.value), pods))


def _by_name(root: At, *path: str) -> dict[str, At]:
    names = [item.find("name") for item in root.each(*path)]
    return {str(at.node.value): at for at in names if at is not None and at.is_scalar}
