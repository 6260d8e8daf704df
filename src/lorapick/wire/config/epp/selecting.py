"""Parameters of filters and scorers that take more than one line to read.

In: nodes. Out: arguments of what runs here. Not here: the entries of the catalogue (see `scheduling`).
"""

import re
from typing import Any

from lorapick.core.picking.epp.filters import COMPARES
from lorapick.wire.config.document import At
from lorapick.wire.config.epp.reading import anything, go_duration, members, name_list, parameters
from lorapick.wire.config.epp.values import ReadParameters
from lorapick.wire.config.readers import Reader, boolean, choice, integer, labels, list_of, number, share, text

_DEFAULT_HEADER = "x-session-token"
AGENTS = ("x-claude-code-session-id", "x-session-affinity", "session-id", "session_id")
"""Headers that say which agent asks, as llm-d's `agent-identity` has them in August 2026; the first that is there."""
COOKIE = "cookie:"
"""Before the name of a cookie that has a session's id."""
_ENCODED = "encoded_endpoint_header"
_HEADER = re.compile(r"[a-z0-9!#$%&'*+.^_`|~-]{1,128}", re.ASCII)
positive = number(least=1e-9, most=1e12)
_headroom = number(least=0.0, most=1e6)


def _expression(at: At) -> tuple[str, str, tuple[str, ...]]:
    found = members(
        at,
        {"key": text, "operator": choice("In", "NotIn", "Exists", "DoesNotExist"), "values": name_list},
        required=("key", "operator"),
    )
    values = found.get("values", ())
    if found["operator"] in ("In", "NotIn") and not values:
        at.note(f'operator {found["operator"]} needs "values" with at least one', value="")
    if found["operator"] in ("Exists", "DoesNotExist") and values:
        at.note(f"operator {found['operator']} takes no values", value="")
    return found["key"], found["operator"], values


def selector(at: At | None) -> dict[str, Any]:
    """A Kubernetes label selector as requirements."""
    if at is None:
        return {"requirements": ()}
    found = members(at, {"matchLabels": labels, "matchExpressions": list_of(_expression)})
    equal = [(key, "In", (value,)) for key, value in found.get("matchLabels", {}).items()]
    return {"requirements": (*equal, *found.get("matchExpressions", ()))}


def condition(at: At) -> tuple[str, float]:
    """A figure of `utilization-filter` and the most that it may be."""
    metrics = ("active-requests", "running-requests", "waiting-queue", "kv-cache-utilization")
    found = members(
        at, {"metric": choice(*metrics), "maxValue": number(least=0.0, most=1e12)}, required=("metric", "maxValue")
    )
    if found["metric"] == "kv-cache-utilization" and found["maxValue"] > 1.0:
        at.nearest("maxValue").note("must be a share of at most 1 for kv-cache-utilization")
    return found["metric"], found["maxValue"]


def header_name(at: At) -> str:
    """Name of a header, in lower case as Envoy gives it."""
    value = text(at).strip().lower()
    if not _HEADER.fullmatch(value):
        at.refuse("must be a name of a header", hint="letters, digits and dashes")
    return value


def _source(at: At) -> tuple[str, ...]:
    """Headers of one source of session ids; none: what a session-id-producer reads, which is read anyway."""
    found: dict[str, Any] = members(at, {"header": header_name, "attribute": anything})
    if len(found) != 1:
        at.refuse("must have a header or an attribute", value="")
    if "header" in found:
        return (found["header"],)
    return AGENTS if found["attribute"] == "agent-identity" else ()


_read_session: ReadParameters = parameters(
    {
        "strategy": ("strategy", choice(_ENCODED, "session_id")),
        "algorithm": ("strategy", choice(_ENCODED, "session_id_header")),
        "headerName": ("header", header_name),
        "profileName": ("", anything),
        "encodedEndpointHeaderConfig": ("config", lambda at: members(at, {"header": header_name})),
        "sessionIdConfig": (
            "ids",
            lambda at: members(
                at,
                {
                    "sources": list_of(_source),
                    "evictionTtlSeconds": number(least=0.0),
                    "evictionSweepSeconds": number(least=0.0),
                },
            ),
        ),
        "evictionTtlSeconds": ("", number(least=0.0)),
        "evictionSweepSeconds": ("", number(least=0.0)),
        "missThreshold": ("", integer(least=0)),
    }
)


def session(at: At | None) -> dict[str, Any]:
    """`token`: header of requests and answers that names the pod, None without one; `sessions`: headers with ids."""
    found = _read_session(at)
    if found.get("strategy", _ENCODED) == _ENCODED:
        header = found.get("config", {}).get("header") or found.get("header") or _DEFAULT_HEADER
        return {"token": header, "sessions": ()}
    sources = [name for source in found.get("ids", {}).get("sources", ()) for name in source]
    sources += [found["header"]] if "header" in found else []
    return {"token": None, "sessions": tuple(sources)}


def session_id(at: At | None) -> dict[str, Any]:
    """`sessions` of `session-id-producer`: a header, or a cookie."""
    found = _read_session_id(at)
    if at is not None and len(found) > 1:
        at.refuse("must have headerName or cookieName", hint="not both", value="")
    names = [found["header"]] if "header" in found else []
    names += [f"{COOKIE}{found['cookie']}"] if "cookie" in found else []
    return {"sessions": tuple(names)}


