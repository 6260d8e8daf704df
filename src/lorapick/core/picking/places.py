"""Who shares a node or a zone with whom, as numbers, so that links of all pods are found at once.

In: pods by row, the label that names their node. Out: codes by row. Not here: what a link takes (see `links`).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lorapick.model.pods import Pod

Codes = NDArray[np.intp]


class Places:
    """Places of the pods of one fleet; they change when a pod comes, goes or is described anew.

    Equal codes are one place. A pod that names none gets a code of its own, since it shares its place with nobody.
    """

    __slots__ = ("each", "label", "node", "node_codes", "nodes", "pods", "zone", "zone_codes", "zones")

    def __init__(self, pods: Sequence[Pod | None], *, label: str) -> None:
        self.label = label
        """Of the node's name."""
        self.pods = tuple(pods)
        self.each = np.arange(len(pods))
        """Every row."""
        self.zone_codes, self.zone, self.zones = _coded([pod.zone if pod is not None else None for pod in pods])
        self.node_codes, self.node, self.nodes = _coded(
            [pod.labels.get(label) if pod is not None else None for pod in pods]
        )
        # zone_codes, node_codes: code by name. zone, node: code by row. zones, nodes: every code is below this.


def _coded(names: list[str | None]) -> tuple[dict[str, int], Codes, int]:
    codes: dict[str, int] = {}
    for name in names:
        if name is not None:
            codes.setdefault(name, len(codes))
    own = len(codes)
    found = np.empty(len(names), dtype=np.intp)
    for row, name in enumerate(names):
        if name is None:
            found[row] = own
            own += 1
        else:
            found[row] = codes[name]
    return codes, found, own
