"""Any Kubernetes object: its metadata, and careful looks into the rest.

In: a decoded JSON value, which may be anything. Out: names, times, fields of the expected type; or `ObjectError`.
Not here: what a kind's fields mean (see the other files of this package).
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, TypeAlias, TypeVar

from lorapick.model.units import Seconds

Object: TypeAlias = Mapping[str, Any]
T = TypeVar("T")
_SHOWN = 80


class ObjectError(ValueError):
    """An object that cannot be read: the field, what stands there, what would be right."""

    def __init__(self, field: str, message: str, *, found: object = None) -> None:
        """Say where and what; `found` is shown shortened."""
        shown = repr(found)
        tail = f" (found {shown if len(shown) <= _SHOWN else shown[:_SHOWN] + '…'})" if found is not None else ""
        super().__init__(f"{field}: {message}{tail}")
        self.field = field


def look(value: object, *path: str) -> Any:
    """What stands below `value` at a path of keys; None: nothing does."""
    for key in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(key)
    return value


def expect(value: object, kind: type[T], *, field: str, what: str) -> T:
    """The value, if it is of a type.

    Raises:
        ObjectError: it is of another.
    """
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise ObjectError(field, f"must be {what}", found=value)
    return value


def name_of(item: Object) -> str:
    """`metadata.name`.

    Raises:
        ObjectError: there is none, so nobody could speak of the object.
    """
    name = look(item, "metadata", "name")
    if not isinstance(name, str) or not name:
        raise ObjectError("metadata.name", "must be text", found=name)
    return name


def words(item: Object, *path: str) -> dict[str, str]:
    """A mapping of text to text, such as labels; entries of other types are left out, as no API server has them."""
    found = look(item, *path)
    if not isinstance(found, Mapping):
        return {}
    return {key: value for key, value in found.items() if isinstance(key, str) and isinstance(value, str)}


def labels_of(item: Object) -> dict[str, str]:
    """`metadata.labels`."""
    return words(item, "metadata", "labels")


def annotations_of(item: Object) -> dict[str, str]:
    """`metadata.annotations`."""
    return words(item, "metadata", "annotations")


def moment(value: object) -> Seconds | None:
    """Unix time of an RFC 3339 text; None: it is none."""
    if not isinstance(value, str):
        return None
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        return None
    return found.replace(tzinfo=found.tzinfo or UTC).timestamp()


def rfc3339(unix: Seconds, *, micro: bool = False) -> str:
    """Text of a Unix time; `micro` for fields of type MicroTime, which want six digits."""
    text = datetime.fromtimestamp(unix, UTC).isoformat(timespec="microseconds" if micro else "seconds")
    return text.replace("+00:00", "Z")


def age_order(item: Object) -> tuple[float, str]:
    """Oldest first, then by name: who wins where two objects say different things of one thing."""
    created = moment(look(item, "metadata", "creationTimestamp"))
    return (created if created is not None else 0.0, str(look(item, "metadata", "name")))
