"""The plugins of one file: those that it defines, and those that are injected when it does not.

In: nodes of `plugins`, references to them. Out: `Plugin`. A plugin that could not be read is remembered as broken, so
that references to it are no further problems. Not here: what plugins mean for one another (see `profiles`, `flow`).
"""

import contextlib
from collections.abc import Iterable

from lorapick.wire.config.document import At, Refused, nearest_word
from lorapick.wire.config.epp.catalogue import TYPES
from lorapick.wire.config.epp.reading import MissingParameters, members, on_one_line
from lorapick.wire.config.epp.values import Kind, Plugin, PluginType, Support
from lorapick.wire.config.readers import text

INJECTED = (
    "single-profile-handler",
    "max-score-picker",
    "fcfs-ordering-policy",
    "global-strict-fairness-policy",
    "static-usage-limit-policy",
    "utilization-detector",
    "openai-parser",
    "anthropic-parser",
    "vllmhttp-parser",
    "passthrough-parser",
    "metrics-data-source",
    "core-metrics-extractor",
    "approx-prefix-cache-producer",
    "inflight-load-producer",
    "token-producer",
)
"""Types that llm-d puts in by their type's name when something needs them and the file has none."""

_ELSEWHERE = {"weight": "a weight stands beside pluginRef, in a profile"}


class Registry:
    """Plugins by name, in the order of the file."""

    def __init__(self) -> None:
        """Start with none."""
        self.plugins: dict[str, Plugin] = {}
        self._broken: dict[str, None] = {}

    def read(self, at: At) -> None:
        """Read `plugins`.

        Raises:
            Refused: it is no list; plugins that are wrong are noted.
        """
        for item in at.items():
            with contextlib.suppress(Refused):
                self._add(item)

    def _add(self, at: At) -> None:
        name, type_ = at.find("name"), at.find("type")
        called = str(name.node.value) if name is not None and name.is_scalar and not name.is_null else ""
        called = called or (str(type_.node.value) if type_ is not None and type_.is_scalar else "")
        before = self.plugins.get(called)
        if before is not None and before.at is not None:
            first = before.at.node.start_mark.line + 1
            (name or type_ or at).refuse(f"this name of a plugin stands twice; the first is in line {first}")
        self._broken[called] = None
        readers = {"type": _type, "name": _name, "parameters": _same_node}
        values = members(at, readers, required=("type",), hints=_ELSEWHERE)
        found: PluginType = values["type"]
        written: At | None = values.get("parameters")
        try:
            arguments = found.read(written)
        except MissingParameters as missing:
            needed = " and ".join(f'"{each}"' for each in missing.names)
            at.refuse(f'the key "parameters" is missing; {found.type} needs {needed} in it', value="")
        if found.support is Support.REFUSED:
            assert type_ is not None
            type_.refuse(f"is not supported: {found.does}", hint=f"use {found.instead}")
        del self._broken[called]
        shown = on_one_line(written) if written is not None else ""
        self.plugins[called] = Plugin(called, found, arguments, shown, at)

    def refer(self, at: At, *kinds: Kind) -> Plugin:
        """The plugin that a reference names, of one of the kinds.

        Raises:
            Refused: there is none, or of another kind, or it is broken itself.
        """
        name = text(at)
        if name in self._broken:
            raise Refused
        if name not in self.plugins and name in INJECTED:
            self.inject(name)
        plugin = self.plugins.get(name)
        if plugin is None:
            written = [each.name for each in self.plugins.values() if each.at is not None]
            hint = nearest_word(name, written) if written else 'define it under "plugins"'
            at.refuse("no plugin has this name", hint=hint)
        if kinds and not any(plugin.is_a(kind) for kind in kinds):
            is_one = " and ".join(plugin.type.kinds)
            at.refuse(f"must name a plugin that is a {kinds[0]}; {plugin.type.type} is a {is_one}")
        return plugin

    def inject(self, type_: str) -> Plugin:
        """A plugin of that type under that name, with its defaults; the one that has the name, if there is one."""
        if type_ not in self.plugins:
            found = TYPES[type_]
            self.plugins[type_] = Plugin(type_, found, found.read(None), "", None)
        return self.plugins[type_]

    def of(self, kind: Kind) -> list[Plugin]:
        """All of a kind."""
        return [plugin for plugin in self.plugins.values() if plugin.is_a(kind)]

    def first_of(self, types: Iterable[str]) -> Plugin | None:
        """The first one of some types."""
        return next((plugin for plugin in self.plugins.values() if plugin.type.type in types), None)

    @property
    def whole(self) -> bool:
        """Whether every plugin could be read."""
        return not self._broken


def _type(at: At) -> PluginType:
    name = text(at)
    if name not in TYPES:
        at.refuse("no such plugin type", hint=nearest_word(name, TYPES) or "docs/endpoint-picker-config.md lists them")
    return TYPES[name]


def _name(at: At) -> str:
    return text(at) if at.node.value != "" else ""


def _same_node(at: At) -> At:
    return at
