"""Readers: small functions from a node to a value, and the ways to put them together.

In: `At`. Out: the value; or a problem in the report and `Refused`. A reader that holds others lets all of them read
before it gives up, so that one pass finds every problem.
Not here: the keys of any section.
"""

import contextlib
import math
import re
import zoneinfo
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from typing import Any, TypeAlias, TypeVar
from urllib.parse import SplitResult, urlsplit

from lorapick.model.units import AdapterName, Bytes, Ratio, Seconds
from lorapick.wire.config.document import At, Refused, nearest_word
from lorapick.wire.units import UnitError, parse_duration, parse_size

T = TypeVar("T")
Reader: TypeAlias = Callable[[At], T]
Check: TypeAlias = Callable[[At, T], None]
"""Looks at a finished value and notes what is wrong with it as a whole."""

_MAX_TEXT = 4096
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)", re.ASCII)
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", re.ASCII)
_MAX_DIGITS = 18
_TAG = "tag:yaml.org,2002:"
_STR, _INT, _FLOAT, _BOOL = (_TAG + name for name in ("str", "int", "float", "bool"))


def text(at: At) -> str:
    """Text of one line, not empty."""
    if at.tag != _STR:
        hint = "put it in quotes" if at.tag.startswith(_TAG) and not at.is_null else ""
        at.refuse("must be text", hint=hint if at.is_scalar else "")
    value = str(at.node.value)
    if not value.strip() or not value.isprintable() or len(value) > _MAX_TEXT:
        at.refuse(f"must be text of one line with 1 to {_MAX_TEXT} characters")
    return value


def word(at: At) -> str:
    """Text without blanks: a name that stands in headers, labels and addresses of the admin API."""
    value = text(at)
    if any(character.isspace() for character in value):
        at.refuse("must not contain blanks")
    return value


def adapter_name(at: At) -> AdapterName:
    """The engine's name of an adapter."""
    value = word(at)
    if "," in value:
        at.refuse("must not contain a comma", hint="vLLM joins adapter names with commas in its metrics")
    return value


def label_text(at: At) -> str:
    """Text, or a number that stands for itself (`revision: 7`, `{generation: 2}`)."""
    return str(at.node.value) if at.tag in (_INT, _FLOAT) else text(at)


def choice(*known: str, elsewhere: Mapping[str, str] | None = None) -> Reader[str]:
    """One of some words; `elsewhere` has hints for words that belong in another place."""

    def read(at: At) -> str:
        value = text(at)
        if value not in known:
            hint = (elsewhere or {}).get(value.lower()) or _only_close(value, known)
            at.refuse(f"must be {_either(known)}", hint=hint)
        return value

    return read


def not_yet(hint: str) -> Reader[Any]:
    """Reader of a key of a part that does not exist yet: refuses it by name."""

    def read(at: At) -> Any:
        at.refuse("is not yet available", hint=hint, value="")

    return read


def boolean(at: At) -> bool:
    """`true` or `false`; YAML 1.1's yes, no, on and off are refused because they surprise."""
    value = str(at.node.value).lower() if at.tag == _BOOL else ""
    if value not in ("true", "false"):
        at.refuse("must be true or false")
    return value == "true"


def integer(*, least: int, most: int = 2**31 - 1) -> Reader[int]:
    """A whole number in decimal digits, in a range."""

    def read(at: At) -> int:
        raw = str(at.node.value) if at.tag == _INT else ""
        if len(raw) > _MAX_DIGITS or not _INTEGER.fullmatch(raw) or not least <= int(raw) <= most:
            upper = f" and at most {most}" if most < 2**31 - 1 else ""
            hint = "remove the quotes" if at.tag == _STR and _INTEGER.fullmatch(str(at.node.value)) else ""
            at.refuse(f"must be a whole number of at least {least}{upper}", hint=hint)
        return int(raw)

    return read


def number(*, least: float = -math.inf, most: float = math.inf, what: str = "a number") -> Reader[float]:
    """A finite number in a range."""

    def read(at: At) -> float:
        # YAML 1.1 takes 1e3 for text, and 1:30 for 90.
        raw = str(at.node.value) if at.tag in (_INT, _FLOAT, _STR) else ""
        value = float(raw) if _NUMBER.fullmatch(raw) and len(raw) <= 2 * _MAX_DIGITS else math.nan
        if not (least <= value <= most and math.isfinite(value)):
            at.refuse(f"must be {what}{_range(least, most)}")
        return value

    return read


share: Reader[Ratio] = number(least=0.0, most=1.0, what="a share")
"""A number between 0 and 1."""


def positive_share(at: At) -> Ratio:
    """A share that is not 0."""
    value = share(at)
    if value == 0:
        at.refuse("must be a share above 0")
    return value


def duration(*, least: Seconds = 0.0, most: Seconds = 366 * 86_400.0) -> Reader[Seconds]:
    """Seconds, written with units."""

    def read(at: At) -> Seconds:
        value = _with_unit(at, parse_duration)
        if not least <= value <= most:
            at.refuse(f"must be a duration between {_plain(least)}s and {_plain(most)}s")
        return value

    return read


