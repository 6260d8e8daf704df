"""Conversations: turns whose prompts grow.

In: times at which conversations begin, and the flow. Out: turns in order of time. Only conversations under way are
kept. Not here: single requests (`flows`).

What is said in a conversation is one text that only grows, so a block of it is told by its place: each turn's prompt
begins with all blocks of the turn before.
"""

from collections.abc import Iterable, Iterator
from heapq import heappop, heappush

from lorapick.model.units import BlockId, Seconds, Tokens
from lorapick.sim.arrivals import Arrival
from lorapick.sim.workload.chance import FloatArray, block_ids, chance, one_by_one
from lorapick.sim.workload.draws import Draws
from lorapick.sim.workload.prefixes import text_seed
from lorapick.sim.workload.spec import Flow, Sessions

_AHEAD = 64
"""Blocks named at a time: naming few costs as much as naming many."""


class Talk:
    """A conversation under way."""

    __slots__ = ("began_anew", "ids", "left", "number", "place", "said")

    def __init__(self, number: int, place: int, turns: int) -> None:
        self.number = number
        self.place = place
        self.left = turns
        self.said: Tokens = 0
        """Prompts and answers so far, the shared prefix not counted."""
        self.ids: list[BlockId] = []
        """Blocks after the shared prefix's, farther than any prompt has reached."""
        self.began_anew = 0


class Conversations:
    """All conversations of one flow."""

    __slots__ = ("_block_tokens", "_count", "_draws", "_flow", "_seed", "_sessions", "_sizes", "_tenants")

    def __init__(self, flow: Flow, sessions: Sessions, draws: Draws, *, seed: int, block_tokens: Tokens) -> None:
        self._flow = flow
        self._sessions = sessions
        self._draws = draws
        self._seed = seed
        self._block_tokens = block_tokens
        self._sizes = draws.sizes_one_by_one()
        self._tenants = draws.tenants()
        self._count = 0

    def turns(self, begins: Iterable[FloatArray], *, until: Seconds) -> Iterator[Arrival]:
        """Turns of conversations that begin at these times, in order of time, those before `until`."""
        gaps = chance(self._seed, self._flow.name, "think")
        think = one_by_one(lambda size: self._sessions.think * gaps.standard_exponential(size))
        starting = self._begin(begins)
        waiting: list[tuple[Seconds, int, Talk]] = []
        start = next(starting, None)
        while waiting or start is not None:
            if start is not None and (not waiting or start[0] <= waiting[0][0]):
                time, talk = start
                start = next(starting, None)
            else:
                time, _, talk = heappop(waiting)
            yield self._turn(time, talk)
            after = time + next(think)
            if talk.left and after < until:
                heappush(waiting, (after, talk.number, talk))

    def _begin(self, begins: Iterable[FloatArray]) -> Iterator[tuple[Seconds, Talk]]:
        lengths = chance(self._seed, self._flow.name, "turns")
        number = 0
        for times in begins:
            turns = lengths.geometric(1 / self._sessions.turns, len(times)).tolist()
            for time, place, count in zip(times.tolist(), self._draws.places(times), turns, strict=True):
                number += 1
                yield time, Talk(number, place, count)

    def _turn(self, time: Seconds, talk: Talk) -> Arrival:
        said, answer = next(self._sizes)
        flow = self._flow
        if talk.said and flow.shared_prefix + talk.said + said > self._sessions.most_prompt_tokens:
            talk.said, talk.ids = 0, []
            talk.began_anew += 1
        prompt = flow.shared_prefix + talk.said + said
        blocks = self._blocks(talk, prompt)
        talk.said += said + answer
        talk.left -= 1
        self._count += 1
        return Arrival(
            t=time,
            id=f"{flow.name}-{self._count}",
            adapter=self._draws.names[talk.place],
            prompt_tokens=prompt,
            output_tokens=answer,
            blocks=blocks,
            session=f"{flow.name}-s{talk.number}",
            priority=flow.priority,
            tenant=self._tenants[talk.place],
        )

    def _blocks(self, talk: Talk, prompt: Tokens) -> tuple[BlockId, ...]:
        prefix = self._draws.prefix(talk.place)
        known, count = len(talk.ids), prompt // self._block_tokens - len(prefix)
        if count > known:
            adapter = self._draws.names[talk.place] or ""
            seed = text_seed(
                "session", str(self._seed), self._flow.name, str(talk.number), str(talk.began_anew), adapter
            )
            talk.ids += block_ids(seed, known, max(count - known, _AHEAD))
        return (*prefix, *talk.ids[:count])
