"""Plugin types that pick pods: filters and scorers.

In: nothing. Out: entries of the catalogue, with readers of their parameters as llm-d-router has them in August 2026.
Not here: what they do at run time (`core.picking.epp`), pickers and profile handlers (see `handling`), everything else
(see `further`).
"""

from lorapick.wire.config.epp import selecting
from lorapick.wire.config.epp.entries import differs, own, refused, same
from lorapick.wire.config.epp.reading import anything, name_list, only, parameters
from lorapick.wire.config.epp.reading import refused as no_such
from lorapick.wire.config.epp.values import Kind, PluginType
from lorapick.wire.config.readers import boolean, choice, integer, list_of, number, share, text

_TOPOLOGY_PRODUCER = ("", anything)
_PLACES: dict[str, dict[str, str]] = {"places": {}}

# -- filters

_FILTERS = (
    same(
        "label-selector-filter",
        Kind.FILTER,
        does="keeps pods whose labels match the selector",
        read=selecting.selector,
    ),
    same(
        "by-label-selector",
        Kind.FILTER,
        does="keeps pods whose labels match the selector",
        read=selecting.selector,
        old_name_of="label-selector-filter",
    ),
    same(
        "by-label",
        Kind.FILTER,
        does="keeps pods that have one of some values under a label",
        read=parameters(
            {
                "label": ("label", text),
                "validValues": ("values", name_list),
                "allowsNoLabel": ("without", boolean),
            },
            {"values": (), "without": False},
            required=("label",),
        ),
        old_name_of="label-selector-filter",
    ),
    same(
        "decode-filter",
        Kind.FILTER,
        does="keeps pods that decode, by llm-d.ai/role or the role in the list of pods; those without one too",
    ),
    same("prefill-filter", Kind.FILTER, does="keeps pods whose role says that they prefill"),
    differs(
        "encode-filter",
        Kind.FILTER,
        does="keeps pods whose role says that they encode and do more; those that only encode are no pods of "
        "lorapick's, which sends no request to them",
    ),
    same(
        "prefix-cache-affinity-filter",
        Kind.FILTER,
        does="keeps pods that have most of the prompt cached, unless a request would wait there for too much longer",
        read=parameters(
            {
                "affinityThreshold": ("threshold", share),
                "explorationProbability": ("explore", share),
                "maxTTFTPenaltyMs": ("most_penalty_ms", number(least=0.0, most=1e9)),
                "peakPrefillThroughput": ("tokens_per_second", selecting.positive),
                "ttftSource": (
                    "",
                    only(
                        choice("prefillThroughput", "latencyPredictor"),
                        "prefillThroughput",
                        because="there is no latency predictor",
                    ),
                ),
            },
            {"threshold": 0.8, "explore": 0.01, "most_penalty_ms": 5000.0, "tokens_per_second": 15_928.0},
        ),
    ),
    same(
        "utilization-filter",
        Kind.FILTER,
        does="keeps pods that fulfil all conditions",
        read=parameters(
            {
                "conditions": ("conditions", list_of(selecting.condition, least=1)),
                "fallbackOnEmpty": ("fall_back", boolean),
                "inFlightLoadProducerName": ("", anything),
            },
            {"fall_back": False},
            required=("conditions",),
        ),
    ),
    differs(
        "session-affinity-filter",
        Kind.FILTER,
        does="keeps the pod that the session's token names, which each answer gives the client anew; without one, the "
        "pod that lorapick remembers for the session's id",
        read=selecting.session,
    ),
    same(
        "topology-affinity-filter",
        Kind.FILTER,
        does="keeps pods near the one that decodes, by labels of pods; all when none is near",
        read=parameters(
            {
                "minAffinity": ("least", choice("host", "rack", "zone", "region")),
                "topologyProducerName": _TOPOLOGY_PRODUCER,
                "peerTopologyHeader": ("", no_such("there is one picker for both pods")),
            },
            {"least": "host"} | _PLACES,
        ),
    ),
    refused(
        "slo-headroom-tier-filter",
        Kind.FILTER,
        because="it needs predictions of a latency predictor, which lorapick has not",
        instead="lorapick-cost-scorer, which learns seconds from answers",
    ),
    differs(
        "endpoint-attribute-filter",
        Kind.FILTER,
        does="keeps pods whose GPU utilisation, or a metric under customMetrics of core-metrics-extractor, compares "
        "true; there are no other attributes",
        read=selecting.attribute_threshold,
    ),
    same(
        "header-based-testing-filter",
        Kind.FILTER,
        Kind.TEST,
        does="keeps pods whose IPs stand in the request's test-epp-endpoint-selection; without it nobody",
    ),
)

# -- scorers