def size(*, least: Bytes = 1, most: Bytes = 2**50) -> Reader[Bytes]:
    """Bytes, written with units."""

    def read(at: At) -> Bytes:
        value = _with_unit(at, parse_size)
        if not least <= value <= most:
            at.refuse(f"must be a size between {least}B and {most}B")
        return value

    return read


def list_of(read_item: Reader[T], *, least: int = 0, unique: str | None = None) -> Reader[tuple[T, ...]]:
    """A list; `unique` names the key whose value no two items may share, or is "" for the items themselves."""

    def read(at: At) -> tuple[T, ...]:
        items = at.items()
        if len(items) < least:
            at.refuse(f"must have at least {least} item{'s' if least > 1 else ''}", value="")
        values = gather(items, read_item)
        if unique is not None:
            keys = [item.find(unique) if unique else item for item in items]
            no_duplicates((key for key in keys if key is not None), what=unique)
        if len(values) < len(items):
            raise Refused
        return tuple(values)

    return read


def gather(places: Iterable[At], read: Reader[T]) -> list[T]:
    """What could be read; the rest is in the report."""
    values: list[T] = []
    for place in places:
        with contextlib.suppress(Refused):
            values.append(read(place))
    return values


def _as_written(place: At) -> Hashable:
    return str(place.node.value)


def no_duplicates(places: Iterable[At], *, what: str, same: Callable[[At], Hashable] = _as_written) -> None:
    """Note every value that stood before; `same` gives what two of them are compared by."""
    first: dict[Hashable, At] = {}
    for place in places:
        if not place.is_scalar:
            continue
        before = first.setdefault(same(place), place)
        if before is not place:
            where = f"line {before.node.start_mark.line + 1}"
            place.note(f"this {what or 'value'} stands twice; the first is in {where}")


def timezone(at: At) -> str:
    """Name of a time zone."""
    value = text(at)
    known = zoneinfo.available_timezones()
    if value not in known:
        hint = nearest_word(value, known)
        at.refuse("must be a time zone of the IANA database", hint=hint or 'for example "America/Mexico_City" or "UTC"')
    return value


def labels(at: At) -> dict[str, str]:
    """A mapping of words to text, as in `selector: {zone: west}`."""
    entries = at.entries()
    values: dict[str, str] = {}
    for name, entry in entries.items():
        with contextlib.suppress(Refused):
            values[name] = label_text(entry.value)
    if len(values) < len(entries):
        raise Refused
    return values


def fields(
    at: At, readers: Mapping[str, Reader[Any]], *, required: Collection[str] = (), also: Collection[str] = ()
) -> dict[str, Any]:
    """Values of those keys of a mapping that could be read; unknown and missing keys are noted.

    `also` names keys that are known and read elsewhere.

    Raises:
        Refused: it is no mapping.
    """
    entries = at.entries()
    values: dict[str, Any] = {}
    for name, entry in entries.items():
        if (read := readers.get(name)) is not None:
            if entry.value.is_null:
                entry.key.note("has no value", hint="give it one or remove the key", value="")
            else:
                with contextlib.suppress(Refused):
                    values[name] = read(entry.value)
        elif name not in also:
            hint = nearest_word(name, [*readers, *also])
            entry.key.note("unknown key", hint=hint)
    for name in required:
        if name not in entries:
            at.note(f'the key "{name}" is missing', value="")
    return values


def record(
    build: Callable[..., T],
    readers: Mapping[str, Reader[Any]],
    *,
    required: Collection[str] = (),
    names: Mapping[str, str] | None = None,
    check: Check[T] | None = None,
) -> Reader[T]:
    """A mapping as a value: `build` gets what was read, under `names` where the key is called otherwise there."""
    renamed = names or {}

    def read(at: At) -> T:
        before = len(at.report.problems)
        values = fields(at, readers, required=required)
        if len(at.report.problems) > before:
            raise Refused
        value = build(**{renamed.get(name, name): value for name, value in values.items()})
        if check is not None:
            check(at, value)
        return value

    return read


def _with_unit(at: At, parse: Callable[[str], T]) -> T:
    raw = str(at.node.value) if at.tag in (_STR, _INT, _FLOAT) else ""
    try:
        return parse(raw)
    except UnitError as error:
        at.refuse(str(error))


def _either(known: Collection[str]) -> str:
    quoted = [f'"{word}"' for word in known]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}"


def _only_close(value: str, known: Collection[str]) -> str:
    hint = nearest_word(value, known)
    return hint if hint.startswith("did") else ""


def _range(least: float, most: float) -> str:
    if least > -math.inf and most < math.inf:
        return f" between {_plain(least)} and {_plain(most)}"
    return f" of at least {_plain(least)}" if least > -math.inf else ""


def _plain(value: float) -> str:
    """A bound as people write it: 1000000, not 1e+06."""
    return str(int(value)) if value == int(value) else f"{value:g}"


def web_address(at: At, *, must: str, example: str) -> SplitResult:
    """An http or https URL with a host; `must` says what it is for, when it is none."""
    value = text(at)
    try:
        parts = urlsplit(value)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid:
        at.refuse(must, hint=f'for example "{example}"')
    return parts
