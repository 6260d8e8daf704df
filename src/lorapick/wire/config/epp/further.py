"""Plugin types beside scheduling: admission, flow control, data producers, sources and extractors, parsers, the rest.

In: nothing. Out: entries of the catalogue. Not here: those that pick pods (see `scheduling`).
"""

from lorapick.wire.config.epp import extracting, limits, reporting
from lorapick.wire.config.epp.entries import always, differs, refused, same
from lorapick.wire.config.epp.reading import anything, only, parameters
from lorapick.wire.config.epp.selecting import (
    PRECISE_KEYS,
    concurrency_detector,
    header_name,
    session_id,
    utilization_detector,
)
from lorapick.wire.config.epp.values import Kind, PluginType
from lorapick.wire.config.readers import boolean, choice, integer, list_of, text

_PREDICTOR = "it needs predictions of a latency predictor, which lorapick has not"
_IMAGES = "lorapick has no index of which pod has which image encoded"
_CLUSTERS = "lorapick has no view of other clusters: it picks pods of one"
_IN_FLIGHT = "lorapick has nothing that ends a request which is under way"

_ADMISSION = (
    differs(
        "utilization-detector",
        Kind.DETECTOR,
        Kind.FILTER,
        does="in a profile keeps pods whose queue and KV cache are below the thresholds, all when none is; as "
        "saturation detector it asks each pod: one whose queue is full takes no more, and who finds none waits",
        read=utilization_detector,
    ),
    differs(
        "concurrency-detector",
        Kind.DETECTOR,
        Kind.FILTER,
        does="in a profile keeps pods with fewer of this picker's requests than may be; as saturation detector it "
        "makes everybody wait while all pods together have as many as they may, beside the queue of each",
        read=concurrency_detector,
    ),
    differs(
        "probabilistic-admitter",
        Kind.ADMITTER,
        does="refuses requests of a priority below 0 the more likely the busier the pods are; 429 (llm-d: 500), and a "
        "pod whose report is too old counts as full",
        read=limits.chance,
    ),
    refused("latency-slo-admitter", Kind.ADMITTER, because=_PREDICTOR, instead="admission.max_wait"),
    differs(
        "global-strict-fairness-policy",
        Kind.FAIRNESS,
        does="of those of one priority that wait, whoever waits longest is next, unless no pod can take it yet",
    ),
    differs(
        "round-robin-fairness-policy",
        Kind.FAIRNESS,
        does="fairness ids take turns, each adapter of one by itself",
    ),
    differs(
        "program-aware-fairness",
        Kind.FAIRNESS,
        does="whoever's fairness id has had the fewest tokens of late is next (half-life 60 s)",
        read=parameters({}),
    ),
    same("fcfs-ordering-policy", Kind.ORDERING, does="of one flow, who came first is next"),
    same(
        "edf-ordering-policy",
        Kind.ORDERING,
        does="of one flow, whose wait ends first is next: by its own deadline, or defaultRequestTTL",
    ),
    same(
        "slo-deadline-ordering-policy",
        Kind.ORDERING,
        does="of one flow, who is to have its first token first is next (x-llm-d-slo-ttft-ms)",
    ),
    differs(
        "static-usage-limit-policy",
        Kind.LIMIT,
        does="with a threshold below 1 everybody waits from that saturation on; from 1 on each pod is asked whether it "
        "has room",
        read=limits.static,
    ),
    differs(
        "priority-holdback-policy",
        Kind.LIMIT,
        does="the lower the priority, the lower the saturation from which on it waits; from 1 on each pod is asked "
        "whether it has room, and priorities below 0 are refused, not held",
        read=limits.holdback,
    ),
    differs(
        "soft-reflective-ceiling-policy",
        Kind.LIMIT,
        does="the busier the pods, the fewer tries of lower priorities go through, none when they are full; what is "
        "counted are tries, not ticks of a millisecond, and priorities below 0 are refused, not held",
        read=limits.reflected,
    ),
    *(
        refused(name, Kind.EVICTION, because=_IN_FLIGHT, instead="objectives with a priority below 0: those never wait")
        for name in (
            "sheddable-eviction-filter",
            "priority-then-time-eviction-order-policy",
            "eviction-sheddable-filter",
            "eviction-priority-then-time-ordering",
        )
    ),
)

