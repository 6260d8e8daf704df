"""Slots that serve nobody: the same weights under several names, slots for ranks that nobody has.

In: a picture. Out: findings. Not here: whether slots are short (see `core.doctor.thrash`).
"""

from collections.abc import Iterator

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


def ranks(picture: Picture) -> Iterator[Finding]:
    """Slots are reserved for a rank that no adapter has."""
    used = _used(picture)
    known = [adapter.rank for adapter in picture.adapters if adapter.rank is not None and adapter.name in used]
    reserved = [pod.max_rank for pod in picture.pods if pod.max_rank is not None]
    slots = [pod.slots for pod in picture.pods if pod.slots]
    if not known or not reserved or len(known) < len(used):
        return
    highest, least = max(known), min(reserved)
    if highest <= 0 or least < 2 * highest:
        return
    times = least // highest
    more = f": {slots[0]} slots could be {slots[0] * times}" if slots else ""
    yield Finding(
        check="rank",
        urgency=Urgency.INFO,
        what=f"slots are reserved for rank {least}, and the highest in use is {highest}: in the same memory there "
        f"could be {times} times as many",
        arithmetic=(f"max_lora_rank {least} / highest rank {highest} = {times}{more}",),
        remedies=(
            Remedy(
                action=f"start the pods with max_lora_rank {highest} and more max_loras",
                price=f"adapters above rank {highest} are refused; a restart of each pod",
            ),
        ),
        weight=times,
    )


def _used(picture: Picture) -> dict[AdapterName, None]:
    """Adapters that are in slots or were asked for lately."""
    asked = picture.signals.adapters if picture.signals is not None else ()
    used = {each.adapter: None for each in asked}
    used.update({adapter.name: None for adapter in picture.adapters if adapter.slots})
    return used
