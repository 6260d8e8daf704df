"""A whole `EndpointPickerConfig`: text to `EndpointPicker`.

In: the text and its name for messages. Out: `EndpointPicker`; or `ConfigError` with every problem: line, column, field,
value and what would be right. Not here: reading files, and what it changes in the settings (see `applying`).
"""

import contextlib
from typing import Any

from lorapick.model.profiles import HttpNames
from lorapick.wire.config.document import At, Refused, Report, parse_document
from lorapick.wire.config.engine_words import OF_WORD
from lorapick.wire.config.epp import further_sections as sections
from lorapick.wire.config.epp.flow import read_flow
from lorapick.wire.config.epp.http_names import names_of
from lorapick.wire.config.epp.profiles import fallbacks_of, handling, profiles_of, read_profiles
from lorapick.wire.config.epp.reading import anything, members
from lorapick.wire.config.epp.registry import Registry
from lorapick.wire.config.epp.telling import deprecations, differences, parts
from lorapick.wire.config.epp.values import EndpointPicker, Flow, Kind
from lorapick.wire.config.problems import ConfigError

_SECTIONS = (
    "featureGates",
    "plugins",
    "schedulingProfiles",
    "dataLayer",
    "data",
    "flowControl",
    "requestHandler",
    "saturationDetector",
    "parser",
)


def is_endpoint_picker(content: bytes | str) -> bool:
    """Whether a text says that it is an `EndpointPickerConfig`."""
    try:
        root = parse_document(content, Report(""))
    except ConfigError:
        return False
    said = root.find("kind")
    return said is not None and said.is_scalar and str(said.node.value) == sections.KIND


def parse_endpoint_picker(content: bytes | str, *, file: str) -> EndpointPicker:
    """Read and check a configuration of llm-d's endpoint picker.

    Args:
        content: the YAML (or JSON) text.
        file: what messages call it.

    Raises:
        ConfigError: every problem of the file.
    """
    report = Report(file)
    root = parse_document(content, report)
    found: EndpointPicker | None = None
    with contextlib.suppress(Refused):
        found = _read(root)
    report.raise_if_any()
    assert found is not None, "a file that is refused has a problem"
    return found


def _read(root: At) -> EndpointPicker:
    registry = Registry()
    places = _places(root)
    if (plugins := places.get("plugins")) is not None:
        with contextlib.suppress(Refused):
            registry.read(plugins)
    gates: dict[str, bool] = {}
    if (written := places.get("featureGates")) is not None:
        with contextlib.suppress(Refused):
            gates = sections.gates(written)
    handled = None
    with contextlib.suppress(Refused):
        drafts = read_profiles(places.get("schedulingProfiles"), registry)
        if registry.whole:
            handled = handling(drafts, registry, root=root)
    names = HttpNames()
    with contextlib.suppress(Refused):
        names = names_of(registry)
    data = _rest(places, registry)
    flow = Flow()
    with contextlib.suppress(Refused):
        flow = read_flow(
            places.get("flowControl"),
            registry,
            open_gate=gates.get("flowControl", False),
            detector=places.get("saturationDetector"),
        )
    if root.report.problems or handled is None:
        raise Refused
    _inject(registry)
    discovery, extractor = data.get("discovery"), registry.first_of(("core-metrics-extractor",))
    producer = registry.first_of(("approx-prefix-cache-producer",))
    return EndpointPicker(
        file=root.report.file,
        profiles=profiles_of(handled, registry, waits=gates.get("flowControl", False), names=names),
        split=handled.split,
        flow=flow,
        fallbacks=fallbacks_of(handled),
        prefix_blocks=producer.parameters.get("blocks") or None if producer is not None else None,
        engine=_engine(extractor.parameters.get("engine")) if extractor is not None else None,
        endpoints=discovery.parameters["path"] if discovery is not None else None,
        parts=parts(root, registry, handled=handled, gates=gates),
        deprecated=deprecations(root, registry),
        differences=differences(handled, gates=gates),
    )


def _engine(word: str | None) -> str | None:
    return OF_WORD[word].value if word is not None else None


def _places(root: At) -> dict[str, At]:
    """Sections that are there. Wrong heads and unknown keys are noted."""
    found: dict[str, At] = {}
    readers: dict[str, Any] = {"apiVersion": sections.api_version, "kind": sections.kind}
    for name in _SECTIONS:
        readers[name] = anything
    with contextlib.suppress(Refused):
        members(
            root,
            readers,
            required=("apiVersion", "kind"),
            hints={"metadata": "remove it: this is no object of Kubernetes"},
        )
    for name, entry in root.entries().items():
        if name in _SECTIONS and not entry.value.is_null:
            found[name] = entry.value
    return found


def _rest(places: dict[str, At], registry: Registry) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for name in ("dataLayer", "data"):
        if name in places:
            with contextlib.suppress(Refused):
                data |= sections.data_layer(places[name], registry)
    if "requestHandler" in places:
        with contextlib.suppress(Refused):
            sections.request_handler(places["requestHandler"], registry)
    if "parser" in places:
        with contextlib.suppress(Refused):
            sections.parser(places["parser"], registry)
    return data


def _inject(registry: Registry) -> None:
    """What is there whether or not a file names it."""
    if not registry.of(Kind.PARSER):
        for name in ("openai-parser", "anthropic-parser", "vllmhttp-parser", "passthrough-parser"):
            registry.inject(name)
    registry.inject("metrics-data-source")
    registry.inject("core-metrics-extractor")
    if registry.first_of(("approx-prefix-cache-producer", "precise-prefix-cache-producer")) is None:
        registry.inject("approx-prefix-cache-producer")
    registry.inject("inflight-load-producer")
