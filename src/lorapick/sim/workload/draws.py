"""What is drawn for the requests of a flow: adapters and sizes, each from a stream of its own.

In: a flow, a seed. Out: places of adapters, tokens. Not here: times (`times`), conversations (`sessions`).
"""

from collections.abc import Iterator

from lorapick.model.units import BlockId, Seconds, Tokens
from lorapick.sim.workload.chance import FloatArray, IntArray, batch_sizes, chance
from lorapick.sim.workload.lengths import sizes_at
from lorapick.sim.workload.mix import Mix
from lorapick.sim.workload.prefixes import adapter_blocks
from lorapick.sim.workload.spec import Flow


class Draws:
    """A flow's adapters and sizes."""

    __slots__ = ("_adapters", "_block_tokens", "_blocks", "_choices", "_flow", "_mix", "_output", "_prompt", "names")

    def __init__(self, flow: Flow, *, seed: int, block_tokens: Tokens) -> None:
        self._flow = flow
        self._block_tokens = block_tokens
        self._mix = Mix(flow.adapters, flow.popularity, flow.changes)
        self.names = self._mix.names
        """What a place means."""
        self._adapters = chance(seed, flow.name, "adapters")
        self._choices = [chance(seed, flow.name, f"change {number}") for number in range(len(self._mix.steps))]
        self._prompt = chance(seed, flow.name, "prompt")
        self._output = chance(seed, flow.name, "output")
        self._blocks: dict[int, tuple[BlockId, ...]] = {}

    def places(self, times: FloatArray) -> list[int]:
        """Adapters of requests at these times."""
        count = len(times)
        choices = [choice.random(count) for choice in self._choices]
        picked: list[int] = self._mix.pick(times, self._adapters.random(count), choices).tolist()
        return picked

    def sizes(self, count: int) -> tuple[IntArray, IntArray]:
        """Prompt tokens, the shared prefix not counted, and answer tokens."""
        return sizes_at(self._flow.sizes, self._prompt.random(count), self._output.random(count))

    def sizes_one_by_one(self) -> Iterator[tuple[Tokens, Tokens]]:
        """The same, for whoever does not know how many it will be."""
        for size in batch_sizes():
            prompt, output = self.sizes(size)
            yield from zip(prompt.tolist(), output.tolist(), strict=True)

    def prefix(self, place: int) -> tuple[BlockId, ...]:
        """Blocks of an adapter's system prompt."""
        found = self._blocks.get(place)
        if found is None:
            tokens = self._flow.shared_prefix
            found = adapter_blocks(self.names[place], tokens=tokens, block_tokens=self._block_tokens)
            self._blocks[place] = found
        return found

    def tenants(self) -> list[str | None]:
        """The tenant by place."""
        template = self._flow.tenant
        if template is None:
            return [None] * len(self.names)
        return [template.replace("{adapter}", name or "") for name in self.names]


def within(times: Iterator[FloatArray], start: Seconds, until: Seconds) -> Iterator[FloatArray]:
    """Times from `start` on and before `until`; ends at the first that is not."""
    for batch in times:
        low, high = batch.searchsorted((start, until))
        if low < high:
            yield batch[low:high]
        if high < len(batch):
            return
