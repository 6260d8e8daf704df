"""What the ledger says of simulated requests beside what their pods know: `-s` prints the table of docs/ledger.md.

One pod model, one fleet that thrashes: twelve adapters for three pods with two slots each. The ledger believes; the pod
knows when each load began and was over. Both are put through the same arithmetic, request by request.
"""

from collections import defaultdict
from collections.abc import Sequence
from itertools import count
from random import Random
from statistics import mean

import pytest

from lorapick.core.ledger.bookkeeper import Bookkeeper
from lorapick.core.ledger.sharing import Span, shares
from lorapick.model.adapters import Adapter
from lorapick.model.effects import Effect
from lorapick.model.events import Event
from lorapick.model.ledger import RequestRow
from lorapick.model.pods import Pod, PodLimits
from lorapick.model.settings import Settings
from lorapick.model.units import PodName
from lorapick.pod.values import (
    AdapterSpec,
    PodConfig,
    PodEvent,
    StepCosts,
    SwapCosts,
    SwapEnded,
    SwapFailed,
    SwapMode,
    SwapStarted,
)
from lorapick.sim.arrivals import Arrival
from lorapick.sim.setup import Setup
from lorapick.sim.tally import Tally
from lorapick.sim.world import World

pytestmark = pytest.mark.twin  # plays for too long for `make test`

NAMES = tuple(f"adapter-{number}" for number in range(12))
STEP = StepCosts(a=0.02, b=0.0, c=0.0, d=0.0)
SWAP = SwapCosts(
    deallocation=0.005, fragmentation=0.0, cpu_bandwidth=5e9, disk_bandwidth=5e8, initialisation=0.02, warm_up=0.06
)


class Watching(Tally):
    """Keeps when loads really were under way, by pod."""

    def __init__(self) -> None:
        super().__init__(start=0.0, window=1.0)
        self.spans: dict[PodName, list[tuple[str, float, float]]] = defaultdict(list)
        self._begun: dict[tuple[PodName, str], float] = {}

    def happened(self, pod: PodName, event: PodEvent) -> None:
        super().happened(pod, event)
        if isinstance(event, SwapStarted):
            self._begun[pod, event.adapter] = event.t
        elif isinstance(event, SwapEnded | SwapFailed):
            self.spans[pod].append((event.adapter, self._begun.pop((pod, event.adapter)), event.t))


def play(mode: SwapMode, *, rate: float, seed: int, starts: bool) -> tuple[list[RequestRow], Watching]:
    """Requests that left, and what the pods know."""
    limits = PodLimits(max_loras=2, max_cpu_loras=4, max_num_seqs=8)
    config = PodConfig(limits=limits, mode=mode, step=STEP, swap=SWAP, prefill_per_token=0.0)
    watching, books, rows = Watching(), Bookkeeper(), list[RequestRow]()
    setup = Setup(
        settings=Settings(adapters=tuple(Adapter(name=name, declared=True) for name in NAMES)),
        pods=[(Pod(name=f"pod-{n}", address=f"sim:{n}", limits=limits), config) for n in range(3)],
        adapters=[AdapterSpec(name=name, size=100_000_000) for name in NAMES],
        tells_starts=starts,
    )
    world = World(setup, observer=watching, seed=seed)

    def heard(event: Event, effects: Sequence[Effect]) -> None:
        told = books.observe(event, effects, changes=world.fleet.changes)
        rows.extend(row for row in told if isinstance(row, RequestRow))

    world.heard = heard
    world.run(arrivals(rate, seed=seed))
    return rows, watching


def arrivals(rate: float, *, seed: int) -> list[Arrival]:
    chance, t, found = Random(seed), 0.0, []
    for number in count():
        t += chance.expovariate(rate)
        if t > 60.0:
            return found
        name = NAMES[min(int(chance.expovariate(0.25)), len(NAMES) - 1)]
        found.append(
            Arrival(t=t, id=f"r{number}", adapter=name, prompt_tokens=50, output_tokens=chance.randrange(5, 60))
        )
    return found


def truth(row: RequestRow, watching: Watching) -> tuple[float, float]:
    """What the request waited for its own load at the pod, and what it stood for others'."""
    assert row.pod is not None and row.dispatched is not None
    spans = [
        Span(number, adapter == row.adapter, begun, over)
        for number, (adapter, begun, over) in enumerate(watching.spans[row.pod])
    ]
    cost = shares(spans, row.dispatched, until=row.ended)
    return cost.waited, cost.drained


@pytest.mark.parametrize(
    ("mode", "starts", "most"),
    [(SwapMode.INLINE, True, 0.15), (SwapMode.INLINE, False, 1.0), (SwapMode.DRAIN, True, 1.6)],
    ids=["inline", "inline, ends only", "drain"],
)
def test_the_ledger_beside_the_pods(mode: SwapMode, starts: bool, most: float) -> None:
    """`most` is the error of the sums, as a share of what the pods know."""
    rows, watching = play(mode, rate=9.0, seed=3, starts=starts)
    sent = [row for row in rows if row.dispatched is not None]
    known = [truth(row, watching) for row in sent]
    waits = [(row.load_wait - row.load_wait_held, own) for row, (own, _) in zip(sent, known, strict=True)]
    drains = [(row.drain, others) for row, (_, others) in zip(sent, known, strict=True)]
    hits = [row.hit == (own == 0.0) for row, (own, _) in zip(sent, known, strict=True) if row.hit is not None]
    print(line(mode, starts, waits, drains), f"hits {mean(hits):.1%}")
    for row in rows:
        assert row.queue + row.load_wait + row.drain + row.served == pytest.approx(row.ended - row.arrived)
    assert sum(own for _, own in waits) > 20.0
    for pairs in (waits, drains):
        believed, real = (sum(each) for each in zip(*pairs, strict=True))
        assert believed == pytest.approx(real, rel=most)
    assert mean(hits) > 0.85


def line(mode: SwapMode, starts: bool, *kinds: Sequence[tuple[float, float]]) -> str:
    """One row of the table."""
    cells = [str(mode), "yes" if starts else "no"]
    for pairs in kinds:
        believed, real = (sum(each) for each in zip(*pairs, strict=True))
        error = mean(abs(one - other) for one, other in pairs)
        cells += [f"{believed:.1f} s", f"{real:.1f} s", f"{error * 1000:.0f} ms"]
    return f"| {' | '.join(cells)} |"
