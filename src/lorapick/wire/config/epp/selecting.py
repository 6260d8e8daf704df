"""Parameters of filters and scorers that take more than one line to read.

In: nodes. Out: arguments of what runs here. Not here: the entries of the catalogue (see `scheduling`).
"""

from typing import Any

from lorapick.wire.config.document import At
from lorapick.wire.config.epp.reading import anything, go_duration, members, name_list, only, parameters
from lorapick.wire.config.epp.reading import refused as no_such
from lorapick.wire.config.epp.values import ReadParameters
from lorapick.wire.config.readers import choice, integer, labels, list_of, number, share, text

_SESSION_HEADERS = ("x-session-token", "x-session-id")
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


_session_header = only(text, *_SESSION_HEADERS, because="sessions are told by these two headers")


def _source(at: At) -> str:
    why = "name a header in its place"
    found: dict[str, Any] = members(at, {"header": _session_header, "attribute": no_such(why)}, required=("header",))
    return str(found["header"])


session: ReadParameters = parameters(
    {
        "strategy": ("", choice("encoded_endpoint_header", "session_id")),
        "algorithm": ("", choice("encoded_endpoint_header", "session_id_header")),
        "headerName": ("", _session_header),
        "profileName": ("", anything),
        "encodedEndpointHeaderConfig": ("", lambda at: members(at, {"header": _session_header})),
        "sessionIdConfig": (
            "",
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
PRECISE_KEYS = ("tokenProcessorConfig", "indexerConfig", "kvEventsConfig", "speculativeIndexing", "speculativeTTL")
"""What llm-d's own index of KV events may be told; lorapick's needs none of it."""
precise_prefix: ReadParameters = parameters(
    dict.fromkeys(PRECISE_KEYS, ("", anything)), {"weight": 0.0, "scale_tokens": 8192.0}
)
prefix: ReadParameters = parameters(
    {
        "matchLengthWeight": ("weight", share),
        "matchLengthScaleTokens": ("scale_tokens", positive),
        "prefixMatchInfoProducerName": ("", anything),
    },
    {"weight": 0.0, "scale_tokens": 8192.0},
)
