"""Who shares a node or a zone with whom, as numbers, so that links of all pods are found at once.

In: pods by row, the label that names their node. Out: codes by row. Not here: what a link takes (see `links`).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lorapick.model.pods import Pod

Codes = NDArray[np.intp]
EVERYWHERE, NOWHERE = 0, -1
"""Elements of a look-up by place: of the whole fleet, and of pods that name none (the last element)."""


class Places:
    """Places of the pods of one fleet; they change when a pod comes, goes or is described anew."""

    __slots__ = ("count", "each", "label", "node", "node_codes", "of_row", "pods", "zone", "zone_codes")

    def __init__(self, pods: Sequence[Pod | None], *, label: str) -> None:
        zones = [pod.zone if pod is not None else None for pod in pods]
        nodes = [pod.labels.get(label) if pod is not None else None for pod in pods]
        self.label = label
        """Of the node's name."""
        self.pods = tuple(pods)
        self.each = np.arange(len(pods))
        """Every row."""
        self.zone_codes = _codes(zones, first=EVERYWHERE + 1)
        """Codes by name; those of nodes are others than those of zones."""
        self.node_codes = _codes(nodes, first=EVERYWHERE + 1 + len(self.zone_codes))
        self.count = 2 + len(self.zone_codes) + len(self.node_codes)
        """Elements of a look-up: the fleet, each zone and node, nowhere."""
        self.zone, self.node = _of(zones, self.zone_codes), _of(nodes, self.node_codes)
        """Code by row. Equal codes are one place; a row that names none has one of its own."""
        lookups = [np.full(len(pods), EVERYWHERE)]
        lookups += [np.where(codes < 0, NOWHERE, codes) for codes in (self.zone, self.node)]
        self.of_row = np.stack(lookups)
        """Of each row the elements to look up: the fleet's, its zone's and its node's."""


def _codes(names: list[str | None], *, first: int) -> dict[str, int]:
    known = dict.fromkeys(name for name in names if name is not None)
    return {name: code for code, name in enumerate(known, start=first)}


def _of(names: list[str | None], codes: dict[str, int]) -> Codes:
    return np.array([codes[name] if name is not None else -1 - row for row, name in enumerate(names)], dtype=np.intp)