_tokenizer = parameters(
    dict.fromkeys(
        ("backend", "modelName", "vllm", "estimate", "udsTokenizerConfig", "tokenizersPoolConfig"), ("", anything)
    )
)
_PRODUCERS = (
    differs(
        "approx-prefix-cache-producer",
        Kind.PRODUCER,
        does="lorapick always keeps an index of prefixes: blocks of 64 bytes, at most 256 of a prompt, by adapter; "
        "lruCapacityPerServer bounds it until a pod says how many blocks it has",
        read=parameters(
            {
                "autoTune": ("", boolean),
                "blockSizeTokens": ("", integer(least=0)),
                "blockSize": ("", integer(least=0)),
                "maxPrefixBlocksToMatch": ("", integer(least=0)),
                "maxPrefixTokensToMatch": ("", integer(least=0)),
                "lruCapacityPerServer": ("blocks", integer(least=0)),
            },
        ),
    ),
    differs(
        "precise-prefix-cache-producer",
        Kind.PRODUCER,
        Kind.EXTRACTOR,
        does="lorapick reads KV events of pods whose entry in the list of pods has kv_events, into the same index",
        read=parameters(dict.fromkeys(PRECISE_KEYS, ("", anything))),
    ),
    always(
        "inflight-load-producer", Kind.PRODUCER, does="lorapick always counts its requests and their tokens on each pod"
    ),
    differs(
        "token-producer",
        Kind.PRODUCER,
        does="lorapick asks no tokenizer: where a request has no token ids, four bytes count as one token",
        read=_tokenizer,
    ),
    differs(
        "tokenizer",
        Kind.PRODUCER,
        does="lorapick asks no tokenizer: where a request has no token ids, four bytes count as one token",
        read=_tokenizer,
        old_name_of="token-producer",
    ),
    same(
        "session-id-producer",
        Kind.PRODUCER,
        does="reads the session's id from a header or a cookie; without one from x-session-token, x-session-id or the "
        "body's user",
        read=session_id,
    ),
    refused(
        "predicted-latency-producer",
        Kind.PRODUCER,
        because=_PREDICTOR,
        instead="lorapick-cost-scorer for what it feeds",
    ),
    refused(
        "burst-prefix-cache-producer",
        Kind.PRODUCER,
        because="lorapick has no window in which requests are gathered: it decides about each as it comes",
        instead="approx-prefix-cache-producer",
    ),
    refused("mm-embeddings-cache-producer", Kind.PRODUCER, because=_IMAGES, instead="approx-prefix-cache-producer"),
    refused(
        "p2p-source-producer",
        Kind.PRODUCER,
        because="lorapick has no way to have pods fetch KV from one another but for prefill",
        instead="disagg-profile-handler",
    ),
    same(
        "agent-identity",
        Kind.HEADERS,
        does="takes the fairness id from the headers that agents send, where its own header is missing",
        read=parameters({"additionalSessionHeaders": ("agents", list_of(header_name))}),
    ),
)

