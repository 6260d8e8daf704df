"""What a slot costs on a pod: memory, tokens of KV, sequences.

In: a picture. Out: sums, or None with the reason. Not here: whether more slots are wanted.

vLLM reserves a slot for `max_lora_rank`, whatever is loaded. Bytes come from the base model's shape, if its name is
known; else from the largest adapter whose files were looked at, scaled to that rank: then they are at least so many.
"""

from typing import NamedTuple

from lorapick.core.doctor.picture import Picture, PodPicture
from lorapick.core.doctor.saying import number, plural, size
from lorapick.core.doctor.shapes import Shape, shape_of
from lorapick.model.units import Bytes, Tokens


class SlotPrice(NamedTuple):
    """Of one slot on one pod. None: unknown."""

    memory: Bytes | None = None
    at_least: bool = False
    """Whether it may be more: it was scaled up from an adapter's files."""
    tokens: Tokens | None = None
    """Of KV, which fit no more."""
    sequences: float | None = None
    """At the tokens that a running sequence has now in the mean."""
    max_rank: int | None = None


def slot_price(picture: Picture) -> SlotPrice:
    """Of the first pod of which enough is known."""
    prices = [_on(picture, pod) for pod in picture.pods]
    known = [price for price in prices if price.memory is not None]
    return max(known or prices, key=_known, default=SlotPrice())


def _known(price: SlotPrice) -> int:
    return sum(value is not None for value in (price.memory, price.tokens, price.sequences))


def _on(picture: Picture, pod: PodPicture) -> SlotPrice:
    rank, shape = pod.max_rank, _shape(picture, pod)
    if rank is None:
        return SlotPrice()
    if shape is None:
        per_rank = [each.size / each.rank for each in picture.adapters if each.size and each.rank]
        return SlotPrice(int(max(per_rank) * rank) if per_rank else None, at_least=True, max_rank=rank)
    memory = shape.slot_bytes_per_rank * rank
    tokens = memory // shape.kv_bytes_per_token
    each = tokens_of_sequence(picture)
    return SlotPrice(memory, tokens=tokens, sequences=tokens / each if each else None, max_rank=rank)


def _shape(picture: Picture, pod: PodPicture) -> Shape | None:
    """By the pod's own name of its base model, or what adapters' files name."""
    found = shape_of(pod.base_model)
    if found is not None:
        return found
    told = {each.base_model: None for each in picture.adapters if each.base_model}
    shapes = [shape for shape in map(shape_of, told) if shape is not None]
    return shapes[0] if shapes and all(shape == shapes[0] for shape in shapes) else None


def tokens_of_sequence(picture: Picture) -> float | None:
    """Tokens of KV of one running sequence in the mean, from KV usage and requests running; None: not scraped."""
    used, running = 0.0, 0
    for pod in picture.pods:
        if pod.kv_usage is not None and pod.kv_tokens is not None and pod.running:
            used += pod.kv_usage * pod.kv_tokens
            running += pod.running
    return used / running if running and used > 0 else None


def in_words(picture: Picture, slots: int) -> str:
    """What so many slots more per pod cost, as far as known."""
    price = slot_price(picture)
    parts = [f"{plural(slots, 'slot')} more per pod"]
    if price.memory is None:
        parts.append("memory unknown (neither the base model's shape nor any adapter's size is known)")
    else:
        least = "at least " if price.at_least else ""
        parts.append(f"{least}{size(price.memory * slots)} of KV at max_lora_rank {price.max_rank}")
    if price.tokens is not None:
        capacity = next((pod.kv_tokens for pod in picture.pods if pod.kv_tokens), None)
        of_all = f" of {capacity:,}" if capacity is not None else ""
        parts.append(f"{price.tokens * slots:,}{of_all} tokens")
    if price.sequences is not None:
        parts.append(f"{number(max(1, round(price.sequences * slots)))} sequences fewer at once")
    elif price.memory is not None:
        parts.append("sequences unknown (nothing runs now, or KV usage or cache size is not scraped)")
    return " = ".join(parts) + "; engines read it at their start"
