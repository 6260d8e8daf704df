"""KV memory of a pod: blocks held by running requests, and a prefix cache in the blocks that nobody holds.

In: requests that join and leave, and the number of steps made. Out: blocks in use, prefix hits, how far memory lasts.
Not here: who has to leave when memory ends (`machine`).

A running request with P prompt tokens and n output tokens needs ceil((P+n)/block_size) blocks for its next step. Its
prompt's full blocks have ids and are shared between requests; the others belong to it alone. Blocks with ids that no
running request holds stay cached and are evicted, least recently freed first, when blocks are needed; as in vLLM they
do not count as usage. Ids are expected to be chained (an id stands for the whole prompt up to its block).

All running requests grow by one token per step, so usage after any number of steps is a closed form: with
c = P + n - steps at joining, Σ ceil((c + steps)/size) needs only Σc and how many c there are per residue.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from operator import mul

from lorapick.model.units import Tokens


class FreeBlocks:
    """Cached blocks that nobody holds, in the order in which they will be evicted.

    Kept by the request that freed them, so that most of the work is done for many blocks at once.
    """

    __slots__ = ("_groups", "where")

    def __init__(self) -> None:
        self._groups: deque[list[int]] = deque()
        """Blocks freed together, in prompt order; the first group's last block goes first. May be empty."""
        self.where: dict[int, list[int]] = {}
        """Each block's group."""

    def __len__(self) -> int:
        return len(self.where)

    def __contains__(self, key: object) -> bool:
        return key in self.where

    def __iter__(self) -> Iterator[int]:
        for group in self._groups:
            yield from reversed(group)

    def add(self, keys: Sequence[int]) -> None:
        """A request freed these."""
        group = list(keys)
        self._groups.append(group)
        self.where.update(dict.fromkeys(group, group))

    def take(self, keys: Sequence[int]) -> None:
        """A request holds these again."""
        for key in keys:
            self.where.pop(key).remove(key)  # among the first of its group: a hit is the begin of a prompt

    def evict(self, count: int) -> None:
        """Forget the next `count`."""
        groups, forget = self._groups, self.where.pop
        while count > 0 and groups:
            group = groups[0]
            leaving = group[-count:]
            for key in leaving:
                forget(key, None)
            count -= len(leaving)
            if len(leaving) == len(group):
                groups.popleft()
            else:
                del group[-len(leaving) :]


