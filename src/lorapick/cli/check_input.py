"""What `lorapick check` is about: today's adapters and the rollout, on a fleet.

In: options of the command line, a `Fleet`. Out: a `Case`. Not here: where the fleet comes from (see `check_fleet`), any
judgement (see `plan.gate`).
"""

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from itertools import islice
from pathlib import Path

import msgspec

from lorapick.cli.check_fleet import Fleet
from lorapick.live.catalogue.files import read_config, read_tensors
from lorapick.model.adapters import Adapter, PinSpec
from lorapick.model.units import AdapterName
from lorapick.plan.gate.compatibility import AdapterFiles, faults
from lorapick.plan.gate.names import clashes, strangers
from lorapick.plan.gate.reading import LARGEST, parse, split_of
from lorapick.plan.gate.rollout import Listed, Rollout, RolloutError, Traffic, after, near, today
from lorapick.plan.gate.values import Finding, Level, Plan
from lorapick.plan.prediction.values import Demand, FleetShape
from lorapick.plan.sizes.models import BaseModel, read_model
from lorapick.wire.adapter_source import AdapterSourceError, LocalPath, parse_source
from lorapick.wire.peft import CONFIG_FILE, WEIGHTS_FILE, facts

MOST_PODS = 10_000
MOST_SLOTS = 100_000
MOST_BESIDE = 1_000
"""Names beside a file that is not there, among which near ones are searched."""
READABLE = "name a list of adapters, a difference, a split, or a directory of PEFT adapters"


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """The options that say what changes."""

    rollout: Path | None
    today: Path | None
    splits: tuple[str, ...]
    slots: int | None
    pods: int | None
    pins: tuple[AdapterName, ...]
    model: str | None = None
    """What the pods serve, as `plan.sizes.models.read_model` takes it; None: by the name that they have for it."""
    undeclared_ok: bool = False
    """Whether today's list may have names that the fleet has never heard of."""


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """What the gate is asked."""

    now: Plan | None
    """None: the fleet as it is is what is asked about."""
    today: Plan | None
    """The fleet as it is, also where that is what is asked about; None: nobody says what is active today."""
    then: Plan
    faults: tuple[Finding, ...]


class _Found(msgspec.Struct, frozen=True, kw_only=True):
    """A rollout, and what files say of its adapters."""

    rollout: Rollout
    files: Mapping[AdapterName, AdapterFiles]
    unseen: tuple[AdapterName, ...] = ()
    """Those that name a source in which nothing can be seen from here."""

    @property
    def meant(self) -> tuple[Listed, ...]:
        """Adapters that it names, those that only splits name too."""
        listed = (*(self.rollout.adapters or ()), *self.rollout.added)
        names = [each.name for each in listed]
        split = dict.fromkeys(name for weights in self.rollout.splits for name in weights if name not in names)
        return (*listed, *(Listed(name=name) for name in split))


def case_of(fleet: Fleet, asked: Asked, traffic: Traffic) -> Case:
    """Put fleet and rollout together.

    Raises:
        UnknownModelError: `asked.model` is none.
        RolloutError: a file is none of those that can be read, or contradicts what there is.
        AdapterSourceError: an adapter's own files cannot be read.
        PeftError: or contradict one another.
    """
    listed = _today(fleet, asked.today)
    found = _rollout(asked, known=[each.name for each in listed])
    rollout = found.rollout
    quiet = fleet.measured and asked.today is None and not fleet.rates and traffic.rate == 0
    if quiet and rollout.adapters is None:
        raise RolloutError(
            f"{fleet.told_by} had no requests in the last 10 minutes, so nothing is known of its traffic; say "
            "how many there will be per second (--rate), or for each adapter in a list (--today)"
        )
    before = today(listed, traffic) if listed and not quiet else ()
    changed = rollout != Rollout() or asked.slots is not None or asked.pods is not None or bool(asked.pins)
    if not before and rollout.adapters is None and not rollout.added:
        raise RolloutError("no adapters: declare them in the configuration, or list them in a file (--today, ROLLOUT)")
    demand = _pinned(after(before, rollout, traffic=traffic), asked.pins)
    now = Plan(fleet=fleet.shape, demand=before)
    then = Plan(fleet=_shape(fleet.shape, slots=asked.slots, pods=asked.pods), demand=demand)
    names = [each.adapter for each in demand]
    model = None if asked.model is None else read_model(asked.model)
    told = (*_faults(fleet, found, names=names, model=model), *_not_looked_at(found.unseen), *_too_many(demand, then))
    if asked.today is not None and not asked.undeclared_ok:
        known = dict.fromkeys((*fleet.rates, *(each.name for each in fleet.adapters)))
        told = (*told, *strangers([each.name for each in listed], known, told_by=fleet.told_by, file=str(asked.today)))
    return Case(now=now if changed and before else None, today=now if before else None, then=then, faults=told)


