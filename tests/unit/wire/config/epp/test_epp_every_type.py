"""Every type that llm-d's endpoint picker registers (May and August 2026): it works, or a component is missing."""

import pytest
from epp_kit import HEAD, parse

from lorapick.wire.config import ConfigError
from lorapick.wire.config.epp import TYPES, Support

_WORKS = """
lora-affinity-scorer label-selector-filter by-label-selector by-label decode-filter prefill-filter encode-filter
prefix-cache-affinity-filter context-length-aware utilization-detector concurrency-detector
header-based-testing-filter queue-scorer running-requests-size-scorer kv-cache-utilization-scorer prefix-cache-scorer
precise-prefix-cache-scorer load-aware-scorer active-request-scorer token-load-scorer session-affinity-scorer
no-hit-lru-scorer max-score-picker random-picker weighted-random-picker single-profile-handler disagg-profile-handler
pd-profile-handler disagg-headers-handler prefill-header-handler prefix-based-pd-decider always-disagg-pd-decider
approx-prefix-cache-producer inflight-load-producer token-producer tokenizer destination-endpoint-served-verifier
openai-parser passthrough-parser metrics-data-source models-data-source k8s-notification-source
endpoint-notification-source core-metrics-extractor models-data-extractor global-strict-fairness-policy
round-robin-fairness-policy fcfs-ordering-policy edf-ordering-policy slo-deadline-ordering-policy
static-usage-limit-policy utilization-filter session-affinity-filter session-id-producer agent-identity
header-label-affinity-scorer header-profile-handler topology-affinity-filter topology-affinity-scorer
topology-extractor precise-prefix-cache-producer program-aware-fairness file-discovery dcgm-data-source dcgm-extractor
models-responder anthropic-parser vllmhttp-parser sglanghttp-parser endpoint-attribute-filter
endpoint-attribute-scorer data-parallel-profile-handler probabilistic-admitter priority-holdback-policy
soft-reflective-ceiling-policy request-attribute-reporter
"""
WORKS = _WORKS.split()
MISSING = {
    "a latency predictor": "slo-headroom-tier-filter latency-scorer latency-slo-admitter predicted-latency-producer",
    "no view of other clusters": """multicluster-session-affinity-filter multicluster-queue-scorer
        multicluster-kv-cache-utilization-scorer multicluster-prefix-cache-scorer multicluster-topology-scorer
        multicluster-approx-prefix-cache-producer multicluster-metrics-data-source multicluster-metrics-extractor
        multicluster-file-discovery""",
    "no index of which pod has which image": "mm-embeddings-cache-scorer mm-embeddings-cache-producer",
    "no choice of pods that encode": "always-disagg-multimodal-decider",
    "no window in which requests are gathered": "burst-prefix-cache-producer",
    "no way to have pods fetch KV": "p2p-source-producer",
    "no reader of gRPC": "vllmgrpc-parser",
    "gRPC, and lorapick has no reader of those": "vertexai-parser",
    "no watch of DisaggregatedSets": "disaggregatedset-rollout-screener",
    "nothing that ends a request": """sheddable-eviction-filter priority-then-time-eviction-order-policy
        eviction-sheddable-filter eviction-priority-then-time-ordering""",
}
"""Words of the refusal, and the types that it is for."""
REFUSED = {name: words for words, names in MISSING.items() for name in names.split()}


def test_every_type_works_or_is_refused_and_none_is_both():
    assert not {*WORKS} & {*REFUSED}
    assert {*WORKS} | {*REFUSED} == {name for name, each in TYPES.items() if each.support is not Support.OWN}


@pytest.mark.parametrize("name", WORKS)
def test_what_works_is_not_refused(name):
    assert TYPES[name].support in (Support.SAME, Support.DIFFERS, Support.ALWAYS)


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_names_what_is_missing_and_what_to_use(name):
    with pytest.raises(ConfigError) as said:
        parse(f"{HEAD}plugins: [{{type: {name}}}]\n")
    (problem,) = said.value.problems
    assert "is not supported: " in problem.message and REFUSED[name] in problem.message
    assert problem.hint.startswith("use ")
