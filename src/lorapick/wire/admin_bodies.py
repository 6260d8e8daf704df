"""Bodies of the admin API's changes: JSON text to values, with errors that say field, value and remedy.

In: the bytes of one body. Out: a value; or `ConfigError`, whose problems are those of the configuration file, since the
same readers read both: what is wrong with a pin is told in the same words in either place.
Not here: HTTP (see `live.admin_changes`), and whether the adapters and pods that a body names exist.
"""

from typing import Any, TypeVar

import msgspec

from lorapick.core.picking.policies import POLICIES
from lorapick.model.adapters import Adapter, Alias, AliasTarget, PinSpec
from lorapick.model.arms import Mode
from lorapick.model.units import AdapterName, Bytes, PodName, Seconds
from lorapick.wire.config import intent
from lorapick.wire.config import mode as config_mode
from lorapick.wire.config.document import At, Refused, Report, parse_document
from lorapick.wire.config.problems import ConfigError
from lorapick.wire.config.readers import (
    Reader,
    choice,
    duration,
    integer,
    label_text,
    labels,
    list_of,
    record,
    word,
)

MOST_BYTES: Bytes = 64 * 1024
"""Of one body; a larger one is refused unread."""
MOST_ATTRIBUTES = 64
SOLVERS = ("flow", "rendezvous")
T = TypeVar("T")


class LoadBody(msgspec.Struct, frozen=True, kw_only=True):
    """Load on each of `pods`, else on `replicas` pods that `selector` fits."""

    pods: tuple[PodName, ...] = ()
    replicas: int = 1
    selector: dict[str, str] = {}


class PreloadBody(msgspec.Struct, frozen=True, kw_only=True):
    """Load ahead of need, and keep for a while."""

    lasts: Seconds
    replicas: int = 1
    selector: dict[str, str] = {}


class PreloadText(msgspec.Struct, frozen=True, kw_only=True):
    """A `PreloadBody` as it is written."""

    lasts: str = msgspec.field(name="for")
    """With units: `30m`, `9h30m`."""
    replicas: int = 1
    selector: dict[str, str] = {}


class UnloadBody(msgspec.Struct, frozen=True, kw_only=True):
    """Unload on `pods`; none named: on all."""

    pods: tuple[PodName, ...] = ()


class MoveBody(msgspec.Struct, frozen=True, kw_only=True):
    """Load on one pod first, then unload on the other."""

    source: PodName = msgspec.field(name="from")
    target: PodName = msgspec.field(name="to")


class NoBody(msgspec.Struct, frozen=True, kw_only=True):
    """Nothing needs to be said."""


class EventBody(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened outside."""

    name: str
    attributes: dict[str, str] = {}


class PlanBody(msgspec.Struct, frozen=True, kw_only=True):
    """How a placement is to be worked out."""

    replicas: str = "auto"
    """`auto`: as many as the load of each adapter wants; there is no other way yet."""
    solver: str | None = None
    """`flow` or `rendezvous`; None: the configuration's."""


class AdapterBody(msgspec.Struct, frozen=True, kw_only=True):
    """What is declared of an adapter, as in `adapters.list` of the configuration; its name stands in the path."""

    name: AdapterName | None = None
    """The same as in the path, if at all."""
    source: str | None = None
    revision: str | None = None
    base_model: str | None = None
    rank: int | None = None
    targets: tuple[str, ...] = ()
    size: int | str | None = None
    """Bytes, or text with a unit: "40MB"."""
    sha256: str | None = None
    pin: PinSpec | None = None
    weekend: str | None = None


class AliasBody(msgspec.Struct, frozen=True, kw_only=True):
    """Adapters that an alias leads to, by weight; its name stands in the path."""

    name: str | None = None
    """The same as in the path, if at all."""
    to: tuple[AliasTarget, ...]


def _check_load(at: At, body: LoadBody) -> None:
    if body.pods and (at.find("replicas") is not None or at.find("selector") is not None):
        at.nearest("pods").note(
            "are named, so replicas and selector have no meaning", hint="give pods, or replicas and selector"
        )


_replicas = integer(least=1, most=100_000)
_pods = list_of(word, least=1, unique="")
load: Reader[LoadBody] = record(LoadBody, {"pods": _pods, "replicas": _replicas, "selector": labels}, check=_check_load)
preload: Reader[PreloadBody] = record(
    PreloadBody,
    {"for": duration(least=1.0), "replicas": _replicas, "selector": labels},
    required=("for",),
    names={"for": "lasts"},
)
unload: Reader[UnloadBody] = record(UnloadBody, {"pods": _pods})


def _check_move(at: At, body: MoveBody) -> None:
    if body.source == body.target:
        at.nearest("to").note("is the pod that it is to leave", hint="name another pod")


move: Reader[MoveBody] = record(
    MoveBody,
    {"from": word, "to": word},
    required=("from", "to"),
    names={"from": "source", "to": "target"},
    check=_check_move,
)
nothing: Reader[NoBody] = record(NoBody, {})


def _attributes(at: At) -> dict[str, str]:
    entries = at.entries()
    if len(entries) > MOST_ATTRIBUTES:
        at.refuse(f"has {len(entries)} attributes; at most {MOST_ATTRIBUTES} are taken", value="")
    return {name: label_text(entry.value) for name, entry in entries.items()}


event: Reader[EventBody] = record(EventBody, {"name": word, "attributes": _attributes}, required=("name",))
plan: Reader[PlanBody] = record(PlanBody, {"replicas": choice("auto"), "solver": choice(*SOLVERS)})
_mode = config_mode.mode(tuple(POLICIES))


def mode(at: At) -> Mode:
    """As in the configuration, but that nothing is meant by an empty one."""
    if at.find("kind") is None and at.find("percent") is None:
        at.refuse("needs kind, or percent", hint='for example {"kind": "observe"} or {"percent": 25}', value="")
    return _mode(at)


pin: Reader[PinSpec] = intent.pin
adapter: Reader[Adapter] = intent.adapter
alias: Reader[Alias] = intent.alias


def read_body(content: bytes, reader: Reader[T], *, name: str | None = None) -> T:
    """The value of one body; an empty one is `{}`.

    Args:
        content: JSON, at most `MOST_BYTES`.
        reader: of the keys that there are.
        name: what the path says; it becomes the body's `name`.

    Raises:
        ConfigError: all problems; their lines mean nothing.
    """
    report = Report("body")
    found = _json(content, report)
    if name is not None:
        if found.setdefault("name", name) != name:
            report.add(line=1, column=1, field="name", message=f"must be the path's, {name!r}", hint="leave it out")
            report.raise_if_any()
        found["name"] = name
    # The readers read YAML's tree. JSON is written anew for it, since YAML would take much that is no JSON.
    root = parse_document(msgspec.json.encode(found), report)
    try:
        value = reader(root)
    except Refused:
        raise ConfigError(report.problems) from None
    report.raise_if_any()
    return value


def _json(content: bytes, report: Report) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(content or b"{}")
    except RecursionError:
        message = "nested too deep"
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        message = f"not JSON: {error}"
    else:
        if isinstance(found, dict):
            return found
        message = "must be a JSON object"
    report.add(line=1, column=1, message=message, hint='for example {"replicas": 2}')
    raise ConfigError(report.problems)