def _pinned(demand: Sequence[Demand], pins: Sequence[AdapterName]) -> tuple[Demand, ...]:
    names = [each.adapter for each in demand]
    unknown = [name for name in pins if name not in names]
    if unknown:
        raise RolloutError(f"--pin {unknown[0]}: no such adapter will be active{near(unknown[0], names)}")
    return tuple(
        msgspec.structs.replace(each, pin=each.pin or PinSpec(replicas=1)) if each.adapter in pins else each
        for each in demand
    )


def _today(fleet: Fleet, file: Path | None) -> tuple[Listed, ...]:
    if file is not None:
        rollout = parse(_content(file), file=str(file))
        if rollout.adapters is None or rollout.added or rollout.removed or rollout.splits:
            raise RolloutError(f"{file}: today's adapters are a list, without changes")
        return rollout.adapters
    if fleet.rates:
        pins = {each.name: each.pin for each in fleet.adapters}
        return tuple(Listed(name=name, rate=rate, pin=pins.get(name)) for name, rate in fleet.rates.items())
    return tuple(Listed(name=each.name, pin=each.pin) for each in fleet.adapters)


def _content(file: Path) -> bytes:
    """What a file has; one that never ends is left off where it is too long."""
    try:
        with file.open("rb") as stream:
            return stream.read(LARGEST + 1)
    except OSError as error:
        raise RolloutError(f"{file}: {_why(file, error)}; {READABLE}") from None


def _why(file: Path, error: OSError) -> str:
    """Why a file cannot be read, in words; of one that is not there, with near ones beside it."""
    if not isinstance(error, FileNotFoundError):
        return f"cannot be read ({error.strerror or error})"
    beside = [each.name for each in islice(file.parent.glob("*"), MOST_BESIDE)]
    close = get_close_matches(file.name, beside, n=1)
    return f"there is no such file or directory{f' (did you mean {close[0]}?)' if close else ''}"


def write_page(file: Path, page: str) -> None:
    """Write an HTML page.

    Raises:
        RolloutError: it cannot be written.
    """
    try:
        file.write_text(page, encoding="utf-8")
    except OSError as error:
        why = "there is no such directory" if isinstance(error, FileNotFoundError) else error.strerror or str(error)
        raise RolloutError(
            f"--html {file}: cannot be written ({why}); name a file in a directory that is there"
        ) from None


def _rollout(asked: Asked, *, known: Sequence[AdapterName]) -> _Found:
    splits = tuple(split_of(text) for text in asked.splits)
    path = asked.rollout
    if path is None:
        return _Found(rollout=Rollout(splits=splits), files={})
    if path.is_dir():
        folders = {path.resolve().name: path} if (path / CONFIG_FILE).is_file() else _folders(path)
        files = {name: files_in(folder) for name, folder in folders.items()}
        added = tuple(Listed(name=name, rank=each.facts.rank) for name, each in files.items() if name not in known)
        return _Found(rollout=Rollout(added=added, splits=splits), files=files)
    rollout = parse(_content(path), file=str(path))
    listed = (*(rollout.adapters or ()), *rollout.added)
    sources = {each.name: _folder(each, beside=path.parent) for each in listed if each.source is not None}
    files = {name: files_in(folder) for name, folder in sources.items() if folder and (folder / CONFIG_FILE).is_file()}
    return _Found(
        rollout=msgspec.structs.replace(rollout, splits=(*rollout.splits, *splits)),
        files=files,
        unseen=tuple(name for name in sources if name not in files),
    )


