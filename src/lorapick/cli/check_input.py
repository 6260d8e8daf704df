"""What `lorapick check` is about: the fleet, today's adapters, the rollout, from files or a running picker.

In: options of the command line. Out: `Fleet`, `Case`. Not here: any judgement (see `plan.gate`).
"""

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from lorapick.cli import admin_client
from lorapick.cli.loading import load
from lorapick.live.catalogue.files import read_config, read_tensors
from lorapick.live.publish import FleetSnapshot
from lorapick.model.adapters import Adapter, PinSpec
from lorapick.model.placement import AdapterFacts
from lorapick.model.pods import Pod, PodLimits
from lorapick.model.settings import AlertSettings, SloSettings
from lorapick.model.signals import Signals
from lorapick.model.units import AdapterName
from lorapick.plan.gate.compatibility import faults
from lorapick.plan.gate.reading import parse, split_of
from lorapick.plan.gate.rollout import Listed, Rollout, RolloutError, Traffic, after, today
from lorapick.plan.gate.values import Finding, Plan, Rules, rules_of
from lorapick.plan.prediction.values import FleetShape
from lorapick.wire.adapter_source import AdapterSourceError
from lorapick.wire.admin_answers import PlacementAnswer
from lorapick.wire.peft import CONFIG_FILE, WEIGHTS_FILE, PeftError, facts


class Fleet(msgspec.Struct, frozen=True, kw_only=True):
    """Where adapters will run, and who is there."""

    shape: FleetShape
    rules: Rules
    adapters: tuple[Adapter, ...]
    """Declared."""
    rates: Mapping[AdapterName, float]
    """Requests per second, as measured by a picker."""
    limits_known: bool
    """Whether base models and ranks of the pods are: a picker's API does not tell them."""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """The options that say what changes."""

    rollout: Path | None
    today: Path | None
    splits: tuple[str, ...]
    slots: int | None
    pods: int | None
    pins: tuple[AdapterName, ...]


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """What the gate is asked."""

    now: Plan | None
    """None: the fleet as it is is what is asked about."""
    then: Plan
    faults: tuple[Finding, ...]


class _Found(msgspec.Struct, frozen=True, kw_only=True):
    """A rollout, and what files say of its adapters."""

    rollout: Rollout
    facts: Mapping[AdapterName, AdapterFacts]


def fleet_of(config: Path) -> Fleet:
    """The fleet of a configuration. Raises ConfigError."""
    loaded = load(config)
    settings = loaded.settings
    if not loaded.pods:
        raise RolloutError(f"{config} names no pods; a check needs their slots: list them, or ask a picker (--admin)")
    return Fleet(
        shape=FleetShape(pods=loaded.pods, policy=settings.picking.policy),
        rules=rules_of(settings.alerts, settings.slo),
        adapters=settings.adapters,
        rates={},
        limits_known=True,
    )


def fleet_at(admin: str) -> Fleet:
    """The fleet of a running picker, with its pins and its traffic of the last 10 minutes. Raises AdminError."""
    snapshot = admin_client.decode(admin_client.get(admin, "/v1/fleet"), FleetSnapshot, admin)
    signals = admin_client.decode(admin_client.get(admin, "/v1/signals"), Signals, admin)
    pods = tuple(
        Pod(name=row.name, address=row.address, engine=row.engine, limits=PodLimits(max_loras=row.slots))
        for row in snapshot.pods
    )
    if not pods:
        raise RolloutError(f"the picker at {admin} has no pods; a check needs their slots: name a configuration")
    rates = {each.adapter: each.requests_per_second for each in signals.adapters if each.requests_per_second > 0}
    return Fleet(
        shape=FleetShape(pods=pods, policy=snapshot.policy),
        rules=rules_of(AlertSettings(), SloSettings()),
        adapters=tuple(Adapter(name=name, pin=pin) for name, pin in _pins_at(admin).items()),
        rates=rates,
        limits_known=False,
    )


def _pins_at(admin: str) -> dict[AdapterName, PinSpec]:
    """Pins that a running picker keeps; none when it places nothing."""
    try:
        body = admin_client.get(admin, "/v1/placement")
    except admin_client.RefusedError:
        return {}
    return {row.adapter: row.pin for row in admin_client.decode(body, PlacementAnswer, admin).pins}


def case_of(fleet: Fleet, asked: Asked, traffic: Traffic) -> Case:
    """Put fleet and rollout together.

    Raises:
        RolloutError: a file is none of those that can be read, or contradicts what there is.
        AdapterSourceError: an adapter's own files cannot be read.
    """
    listed = _today(fleet, asked.today)
    before = today(listed, traffic) if listed else ()
    found = _rollout(asked, known=[each.name for each in listed])
    rollout = found.rollout
    changed = rollout != Rollout() or asked.slots is not None or asked.pods is not None or bool(asked.pins)
    if not before and rollout.adapters is None and not rollout.added:
        raise RolloutError("no adapters: declare them in the configuration, or list them in a file (--today, ROLLOUT)")
    demand = after(before, rollout, traffic=traffic)
    unknown = [name for name in asked.pins if name not in [each.adapter for each in demand]]
    if unknown:
        raise RolloutError(f"--pin {unknown[0]}: no such adapter will be active")
    pinned = tuple(
        msgspec.structs.replace(each, pin=each.pin or PinSpec(replicas=1)) if each.adapter in asked.pins else each
        for each in demand
    )
    now = Plan(fleet=fleet.shape, demand=before)
    then = Plan(fleet=_shape(fleet.shape, slots=asked.slots, pods=asked.pods), demand=pinned)
    meant = [*(rollout.adapters or ()), *rollout.added]
    names = [each.name for each in meant] or [each.adapter for each in demand]
    return Case(
        now=now if changed and before else None, then=then, faults=_faults(fleet, meant, names=names, told=found.facts)
    )


