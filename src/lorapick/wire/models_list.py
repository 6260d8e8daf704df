"""The body of `GET /v1/models` as names: which base models a pod serves, which adapters it would accept.

In: the bytes that an engine answered. Out: `ModelsList`; the adapters' paths. Not here: residency; vLLM lists what is
registered, wherever its weights are.
"""

import msgspec

from lorapick.model.units import AdapterName


class ModelsListError(ValueError):
    """The body is not a list of models; the message says where it differs."""


class ModelsList(msgspec.Struct, frozen=True, kw_only=True):
    """Names that an engine answers to."""

    base_models: tuple[str, ...]
    registered: tuple[AdapterName, ...]


class _Card(msgspec.Struct):
    id: str
    parent: str | None = None
    """Of an adapter: its base model. vLLM and SGLang set it for adapters only."""
    root: str | None = None
    """Of an adapter: the path it was loaded from."""


class _Body(msgspec.Struct):
    data: list[_Card]


MOST_MODELS = 16_384
"""Names of one pod; the picker takes over some thousand in 10 ms, and answers nobody meanwhile."""
_decoder = msgspec.json.Decoder(_Body)


def parse(body: bytes) -> ModelsList:
    """Read one list; a name that stands twice counts once.

    Raises:
        ModelsListError: not JSON, not of that shape, or too long.
    """
    cards = _cards(body)
    bases = dict.fromkeys(card.id for card in cards if card.parent is None)
    adapters = dict.fromkeys(card.id for card in cards if card.parent is not None)
    return ModelsList(base_models=tuple(bases), registered=tuple(adapters))


def paths(body: bytes) -> dict[AdapterName, str | None]:
    """From where each adapter of a list was loaded (`root`, of vLLM and SGLang); None: the engine does not say.

    Raises:
        ModelsListError: as `parse`.
    """
    return {card.id: card.root or None for card in _cards(body) if card.parent is not None}


def _cards(body: bytes) -> list[_Card]:
    try:
        cards = _decoder.decode(body).data
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise ModelsListError(f"not a list of models: {error}") from error
    if len(cards) > MOST_MODELS:
        raise ModelsListError(f"a list of {len(cards)} models; the limit is {MOST_MODELS} for one pod")
    return cards
