"""Which paths are routed by the model in their body, and which the picker answers itself.

In: a method and a path. Out: a `Route`. Not here: bodies.
"""

import re
from enum import Enum
from functools import lru_cache
from urllib.parse import unquote


class Route(Enum):
    """What a request's path says about it."""

    MODELS = "models"
    """`GET /v1/models`, with or without a name: the picker answers from what the pods serve."""
    BY_MODEL = "by_model"
    """OpenAI-shaped: the body must be JSON and name a model."""
    MANAGEMENT = "management"
    """Changes the one pod it reaches (loads adapters, sleeps, resets caches): never through a gateway."""
    OTHER = "other"
    """By the model when the body is JSON and has one, else to any ready pod (audio uploads, engine routes)."""


_VERSION = r"(?:/v\d+)?"
_BY_MODEL = re.compile(
    _VERSION + r"/(?:completions|chat/completions|embeddings|responses|messages|messages/count_tokens"
    r"|rerank|score|tokenize|detokenize|pooling|classify)/?"
)
_MODELS = re.compile(r"/v1/models(?:/(?P<name>.+))?/?")

MANAGEMENT_PATHS = (
    *(f"{version}/{verb}_lora_adapter" for version in ("", "/v1") for verb in ("load", "unload")),
    "/load_lora_adapter_from_tensors",
    "/sleep", "/wake_up", "/pause", "/resume", "/abort_requests", "/collective_rpc", "/scale_elastic_ep",
    "/reset_prefix_cache", "/reset_mm_cache", "/reset_encoder_cache", "/flush_cache",
    "/start_profile", "/stop_profile", "/release_memory_occupation", "/resume_memory_occupation",
    "/update_weights", "/update_weights_from_disk", "/update_weights_from_tensor", "/update_weights_from_distributed",
    "/emulator",
)  # fmt: skip
"""Of vLLM, SGLang and our emulator, each with all below it. Envoy refuses them itself, as the picker may be away."""
_MANAGEMENT = re.compile(rf"(?:{'|'.join(map(re.escape, MANAGEMENT_PATHS))})(?:/.*)?")


@lru_cache(maxsize=512)
def route_of(method: str, path: str) -> Route:
    """The route of a request; `path` may carry a query."""
    plain = path.partition("?")[0]
    # As the pod will read it: model servers undo escapes, and some gateways pass them on.
    if _MANAGEMENT.fullmatch(re.sub("/+", "/", unquote(plain))):
        return Route.MANAGEMENT
    if method == "GET":
        return Route.MODELS if _MODELS.fullmatch(plain) else Route.OTHER
    return Route.BY_MODEL if method == "POST" and _BY_MODEL.fullmatch(plain) else Route.OTHER


def model_in(path: str) -> str | None:
    """The name in `/v1/models/NAME` (it may hold slashes); None: the list is asked for."""
    match = _MODELS.fullmatch(path.partition("?")[0])
    name = match["name"].rstrip("/") if match and match["name"] else ""
    return unquote(name) or None