def _today(fleet: Fleet, file: Path | None) -> tuple[Listed, ...]:
    if file is not None:
        rollout = parse(file.read_bytes(), file=str(file))
        if rollout.adapters is None or rollout.added or rollout.removed or rollout.splits:
            raise RolloutError(f"{file}: today's adapters are a list, without changes")
        return rollout.adapters
    if fleet.rates:
        pins = {each.name: each.pin for each in fleet.adapters}
        return tuple(Listed(name=name, rate=rate, pin=pins.get(name)) for name, rate in fleet.rates.items())
    return tuple(Listed(name=each.name, pin=each.pin) for each in fleet.adapters)


def _rollout(asked: Asked, *, known: Sequence[AdapterName]) -> _Found:
    splits = tuple(split_of(text) for text in asked.splits)
    path = asked.rollout
    if path is None:
        return _Found(rollout=Rollout(splits=splits), facts={})
    if path.is_dir():
        folders = {path.name: path} if (path / CONFIG_FILE).is_file() else _folders(path)
        told = {name: facts_in(folder) for name, folder in folders.items()}
        added = tuple(Listed(name=name, rank=each.rank) for name, each in told.items() if name not in known)
        return _Found(rollout=Rollout(added=added, splits=splits), facts=told)
    rollout = parse(path.read_bytes(), file=str(path))
    told = {
        each.name: facts_in(Path(each.source))
        for each in (*(rollout.adapters or ()), *rollout.added)
        if each.source is not None and (Path(each.source) / CONFIG_FILE).is_file()
    }
    return _Found(rollout=msgspec.structs.replace(rollout, splits=(*rollout.splits, *splits)), facts=told)


def _folders(path: Path) -> dict[AdapterName, Path]:
    found = {file.parent.name: file.parent for file in sorted(path.glob(f"*/{CONFIG_FILE}"))}
    if not found:
        raise RolloutError(
            f"{path}: no folder in it has an {CONFIG_FILE}; name a directory of PEFT adapters, or a list"
        )
    return found


def facts_in(folder: Path) -> AdapterFacts:
    """What the files in a PEFT adapter's folder say; the weights may be missing. Raises AdapterSourceError."""
    file = folder / CONFIG_FILE
    config = read_config(file)
    with contextlib.suppress(PeftError):
        if (folder / WEIGHTS_FILE).is_file():
            return facts(config, read_tensors(folder / WEIGHTS_FILE), file=str(file))
    return facts(config, None, file=str(file))


def _shape(shape: FleetShape, *, slots: int | None, pods: int | None) -> FleetShape:
    for option, value in (("--slots", slots), ("--pods", pods)):
        if value is not None and value < 1:
            raise RolloutError(f"{option} {value}: 1 or more")
    found = list(shape.pods[: pods or len(shape.pods)])
    found += [
        msgspec.structs.replace(shape.pods[-1], name=f"new-pod-{number + 1:02d}")
        for number in range(len(found), pods or 0)
    ]
    if slots is not None:
        found = [
            msgspec.structs.replace(pod, limits=msgspec.structs.replace(pod.limits, max_loras=slots)) for pod in found
        ]
    return FleetShape(pods=tuple(found), policy=shape.policy)


def _faults(
    fleet: Fleet, meant: Sequence[Listed], *, names: Sequence[AdapterName], told: Mapping[AdapterName, AdapterFacts]
) -> tuple[Finding, ...]:
    """Of the adapters that the rollout names; of all when it names none."""
    declared = {each.name: each for each in fleet.adapters}
    listed = {each.name: each for each in meant}
    adapters = []
    for name in dict.fromkeys((*names, *told)):
        known, entry = declared.get(name, Adapter(name=name)), listed.get(name)
        rank = entry.rank if entry is not None and entry.rank is not None else known.rank
        base = entry.base_model if entry is not None and entry.base_model is not None else known.base_model
        adapters.append(Adapter(name=name, rank=rank, base_model=base))
    if not fleet.limits_known:
        adapters = [Adapter(name=each.name) for each in adapters]
        told = {name: msgspec.structs.replace(each, rank=None, base_model=None) for name, each in told.items()}
    return faults(adapters, fleet.shape.pods, facts=told)


Unusable = (RolloutError, AdapterSourceError, OSError, ValueError)
"""What may be wrong with the input."""
