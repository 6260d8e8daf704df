"""Parameters of `core-metrics-extractor`: the engine of pods that do not say, and metrics that become attributes.

In: nodes. Out: `engine`, `metrics`. Not here: the names of metrics that lorapick reads anyway (see `wire.engines`).
"""

import re
from typing import Any

from lorapick.model.profiles import CustomMetric
from lorapick.wire.config.document import At
from lorapick.wire.config.engine_words import OF_WORD
from lorapick.wire.config.epp.reading import anything, members, parameters
from lorapick.wire.config.epp.reading import refused as no_such
from lorapick.wire.config.epp.values import ReadParameters
from lorapick.wire.config.readers import choice, list_of, text

_SPEC = re.compile(r"([A-Za-z_:][A-Za-z0-9_:]*)\s*(?:\{(.*)\})?", re.ASCII)
_LABEL = re.compile(r'\s*([A-Za-z_][A-Za-z0-9_]*)\s*=\s*("[^"\\]*"|[^",}\s]+)\s*', re.ASCII)
_OWN = (
    "queuedRequestsSpec",
    "runningRequestsSpec",
    "kvUsageSpec",
    "loraSpec",
    "loraLoadedSpec",
    "loraGPULoadedSpec",
    "loraGPUSlotsSpec",
    "cacheInfoSpec",
    "cacheBlockSizeLabelName",
    "cacheNumBlocksLabelName",
    "cacheBlockSizeSpec",
    "cacheNumBlocksSpec",
)
"""Names that lorapick knows by itself."""


def _spec(at: At) -> tuple[str, dict[str, str]]:
    """`name{label=value,...}`, quotes or not."""
    written = text(at).strip()
    match = _SPEC.fullmatch(written)
    inside = [part for part in (match.group(2) or "").split(",") if part.strip()] if match is not None else []
    labels = [_LABEL.fullmatch(part) for part in inside]
    if match is None or None in labels:
        at.refuse("must name a metric, and values of labels if it needs some", hint='such as "name{label=value}"')
    return match.group(1), {each.group(1): each.group(2).strip('"') for each in labels if each is not None}


def _metric(at: At) -> tuple[str, str, dict[str, str]]:
    found = members(
        at, {"attributeKey": text, "metricSpec": _spec, "optional": anything}, required=("attributeKey", "metricSpec")
    )
    return (found["attributeKey"], *found["metricSpec"])


def _engine(at: At) -> tuple[CustomMetric, ...]:
    readers = dict.fromkeys(_OWN, anything) | {"name": choice(*OF_WORD)}
    found: dict[str, Any] = members(
        at, {**readers, "customMetrics": list_of(_metric, unique="attributeKey")}, required=("name",)
    )
    return tuple(
        [
            CustomMetric(engine=OF_WORD[found["name"]], attribute=attribute, family=family, labels=labels)
            for attribute, family, labels in found.get("customMetrics", ())
        ]
    )


_read: ReadParameters = parameters(
    {
        "defaultEngine": ("engine", choice(*OF_WORD)),
        "engineLabelKey": ("", no_such("the list of pods says each pod's engine")),
        "engineConfigs": ("metrics", list_of(_engine, unique="name")),
        "customMetrics": ("", no_such("write them under engineConfigs, beside the name of the engine")),
    }
)


def extractor(at: At | None) -> dict[str, Any]:
    """`engine`: a word; `metrics`: those of all engines."""
    found = _read(at)
    if "metrics" in found:
        found["metrics"] = tuple([metric for metrics in found["metrics"] for metric in metrics])
    return found
