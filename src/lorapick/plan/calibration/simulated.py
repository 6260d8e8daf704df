"""A measured run played again: one pod of the pod model, fed directly.

In: a run, coefficients, what its slots leave for KV. Out: the same figures as the table has.
Not here: pickers and fleets, fitting (`fit`).

Played from an empty pod, as it was measured, for as long as asked: what comes before `warm_up` is played and not
counted. Host memory holds every adapter from the start: the table's misses are host to GPU, but for the first of each.
"""

from math import inf

import msgspec
import numpy as np

from lorapick.model.pods import PodLimits
from lorapick.model.units import RequestId, Seconds, Tokens
from lorapick.plan.calibration.coefficients import Coefficients
from lorapick.plan.calibration.runs import Run
from lorapick.plan.calibration.workload import Arrivals, Client
from lorapick.pod.engine import PodEngine
from lorapick.pod.values import AdapterSpec, FirstToken, PodConfig, PodRequest, RequestFinished, SwapCosts

SEATS = 2048
"""The runs' `max_num_seqs`."""
STEP_TOKENS: Tokens = 2048
"""Their `max_num_batched_tokens`: vLLM 0.8.5's own choice on this card."""


class Simulated(msgspec.Struct, frozen=True, kw_only=True):
    """What a run gives when it is played. None: nobody was served, or nobody had a second token."""

    served: float
    """Requests per second."""
    output_rate: float
    """Tokens per second."""
    ttft: Seconds | None
    """Mean; so is `tpot`."""
    ttft_p99: Seconds | None
    tpot: Seconds | None
    loads: float
    """Per second."""
    preemptions: float
    unsent: int
    """Requests for which the client had no port."""


def pod_config(run: Run, coefficients: Coefficients, *, kv_tokens: Tokens) -> PodConfig:
    """The pod that a run was measured on."""
    block = PodConfig().block_size
    return PodConfig(
        limits=PodLimits(
            max_loras=run.slots,
            max_cpu_loras=max(run.adapters, run.slots),
            max_lora_rank=run.rank,
            max_num_seqs=SEATS,
        ),
        step=coefficients.step(run.rank, layers=run.layers),
        swap=SwapCosts(
            deallocation=0.0,
            fragmentation=0.0,
            cpu_bandwidth=inf,
            disk_bandwidth=inf,
            initialisation=coefficients.activation,
            warm_up=0.0,
        ),
        prefill_per_token=coefficients.prefill,
        kv_blocks=kv_tokens // block,
        max_batched_tokens=STEP_TOKENS,
    )


class _Play:
    """One run being played."""

    def __init__(self, run: Run, config: PodConfig, *, warm_up: Seconds) -> None:
        adapters = [AdapterSpec(name=str(index), rank=run.rank, size=0) for index in range(run.adapters)]
        self.engine = PodEngine(config, adapters, now=0.0)
        self.client = Client()
        self.warm_up = warm_up
        self.came: dict[RequestId, Seconds] = {}
        self.first: dict[RequestId, Seconds] = {}
        self.ttfts: list[Seconds] = []
        self.tpots: list[Seconds] = []
        self.output = 0

    def advance(self, now: Seconds) -> None:
        """Let the pod live, and note what was answered."""
        for event in self.engine.advance(now):
            if isinstance(event, FirstToken):
                self.first[event.request_id] = event.t
            elif isinstance(event, RequestFinished):
                self._finished(event)

    def _finished(self, event: RequestFinished) -> None:
        came, first = self.came.pop(event.request_id), self.first.pop(event.request_id)
        self.client.answered(event.t)
        if event.t < self.warm_up:
            return
        self.ttfts.append(first - came)
        self.output += event.output_tokens
        if event.output_tokens > 1:
            self.tpots.append((event.t - first) / (event.output_tokens - 1))

    def send_all(self, arrivals: Arrivals) -> int:
        """Send what can be sent; returns how many could not."""
        index, unsent, count = 0, 0, len(arrivals.times)
        while index < count:
            now = arrivals.times[index]
            self.advance(now)
            free = self.client.free_at(now)
            if free is not None and free <= now:
                self._send(index, arrivals, now=now)
                index += 1
                continue
            until = free if free is not None else self.engine.next_end()
            later = arrivals.first_from(until if until is not None else inf, index + 1)
            unsent += later - index
            index = later
        return unsent

    def _send(self, index: int, arrivals: Arrivals, *, now: Seconds) -> None:
        request_id = str(index)
        self.came[request_id] = now
        self.client.sent()
        self.engine.submit(
            PodRequest(
                id=request_id,
                adapter=str(arrivals.adapters[index]),
                prompt_tokens=arrivals.prompts[index],
                output_tokens=arrivals.outputs[index],
            ),
            now,
        )


def simulate(
    run: Run,
    coefficients: Coefficients,
    *,
    kv_tokens: Tokens,
    seconds: Seconds,
    warm_up: Seconds = 0.0,
    seed: int = 1,
) -> Simulated:
    """Play a run for `seconds`, the first `warm_up` of them uncounted."""
    play = _Play(run, pod_config(run, coefficients, kv_tokens=kv_tokens), warm_up=warm_up)
    unsent = play.send_all(Arrivals(run, seconds, seed=seed))
    play.advance(seconds)
    stats, counted = play.engine.stats(seconds), seconds - warm_up
    return Simulated(
        served=len(play.ttfts) / counted,
        output_rate=play.output / counted,
        ttft=float(np.mean(play.ttfts)) if play.ttfts else None,
        ttft_p99=float(np.percentile(play.ttfts, 99)) if play.ttfts else None,
        tpot=float(np.mean(play.tpots)) if play.tpots else None,
        loads=stats.loads / seconds,
        preemptions=stats.preemptions / seconds,
        unsent=unsent,
    )
