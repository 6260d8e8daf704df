"""`schedulingProfiles` and what runs them: profiles, the profile handler, whether other pods prefill.

In: nodes, the plugins. Out: `Profiles`, `Split`, fallbacks; defaults injected as llm-d does.
Not here: what filters and scorers do (`core.picking.epp`).
"""

import contextlib
from typing import Any, NamedTuple

from lorapick.model.disaggregation import Decide
from lorapick.model.profiles import CustomMetric, HttpNames, PluginSpec, Profile, Profiles
from lorapick.wire.config.document import At, Refused
from lorapick.wire.config.epp.reading import members
from lorapick.wire.config.epp.registry import Registry
from lorapick.wire.config.epp.values import Kind, Plugin, Split
from lorapick.wire.config.readers import no_duplicates, number, text

_CHARACTERS_PER_TOKEN = 4
NOT_ARGUMENTS = ("filters", "token", "sessions")
"""Of parameters: who reads them stands elsewhere (see `http_names`)."""
_weight = number(least=-1e6, most=1e6, what="a weight")


class Use(NamedTuple):
    """One plugin in one profile."""

    plugin: Plugin
    weight: float
    at: At | None
    """None: it was injected."""


class Draft(NamedTuple):
    """One profile as written, its picker injected."""

    name: str
    uses: list[Use]
    at: At | None
    """None: the file has no profiles."""


def read_profiles(at: At | None, registry: Registry) -> list[Draft]:
    """All profiles; one of every filter, scorer and picker where the file has none.

    Raises:
        Refused: something is wrong with them.
    """
    items = at.items() if at is not None else []
    if not items:
        uses = [
            Use(plugin, 1.0, None)
            for plugin in registry.plugins.values()
            if any(plugin.is_a(kind) for kind in (Kind.FILTER, Kind.SCORER, Kind.PICKER))
        ]
        pickers = [use for use in uses if use.plugin.is_a(Kind.PICKER)]
        for use in pickers[1:]:
            assert use.plugin.at is not None
            use.plugin.at.note(f"a profile has one picker; the other is {pickers[0].plugin.name}", value="")
        return [_with_picker(Draft("default", uses, None), registry)]
    found: list[Draft] = []
    for item in items:
        with contextlib.suppress(Refused):
            found.append(_with_picker(_profile(item, registry), registry))
    names = [item.find("name") for item in items]
    no_duplicates((name for name in names if name is not None), what="name of a profile")
    if len(found) < len(items):
        raise Refused
    return found


def _profile(at: At, registry: Registry) -> Draft:
    before = len(at.report.problems)
    values = members(at, {"name": text, "plugins": lambda each: _uses(each, registry)}, required=("name",))
    uses: list[Use] = values.get("plugins", [])
    pickers = [use for use in uses if use.plugin.is_a(Kind.PICKER)]
    for use in pickers[1:]:
        assert use.at is not None
        use.at.note(f"a profile has one picker; this one has {pickers[0].plugin.name} already", value="")
    if len(at.report.problems) > before:
        raise Refused
    return Draft(values["name"], uses, at)


def _uses(at: At, registry: Registry) -> list[Use]:
    items = at.items()
    found: list[Use] = []
    for item in items:
        with contextlib.suppress(Refused):
            values = members(item, {"pluginRef": registry.refer, "weight": _weight}, required=("pluginRef",))
            found.append(Use(values["pluginRef"], values.get("weight", 1.0), item))
    if len(found) < len(items):
        raise Refused
    return found


def _with_picker(draft: Draft, registry: Registry) -> Draft:
    if any(use.plugin.is_a(Kind.PICKER) for use in draft.uses):
        return draft
    pickers = registry.of(Kind.PICKER)
    picker = pickers[0] if pickers else registry.inject("max-score-picker")
    return draft._replace(uses=[*draft.uses, Use(picker, 1.0, None)])


# -- what runs them


class Handling(NamedTuple):
    """Which profile picks which pod."""

    decode: Draft
    prefill: Draft | None
    split: Split
    handler: Plugin
    header: str | None = None
    """Names one of `named`; None: nobody chooses."""
    named: tuple[Draft, ...] = ()


def handling(drafts: list[Draft], registry: Registry, *, root: At) -> Handling:
    """The profile handler's part.

    Raises:
        Refused: there is none, or more than one, or its profiles or its decider are not there.
    """
    handler = _handler(drafts, registry, root=root)
    if handler.type.type in ("single-profile-handler", "data-parallel-profile-handler"):
        if len(drafts) > 1:
            assert handler.at is not None
            handler.at.refuse(
                f"{handler.type.type} takes one profile, and there are {len(drafts)}",
                hint="use disagg-profile-handler, or one profile",
                value="",
            )
        return Handling(drafts[0], None, Split(Decide.NEVER), handler)
    assert handler.at is not None
    if handler.type.type == "header-profile-handler":
        return _by_header(drafts, handler)
    parameters = handler.parameters
    names = parameters.get("profiles") or {key: parameters[key] for key in ("decode", "prefill") if key in parameters}
    split = _split(handler, registry)
    decode = _named(drafts, names.get("decode", "decode"), at=handler.at)
    prefill = None
    if split.decide is not Decide.NEVER:
        prefill = _named(drafts, names.get("prefill", "prefill"), at=handler.at)
    return Handling(decode, prefill, split, handler)


