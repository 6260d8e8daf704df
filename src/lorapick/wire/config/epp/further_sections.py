"""Sections of an `EndpointPickerConfig` beside profiles and flow control: head, gates, data layer, parsers.

In: nodes, the plugins. Out: what little they decide here. Not here: `plugins` (see `registry`).
"""

from typing import Any

from lorapick.wire.config.document import At, nearest_word
from lorapick.wire.config.epp.reading import members, refused
from lorapick.wire.config.epp.registry import Registry
from lorapick.wire.config.epp.values import Kind, Plugin
from lorapick.wire.config.readers import boolean, choice, list_of, text

KIND = "EndpointPickerConfig"
VERSION = "llm-d.ai/v1alpha1"
LATER_VERSION = "llm-d.ai/v1"
"""Published since August 2026; its files have the keys of the version before."""
OLD_VERSION = "inference.networking.x-k8s.io/v1alpha1"
GATES = {
    "flowControl": False,
    "dataLayer": True,
    "haPopulateNonLeaderDatastore": True,
    "enableLegacyMetrics": False,
    "prepareDataPlugins": True,
}
"""Names and what they are when nobody says; only the first changes anything here."""
_ONE_PICKER = (
    "remove it: llm-d's replicas find and call one another, lorapick's meet in a Redis or Valkey, which `peers:` of a "
    "lorapick.yaml names (docs/peers.md)"
)


def api_version(at: At) -> str:
    """One of the two groups; the newer one in both versions."""
    return choice(VERSION, LATER_VERSION, OLD_VERSION)(at)


def kind(at: At) -> str:
    """The only one."""
    return choice(KIND)(at)


def gates(at: At) -> dict[str, bool]:
    """Gates by name: `name`, `name=true` or `name=false`."""
    found: dict[str, bool] = {}
    for item in at.items():
        name, _, state = text(item).partition("=")
        if name not in GATES:
            item.note("no such feature gate", hint=nearest_word(name, GATES))
        elif state.strip().lower() not in ("", "true", "false", "1", "0", "t", "f"):
            item.note('must be a name, or a name with "=true" or "=false"')
        else:
            found[name] = state.strip().lower() not in ("false", "0", "f")
    return found


def _source(at: At, registry: Registry) -> Plugin:
    found = members(
        at,
        {
            "pluginRef": lambda ref: registry.refer(ref, Kind.SOURCE),
            "extractors": list_of(lambda item: _extractor(item, registry)),
        },
        required=("pluginRef",),
    )
    source: Plugin = found["pluginRef"]
    return source


def _extractor(at: At, registry: Registry) -> Plugin:
    found: dict[str, Plugin] = members(
        at, {"pluginRef": lambda ref: registry.refer(ref, Kind.EXTRACTOR)}, required=("pluginRef",)
    )
    return found["pluginRef"]


def _discovery(at: At, registry: Registry) -> Plugin:
    if at.step("endpoints") is not None:
        inner = members(at, {"endpoints": lambda each: _discovery(each, registry)})
        nested: Plugin = inner["endpoints"]
        return nested
    found: dict[str, Plugin] = members(
        at, {"pluginRef": lambda ref: registry.refer(ref, Kind.DISCOVERY)}, required=("pluginRef",)
    )
    return found["pluginRef"]


def data_layer(at: At, registry: Registry) -> dict[str, Any]:
    """What it says: `discovery` is the plugin that names the pods, if any."""
    return members(
        at,
        {
            "injectDefaults": boolean,
            "sources": list_of(lambda item: _source(item, registry)),
            "discovery": lambda each: _discovery(each, registry),
            "peerDiscovery": refused(_ONE_PICKER),
            "crossReplicaSyncerPluginRef": refused(_ONE_PICKER),
            "crossReplicaSyncInterval": refused(_ONE_PICKER),
        },
    )


def parser(at: At, registry: Registry) -> Plugin:
    """`{pluginRef}` of a parser."""
    found: dict[str, Plugin] = members(
        at, {"pluginRef": lambda ref: registry.refer(ref, Kind.PARSER)}, required=("pluginRef",)
    )
    return found["pluginRef"]


def request_handler(at: At, registry: Registry) -> dict[str, Any]:
    """`parsers`; `parser` too, as some files have it."""
    return members(
        at,
        {
            "parsers": list_of(lambda item: parser(item, registry)),
            "parser": lambda each: parser(each, registry),
        },
    )
