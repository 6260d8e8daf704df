"""What an engine's own list of adapters in memory says, against what was believed when it was asked for.

In: the list, and the adapters of which we know something newer. Out: the place of each adapter, and the shadow's new
levels. Not here: beliefs themselves (see `core.residency.table`).
"""

from collections.abc import Container, Iterable

from lorapick.core.residency.cells import Cell
from lorapick.core.residency.shadow import Shadow
from lorapick.model.pods import LoadedAdapter
from lorapick.model.tiers import Tier
from lorapick.model.units import AdapterName


class Listed:
    """One list. An adapter may be in it once for each level."""

    __slots__ = ("_on_gpu", "pinned")

    def __init__(self, loaded: Iterable[LoadedAdapter]) -> None:
        self._on_gpu: dict[AdapterName, bool | None] = {}
        self.pinned: dict[AdapterName, None] = {}
        """Adapters that the engine never evicts."""
        for entry in loaded:
            self._on_gpu[entry.name] = entry.on_gpu or self._on_gpu.get(entry.name, entry.on_gpu)
            if entry.pinned:
                self.pinned[entry.name] = None

    @property
    def names(self) -> tuple[AdapterName, ...]:
        """Adapters in memory, in the list's order."""
        return tuple(self._on_gpu)

    def on_gpu(self, name: AdapterName, *, before: Tier) -> bool:
        """Whether it is on the GPU; where the engine says only that it has the adapter, as believed `before`."""
        there = self._on_gpu.get(name, False)
        return before.on_gpu if there is None else there

    def place(self, name: AdapterName, *, before: Tier) -> Tier:
        """Its tier by this list."""
        if name not in self._on_gpu:
            return Tier.DISK
        return Tier.GPU_IDLE if self.on_gpu(name, before=before) else Tier.CPU

    def only_implied(self, name: AdapterName, *, before: Tier) -> bool:
        """Whether the list leaves open what was believed: it has the adapter, on the GPU or not."""
        return before.on_gpu and name in self._on_gpu and self._on_gpu[name] is None

    def take_over(self, shadow: Shadow, cells: dict[AdapterName, Cell], *, kept: Container[AdapterName]) -> None:
        """Set the shadow's levels; what is `kept` stays where it is there."""
        both = {**self._on_gpu, **dict.fromkeys(name for name in cells if name in kept)}
        gpu = [name for name in both if (name in shadow.gpu if name in kept else self._stays(name, shadow))]
        cpu = [name for name in both if name not in kept or name in shadow.cpu]
        shadow.pinned = self.pinned
        shadow.replace(gpu, cpu, kept=kept)

    def _stays(self, name: AdapterName, shadow: Shadow) -> bool:
        there = self._on_gpu[name]
        return shadow.level(name).on_gpu if there is None else there
