"""What an `EndpointPickerConfig` changes in the settings.

In: settings, a checked file. Out: settings. What the file says nothing about stays as lorapick.yaml has it.
Not here: reading either.
"""

from typing import Any

from msgspec.structs import replace

from lorapick.core.picking.epp.policy import NAME
from lorapick.model.disaggregation import Choice
from lorapick.model.settings import DiscoverySettings, Settings
from lorapick.wire.config.epp.values import EndpointPicker

_OF_ADMISSION = (
    "max_queued",
    "max_bytes",
    "bands",
    "max_wait",
    "fairness",
    "ordering",
    "patience",
    "saturation",
    "chance",
    "ceilings",
)
"""Of `Flow`: what `AdmissionSettings` has under the same name."""


def with_endpoint_picker(settings: Settings, picker: EndpointPicker) -> Settings:
    """The settings, with pods picked as the file says."""
    picking: dict[str, Any] = {"policy": NAME, "profiles": picker.profiles}
    if picker.fallbacks is not None:
        picking["fallbacks"] = picker.fallbacks
    if picker.prefix_blocks is not None:
        picking["prefix_blocks_per_pod"] = picker.prefix_blocks
    split: dict[str, Any] = {"decide": picker.split.decide, "choice": Choice.INDEPENDENT}
    if picker.split.uncached_tokens is not None:
        split["uncached_tokens"] = picker.split.uncached_tokens
    changed = replace(
        settings,
        picking=replace(settings.picking, **picking),
        disaggregation=replace(settings.disaggregation, **split),
        admission=replace(settings.admission, **_admission(settings, picker)),
    )
    if picker.profiles.names.reports:
        changed = replace(changed, server=replace(changed.server, observe="bodies"))  # usage stands there
    if picker.flow.max_queue is not None:
        changed = replace(changed, defaults=replace(changed.defaults, max_queue=picker.flow.max_queue))
    if picker.engine is not None:
        changed = replace(changed, default_engine=picker.engine)
    if picker.endpoints is not None and settings.discovery == DiscoverySettings():
        changed = replace(changed, discovery=replace(changed.discovery, file=picker.endpoints))
    return changed


def _admission(settings: Settings, picker: EndpointPicker) -> dict[str, Any]:
    flow = picker.flow
    found = {name: value for name in _OF_ADMISSION if (value := getattr(flow, name)) is not None}
    if "max_wait" in found and "patience" not in found:
        found["patience"] = min(settings.admission.patience, found["max_wait"])
    return found
