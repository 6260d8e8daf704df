"""What llm-d's endpoint picker does (formerly the Gateway API Inference Extension's), with and without LoRA affinity.

    gie-default   2·queue + 2·kv cache + 3·prefix           its built-in default, which no adapter plays a part in
    gie-lora      queue + kv cache + prefix + lora          the profile of its integration tests, each weight 1

Scorers, as in llm-d-router in August 2026 (`pkg/epp/framework/plugins/scheduling/scorer`):

    queue      (max - q) / (max - min) over the candidates' waiting requests; 1 when all are equal
    kv cache   1 - share of KV blocks in use
    prefix     matched / all prefix blocks, from the picker's own record of what it sent where, by adapter
    lora       1.0 when the adapter is under `running_lora_adapters`; else 0.8 when the names under both labels are
               fewer than `max_lora`; else 0.6 when it is under `waiting_lora_adapters`; else 0.0

and of equals one by chance (max-score-picker). All but the prefix come from the last page that had them
(`core.scraped`), not corrected by what was sent since. So these policies see neither residency (an adapter that is
loaded and idle looks like any other: llm-d-router#2605) nor loads under way, a pod before its first adapter has
`max_lora` 0 and looks full, and since a real vLLM puts the same names under both labels, each counts twice (#2625).
A base model's name is under no label, so it scores by capacity.
"""

import numpy as np
from numpy.typing import NDArray

from lorapick.core.columns import PodColumns
from lorapick.core.picking.baseline import Baseline
from lorapick.core.picking.query import FleetView, Query
from lorapick.core.scraped import Scraped
from lorapick.model.units import AdapterName


def lora_affinity(adapter: AdapterName | None, pod: Scraped) -> float:
    """`lora-affinity-scorer`."""
    if adapter in pod.running_adapters:
        return 1.0
    if len(pod.running_adapters) + len(pod.waiting_adapters) < pod.max_loras:
        return 0.8
    return 0.6 if adapter in pod.waiting_adapters else 0.0


def shortness(waiting: float, *, least: float, most: float) -> float:
    """`queue-scorer`."""
    return 1.0 if most == least else (most - waiting) / (most - least)


class GieDefault(Baseline):
    """Weighted sum of the scorers, in the order of the profile."""

    name = "gie-default"
    reads: tuple[str, ...] = ("scraped",)
    _queue, _kv, _prefix, _lora = 2.0, 2.0, 3.0, 0.0

    def score(self, query: Query, view: FleetView, *, row: int, rows: list[int]) -> float:
        """Weighted sum of one candidate."""
        pod, waiting = view.scraped[row], [view.scraped[other].waiting for other in rows]
        score = self._queue * shortness(pod.waiting, least=min(waiting), most=max(waiting))
        score += self._kv * (1.0 - pod.kv_usage)
        score += self._prefix * query.kv.get(row, 0.0)
        return score + self._lora * lora_affinity(query.adapter, pod)

    def score_rows(self, query: Query, view: FleetView, *, rows: list[int]) -> list[float]:
        """The same for all candidates."""
        scraped = view.scraped
        pods = [scraped[row] for row in rows]
        waiting = [pod.waiting for pod in pods]
        least, most = min(waiting), max(waiting)
        w_queue, w_kv, w_prefix, w_lora, share = self._queue, self._kv, self._prefix, self._lora, query.kv.get
        scores = [
            w_queue * shortness(pod.waiting, least=least, most=most)
            + w_kv * (1.0 - pod.kv_usage)
            + w_prefix * share(row, 0.0)
            for row, pod in zip(rows, pods, strict=True)
        ]
        if not w_lora:
            return scores
        return [score + w_lora * lora_affinity(query.adapter, pod) for score, pod in zip(scores, pods, strict=True)]

    def scores(self, query: Query, columns: PodColumns, *, may: NDArray[np.bool_]) -> NDArray[np.float64]:
        """The same for all rows."""
        pods = columns.scraped
        waiting = np.array([pod.waiting for pod in pods])
        least, most = waiting[may].min(), waiting[may].max()
        scores = (
            np.full(columns.rows, self._queue) if most == least else self._queue * ((most - waiting) / (most - least))
        )
        scores += self._kv * (1.0 - np.array([pod.kv_usage for pod in pods]))
        for row, share in query.kv.items():
            scores[row] += self._prefix * share
        if self._lora:
            scores += self._lora * np.array([lora_affinity(query.adapter, pod) for pod in pods])
        return scores


class GieLora(GieDefault):
    """With `lora-affinity-scorer`."""

    name = "gie-lora"
    _queue, _kv, _prefix, _lora = 1.0, 1.0, 1.0, 1.0
