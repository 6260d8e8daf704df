"""A first guess of the pods that a demand needs, in milliseconds, so that few simulations are needed.

In: a scenario with slots, what comes. Out: a number of pods. Not here: the search (see `search`); a wrong guess costs
simulations and changes no answer.

Two things bound a fleet. Computing: a pod has rate × latency requests in its batch (Little), whose size makes its steps
longer; that is followed until it settles, or until the pod has no seat left. Swaps: `plan.prediction` with the latency
that comes out.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import islice

import msgspec

from lorapick.model.tiers import Tier
from lorapick.model.units import Ratio, Seconds
from lorapick.plan.prediction.predict import predict
from lorapick.plan.prediction.values import Costs, Demand, FleetShape
from lorapick.pod.swaps import transfer_seconds
from lorapick.pod.values import PodConfig, SwapMode
from lorapick.sim.arrivals import Arrival
from lorapick.sim.build import arrivals_of, pod_config, pods_of, specs_of
from lorapick.sim.scenario import Scenario

SAMPLE = 20_000
"""Arrivals that are looked at."""
_ROUNDS = 50
_SETTLED = 1e-6


class Traffic(msgspec.Struct, frozen=True, kw_only=True):
    """What comes, as far as a guess needs it."""

    demand: tuple[Demand, ...]
    """Rates of the adapters."""
    rate: float
    """Requests per second, those for the base model too."""
    prompt: float
    """Mean tokens of a prompt."""
    output: float
    """Mean tokens of an answer."""


def traffic_of(scenario: Scenario) -> Traffic:
    """Of the first arrivals; what pipelines add is not among them.

    Raises:
        ValueError: nothing comes.
        OSError, TraceError: as `sim.build.arrivals_of`.
    """
    seen = list(islice(arrivals_of(scenario, scenario.run.seed), SAMPLE))
    if not seen:
        raise ValueError(f"{scenario.name}: nobody asks for anything in its {scenario.run.length:g} s; give it traffic")
    whole = seen[-1].t if len(seen) == SAMPLE else scenario.run.length
    pins = {each.name: each.pin for each in scenario.settings.adapters}
    counts = Counter(each.adapter for each in seen if each.adapter is not None)
    return Traffic(
        demand=tuple(
            Demand(adapter=name, rate=count / whole, pin=pins.get(name)) for name, count in counts.most_common()
        ),
        rate=len(seen) / whole,
        prompt=_mean(seen, lambda each: each.prompt_tokens),
        output=_mean(seen, lambda each: each.output_tokens),
    )


def _mean(seen: Iterable[Arrival], tokens: Callable[[Arrival], int]) -> float:
    found = [tokens(each) for each in seen]
    return sum(found) / len(found)


def guessed_pods(scenario: Scenario, traffic: Traffic, *, policy: str, limit: Seconds, most: int) -> int:
    """The least pods, from the scenario's own number up to `most`, whose predicted P95 is within the limit."""
    low, high = scenario.fleet.pods - 1, most
    while high - low > 1:
        middle = (low + high) // 2
        if _fits(scenario, traffic, policy=policy, limit=limit, pods=middle):
            high = middle
        else:
            low = middle
    return high


def _fits(scenario: Scenario, traffic: Traffic, *, policy: str, limit: Seconds, pods: int) -> bool:
    config = pod_config(scenario)
    latency = settled_latency(config, traffic, pods=pods)
    if latency is None or latency > limit:
        return False
    swap = config.swap.deallocation + config.swap.initialisation + config.swap.warm_up
    swap += max(transfer_seconds(config.swap, tier_from=Tier.CPU, size=each.size) for each in specs_of(scenario))
    drains = config.mode is SwapMode.DRAIN
    # Half of an answer is left, on average, when a batch begins to run down.
    costs = Costs(
        swap=swap + (0.5 * latency if drains else 0.0), latency=latency, latency_p95=_TAIL * latency, drains=drains
    )
    fleet = msgspec.structs.replace(scenario.fleet, pods=pods)
    found = predict(FleetShape(pods=tuple(pods_of(fleet)), policy=policy), traffic.demand, costs=costs).p95
    return found is not None and found <= limit


_TAIL = Costs().latency_p95 / Costs().latency
"""P95 of latency to its median, without swaps."""


def settled_latency(config: PodConfig, traffic: Traffic, *, pods: int) -> Seconds | None:
    """Mean seconds of a request that meets no swap, on one of so many equal pods; None: they cannot keep up."""
    rate, step = traffic.rate / pods, config.step
    prefill = traffic.prompt * config.prefill_per_token
    left: Ratio = 1.0 - rate * prefill
    if left <= 0:
        return None
    latency = prefill + traffic.output * step.a
    for _ in range(_ROUNDS):
        batch = max(1.0, rate * latency)
        if batch > config.limits.max_num_seqs:
            return None
        adapters = min(batch, config.limits.max_loras, len(traffic.demand))
        one = step.a + step.b * batch + (step.c + step.d * batch) * adapters + step.slot * config.limits.max_loras
        before, latency = latency, prefill + traffic.output * one / left
        if abs(latency - before) < _SETTLED:
            break
    return latency
