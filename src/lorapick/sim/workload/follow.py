"""Pipelines: requests that follow others.

In: arrivals, and for followers of an end, when it was. Out: more arrivals. What follows a request is told by the seed
and the request's id alone, so it is the same under every policy and in whatever order requests end.
Not here: when a request ends (`sim.world`).
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush

import numpy as np

from lorapick.model.units import AdapterName, Seconds
from lorapick.sim.arrivals import Arrival
from lorapick.sim.workload.chance import unit
from lorapick.sim.workload.lengths import sizes_at
from lorapick.sim.workload.spec import After, Follow


class Followers:
    """The edges of all pipelines."""

    __slots__ = ("_edges", "_seed", "_until")

    def __init__(self, follows: Sequence[Follow], *, seed: int, until: Seconds | None = None) -> None:
        """Followers at or after `until` do not come."""
        self._seed = seed
        self._until = math.inf if until is None else until
        self._edges: dict[AdapterName, list[tuple[int, Follow]]] = {}
        for number, follow in enumerate(follows):
            self._edges.setdefault(follow.first, []).append((number, follow))

    def along(self, stream: Iterable[Arrival]) -> Iterator[Arrival]:
        """The stream with those who follow an arrival, in order of time."""
        coming: list[tuple[Seconds, int, Arrival]] = []
        brought = 0
        for arrival in stream:
            while coming and coming[0][0] <= arrival.t:
                due = heappop(coming)[2]
                yield due
                brought = self._bring(coming, due, brought)
            yield arrival
            brought = self._bring(coming, arrival, brought)
        while coming:
            due = heappop(coming)[2]
            yield due
            brought = self._bring(coming, due, brought)

    def after_end(self, arrival: Arrival, now: Seconds) -> list[Arrival]:
        """Those who follow because this request was answered at `now`, and those who follow their arrival; in order.

        The ends of all of them are to be told too.
        """
        return list(self.along(sorted(self._born(arrival, After.END, now), key=lambda each: each.t)))

    def _bring(self, coming: list[tuple[Seconds, int, Arrival]], arrival: Arrival, brought: int) -> int:
        for follower in self._born(arrival, After.ARRIVAL, arrival.t):
            brought += 1
            heappush(coming, (follower.t, brought, follower))
        return brought

    def _born(self, arrival: Arrival, after: After, now: Seconds) -> Iterator[Arrival]:
        if arrival.adapter is None:
            return
        for number, follow in self._edges.get(arrival.adapter, ()):
            if follow.after is after and self._draw(arrival, number, "happens") < follow.probability:
                follower = self._follower(arrival, number, follow, now)
                if follower.t < self._until:
                    yield follower

    def _draw(self, arrival: Arrival, number: int, what: str) -> float:
        return unit(self._seed, f"{arrival.id}/{number}/{what}")

    def _follower(self, arrival: Arrival, number: int, follow: Follow, now: Seconds) -> Arrival:
        low, high = follow.delay
        prompt, output = arrival.prompt_tokens, arrival.output_tokens
        if follow.sizes is not None:
            draws = [np.array([self._draw(arrival, number, what)]) for what in ("prompt", "output")]
            prompts, outputs = sizes_at(follow.sizes, *draws)
            prompt, output = int(prompts[0]), int(outputs[0])
        return Arrival(
            t=now + low + (high - low) * self._draw(arrival, number, "delay"),
            id=f"{arrival.id}.{number}",
            adapter=follow.then,
            prompt_tokens=prompt,
            output_tokens=output,
            session=arrival.session,
            priority=arrival.priority,
            tenant=arrival.tenant,
        )
