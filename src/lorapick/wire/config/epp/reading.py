"""How values stand in an `EndpointPickerConfig`: Go's durations, Kubernetes' quantities, keys without a value.

In: nodes. Out: values; or a problem in the report and `Refused`. Not here: what any key means.
"""

import re
from collections.abc import Collection, Mapping
from typing import Any, NoReturn

from yaml import MappingNode, Node, ScalarNode, SequenceNode

from lorapick.model.units import Seconds
from lorapick.wire.config.document import At, Refused, nearest_word
from lorapick.wire.config.epp.values import ReadParameters
from lorapick.wire.config.readers import Reader, text

_TAG = "tag:yaml.org,2002:"
_GO_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)")
_GO = re.compile(r"(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+", re.ASCII)
_GO_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_QUANTITY = re.compile(r"(\d{1,15}(?:\.\d{1,15})?|\.\d{1,15})(k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|[eE]\d{1,2})?", re.ASCII)
_POWERS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18} | {
    f"{letter}i": 2 ** (10 * power) for power, letter in enumerate("KMGTPE", start=1)
}
_LONGEST = 32
_SHOWN = 120


def members(
    at: At,
    readers: Mapping[str, Reader[Any]],
    *,
    required: Collection[str] = (),
    hints: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Values of a mapping's keys. Keys without a value count as missing; unknown ones are noted, some with `hints`.

    Raises:
        Refused: it is no mapping, or some key is wrong.
    """
    before = len(at.report.problems)
    values: dict[str, Any] = {}
    entries, whole = at.entries(), True
    for name, entry in entries.items():
        read = readers.get(name)
        if read is None:
            entry.key.note("unknown key", hint=(hints or {}).get(name) or _known(name, readers), value="")
        elif not entry.value.is_null:
            try:
                values[name] = read(entry.value)
            except Refused:
                whole = False  # perhaps without a problem of its own: it names a plugin that is wrong elsewhere
    for name in required:
        if name not in entries or entries[name].value.is_null:
            at.note(f'the key "{name}" is missing', value="")
    if len(at.report.problems) > before or not whole:
        raise Refused
    return values


def _known(name: str, readers: Mapping[str, Reader[Any]]) -> str:
    return nearest_word(name, readers) if readers else "there are none here"


def parameters(
    readers: Mapping[str, tuple[str, Reader[Any]]],
    defaults: Mapping[str, Any] | None = None,
    *,
    required: Collection[str] = (),
) -> ReadParameters:
    """Reader of a plugin's parameters: each key with the argument that it becomes (empty: none) and its reader."""

    def read(at: At | None) -> dict[str, Any]:
        found = dict(defaults or {})
        if at is None:
            return found
        values = members(at, {name: reader for name, (_, reader) in readers.items()}, required=required)
        return found | {readers[name][0]: value for name, value in values.items() if readers[name][0]}

    def read_or_miss(at: At | None) -> dict[str, Any]:
        if at is None and required:
            raise MissingParameters(required)
        return read(at)

    return read_or_miss


class MissingParameters(Exception):  # noqa: N818 - not an error of its own: whoever knows the place reports it
    """A plugin has no `parameters` and needs some."""

    def __init__(self, names: Collection[str]) -> None:
        """Keep the names."""
        super().__init__(", ".join(names))
        self.names = tuple(names)


def go_duration(at: At) -> Seconds:
    """Seconds of `1m`, `1m30s`, `200ms`, `0`."""
    raw = str(at.node.value) if at.is_scalar else ""
    value = go_seconds(raw) if raw.removeprefix("+") == "0" or at.tag == f"{_TAG}str" else None
    if value is None:
        at.refuse("must be a duration", hint='write a number with a unit, such as "200ms", "30s" or "1m30s"')
    return value


def go_seconds(raw: str) -> Seconds | None:
    """Seconds of a duration as Go writes them; None: it is none."""
    plain = raw.removeprefix("+")
    if plain == "0":
        return 0.0
    if not _GO.fullmatch(plain) or len(plain) > _LONGEST:
        return None
    return sum(float(number) * _GO_SECONDS[unit] for number, unit in _GO_PART.findall(plain))


def quantity(at: At) -> int:
    """A Kubernetes quantity as a whole number: `100`, `1k`, `1Gi`, `500M`."""
    raw = str(at.node.value) if at.is_scalar and at.tag in (f"{_TAG}str", f"{_TAG}int", f"{_TAG}float") else ""
    match = _QUANTITY.fullmatch(raw)
    if match is None:
        at.refuse("must be a quantity of Kubernetes", hint='for example 100, "1k", "500M" or "1Gi"')
    number, suffix = match.group(1), match.group(2) or ""
    power = 10 ** int(suffix[1:]) if suffix[:1] in ("e", "E") and suffix != "E" and suffix != "Ei" else _POWERS[suffix]
    value = float(number) * power
    if value > 2**62:
        at.refuse(f"must be at most {2**62}")
    return int(value)


def only(allowed: Reader[Any], *values: Any, because: str) -> Reader[Any]:
    """A value that must be one of a few, since lorapick has no other."""

    def read(at: At) -> Any:
        value = allowed(at)
        if value not in values:
            shown = " or ".join(f'"{each}"' if isinstance(each, str) else _plain(each) for each in values)
            at.refuse(f"must be {shown} here", hint=because)
        return value

    return read


def _plain(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def refused(why: str) -> Reader[Any]:
    """A key that lorapick has no counterpart of."""

    def read(at: At) -> NoReturn:
        at.refuse("has no counterpart here", hint=why, value="")

    return read


def anything(at: At) -> str:
    """Any value, which changes nothing."""
    return on_one_line(at)


def name_list(at: At) -> tuple[str, ...]:
    """A list of texts."""
    return tuple([text(each) for each in at.items()])


def on_one_line(at: At) -> str:
    """What stands here, as YAML on one line, shortened."""
    shown = _line(at.node, depth=6)
    return shown if len(shown) <= _SHOWN else shown[: _SHOWN - 1] + "…"


def _line(node: Node, *, depth: int) -> str:
    if not depth:
        return "…"
    if isinstance(node, MappingNode):
        pairs = [f"{_line(key, depth=depth - 1)}: {_line(value, depth=depth - 1)}" for key, value in node.value[:12]]
        return "{" + ", ".join(pairs) + "}"
    if isinstance(node, SequenceNode):
        return "[" + ", ".join(_line(item, depth=depth - 1) for item in node.value[:12]) + "]"
    assert isinstance(node, ScalarNode)
    shown = str(node.value)[:_SHOWN]
    return shown if shown.isprintable() else shown.encode("unicode_escape").decode()
