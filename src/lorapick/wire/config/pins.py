"""Pins that the pods of a list cannot meet: more copies than there are pods, pods that are not there.

In: declared adapters, pods. Out: a line for each pin that asks for too much. Not here: base models, and whether
the slots of the pods suffice for all pins together (see `core.placement.pinning`, which says so at run time).
"""

from collections.abc import Iterator, Sequence

from lorapick.model.adapters import Adapter, PinSpec
from lorapick.model.pods import Pod, Role

PINS_HEADING = "pins that cannot be met"
MOST_NAMES = 5


def pins_that_cannot_be(adapters: Sequence[Adapter], pods: Sequence[Pod]) -> tuple[str, ...]:
    """One line each, in the order of the adapters."""
    said = []
    for adapter in adapters:
        if adapter.pin is not None:
            said += [f"{adapter.name}: {line}" for line in _too_much(adapter.pin, pods)]
    return tuple(said)


def _too_much(pin: PinSpec, pods: Sequence[Pod]) -> Iterator[str]:
    prefill = sum(pod.role is Role.PREFILL for pod in pods)
    decode = len(pods) - prefill
    if pin.replicas is not None and pin.replicas > decode:
        yield f"replicas is {pin.replicas}, and {_pods(decode)} can decode"
    if pin.prefill_replicas is not None and pin.prefill_replicas > prefill:
        yield f"prefill_replicas is {pin.prefill_replicas}, and {_pods(prefill)} only prefill"
    there = {pod.name: None for pod in pods}
    strange = [name for name in pin.pods if name not in there]
    if strange:
        more = f" and {len(strange) - MOST_NAMES} more" if len(strange) > MOST_NAMES else ""
        yield f"no such pod in the list: {', '.join(strange[:MOST_NAMES])}{more}"
    if pin.selector and not any(pin.selector.items() <= pod.labels.items() for pod in pods):
        labels = ", ".join(f"{key}={value}" for key, value in pin.selector.items())
        yield f"no pod of the list has the labels {labels}"


def _pods(count: int) -> str:
    return f"{count} pod{'' if count == 1 else 's'}"
