"""A shadow of vLLM's two adapter caches on one pod.

In: which adapters we believe the engine used, in order. Out: which adapters it must have dropped.
vLLM keeps an LRU of `max_loras` adapters on the GPU and one of `max_cpu_loras` in host memory that includes
those on the GPU; using an adapter makes it the newest of both. Adapters with requests in flight stay. When all slots
are held by such, the engine defers the next adapter's requests; whoever waits longest gets the first slot that falls
idle, before anybody who asks later.
Not here: what a scrape or a command says (see `core.residency.table`), and no code of the pod model:
the shadow must be able to disagree with it.
"""

from collections import OrderedDict
from collections.abc import Callable, Container, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from lorapick.model.tiers import Tier
from lorapick.model.units import AdapterName, Seconds

DISORDER: Seconds = 0.1
"""Seconds by which the word of a use may come later than that of another: steps that end requests take milliseconds,
and each end has its own way through the engine's server and Envoy."""


class Use(NamedTuple):
    """When an adapter was used last, as far as anybody can know."""

    after: Seconds
    by: Seconds


class Shadow:
    """Two LRU levels, least recently used first."""

    __slots__ = (
        "clock", "cpu", "cpu_slots", "deferred", "doubtful", "gpu", "gpu_slots", "last", "pinned", "unsure", "uses",
    )  # fmt: skip

    def __init__(self, *, gpu_slots: int, cpu_slots: int, clock: Callable[[], Seconds] | None = None) -> None:
        """Without a clock the order in which we hear of uses counts as theirs."""
        self.clock = clock
        self.gpu: OrderedDict[AdapterName, None] = OrderedDict()
        self.cpu: OrderedDict[AdapterName, None] = OrderedDict()
        self.deferred: dict[AdapterName, None] = {}
        """Who waits for a slot, longest first."""
        self.doubtful: dict[AdapterName, Tier] = {}
        """Of those in `gpu`, the ones that may as well be where they were, and count as being there: what brought them
        in failed. An LRU holds the others whether these are there or not, and who comes next pushes out the first of
        them, or one that has left `gpu` already."""
        self.unsure: dict[AdapterName, None] = {}
        """Of those in `gpu`, the ones that the engine was told to use: it may have done so, and need not have."""
        self.pinned: dict[AdapterName, None] = {}
        """Adapters that the engine says it never evicts from a level that they are on."""
        self.uses = 0
        """Counts changes of the order on the GPU by uses."""
        self.last: dict[AdapterName, Use] = {}
        """Of those in `gpu`, as far as it is known; `gpu` itself is in the order in which we heard of uses."""
        self.resize(gpu_slots=gpu_slots, cpu_slots=cpu_slots)

    def resize(self, *, gpu_slots: int, cpu_slots: int) -> None:
        """Change the sizes; what no longer fits goes at the next use, or by `shrink`."""
        self.gpu_slots = gpu_slots
        self.cpu_slots = max(cpu_slots, gpu_slots)

    def asked(self, name: AdapterName) -> None:
        """A request for `name` was sent here; an LRU looks at uses alone."""

    def touch(self, name: AdapterName) -> bool:
        """Make `name` the newest on both levels if it is on the GPU; whether it is."""
        if name not in self.gpu:
            return False
        self.unsure.pop(name, None)
        self.uses += 1
        self.gpu.move_to_end(name)
        self.cpu.move_to_end(name)
        self.heard(name)
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
        doubted = self._take_as_used(busy) if surplus and self.unsure else {}
        victims = self.victims((held for held in self.gpu if not busy(held)), surplus, leaves_for=Tier.CPU)
        if len(victims) < surplus:
            if not must_fit:
                self.deferred[name] = None
                return [*doubted.items()] or None
            victims = [*self.gpu][:surplus]
        self.deferred.pop(name, None)
        self.uses += 1
        tiers = doubted | self._put_out(victims)
        self.enter(name)
        tiers.update(self._trim_host())
        return [*tiers.items()]

    def shrink(self, busy: Callable[[AdapterName], bool]) -> list[tuple[AdapterName, Tier]]:
        """There are fewer slots than was thought: return what is in none, and where it is.

        An LRU of fewer slots holds the ones used last, whoever was thought to be beside them.
        """
        surplus = max(0, len(self.gpu) - self.gpu_slots)
        idle = (held for held in [*self.gpu] if not busy(held))
        tiers = self._put_out(self.victims(idle, surplus, leaves_for=Tier.CPU) if surplus else [])
        tiers.update(self._trim_host())
        return [*tiers.items()]

    def _take_as_used(self, busy: Callable[[AdapterName], bool]) -> dict[AdapterName, Tier]:
        """Somebody makes room, and it is not certain who: those who may have been used are taken to be, and doubted.

        An LRU holds all others that were used since, whether or not these were.
        """
        names = [name for name in self.may_go(busy) if name in self.unsure]
        for name in names:
            del self.unsure[name]
            self.gpu.move_to_end(name)
            self.doubtful.setdefault(name, Tier.CPU)
        return {name: self.doubtful[name] for name in names}

    def _put_out(self, names: list[AdapterName]) -> dict[AdapterName, Tier]:
        """These leave their slots; return where they are."""
        tiers: dict[AdapterName, Tier] = {}
        for name in names:
            del self.gpu[name]
            self.last.pop(name, None)
            self.unsure.pop(name, None)
            tiers[name] = self.doubtful.pop(name, Tier.CPU)
            if tiers[name] is not Tier.CPU:
                self.forget(name)
        return tiers

    def doubt(self, name: AdapterName, tier: Tier) -> None:
        """What brought an adapter in failed: it counts as being on `tier`, and its slot as taken."""
        self.deferred.pop(name, None)
        if name in self.gpu:
            self.doubtful[name] = tier

    def next_out(self, busy: Callable[[AdapterName], bool]) -> AdapterName | None:
        """Who would make room for a newcomer; None: everybody is busy."""
        return next((name for name in self.gpu if not busy(name)), None)

    def heard(self, name: AdapterName) -> None:
        """A use is heard of now."""
        if self.clock is not None:
            now, before = self.clock(), self.last.get(name)
            after = now - DISORDER
            self.last[name] = Use(max(after, before.after) if before is not None else after, now)

    def answered(self, name: AdapterName, *, asked: Seconds, before: Use | None) -> None:
        """A use that was `asked` for has happened since, however late its answer; what was known `before` holds too."""
        if self.clock is not None:
            self.last[name] = Use(max(asked, before.after) if before is not None else asked, self.clock())

    def may_go(self, busy: Callable[[AdapterName], bool]) -> list[AdapterName]:
        """All who may make room for a newcomer.

        Nobody knows which uses that were asked for have happened, nor in which order those did that we heard of at
        about the same time.
        """
        names: list[AdapterName] = []
        while (name := self.next_out(lambda held: busy(held) or held in names)) is not None:
            names.append(name)
            if name not in self.unsure:
                return [
                    *dict.fromkeys(names + [each for each in self.gpu if self.precedes(each, name) and not busy(each)])
                ]
        return names

    def precedes(self, name: AdapterName, other: AdapterName, *, now: Seconds | None = None) -> bool:
        """Whether `name`, which we heard of later, may have been used last before `other` was.

        With `now` its last use may have been at any time until now, or still be: nobody has told us.
        """
        last, least = self.last.get(name), self.last.get(other)
        if name == other or least is None or (last is None and now is None):
            return False
        after = last.after if last is not None else float("-inf")
        return (after if now is None else max(after, now - DISORDER)) < least.by

    def victims(self, candidates: Iterator[AdapterName], count: int, *, leaves_for: Tier) -> list[AdapterName]:
        """Who of `candidates`, which come in the order of their last use, makes room; fewer when there are no more."""
        del leaves_for
        return [*islice(candidates, count)]

    def enter(self, name: AdapterName) -> None:
        """It comes into a slot."""
        self.unsure.pop(name, None)
        self.gpu[name] = None
        self.cpu[name] = None
        self.cpu.move_to_end(name)
        self.heard(name)

    def forget(self, name: AdapterName) -> None:
        """It left both levels."""
        self.cpu.pop(name, None)

    def _trim_host(self) -> dict[AdapterName, Tier]:
        """Drop the oldest of host memory until it fits; never those on the GPU, nor pinned ones."""
        surplus = max(0, len(self.cpu) - self.cpu_slots)
        if not surplus:
            return {}
        alone = (held for held in self.cpu if held not in self.gpu and held not in self.pinned)
        gone = self.victims(alone, surplus, leaves_for=Tier.DISK)
        for name in gone:
            self.forget(name)
        return dict.fromkeys(gone, Tier.DISK)

    def order(self, used: Sequence[AdapterName]) -> None:
        """These were used in this order, oldest first, and after all others; who is where is known otherwise."""
        self.uses += 1
        for name in used:
            self.last.pop(name, None)  # it is later than all that we heard of otherwise
        for level in (self.gpu, self.cpu):
            for name in used:
                if name in level:
                    level.move_to_end(name)

    def recall(self, used: Sequence[AdapterName], busy: Callable[[AdapterName], bool]) -> dict[AdapterName, Tier]:
        """The engine's own record of whom it ran since the last look, oldest first.

        Return who changed level, and to where. An LRU holds the adapters used last, whatever came in between; busy
        ones keep their slots besides.
        """
        self.uses += 1
        recent = dict.fromkeys(used)
        order = {**dict.fromkeys(name for name in self.cpu if name not in recent), **recent}
        held = {name: None for name in self.gpu if busy(name)}
        rest = [name for name in order if name not in held and (name in self.gpu or name in recent)]
        room = max(0, self.gpu_slots - len(held))
        fits = {**held, **dict.fromkeys(rest[len(rest) - room :] if room < len(rest) else rest)}
        before = {name: self.level(name) for name in self.cpu}
        self.gpu = OrderedDict.fromkeys(name for name in order if name in fits)
        self.cpu = OrderedDict.fromkeys(order)
        self.last = {name: use for name, use in self.last.items() if name in self.gpu and name not in recent}
        self._trim_host()
        self.doubtful = {name: tier for name, tier in self.doubtful.items() if name in self.gpu and name not in recent}
        now = {name: self.level(name) for name in order}
        return {name: tier for name, tier in now.items() if before.get(name, Tier.DISK) is not tier}

    def as_before(self, old: "OrderedDict[AdapterName, None]") -> None:
        """Go back to an older order of the GPU; who came since is the newest."""
        self.gpu = OrderedDict.fromkeys(_in_old_order(old, [*self.gpu]))

    def level(self, name: AdapterName) -> Tier:
        """Where it is, or counts as being."""
        if name in self.doubtful:
            return self.doubtful[name]
        return Tier.GPU_IDLE if name in self.gpu else Tier.CPU if name in self.cpu else Tier.DISK

    def settle(self, busy: Callable[[AdapterName], bool]) -> list[tuple[AdapterName, Tier]]:
        """A slot may have fallen idle: give it to who waits longest; return what moved down and to where."""
        moved: dict[AdapterName, Tier] = {}
        for name in [*self.deferred]:
            down = self.use(name, busy)
            if down is None:
                break
            moved.update(down)
        return [*moved.items()]

    def drop(self, name: AdapterName, tier: Tier) -> None:
        """The adapter left for `tier` (CPU keeps its host copy)."""
        self.gpu.pop(name, None)
        self.last.pop(name, None)
        self.unsure.pop(name, None)
        self.doubtful.pop(name, None)
        self.deferred.pop(name, None)
        if tier is not Tier.CPU:
            self.forget(name)

    def replace(
        self, gpu: list[AdapterName], cpu: list[AdapterName], *, kept: Container[AdapterName] = frozenset()
    ) -> None:
        """Take over what the engine reports, except of whom is `kept`; known order stays, newcomers count as newest."""
        self.gpu = OrderedDict.fromkeys(_in_old_order(self.gpu, gpu))
        self.cpu = OrderedDict.fromkeys(_in_old_order(self.cpu, [*cpu, *gpu]))
        self.last = {name: use for name, use in self.last.items() if name in self.gpu}
        self.doubtful = {name: tier for name, tier in self.doubtful.items() if name in self.gpu and name in kept}
        for name in self.gpu:
            self.deferred.pop(name, None)

    def clear(self) -> None:
        """The engine restarted."""
        self.gpu.clear()
        self.cpu.clear()
        self.deferred.clear()
        self.doubtful.clear()
        self.unsure.clear()
        self.last.clear()
        self.pinned = {}

    @property
    def free(self) -> int:
        """GPU slots without an adapter; never negative."""
        return max(0, self.gpu_slots - len(self.gpu))


def _in_old_order(old: "OrderedDict[AdapterName, None]", new: list[AdapterName]) -> list[AdapterName]:
    wanted = dict.fromkeys(new)
    kept = [name for name in old if name in wanted]
    return [*kept, *(name for name in wanted if name not in old)]
