"""LoraAdapter (`lorapick.dev/v1alpha1`): one adapter as its owner wants it served.

In: the object. Out: `AdapterWish`: the adapter with its pin, who is called after it, its schedules. Or `ObjectError`
with every problem. Not here: what is true of it (see `status`), the schema for the API server (deploy/crds, which a
test compares with these readers).

The fields are those of `adapters.list` in the configuration, with Kubernetes' spelling; so the same readers read them.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from lorapick.model.adapters import Adapter, AffinityGroup, PinSpec, Schedule
from lorapick.wire.config import ConfigError
from lorapick.wire.config.document import At, Refused, Report, parse_document
from lorapick.wire.config.intent import cron, sha256
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
    text,
    timezone,
    word,
)
from lorapick.wire.kubernetes.objects import Object, ObjectError, look, name_of

GROUP: Final = "lorapick.dev"
VERSION: Final = "v1alpha1"
KIND: Final = "LoraAdapter"
PLURAL: Final = "loraadapters"
MOST_REPLICAS = 100_000
_MOST_LIST = 64


class AdapterWish(msgspec.Struct, frozen=True, kw_only=True):
    """What one LoraAdapter asks for."""

    object_name: str
    adapter: Adapter
    """Declared, with its pin when replicas, pods or labels are asked for."""
    group: AffinityGroup | None = None
    schedules: tuple[Schedule, ...] = ()


class _Placement(msgspec.Struct, frozen=True, kw_only=True):
    prefill_replicas: int | None = None
    pods: tuple[str, ...] = ()
    selector: dict[str, str] = {}
    reserve: bool = False


class _Spec(msgspec.Struct, frozen=True, kw_only=True):
    adapter_name: str | None = None
    source: str | None = None
    revision: str | None = None
    base_model: str | None = None
    rank: int | None = None
    targets: tuple[str, ...] = ()
    sha256: str | None = None
    weekend: str | None = None
    replicas: int = 0
    placement: _Placement = _Placement()
    then: tuple[str, ...] = ()
    schedules: tuple[Schedule, ...] = ()
    pool_ref: object = None


def _few(read: Reader[Any]) -> Reader[tuple[Any, ...]]:
    every = list_of(read, unique="")

    def bounded(at: At) -> tuple[Any, ...]:
        found = every(at)
        if len(found) > _MOST_LIST:
            at.refuse(f"has {len(found)} items; the limit is {_MOST_LIST}")
        return found

    return bounded


def _anything(at: At) -> None:
    """Of another reader's concern."""
    del at


PLACEMENT: Mapping[str, Reader[Any]] = {
    "prefillReplicas": integer(least=0, most=MOST_REPLICAS),
    "pods": _few(word),
    "selector": labels,
    "reserve": boolean,
}
"""Readers of `spec.placement`, by the field's name."""

SCHEDULE: Mapping[str, Reader[Any]] = {
    "cron": cron,
    "timezone": timezone,
    "replicas": integer(least=1, most=MOST_REPLICAS),
    "for": duration(least=1.0),
    "selector": labels,
}
"""Readers of an item of `spec.schedules`."""

_placement: Reader[_Placement] = record(_Placement, PLACEMENT, names={"prefillReplicas": "prefill_replicas"})


def _schedule(**values: Any) -> Schedule:
    return Schedule(adapters=(), **values)


_schedules: Reader[tuple[Schedule, ...]] = list_of(
    record(_schedule, SCHEDULE, required=("cron", "timezone", "for"), names={"for": "lasts"})
)

SPEC: Mapping[str, Reader[Any]] = {
    "poolRef": _anything,
    "adapterName": adapter_name,
    "source": text,
    "revision": label_text,
    "baseModel": text,
    "rank": integer(least=1, most=4096),
    "targets": _few(word),
    "sha256": sha256,
    "weekend": choice("deprioritize"),
    "replicas": integer(least=0, most=MOST_REPLICAS),
    "placement": _placement,
    "then": _few(adapter_name),
    "schedules": _schedules,
}
"""Readers of `spec`."""


def _check(at: At, spec: _Spec) -> None:
    pods = spec.placement.pods
    if spec.replicas and pods and spec.replicas > len(pods):
        at.nearest("replicas").note(f"asks for more replicas than the {len(pods)} pods that are named")


_spec: Reader[_Spec] = record(
    _Spec,
    SPEC,
    names={"poolRef": "pool_ref", "adapterName": "adapter_name", "baseModel": "base_model"},
    check=_check,
)


def read_adapter(item: Object) -> AdapterWish:
    """What a LoraAdapter asks for.

    Raises:
        ObjectError: every problem of its spec, in one text.
    """
    name = name_of(item)
    spec = _read(look(item, "spec"))
    adapter = Adapter(
        name=spec.adapter_name or name,
        source=spec.source,
        revision=spec.revision,
        base_model=spec.base_model,
        rank=spec.rank,
        targets=spec.targets,
        sha256=spec.sha256,
        declared=True,
        pin=_pin(spec),
        weekend=spec.weekend,
    )
    if adapter.name in spec.then:
        raise ObjectError("spec.then", "must not name the adapter itself", found=adapter.name)
    group = AffinityGroup(name=adapter.name, first=adapter.name, then=spec.then) if spec.then else None
    schedules = tuple(msgspec.structs.replace(each, adapters=(adapter.name,)) for each in spec.schedules)
    return AdapterWish(object_name=name, adapter=adapter, group=group, schedules=schedules)


def _pin(spec: _Spec) -> PinSpec | None:
    place = spec.placement
    if not spec.replicas and not place.prefill_replicas and not place.pods and not place.selector:
        return None
    return PinSpec(
        replicas=spec.replicas or None,
        prefill_replicas=place.prefill_replicas,
        pods=place.pods,
        selector=place.selector,
        reserve=place.reserve,
    )


def _read(spec: object) -> _Spec:
    if not isinstance(spec, Mapping):
        raise ObjectError("spec", "must be a mapping", found=spec)
    report = Report("spec")
    try:
        # JSON is YAML; so the configuration's readers complain about paths of the object.
        found = _spec(parse_document(msgspec.json.encode(spec), report))
        report.raise_if_any()
        return found
    except Refused:
        problems = report.problems
    except ConfigError as error:
        problems = [*error.problems]
    said = [f"{each.field}: {each.message}{f' (found {each.value})' if each.value else ''}" for each in problems]
    raise ObjectError("spec", "; ".join(said))