class KvPool:
    """Blocks of one pod. `steps` is the batch's step counter throughout; `keys` are block ids salted per adapter."""

    __slots__ = (
        "_hashed",
        "_padding",
        "_residues",
        "_seats",
        "_sum",
        "blocks",
        "calm",
        "extra",
        "held",
        "idle",
        "size",
    )

    def __init__(self, blocks: int, size: Tokens) -> None:
        self.blocks = blocks
        self.size = size
        self.held: set[int] = set()
        """Blocks with ids that running requests hold."""
        self.extra: dict[int, int] = {}
        """Those held by more than one request, and by how many more."""
        self.idle = FreeBlocks()
        self._seats = 0
        self._sum = 0
        self._hashed = 0
        """Blocks with ids of running requests, less those without of requests whose KV is kept."""
        self.calm = -1
        """Known to `fit` up to this many steps."""
        self._residues = [0] * size
        self._padding = [-x % size for x in range(2 * size)]

    def used(self, steps: int) -> int:
        """Blocks that the running requests need for the step after `steps`."""
        if not self._seats:
            return len(self.held) - self._hashed
        phase = steps % self.size
        padding: int = sum(map(mul, self._residues, self._padding[phase : phase + self.size]))
        own = (self._sum + self._seats * steps + padding) // self.size - self._hashed
        return len(self.held) + own

    def at_most(self, steps: int) -> int:
        """Cheap upper bound of `used`, at most one block per request above it."""
        return len(self.held) + (self._sum + self._seats * steps) // self.size + self._seats - self._hashed

    def fits(self, steps: int) -> bool:
        """Whether the running requests can make the step after `steps`."""
        if steps <= self.calm:
            return True
        self.calm = self._calm_until()
        return steps <= self.calm or self.used(steps) <= self.blocks

    def _calm_until(self) -> int:
        """A number of steps up to which `at_most` is within memory; stays right when somebody leaves."""
        if not self._seats:
            return -1
        room = self.blocks - len(self.held) - self._seats + self._hashed
        return (room * self.size - self._sum) // self._seats

    def lasts(self, steps: int, most: int) -> int:
        """How many steps, up to `most`, the running requests can make from `steps` on."""
        if self.fits(steps + most - 1):
            return most
        low, high = 1, most - 1
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.fits(steps + middle - 1) else (low, middle - 1)
        return low

    def find(self, keys: Sequence[int], steps: int) -> tuple[int, int]:
        """Leading blocks that running requests hold, and leading blocks that are held or cached."""
        held, idle = self.held, self.idle.where
        # What is absent before trimming is absent after it.
        if not keys or (keys[0] not in held and keys[0] not in idle):
            return 0, 0
        self.trim(steps)
        shared = 0
        for key in keys:
            if key not in held:
                break
            shared += 1
        hits = shared
        for key in keys[shared:]:
            if key not in idle:
                break
            hits += 1
        return shared, hits

    def join(self, keys: Sequence[int], tokens: Tokens, steps: int) -> int:
        """Hold the blocks of a request of `tokens` tokens.

        Returns how many of its leading blocks were in memory already; -1: there is no room, and nothing has changed.
        """
        shared, hits = self.find(keys, steps) if keys else (0, 0)
        size = self.size
        room = self.blocks + shared - -(-tokens // size)
        own = self._sum + self._seats * steps
        at_most = len(self.held) + own // size + self._seats - self._hashed
        if at_most > room and self.used(steps) > room:
            return -1
        if keys:
            self._hold(keys, shared, hits)
        start = tokens - steps
        self._seats += 1
        self._sum += start
        self._residues[start % size] += 1
        self.calm = -1
        return hits

    def lack(self, keys: Sequence[int], tokens: Tokens, steps: int) -> int:
        """Blocks that are missing for a request to join; negative: so many more are free or cached."""
        shared, _ = self.find(keys, steps)
        return self.used(steps) + -(-tokens // self.size) - shared - self.blocks

    def _hold(self, keys: Sequence[int], shared: int, hits: int) -> None:
        if shared:
            extra = self.extra
            for key in keys[:shared]:
                extra[key] = extra.get(key, 0) + 1
        if hits > shared:
            self.idle.take(keys[shared:hits])
        self.held.update(keys[shared:] if shared else keys)
        self._hashed += len(keys)

    def leave(self, keys: Sequence[int], start: int) -> None:
        """Let go of a request's blocks; those with ids stay cached, the end of the prompt first to be evicted."""
        self._seats -= 1
        self._sum -= start
        self._residues[start % self.size] -= 1
        if keys:
            self._hashed -= len(keys)
            own = self._stop_sharing(keys) if self.extra else keys
            self.held.difference_update(own)
            self.idle.add(own)

    def keep(self, start: int, *, tokens: Tokens) -> None:
        """A request runs no more, and its blocks, those of `tokens` tokens, stay in use until they are freed."""
        self._seats -= 1
        self._sum -= start
        self._residues[start % self.size] -= 1
        self._hashed -= -(-tokens // self.size)

    def free(self, keys: Sequence[int], tokens: Tokens) -> None:
        """Let go of blocks that were kept; those with ids stay cached."""
        self._hashed += -(-tokens // self.size) - len(keys)
        if keys:
            own = self._stop_sharing(keys) if self.extra else keys
            self.held.difference_update(own)
            self.idle.add(own)

    def _stop_sharing(self, keys: Sequence[int]) -> Sequence[int]:
        """Give back what others still hold; the rest is returned."""
        extra, shared = self.extra, 0
        for key in keys:
            others = extra.pop(key, 0)
            if not others:
                break
            if others > 1:
                extra[key] = others - 1
            shared += 1
        own = keys[shared:]
        if extra and not extra.keys().isdisjoint(own):  # only ids that are not chained
            return [*own[:1], *self._stop_sharing(own[1:])]
        return own

    def resize(self, blocks: int, steps: int) -> None:
        """From now on there are so many blocks; cached ones give way."""
        self.blocks = blocks
        self.calm = -1
        self.trim(steps)

    def trim(self, steps: int) -> None:
        """Evict what the running requests push out of the cache for the step after `steps`.

        To be called before anybody leaves: memory that was needed for a while is not cached any more.
        """
        idle = self.idle.where
        if not idle:
            return
        cached, size = len(idle), self.size
        at_most = len(self.held) + (self._sum + self._seats * steps) // size + self._seats - self._hashed
        if at_most + cached > self.blocks:
            self.idle.evict(self.used(steps) + cached - self.blocks)