_SCORERS = (
    same("queue-scorer", Kind.SCORER, does="prefers pods where fewer requests wait, by their last page"),
    same("running-requests-size-scorer", Kind.SCORER, does="prefers pods that run fewer requests, by their last page"),
    same("kv-cache-utilization-scorer", Kind.SCORER, does="prefers pods with more of their KV cache free"),
    same(
        "prefix-cache-scorer",
        Kind.SCORER,
        does="prefers pods that have more of the prompt cached, as lorapick's own index of prefixes has it; sizes of "
        "blocks and caches in older files change nothing, as with llm-d",
        read=selecting.prefix,
    ),
    differs(
        "precise-prefix-cache-scorer",
        Kind.SCORER,
        does="as prefix-cache-scorer: one index of prefixes, fed by requests and by KV events where pods publish them",
        read=selecting.precise_prefix,
        old_name_of="prefix-cache-scorer",
    ),
    same(
        "lora-affinity-scorer",
        Kind.SCORER,
        does="1 where requests for the adapter run, 0.8 where fewer adapters run or wait than there are slots, "
        "0.6 where some wait, else 0: activity, not residency",
    ),
    same(
        "load-aware-scorer",
        Kind.SCORER,
        does="0.5 without a queue, falling to 0 at the threshold",
        read=parameters({"threshold": ("threshold", integer(least=1))}, {"threshold": 128}),
    ),
    same(
        "active-request-scorer",
        Kind.SCORER,
        does="prefers pods that have fewer of this picker's requests",
        read=parameters(
            {
                "idleThreshold": ("idle", integer(least=0)),
                "maxBusyScore": ("most", share),
                "requestTimeout": ("", anything),
                "inFlightLoadProducerName": ("", anything),
            },
            {"idle": 0, "most": 1.0},
        ),
    ),
    same(
        "token-load-scorer",
        Kind.SCORER,
        does="prefers pods that have fewer tokens of this picker's requests, prompts counted or estimated by bytes",
        read=parameters(
            {
                "queueThresholdTokens": ("threshold", integer(least=1, most=2**53)),
                "nonTextTokenWeight": (
                    "",
                    only(number(), 1.0, because="tokens of images are not told from tokens of text"),
                ),
                "inFlightLoadProducerName": ("", anything),
            },
            {"threshold": 4_194_304},
        ),
    ),
    differs(
        "session-affinity-scorer",
        Kind.SCORER,
        does="prefers the pod that the session's token names, which each answer gives the client anew; without one, "
        "the pod that lorapick remembers for the session's id",
        read=selecting.session,
    ),
    same(
        "no-hit-lru-scorer",
        Kind.SCORER,
        does="prefers, for prompts that nobody has cached, pods that have not had one for longest",
        read=parameters(
            {
                "lruSize": ("", integer(least=0)),
                "prefixPluginType": ("", anything),
                "prefixPluginName": ("", anything),
                "prefixMatchInfoProducerName": ("", anything),
            }
        ),
    ),
    same(
        "context-length-aware",
        Kind.SCORER,
        Kind.FILTER,
        does="prefers pods whose range of context lengths fits the prompt; with enableFiltering keeps only those",
        read=parameters(
            {"label": ("label", text), "enableFiltering": ("filters", boolean)},
            {"label": "llm-d.ai/context-length-range", "filters": False},
        ),
    ),
    same(
        "topology-affinity-scorer",
        Kind.SCORER,
        does="prefers pods near the one that decodes, by labels of pods",
        read=parameters({"topologyProducerName": _TOPOLOGY_PRODUCER}, _PLACES),
    ),
    same(
        "header-label-affinity-scorer",
        Kind.SCORER,
        does="1 for pods whose label has the value of a header of the request, else 0",
        read=parameters(
            {"headerName": ("header", selecting.header_name), "labelKey": ("label", text)},
            required=("headerName", "labelKey"),
        ),
    ),
    refused(
        "latency-scorer",
        Kind.SCORER,
        because="it needs predictions of a latency predictor, which lorapick has not",
        instead="lorapick-cost-scorer, which learns seconds from answers",
    ),
    differs(
        "endpoint-attribute-scorer",
        Kind.SCORER,
        does="prefers pods with less (or more) GPU utilisation, or of a metric under customMetrics of "
        "core-metrics-extractor; there are no other attributes",
        read=selecting.attribute_range,
    ),
    refused(
        "mm-embeddings-cache-scorer",
        Kind.SCORER,
        because="lorapick has no index of which pod has which image encoded",
        instead="prefix-cache-scorer, whose blocks hold images as they are sent",
    ),
    own(
        "lorapick-residency-scorer",
        Kind.SCORER,
        does="the value of the tier that the adapter has there (picking.affinity): GPU, loading, host memory, disk",
    ),
    own(
        "lorapick-weighted-scorer",
        Kind.SCORER,
        does="the score of lorapick's policy weighted (picking.weights), as a share of its weights",
    ),
    own(
        "lorapick-cost-scorer",
        Kind.SCORER,
        does="1 where the request takes the least time, its own and that of others, down to 0 where the most",
    ),
)

SCHEDULING: tuple[PluginType, ...] = (*_FILTERS, *_SCORERS)
