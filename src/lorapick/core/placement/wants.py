"""Wants: who should be loaded, where and until when, as schedules, triggers and groups say it.

Out: `Want`, and whether a pod fits a selector. Not here: which of the pods that fit gets it, and whether there is room
(see `core.placement.controller`).
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from lorapick.model.placement import Why
from lorapick.model.pods import Pod
from lorapick.model.units import AdapterName, PodName, Seconds

_NO_SELECTOR: Mapping[str, str] = {}


class Want(NamedTuple):
    """One adapter that somebody wants loaded."""

    adapter: AdapterName
    why: Why
    name: str
    """Which schedule, event or group it is; with `why` and `adapter` it tells wants of one source apart."""
    replicas: int = 1
    """Pods that should hold it."""
    pods: tuple[PodName, ...] = ()
    """These pods; none named: whichever fit `selector`."""
    selector: Mapping[str, str] = _NO_SELECTOR
    """Labels of the pods; the key `zone` is the pod's zone too."""
    until: Seconds | None = None
    """End on the driver's clock, exclusive; None: until somebody says otherwise."""


def fits(selector: Mapping[str, str], pod: Pod) -> bool:
    """Whether the pod has all labels of `selector`; `zone` may be a label or the pod's zone. An empty one fits all."""
    return all(pod.labels.get(key) == value or (key == "zone" and pod.zone == value) for key, value in selector.items())


def names_apart(named: Iterable[tuple[str, Mapping[str, str]]]) -> list[str]:
    """A name for each of some schedules or triggers, none twice: with its selector, and with a number if need be."""
    used: Counter[str] = Counter()
    names = []
    for name, selector in named:
        full = " ".join((name, *(f"{key}={value}" for key, value in selector.items())))
        used[full] += 1
        names.append(full if used[full] == 1 else f"{full} #{used[full]}")
    return names
