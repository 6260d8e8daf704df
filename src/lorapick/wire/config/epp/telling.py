"""What each part of an `EndpointPickerConfig` does here, in words, for `lorapick config explain`.

In: a checked file. Out: `Part`s, sentences. Not here: layout (see `cli.config_explain`).
"""

from lorapick.model.disaggregation import Decide
from lorapick.wire.config.document import At
from lorapick.wire.config.epp.further_sections import GATES, OLD_VERSION, VERSION
from lorapick.wire.config.epp.profiles import Draft, Handling
from lorapick.wire.config.epp.registry import Registry
from lorapick.wire.config.epp.values import Kind, Part, Plugin, Support

_GATE_WORDS = {
    "flowControl": "who finds every pod full waits at the picker; without the gate it goes to the best pod anyway",
    "dataLayer": "pods are always scraped by the data layer",
    "haPopulateNonLeaderDatastore": "every picker always knows all pods",
    "enableLegacyMetrics": "older names of metrics are always there (server.metrics_compat)",
    "prepareDataPlugins": "data is always prepared before pods are scored",
}
_LEFT_OUT = (
    "pods that are not ready, draining, silent, of another base model, or would answer 404 for the adapter are left "
    "out before the profile's filters"
)
_FULL = "a pod takes no request while as many wait there as its max_queue says; who finds no pod waits at the picker"
_PRESSURE = "a pod whose memory is critically short takes no request (pressure)"
_NOBODY = "when all filters leave nobody, the answer is 503 (llm-d: 429)"


def parts(root: At, registry: Registry, *, handled: Handling, gates: dict[str, bool]) -> tuple[Part, ...]:
    """Plugins in the order of the file, gates, profiles; injected ones last."""
    plugins = [_plugin(plugin) for plugin in registry.plugins.values()]
    place = root.find("featureGates")
    line = place.node.start_mark.line + 1 if place is not None else None
    gated = [_gate(name, state, line=line) for name, state in gates.items()]
    profiles = [_profile(handled.decode, "picks the pod that answers")]
    others = [draft for draft in handled.named if draft.name != handled.decode.name]
    profiles += [_profile(draft, f"picks the pod of requests whose {handled.header} names it") for draft in others]
    if handled.prefill is not None:
        profiles.append(_profile(handled.prefill, "picks the pod that prefills for it"))
    written = [each for each in plugins if each.field]
    return (*written, *gated, *profiles, *(each for each in plugins if not each.field))


def _plugin(plugin: Plugin) -> Part:
    at, type_ = plugin.at, plugin.type
    return Part(
        field=at.field if at is not None else "",
        line=at.node.start_mark.line + 1 if at is not None else None,
        what=type_.type,
        name=plugin.name if plugin.name != type_.type else "",
        parameters=plugin.written,
        support=type_.support,
        does=type_.does,
    )


def _gate(name: str, state: bool, *, line: int | None) -> Part:
    differs = name == "flowControl" or state is GATES[name]
    does = _GATE_WORDS[name] if state or name == "flowControl" else f"cannot be switched off: {_GATE_WORDS[name]}"
    return Part(
        field="featureGates",
        line=line,
        what=f"{name}={str(state).lower()}",
        support=Support.DIFFERS if differs and name == "flowControl" else Support.ALWAYS,
        does=does,
    )


def _profile(draft: Draft, what: str) -> Part:
    filters = [use.plugin.name for use in draft.uses if use.plugin.is_a(Kind.FILTER) and _filters(use.plugin)]
    scorers = [f"{use.weight:g} × {use.plugin.name}" for use in draft.uses if use.plugin.is_a(Kind.SCORER)]
    picker = next(use.plugin.name for use in draft.uses if use.plugin.is_a(Kind.PICKER))
    steps = [f"filters {', then '.join(filters)}"] if filters else []
    steps.append(f"scores {' + '.join(scorers)}" if scorers else "scores nothing")
    return Part(
        field=draft.at.field if draft.at is not None else "",
        line=draft.at.node.start_mark.line + 1 if draft.at is not None else None,
        what=f"profile {draft.name}",
        support=Support.SAME,
        does=f"{what}: {'; '.join(steps)}; picks by {picker}",
    )


def _filters(plugin: Plugin) -> bool:
    found: bool = plugin.parameters.get("filters", True)
    return found


def deprecations(root: At, registry: Registry) -> tuple[str, ...]:
    """What llm-d would rather see written otherwise."""
    found: list[str] = []
    version = root.find("apiVersion")
    if version is not None and version.node.value == OLD_VERSION:
        found.append(f"apiVersion {OLD_VERSION}: write {VERSION}")
    for old, new in (
        ("saturationDetector", "flowControl.saturationDetector"),
        ("parser", "requestHandler.parsers"),
        ("data", "dataLayer"),
    ):
        if root.find(old) is not None:
            found.append(f"{old}: write {new}")
    found += [
        f"{plugin.at.field}: type {plugin.type.type}: write {plugin.type.instead}"
        for plugin in registry.plugins.values()
        if plugin.at is not None and plugin.type.deprecated
    ]
    return tuple(found)


def differences(handled: Handling, *, gates: dict[str, bool]) -> tuple[str, ...]:
    """What is otherwise here, whatever the file says."""
    drafts = [draft for draft in (handled.decode, handled.prefill, *handled.named) if draft is not None]
    uses = [use.plugin for draft in drafts for use in draft.uses]
    aware = any(plugin.type.support is Support.OWN for plugin in uses)
    found = [_LEFT_OUT, _NOBODY]
    if aware or gates.get("flowControl"):
        found += [_FULL, _PRESSURE]
    if aware:
        found.append(
            "a scorer of lorapick is in the profile, so admission is too: requests follow a load under way, loads are "
            "bounded, no pod gets more adapters in use than it has slots"
        )
    elif any(plugin.type.type == "lora-affinity-scorer" for plugin in uses):
        found.append(
            "lora-affinity-scorer sees adapters with requests in flight only; lorapick-residency-scorer knows which "
            "are resident, loading, or in host memory"
        )
    else:
        found.append(
            "no scorer looks at adapters; add lora-affinity-scorer, or lorapick-residency-scorer, which knows where "
            "adapters are resident"
        )
    if handled.split.decide is not Decide.NEVER:
        found.append(
            "a pod without a role may prefill too where no prefill-filter keeps it out (llm-d: by labels only)"
        )
    return tuple(found)
