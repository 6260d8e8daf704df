"""A shadow of vLLM's two adapter caches on one pod.

In: which adapters we believe the engine used, in order. Out: which adapters it must have dropped.
vLLM keeps an LRU of `max_loras` adapters on the GPU and one of `max_cpu_loras` in host memory that includes
those on the GPU; using an adapter makes it the newest of both. Adapters with requests in flight stay.
Not here: what a scrape or a command says (see `core.residency.table`), and no code of the pod model:
the shadow must be able to disagree with it.
"""

from collections import OrderedDict
from collections.abc import Callable
from itertools import islice

from lorapick.model.tiers import Tier
from lorapick.model.units import AdapterName


class Shadow:
    """Two LRU levels, least recently used first."""

    __slots__ = ("cpu", "cpu_slots", "gpu", "gpu_slots")

    def __init__(self, *, gpu_slots: int, cpu_slots: int) -> None:
        self.gpu: OrderedDict[AdapterName, None] = OrderedDict()
        self.cpu: OrderedDict[AdapterName, None] = OrderedDict()
        self.resize(gpu_slots=gpu_slots, cpu_slots=cpu_slots)

    def resize(self, *, gpu_slots: int, cpu_slots: int) -> None:
        """Change the sizes; what no longer fits goes at the next use."""
        self.gpu_slots = gpu_slots
        self.cpu_slots = max(cpu_slots, gpu_slots)

    def touch(self, name: AdapterName) -> bool:
        """Make `name` the newest on both levels if it is on the GPU; whether it is."""
        if name not in self.gpu:
            return False
        self.gpu.move_to_end(name)
        self.cpu.move_to_end(name)
        return True

    def use(
        self, name: AdapterName, busy: Callable[[AdapterName], bool], *, must_fit: bool = False
    ) -> list[tuple[AdapterName, Tier]] | None:
        """Make `name` the newest on both levels; return what moved down and to where.

        None, and no change, when every slot is held by a busy adapter: the engine defers the request. With
        `must_fit` the engine runs it all the same, so some adapter that we think busy is not: the oldest goes.
        """
        if self.touch(name):
            return []
        surplus = max(0, len(self.gpu) + 1 - self.gpu_slots)
        victims = [*islice((held for held in self.gpu if not busy(held)), surplus)]
        if len(victims) < surplus:
            if not must_fit:
                return None
            victims = [*self.gpu][:surplus]
        for victim in victims:
            del self.gpu[victim]
        self.gpu[name] = None
        self.cpu[name] = None
        self.cpu.move_to_end(name)
        tiers = dict.fromkeys(victims, Tier.CPU)
        while len(self.cpu) > self.cpu_slots:
            gone = next((held for held in self.cpu if held not in self.gpu), None)
            if gone is None:
                break
            del self.cpu[gone]
            tiers[gone] = Tier.DISK
        return [*tiers.items()]

    def drop(self, name: AdapterName, tier: Tier) -> None:
        """The adapter left for `tier` (CPU keeps its host copy)."""
        self.gpu.pop(name, None)
        if tier is not Tier.CPU:
            self.cpu.pop(name, None)

    def replace(self, gpu: list[AdapterName], cpu: list[AdapterName]) -> None:
        """Take over what the engine reports; known order is kept, newcomers count as newest."""
        self.gpu = OrderedDict.fromkeys(_in_old_order(self.gpu, gpu))
        self.cpu = OrderedDict.fromkeys(_in_old_order(self.cpu, [*cpu, *gpu]))

    def clear(self) -> None:
        """The engine restarted."""
        self.gpu.clear()
        self.cpu.clear()

    @property
    def free(self) -> int:
        """GPU slots without an adapter; never negative."""
        return max(0, self.gpu_slots - len(self.gpu))


def _in_old_order(old: "OrderedDict[AdapterName, None]", new: list[AdapterName]) -> list[AdapterName]:
    wanted = dict.fromkeys(new)
    kept = [name for name in old if name in wanted]
    return [*kept, *(name for name in wanted if name not in old)]
