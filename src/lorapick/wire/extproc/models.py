"""`GET /v1/models` in vLLM's shape, from the union over pods.

In: model cards. Out: JSON. Not here: which pods serve what (`live`, `core`).
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from lorapick.model.answers import ModelCard


def _entry(card: ModelCard, created: int) -> dict[str, Any]:
    return {
        "id": card.id,
        "object": "model",
        "created": created,
        "owned_by": "lorapick",
        "root": card.root if card.root is not None else card.id,
        "parent": card.parent,
        "max_model_len": None,
    }


def list_models(cards: Sequence[ModelCard], *, created: int) -> bytes:
    """All models, in the order given; a name given twice is listed once. `created` is Unix time."""
    once = {card.id: card for card in reversed(cards)}
    entries = [_entry(card, created) for card in cards if once[card.id] is card]
    return msgspec.json.encode({"object": "list", "data": entries})


def one_model(cards: Sequence[ModelCard], name: str, *, created: int) -> bytes | None:
    """One model; None when no pod serves it."""
    return next((msgspec.json.encode(_entry(card, created)) for card in cards if card.id == name), None)


def no_such_model(name: str, near: Sequence[str]) -> str:
    """What a client is told that asks for one that nobody serves."""
    hint = f" Did you mean {', '.join(near)}?" if near else ""
    return f"The model `{name}` does not exist.{hint}"
