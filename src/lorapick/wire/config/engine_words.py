"""Words of llm-d for model servers, in labels of pods and in its configuration.

In: a word, or a pod's labels. Out: an engine, or the word that nobody knows. Not here: how engines differ (see
`wire.engines`).
"""

from collections.abc import Mapping

from lorapick.model.pods import Engine

ENGINE_LABELS = ("llm-d.ai/engine-type", "inference.networking.k8s.io/engine-type")
"""The newer name counts before the older."""
OF_WORD: Mapping[str, Engine] = {
    "vllm": Engine.VLLM,
    "sglang": Engine.SGLANG,
    "trtllm-serve": Engine.TRTLLM,
    "triton-tensorrt-llm": Engine.TRITON,
    "trtllm": Engine.TRTLLM,
    "triton": Engine.TRITON,
    "lorax": Engine.LORAX,
}
"""llm-d's words, and ours."""


def engine_label(labels: Mapping[str, str]) -> tuple[str, Engine | None] | None:
    """The label that says a pod's engine, and which; the engine is None if nobody knows the word. None: no label."""
    for key in ENGINE_LABELS:
        if key in labels:
            return key, OF_WORD.get(labels[key].lower())
    return None
