"""Slots that serve nobody: the same weights under several names, slots for ranks that nobody has.

In: a picture. Out: findings. Not here: whether slots are short (see `core.doctor.thrash`).
"""

from collections.abc import Iterator
from typing import NamedTuple

from lorapick.core.doctor.findings import Finding, Remedy, Urgency
from lorapick.core.doctor.picture import AdapterPicture, Picture
from lorapick.core.doctor.saying import names, plural
from lorapick.model.units import AdapterName


def duplicates(picture: Picture) -> Iterator[Finding]:
    """Several names for the same weights, each with slots of its own."""
    by_weights: dict[str, list[AdapterPicture]] = {}
    for adapter in picture.adapters:
        same = adapter.fingerprint or adapter.source
        if same is not None and adapter.slots:
            by_weights.setdefault(same, []).append(adapter)
    groups = [group for group in by_weights.values() if len(group) > 1]
    if groups:
        spare = sum(len(group) - 1 for group in groups)
        every = [each.name for group in groups for each in group]
        yield Finding(
            check="duplicates",
            urgency=Urgency.WARN,
            what=f"{plural(spare, 'adapter')} more than there are weights are in slots: {names(every)}",
            arithmetic=tuple(" = ".join(each.name for each in group) for group in groups[:5]),
            remedies=(
                Remedy(action="one adapter, and an alias for each other name (`lorapick aliases set`)", price="none"),
            ),
            weight=spare,
            adapters=tuple(every),
        )


class SpareRank(NamedTuple):
    """Slots are reserved for more than anybody needs."""

    reserved: int
    """The lowest `max_lora_rank` of the pods."""
    highest: int
    """Rank of the adapters in use."""
    times: int
    """As many slots would fit in the same memory."""


def spare_rank(picture: Picture) -> SpareRank | None:
    """By how much; None: by less than half, or ranks are unknown."""
    used = _used(picture)
    known = [adapter.rank for adapter in picture.adapters if adapter.rank is not None and adapter.name in used]
    reserved = [pod.max_rank for pod in picture.pods if pod.max_rank is not None]
    if not known or not reserved or len(known) < len(used):
        return None
    highest, least = max(known), min(reserved)
    return SpareRank(least, highest, least // highest) if 0 < 2 * highest <= least else None


def ranks(picture: Picture) -> Iterator[Finding]:
    """Slots are reserved for a rank that no adapter has."""
    spare = spare_rank(picture)
    if spare is None:
        return
    slots = [pod.slots for pod in picture.pods if pod.slots]
    more = f": {slots[0]} slots could be {slots[0] * spare.times}" if slots else ""
    yield Finding(
        check="rank",
        urgency=Urgency.INFO,
        what=f"slots are reserved for rank {spare.reserved}, and the highest in use is {spare.highest}: in the same "
        f"memory there could be {spare.times} times as many",
        arithmetic=(f"max_lora_rank {spare.reserved} / highest rank {spare.highest} = {spare.times}{more}",),
        remedies=(
            Remedy(
                action=f"start the pods with max_lora_rank {spare.highest} and more max_loras",
                price=f"adapters above rank {spare.highest} are refused; a restart of each pod",
            ),
        ),
        weight=spare.times,
    )


def _used(picture: Picture) -> dict[AdapterName, None]:
    """Adapters that are in slots or were asked for lately."""
    asked = picture.signals.adapters if picture.signals is not None else ()
    used = {each.adapter: None for each in asked}
    used.update({adapter.name: None for adapter in picture.adapters if adapter.slots})
    return used
