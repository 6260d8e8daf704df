"""The facts of one answer, before any API gives them its shape.

In: a finished or running request. Out: `Answer`. Not here: JSON (see `dialects`).
"""

import msgspec

from lorapick.live.podserver.refusals import Json
from lorapick.model.units import AdapterName, PodName, Tokens


class Answer(msgspec.Struct, kw_only=True):
    """What every API says of a generated answer, in its own words."""

    id: str
    """With the API's prefix."""
    created: int
    """Unix time, whole seconds."""
    model: str
    """As the client will see it: the adapter's name, or the base model's."""
    prompt_tokens: Tokens
    cached_tokens: Tokens = 0
    cached_elsewhere: Tokens | None = None
    """What the pod that prefilled had cached; None: this pod's own number is told."""
    output_tokens: Tokens = 0
    finish_reason: str = "length"
    text: str = ""
    """All of it; empty while streaming."""
    fingerprint: str | None = None
    kv_transfer_params: Json | None = None
    """Where this request's KV is, for the pod that decodes; None: nobody asked to keep it."""


def fingerprint(pod: PodName, adapter: AdapterName | None, tier: str | None) -> str:
    """Who served, in the field that OpenAI clients are told to treat as opaque: `lorapick/<pod>/<adapter>/<tier>`."""
    return f"lorapick/{pod}/{adapter or '-'}/{tier or '-'}"
