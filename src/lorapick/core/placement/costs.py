"""What it costs to have an adapter on a pod, in milliseconds of requests' time.

In: candidate pairs and the values behind them. Out: whole numbers, part by part. A copy that stays costs next to
nothing but its rank, so that nothing moves without a reason. The parts:

- `load`: the load, for the request that waits for it and for all that run there (vLLM reads weights inside the engine's
  step, so a load stops everybody): seconds × (1 + requests there);
- `churn`: a copy that is given up elsewhere, with its KV blocks, and the chance of being wrong. As the number of
  replicas is given, each copy that comes beyond growth is one given up, so it is counted where it comes;
- `rank`: requests beside a rank above the pod's class run slower, and so do those of a small rank among large ones:
  `RANK_TAX` per doubling × requests in the system × `HORIZON` (Little's law: so many request-seconds pass in it).
  Linear, given the classes: two large ranks on one small pod pay twice, although the second taxes nobody any more;
- `group`: a follower away from its leader, or a leader away from where its followers look for it;
- `place`: the order by hash, which settles what is otherwise equal.

`RANK_TAX` is from published runs with Llama-3.1-8B: a largest rank of 32 in place of 16 takes 7 % more time per token
at 8 adapters and 32 requests in the batch. It differs by kernel and model.

Not here: what is no sum over pairs, such as zones and spread (`flow`).
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lorapick.core.placement.candidates import Pairs
from lorapick.core.placement.rank_groups import class_of
from lorapick.model.placement import PlacedAdapter, PodRoom
from lorapick.model.units import PodName, Seconds

Milliseconds = NDArray[np.int64]

CHURN = 1_000
GROUP = 1_000
RANK_TAX = 0.07
HORIZON: Seconds = 60.0
"""For how long a placement is thought to last."""
RANK_GUIDE = 300
"""Per doubling, for copies that come: keeps ranks apart before there is traffic."""
DEAREST = 100_000
"""No part is above; more would only drown the others."""
_MOST_PLACE = 63


class PairCosts(NamedTuple):
    """Columns beside `Pairs`."""

    load: Milliseconds
    churn: Milliseconds
    rank: Milliseconds
    group: Milliseconds
    place: Milliseconds

    @property
    def total(self) -> Milliseconds:
        """All parts."""
        return self.load + self.churn + self.rank + self.group + self.place


def pair_costs(
    adapters: Sequence[PlacedAdapter], pods: Sequence[PodRoom], *, pairs: Pairs, classes: Mapping[PodName, int]
) -> PairCosts:
    """Cost of each pair; `pods` in the order that its rows mean."""
    comes = ~pairs.held
    requests = np.array([max(0.0, pod.load) for pod in pods])[pairs.pod]
    cold = np.array([each.load_seconds for each in adapters])[pairs.adapter]
    warm = np.array([each.warm_seconds for each in adapters])[pairs.adapter]
    seconds = np.where(pairs.warm, np.minimum(warm, cold), cold)
    return PairCosts(
        load=_whole(comes * seconds * (1.0 + requests) * 1e3),
        churn=comes * np.int64(CHURN),
        rank=_rank(adapters, pods, pairs=pairs, classes=classes),
        group=~pairs.near * np.int64(GROUP),
        place=np.minimum(pairs.place, _MOST_PLACE),
    )


def _rank(
    adapters: Sequence[PlacedAdapter], pods: Sequence[PodRoom], *, pairs: Pairs, classes: Mapping[PodName, int]
) -> Milliseconds:
    known = np.array([each.rank is not None for each in adapters], dtype=np.bool_)[pairs.adapter]
    own = np.log2([float(class_of(each.rank)) for each in adapters] or [1.0])[pairs.adapter]
    pod = np.log2([float(classes[each.pod]) for each in pods] or [1.0])[pairs.pod]
    there = np.array([max(0.0, each.load) for each in pods])[pairs.pod]
    brings = np.array([each.rate / max(1, each.replicas) for each in adapters])[pairs.adapter] * _service(
        adapters, pods
    )
    above, below = np.maximum(own - pod, 0.0), np.maximum(pod - own, 0.0)
    taxed = RANK_TAX * HORIZON * 1e3 * (above * (there + brings) + below * brings)
    return _whole(known * (taxed + ~pairs.held * RANK_GUIDE * (above + below)))


def _service(adapters: Sequence[PlacedAdapter], pods: Sequence[PodRoom]) -> Seconds:
    """Mean time that a request is in the system, by Little's law; a second when nobody knows."""
    rate = sum(each.rate for each in adapters)
    there = sum(pod.load for pod in pods)
    return min(60.0, max(0.1, there / rate)) if rate > 0.0 and there > 0.0 else 1.0


def _whole(milliseconds: NDArray[np.float64]) -> Milliseconds:
    return np.rint(np.minimum(milliseconds, DEAREST)).astype(np.int64)
