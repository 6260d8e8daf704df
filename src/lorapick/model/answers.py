"""What answers tell us: token counts, and the list of models that a fleet serves."""

import msgspec

from lorapick.model.units import Tokens


class ModelCard(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of `GET /v1/models`: the union over pods, each name once."""

    id: str
    parent: str | None = None
    """Base model of an adapter; None for a base model itself."""
    root: str | None = None


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Token counts of one answer; None: nobody counted."""

    prompt_tokens: Tokens | None = None
    cached_tokens: Tokens | None = None
    output_tokens: Tokens | None = None
