"""What a decision costs on a fleet whose pods have roles, against one on a fleet of pods that do both.

    python -m bench.pick_roles [--rounds 9] [--json]

`decide` is RequestArrived through `Fleet.apply`: both pods found, the slot reserved, the request counted at both. Three
fleets of each size are asked for the same adapters in turn, side by side in each round: half the pods prefill and half
decode (`roles`); all do both, under the policy `cost`, which reckons as pairs do; the same under `weighted`, the
default. There are as many adapters as pods, so that they fit and nothing is loaded any more, and two requests per pod
in flight. Nodes have eight pods, zones a third of the nodes. CPU time; ratios are medians of those of the rounds.
`legs` and `pairs` are the parts that only roles have, by loop and by columns, to find where these cross.
"""

import statistics
import time
from collections import deque
from collections.abc import Callable
from itertools import count

from bench.pick import command
from lorapick.core import splitting
from lorapick.core.case import Case
from lorapick.core.fleet import Fleet
from lorapick.core.picking import prefillers
from lorapick.core.picking.pairing import PAIRS
from lorapick.core.picking.pick import pick_by_columns, pick_by_loop
from lorapick.core.state import Flight
from lorapick.model import events
from lorapick.model.adapters import Adapter
from lorapick.model.effects import Dispatch, Effect, Touch
from lorapick.model.pods import Pod, PodReport, Role
from lorapick.model.requests import Outcome, Request
from lorapick.model.settings import PickingSettings, ScrapeSettings, Settings

SIZES = (8, 64, 200)
AROUND = (8, 32, 48, 64, 96)
"""Sizes at which loops are compared with columns."""
KINDS = {"roles": (True, "cost"), "cost": (False, "cost"), "weighted": (False, "weighted")}
DECISIONS = 60
"""Per measurement."""
IN_FLIGHT: float = 0.4
"""Simulated seconds of an answer; a quarter of it is prefill."""


class Fleets:
    """One fleet, warm, with two requests per pod in flight."""

    def __init__(self, pods: int, *, roles: bool, policy: str) -> None:
        self.names = tuple(f"adapter-{number:03d}" for number in range(pods))
        self.fleet = Fleet(
            Settings(
                adapters=tuple(Adapter(name=name, rank=16) for name in self.names),
                picking=PickingSettings(policy=policy),
                scrape=ScrapeSettings(stale_after=1e9),
            ),
            seed=1,
        )
        self.now, self.ids, self.turn, self.depth = 0.0, count(1), 0, 2 * pods
        self.prefilling: deque[str] = deque()
        self.flying: deque[str] = deque()
        report = PodReport(waiting=0, running=2, registered=self.names, gpu_utilization=0.3)
        for number in range(pods):
            pod = Pod(
                name=f"pod-{number:04d}",
                address=f"10.1.{number // 256}.{number % 256}:8000",
                role=Role.BOTH if not roles else (Role.DECODE, Role.PREFILL)[number % 2],
                zone=f"zone-{number // 8 % 3}",
                labels={"kubernetes.io/hostname": f"node-{number // 8}"},
            )
            self.apply(events.PodAppeared, pod=pod)
            self.apply(events.PodReported, pod=pod.name, report=report)
        for _ in range(2):
            self.time_decide(2 * pods + len(self.names))
            self.now += 10.0  # loads are over
            self.apply(events.Ticked)

    def apply(self, kind: Callable[..., events.Event], **fields: object) -> None:
        self._carry_out(self.fleet.apply(kind(t=self.now, id=next(self.ids), **fields), self.now))

    def ask(self) -> Request:
        """The next request: a prompt of 2,000 tokens whose first quarter others have too."""
        self.turn += 1
        turn, name = self.turn, self.names[self.turn % len(self.names)]
        blocks = (turn % 50, *range(100 + 3 * turn, 103 + 3 * turn))
        return Request(id=f"r{turn}", model=name, prompt_tokens=2000, blocks=blocks, stream=True)

    def time_decide(self, times: int) -> float:
        """Microseconds of one decision."""
        spent = 0
        for _ in range(times):
            self.now += IN_FLIGHT / self.depth
            event = events.RequestArrived(t=self.now, id=next(self.ids), request=self.ask())
            began = time.process_time_ns()
            effects = self.fleet.apply(event, self.now)
            spent += time.process_time_ns() - began
            self._carry_out(effects)
            self._end_some()
        return spent / times / 1000

    def _carry_out(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Touch):
                self.apply(events.Touched, pod=effect.pod, adapter=effect.adapter)
            elif isinstance(effect, Dispatch):
                self.flying.append(effect.request_id)
                self.prefilling.append(effect.request_id)

    def _end_some(self) -> None:
        while len(self.prefilling) > self.depth // 4:
            self.apply(events.PrefillEnded, request_id=self.prefilling.popleft(), ok=True)
        while len(self.flying) > self.depth:
            ended = self.flying.popleft()
            self.apply(events.ResponseStarted, request_id=ended, status=200)
            self.apply(events.BodyStarted, request_id=ended)
            self.apply(events.RequestEnded, request_id=ended, outcome=Outcome.SERVED, status=200)

    def time_parts(self, times: int) -> dict[str, float]:
        """Microseconds of finding the legs and of picking the pair, by loop and by columns."""
        state = self.fleet.state
        request = self.ask()
        case = Case(state, Flight(request, state.adapters[request.model], now=self.now), now=self.now, cause=0)
        asked = splitting.asked_of(state, case.query, tokens=2000)
        query, columns, found = case.query, state.columns, {}
        for word, find, pick in (
            ("loop", prefillers.find_by_loop, pick_by_loop),
            ("columns", prefillers.find_by_columns, pick_by_columns),
        ):
            began = time.process_time_ns()
            for _ in range(times):
                query.legs = find(query, columns, now=self.now, asked=asked)
            between = time.process_time_ns()
            for _ in range(times):
                pick(query, columns, now=self.now, draw=0.4, policy=PAIRS, fallbacks=2)
            found[f"legs_{word}"] = (between - began) / times / 1000
            found[f"pairs_{word}"] = (time.process_time_ns() - between) / times / 1000
        return found


def measure(rounds: int) -> dict[str, float]:
    """Medians in microseconds, and ratios."""
    fleets = {
        (pods, kind): Fleets(pods, roles=roles, policy=policy)
        for pods in SIZES
        for kind, (roles, policy) in KINDS.items()
    }
    around = {pods: Fleets(pods, roles=True, policy="cost") for pods in AROUND}
    spent: dict[tuple[int, str], list[float]] = {key: [] for key in fleets}
    parts: dict[str, list[float]] = {}
    for turn in range(rounds + 1):
        for key, fleet in fleets.items():
            found = fleet.time_decide(DECISIONS)
            if turn:  # the first is for what is made once
                spent[key].append(found)
        for pods, fleet in around.items():
            for name, value in fleet.time_parts(DECISIONS).items():
                parts.setdefault(f"{name}_{pods}", []).append(value)
    figures = {f"decide_{kind}_{pods}": statistics.median(found) for (pods, kind), found in spent.items()}
    for pods in SIZES:
        for kind in ("cost", "weighted"):
            ratios = [one / other for one, other in zip(spent[pods, "roles"], spent[pods, kind], strict=True)]
            figures[f"roles_per_{kind}_{pods}"] = statistics.median(ratios)
    figures |= {name: statistics.median(found) for name, found in parts.items()}
    return {name: round(value, 2) for name, value in figures.items()}


if __name__ == "__main__":
    command(__doc__, measure, rounds=9)