def _by_header(drafts: list[Draft], handler: Plugin) -> Handling:
    """A profile that is the only one is that of every request, as with llm-d."""
    never = Split(Decide.NEVER)
    if len(drafts) == 1:
        return Handling(drafts[0], None, never, handler)
    assert handler.at is not None
    default = _named(drafts, handler.parameters["default"], at=handler.at)
    return Handling(default, None, never, handler, handler.parameters["header"], tuple(drafts))


def _handler(drafts: list[Draft], registry: Registry, *, root: At) -> Plugin:
    handlers = registry.of(Kind.HANDLER)
    for other in handlers[1:]:
        assert other.at is not None
        other.at.note(f"there is one profile handler; {handlers[0].name} is one already", value="")
    if len(handlers) > 1:
        raise Refused
    if handlers:
        return handlers[0]
    if len(drafts) > 1:
        root.nearest("schedulingProfiles").refuse(
            f"{len(drafts)} profiles need a profile handler, and no plugin is one",
            hint="add disagg-profile-handler, or keep one profile",
            value="",
        )
    return registry.inject("single-profile-handler")


def _named(drafts: list[Draft], name: str, *, at: At) -> Draft:
    found = next((draft for draft in drafts if draft.name == name), None)
    if found is None:
        known = ", ".join(draft.name for draft in drafts)
        at.refuse(f'no profile is called "{name}"', hint=f"there are: {known}; or name one under parameters", value="")
    return found


def _split(handler: Plugin, registry: Registry) -> Split:
    at, parameters = handler.at, handler.parameters
    assert at is not None
    place = at.find("parameters", "deciders", "prefill") or at.find("parameters", "deciderPluginName")
    if place is not None and not place.is_null:
        decider = registry.refer(place, Kind.DECIDER)
        if decider.type.type == "always-disagg-pd-decider":
            return Split(Decide.ALWAYS)
        tokens: int = decider.parameters["tokens"]
        return Split(Decide.TOKENS, tokens) if tokens else Split(Decide.NEVER)
    if handler.type.type == "disagg-profile-handler":
        return Split(Decide.NEVER)
    characters: int = parameters.get("characters", 0)
    if not characters:
        return Split(Decide.ALWAYS)
    return Split(Decide.TOKENS, max(1, -(-characters // _CHARACTERS_PER_TOKEN)))


# -- as values


def profiles_of(handled: Handling, registry: Registry, *, waits: bool, names: HttpNames) -> Profiles:
    """What the core runs."""
    extractor = registry.first_of(("topology-extractor",))
    places = extractor.parameters if extractor is not None else {}
    prefill = _value(handled.prefill, places) if handled.prefill is not None else None
    return Profiles(
        decode=_value(handled.decode, places),
        prefill=prefill,
        chosen_by=handled.header,
        named=tuple(_value(draft, places) for draft in handled.named),
        names=names,
        metrics=metrics_of(registry),
        waits=waits,
    )


def metrics_of(registry: Registry) -> tuple[CustomMetric, ...]:
    """What becomes attributes; who compares an attribute that does not exist is refused.

    Raises:
        Refused: somebody does.
    """
    extractors = registry.of(Kind.EXTRACTOR)
    metrics: list[CustomMetric] = [each for plugin in extractors for each in plugin.parameters.get("metrics", ())]
    known = {each.attribute for each in metrics}
    for plugin in registry.plugins.values():
        attribute = plugin.parameters.get("attribute")
        if attribute is not None and attribute not in known:
            assert plugin.at is not None, "injected plugins compare nothing"
            key = "attribute" if plugin.is_a(Kind.FILTER) else "attributeKey"
            plugin.at.nearest("parameters", key).refuse(
                "must be GPUUtilization, or the attributeKey of one of a core-metrics-extractor's customMetrics",
                hint="queues and KV cache have scorers of their own",
            )
    return tuple(metrics)


def fallbacks_of(handled: Handling) -> int | None:
    """Endpoints after the picked one, where its picker says how many there are; None: it does not."""
    picker = next(use.plugin for use in handled.decode.uses if use.plugin.is_a(Kind.PICKER))
    endpoints: int | None = picker.parameters.get("endpoints")
    return None if endpoints is None else max(0, endpoints - 1)


def _value(draft: Draft, places: dict[str, str]) -> Profile:
    filters: list[PluginSpec] = []
    scorers: list[PluginSpec] = []
    picker: PluginSpec | None = None
    for use in draft.uses:
        plugin = use.plugin
        if plugin.is_a(Kind.PICKER):
            picker = PluginSpec(type=plugin.type.type, name=plugin.name)
            continue
        arguments = _arguments(plugin, places)
        if plugin.is_a(Kind.FILTER) and plugin.parameters.get("filters", True):
            filters.append(PluginSpec(type=plugin.type.type, name=plugin.name, parameters=arguments))
        if plugin.is_a(Kind.SCORER):
            scorers.append(PluginSpec(type=plugin.type.type, name=plugin.name, parameters=arguments, weight=use.weight))
    assert picker is not None
    return Profile(name=draft.name, filters=tuple(filters), scorers=tuple(scorers), picker=picker)


def _arguments(plugin: Plugin, places: dict[str, str]) -> dict[str, Any]:
    arguments = {key: value for key, value in plugin.parameters.items() if key not in NOT_ARGUMENTS}
    return arguments | {"places": places} if "places" in arguments else arguments