_read_session_id: ReadParameters = parameters(
    {"headerName": ("header", header_name), "cookieName": ("cookie", text)},
)

utilization_detector: ReadParameters = parameters(
    {
        "queueDepthThreshold": ("queue", integer(least=1)),
        "kvCacheUtilThreshold": ("kv", number(least=1e-9, most=1.0, what="a share above 0")),
        "metricsStalenessThreshold": ("", go_duration),
        "headroom": ("headroom", _headroom),
    },
    {"queue": 5, "kv": 0.8, "headroom": 0.0},
)
concurrency_detector: ReadParameters = parameters(
    {
        "concurrencyMode": ("mode", choice("requests", "tokens", "hybrid")),
        "maxConcurrency": ("requests", integer(least=1)),
        "maxTokenConcurrency": ("tokens", integer(least=1, most=2**53)),
        "headroom": ("headroom", _headroom),
        "inFlightLoadProducerName": ("", anything),
    },
    {"mode": "requests", "requests": 100, "tokens": 1_000_000, "headroom": 0.0},
)
GPU = "GPUUtilization"
"""The attribute that llm-d's `dcgm-extractor` gives pods, with the extractor's name behind a slash."""


def _attribute(at: At) -> str | None:
    """The attribute's key without the name of who says it; None: GPU utilisation. Whether it exists is seen later."""
    value = text(at).partition("/")[0]
    return None if value == GPU else value


def attribute_threshold(at: At | None) -> dict[str, Any]:
    """Of `endpoint-attribute-filter`."""
    found = _read_threshold(at)
    threshold = found["algorithm"]["threshold"]
    return {
        "compare": threshold["operator"],
        "value": threshold["value"],
        "passes": found["missing"] == "Pass",
        "fall_back": found["fall_back"],
        **_named(found),
    }


def attribute_range(at: At | None) -> dict[str, Any]:
    """Of `endpoint-attribute-scorer`."""
    found = _read_range(at)
    algorithm = found["algorithm"]
    bounds = algorithm.get("normalization", {}).get("fixedRange", {})
    return {
        "lower": algorithm["type"] == "linear_lower_is_better",
        "least": bounds.get("min"),
        "most": bounds.get("max"),
        **_named(found),
    }


def _named(found: dict[str, Any]) -> dict[str, str]:
    return {"attribute": found["attribute"]} if found["attribute"] is not None else {}


_figure = number(least=-1e12, most=1e12)


def _threshold(at: At) -> dict[str, Any]:
    inner: Reader[Any] = lambda each: members(  # noqa: E731 - as the readers beside it
        each, {"operator": choice(*COMPARES), "value": _figure}, required=("operator", "value")
    )
    return members(at, {"type": choice("threshold"), "threshold": inner}, required=("type", "threshold"))


_read_threshold: ReadParameters = parameters(
    {
        "attribute": ("attribute", _attribute),
        "onMissing": ("missing", choice("Pass", "Fail")),
        "fallbackOnEmpty": ("fall_back", boolean),
        "algorithm": ("algorithm", _threshold),
    },
    {"missing": "Pass", "fall_back": False},
    required=("attribute", "algorithm"),
)


def _bounds(at: At) -> dict[str, Any]:
    found = members(at, {"min": _figure, "max": _figure}, required=("min", "max"))
    if found["min"] >= found["max"]:
        at.refuse("must have a min below its max", value="")
    return found


def _normalization(at: At) -> dict[str, Any]:
    found = members(at, {"fixedRange": _bounds, "adaptiveRange": lambda each: members(each, {})})
    if len(found) > 1:
        at.refuse("must have fixedRange or adaptiveRange", hint="not both", value="")
    return found


_read_range: ReadParameters = parameters(
    {
        "attributeKey": ("attribute", _attribute),
        "algorithm": (
            "algorithm",
            lambda at: members(
                at,
                {
                    "type": choice("linear_lower_is_better", "linear_higher_is_better"),
                    "normalization": _normalization,
                },
                required=("type",),
            ),
        ),
    },
    required=("attributeKey", "algorithm"),
)

PRECISE_KEYS = ("tokenProcessorConfig", "indexerConfig", "kvEventsConfig", "speculativeIndexing", "speculativeTTL")
"""What llm-d's own index of KV events may be told; lorapick's needs none of it."""
precise_prefix: ReadParameters = parameters(
    dict.fromkeys(PRECISE_KEYS, ("", anything)), {"weight": 0.0, "scale_tokens": 8192.0}
)
_OF_OLDER_FILES = ("hashBlockSize", "blockSize", "maxPrefixBlocksToMatch", "lruCapacityPerServer", "autoTune")
"""Parameters that llm-d's scorer took until May 2026 and passed over; the producer has them now."""
prefix: ReadParameters = parameters(
    dict.fromkeys(_OF_OLDER_FILES, ("", anything))
    | {
        "matchLengthWeight": ("weight", share),
        "matchLengthScaleTokens": ("scale_tokens", positive),
        "prefixMatchInfoProducerName": ("", anything),
    },
    {"weight": 0.0, "scale_tokens": 8192.0},
)