def _folder(each: Listed, *, beside: Path) -> Path | None:
    """Of an adapter's source, relative ones from the rollout's file on; None: it is on no file system.

    Raises:
        RolloutError: there is no such folder.
        AdapterSourceError: it is no source.
    """
    text = each.source or ""
    if text.startswith("hf://"):
        return None
    source = parse_source(text)
    if not isinstance(source, LocalPath):
        return None
    folder = beside / source.path
    if not folder.is_dir():
        raise RolloutError(
            f"{each.name}: its source {text} is no folder (relative ones begin beside the rollout's file); correct it, "
            "or leave it out, and nothing of its files is checked"
        )
    return folder


def _too_many(demand: Sequence[Demand], then: Plan) -> tuple[Finding, ...]:
    """Pins on more pods than there are."""
    pods = len(then.fleet.pods)
    return tuple(
        Finding(
            rule="pins",
            level=Level.FAIL,
            message=f"{each.adapter} is pinned with {each.pin.replicas} replicas and there are {pods} pods; lower it",
            adapter=each.adapter,
        )
        for each in demand
        if each.pin is not None and (each.pin.replicas or 0) > pods
    )


def _not_looked_at(names: Sequence[AdapterName]) -> tuple[Finding, ...]:
    if not names:
        return ()
    more = f" and {len(names) - 1:,} more" if len(names) > 1 else ""
    message = (
        f"not looked at: the source of {names[0]}{more} is remote or has no {CONFIG_FILE}, so rank, base model and "
        "modules are taken as declared"
    )
    return (Finding(rule="source", level=Level.WARN, message=message),)


def _folders(path: Path) -> dict[AdapterName, Path]:
    found = {file.parent.name: file.parent for file in sorted(path.glob(f"*/{CONFIG_FILE}"))}
    if not found:
        raise RolloutError(
            f"{path}: no folder in it has an {CONFIG_FILE}; name a directory of PEFT adapters, or a list"
        )
    return found


def files_in(folder: Path) -> AdapterFiles:
    """What the files in a PEFT adapter's folder say; the weights may be missing.

    Raises:
        AdapterSourceError: a file cannot be read, or is not what it should be.
        PeftError: the weights are not of this configuration.
    """
    file, weights = folder / CONFIG_FILE, folder / WEIGHTS_FILE
    config = read_config(file)
    tensors = read_tensors(weights) if weights.is_file() else None
    return AdapterFiles(facts(config, tensors, file=str(file)), config)


def _shape(shape: FleetShape, *, slots: int | None, pods: int | None) -> FleetShape:
    for option, value, most in (("--slots", slots, MOST_SLOTS), ("--pods", pods, MOST_PODS)):
        if value is not None and not 1 <= value <= most:
            raise RolloutError(f"{option} {value}: 1 or more, up to {most}")
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
    fleet: Fleet, found: _Found, *, names: Iterable[AdapterName], model: BaseModel | None
) -> tuple[Finding, ...]:
    """Of the adapters that the rollout names; of all (`names`) when it names none."""
    declared = {each.name: each for each in fleet.adapters}
    listed = {each.name: each for each in found.meant}
    adapters = []
    for name in dict.fromkeys((*(listed or names), *found.files)):
        known, entry = declared.get(name, Adapter(name=name)), listed.get(name)
        rank = entry.rank if entry is not None and entry.rank is not None else known.rank
        base = entry.base_model if entry is not None and entry.base_model is not None else known.base_model
        adapters.append(Adapter(name=name, rank=rank, base_model=base))
    bases = [pod.base_model for pod in fleet.shape.pods] if fleet.limits_known else []
    told = clashes([each.name for each in adapters], aliases=fleet.aliases, base_models=bases)
    pods = fleet.shape.pods if fleet.limits_known else ()
    return (*told, *faults(adapters, fleet.shape.pods, files=found.files, limits=bool(pods), model=model))


Unusable = (RolloutError, AdapterSourceError, OSError, ValueError)
"""What may be wrong with the input."""