_http = only(choice("http", "https"), "http", because="pods are scraped over http")
_DATA = (
    same(
        "metrics-data-source",
        Kind.SOURCE,
        does="lorapick always reads each pod's /metrics, at its own pace (scrape.interval)",
        read=parameters(
            {
                "scheme": ("", _http),
                "path": ("", only(text, "/metrics", because="pods are scraped at /metrics")),
                "insecureSkipVerify": ("", boolean),
            }
        ),
    ),
    differs(
        "core-metrics-extractor",
        Kind.EXTRACTOR,
        does="lorapick always reads queue, running requests, KV cache and adapters, by names that it knows of each "
        "engine, and what customMetrics of engineConfigs name beside them",
        read=extracting.extractor,
    ),
    always("models-data-source", Kind.SOURCE, does="lorapick always asks pods for /v1/models (scrape.models_every)"),
    always(
        "models-data-extractor",
        Kind.EXTRACTOR,
        does="lorapick always looks at /v1/models: a pod that does not list an adapter is not asked for it",
    ),
    always("models-responder", Kind.RESPONSE, does="lorapick always answers /v1/models itself"),
    always("k8s-notification-source", Kind.SOURCE, does="lorapick follows pods by its own discovery"),
    always("endpoint-notification-source", Kind.SOURCE, does="lorapick follows pods by its own discovery"),
    same(
        "topology-extractor",
        Kind.EXTRACTOR,
        does="says which labels of pods name host, rack, zone and region",
        read=parameters({key: (key, text) for key in ("rack", "zone", "region")} | {"hostname": ("host", text)}),
    ),
    always("dcgm-data-source", Kind.SOURCE, does="lorapick reads the DCGM exporter of pods whose entry has dcgm_url"),
    always(
        "dcgm-extractor", Kind.EXTRACTOR, does="lorapick reads GPU utilisation from DCGM where there is an exporter"
    ),
    same(
        "file-discovery",
        Kind.DISCOVERY,
        does="takes the pods from a file; it is always followed",
        read=parameters({"path": ("path", text), "watchFile": ("", boolean)}, required=("path",)),
    ),
)

_PARSERS = (
    same("openai-parser", Kind.PARSER, does="lorapick always reads OpenAI requests, by path"),
    always("anthropic-parser", Kind.PARSER, does="lorapick always reads /v1/messages too"),
    always("vllmhttp-parser", Kind.PARSER, does="a request whose JSON body has a model goes by it, whatever its path"),
    always(
        "sglanghttp-parser",
        Kind.PARSER,
        does="a request whose JSON body has a model goes by it; one without to any pod",
    ),
    always("passthrough-parser", Kind.PARSER, does="what lorapick cannot read goes to any ready pod"),
    refused(
        "vllmgrpc-parser",
        Kind.PARSER,
        because="lorapick has no reader of gRPC requests, only of HTTP with JSON bodies",
        instead="openai-parser",
    ),
    refused(
        "vertexai-parser",
        Kind.PARSER,
        because="its requests are gRPC, and lorapick has no reader of those, only of HTTP with JSON bodies",
        instead="openai-parser",
    ),
)

_REST = (
    differs(
        "request-attribute-reporter",
        Kind.RESPONSE,
        does="tells the gateway a figure of each answer's usage, as dynamic metadata of its end; a count that the "
        "answer has not is not there (llm-d: 0), and it needs lorapick[cel]",
        read=reporting.report,
    ),
    same(
        "destination-endpoint-served-verifier",
        Kind.RESPONSE,
        Kind.TEST,
        does="names the address that served in x-conformance-test-served-endpoint",
    ),
    refused(
        "disaggregatedset-rollout-screener",
        Kind.SCREENER,
        because="lorapick has no watch of DisaggregatedSets",
        instead="label-selector-filter on the revision's label",
    ),
    *(
        refused(f"multicluster-{name}", kind, because=_CLUSTERS, instead=instead)
        for name, kind, instead in (
            ("session-affinity-filter", Kind.FILTER, "session-affinity-filter"),
            ("queue-scorer", Kind.SCORER, "queue-scorer"),
            ("kv-cache-utilization-scorer", Kind.SCORER, "kv-cache-utilization-scorer"),
            ("prefix-cache-scorer", Kind.SCORER, "prefix-cache-scorer"),
            ("approx-prefix-cache-producer", Kind.PRODUCER, "approx-prefix-cache-producer"),
            ("metrics-data-source", Kind.SOURCE, "metrics-data-source"),
            ("metrics-extractor", Kind.EXTRACTOR, "core-metrics-extractor"),
            ("file-discovery", Kind.DISCOVERY, "file-discovery"),
            ("topology-scorer", Kind.SCORER, "topology-affinity-scorer"),
        )
    ),
)

FURTHER: tuple[PluginType, ...] = (*_ADMISSION, *_PRODUCERS, *_DATA, *_PARSERS, *_REST)
