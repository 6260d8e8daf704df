"""The article's weighted score [R2.2]: adapter affinity, KV affinity, queue and GPU utilisation.

    score = w_a·affinity(tier) + w_kv·cached share + w_q·(1 - queue/max_queue) + w_g·(1 - gpu)

What unknown means: tier of an adapter nobody spoke of is `disk` (or `unregistered`, then it is filtered);
a cached share never recorded is 0; a pod never scraped has the queue of our own dispatches beyond its batch;
GPU utilisation never reported is the stand-in running/max_num_seqs. None of them is NaN here.
For the base model every pod has affinity 1: its weights are always there.
"""

import numpy as np
from numpy.typing import NDArray

from lorapick.core.columns import CODES, PINNED, TIER_BITS, PodColumns
from lorapick.core.picking.query import FleetView, Query
from lorapick.model.picks import Terms
from lorapick.model.settings import Affinity, PickingSettings
from lorapick.model.tiers import Tier

_FREE = 64
"""Bit of an affinity look-up, above every residency code: the pod has a free slot."""
assert CODES <= _FREE


def affinity_table(affinity: Affinity) -> list[float]:
    """Affinity by residency code, with bit `_FREE` for pods that have a free slot."""
    table = []
    for code in range(2 * _FREE):
        tier = code & TIER_BITS
        known = Tier(tier) if tier <= Tier.GPU_SERVING else Tier.UNREGISTERED
        table.append(affinity.of(known, free_slot=bool(code & _FREE), pinned=bool(code & PINNED)))
    return table


class Weighted:
    """Fixed weights as the article defines them."""

    name = "weighted"
    coalesces = True
    waits = True
    keeps_sessions = True
    reads: tuple[str, ...] = ()
    counts_in_flight = False
    narrows = False

    def __init__(self, settings: PickingSettings) -> None:
        self._settings = settings
        weights = settings.weights
        self._adapter, self._kv, self._queue, self._gpu = weights.adapter, weights.kv, weights.queue, weights.gpu
        self._affinity = affinity_table(settings.affinity)
        self._affinities = np.array(self._affinity)
        weighted = [weights.adapter * affinity for affinity in self._affinity]
        self._full, self._free = weighted[:_FREE], weighted[_FREE:]
        """First term by residency code, of pods without and with a free slot."""

    def _affinity_of(self, query: Query, view: FleetView, *, row: int) -> float:
        if query.codes is None:
            return 1.0
        return self._affinity[query.codes[row] | (_FREE if view.free_slots[row] > 0 else 0)]

    def narrow(self, query: Query, view: FleetView, *, rows: list[int]) -> list[int]:
        """All of them."""
        del query, view
        return rows

    def score(self, query: Query, view: FleetView, *, row: int, rows: list[int]) -> float:
        """Weighted sum for one pod, in the order of the formula."""
        del rows
        score = self._adapter * self._affinity_of(query, view, row=row)
        score += self._kv * query.kv.get(row, 0.0)
        score += self._queue * (1.0 - view.queue[row] / view.max_queue[row])
        score += self._gpu * (1.0 - view.gpu[row])
        return score

    def score_rows(self, query: Query, view: FleetView, *, rows: list[int]) -> list[float]:
        """The same sums, with everything looked up once."""
        w_queue, w_gpu, room, idle, codes = self._queue, self._gpu, view.room, view.idle, query.codes
        full, free, slots = self._full, self._free, view.free_slots
        if len(rows) == view.rows and codes is not None and not query.kv:
            # Most decisions: nobody is refused. Iterating costs half of indexing.
            return [
                (free if any_free else full)[code] + w_queue * queue + w_gpu * gpu
                for _, code, any_free, queue, gpu in zip(rows, codes, slots, room, idle, strict=False)
            ]
        if codes is None:
            adapter = [self._adapter] * len(rows)
        else:
            adapter = [(free if slots[row] else full)[codes[row]] for row in rows]
        if query.kv:
            w_kv, share = self._kv, query.kv.get
            adapter = [score + w_kv * share(row, 0.0) for score, row in zip(adapter, rows, strict=True)]
        return [score + w_queue * room[row] + w_gpu * idle[row] for score, row in zip(adapter, rows, strict=True)]

    def scores(self, query: Query, columns: PodColumns, *, may: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Weighted sums of all rows."""
        del may
        view = columns.vectors()
        if query.codes is None:
            score = np.full(columns.rows, self._adapter * 1.0)
        else:
            codes = np.frombuffer(query.codes, dtype=np.uint8)[: columns.rows]
            score = self._affinities[codes | ((view.free_slots > 0) * np.uint8(_FREE))]
            score *= self._adapter
        for row, share in query.kv.items():
            score[row] += self._kv * share
        # Rows without a pod have max_queue 0 until first used; they are vetoed, so their score may be anything.
        with np.errstate(invalid="ignore", divide="ignore"):
            score += self._queue * (1.0 - view.queue / view.max_queue)
        score += self._gpu * (1.0 - view.gpu)
        return score

    def terms(self, query: Query, view: FleetView, *, row: int) -> Terms:
        """The four terms before weights."""
        return Terms(
            adapter=self._affinity_of(query, view, row=row),
            kv=query.kv.get(row, 0.0),
            queue=1.0 - view.queue[row] / view.max_queue[row],
            gpu=1.0 - view.gpu[row],
        )

    def weights(self) -> dict[str, float]:
        """The configured weights by term."""
        return {"adapter": self._adapter, "kv": self._kv, "queue": self._queue, "gpu": self._gpu}
