"""Ways to write an entry of the catalogue.

In: words and readers. Out: `PluginType`. Not here: the entries (see `scheduling`, `further`).
"""

from typing import Any

from lorapick.wire.config.document import At
from lorapick.wire.config.epp.reading import anything, parameters
from lorapick.wire.config.epp.values import Kind, PluginType, ReadParameters, Support

NONE = parameters({})
"""A type without parameters."""


def _whatever(at: At | None) -> dict[str, Any]:
    """Parameters of a type that is refused anyway, or does nothing."""
    if at is not None:
        at.entries()
        anything(at)
    return {}


def same(type_: str, *kinds: Kind, does: str, read: ReadParameters = NONE, old_name_of: str = "") -> PluginType:
    """It means the same here."""
    return PluginType(type_, kinds, Support.SAME, does, read, old_name_of, bool(old_name_of))


def differs(type_: str, *kinds: Kind, does: str, read: ReadParameters = NONE, old_name_of: str = "") -> PluginType:
    """It does what it is for, otherwise; `does` says how."""
    return PluginType(type_, kinds, Support.DIFFERS, does, read, old_name_of, bool(old_name_of))


def always(type_: str, *kinds: Kind, does: str, read: ReadParameters = _whatever, old_name_of: str = "") -> PluginType:
    """Accepted, and changes nothing."""
    return PluginType(type_, kinds, Support.ALWAYS, does, read, old_name_of, bool(old_name_of))


def own(type_: str, *kinds: Kind, does: str) -> PluginType:
    """Only lorapick has it."""
    return PluginType(type_, kinds, Support.OWN, does, NONE)


def refused(type_: str, *kinds: Kind, because: str, instead: str) -> PluginType:
    """Refused by name."""
    return PluginType(type_, kinds, Support.REFUSED, because, _whatever, instead)
