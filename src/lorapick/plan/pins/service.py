"""How long a request is on its pod, from its tokens.

In: tokens, hardware, requests at once. Out: seconds, and the formula with its numbers. Not here: waiting, and loads:
who is pinned meets none.
"""

from lorapick.model.units import Seconds
from lorapick.plan.logs.values import LogAdapter
from lorapick.plan.pins.values import PinOptions
from lorapick.sim.hardware import PRESETS


def step_seconds(options: PinOptions, slots: int) -> Seconds:
    """One decode step of a batch of `target` requests for as many adapters as `slots` allow."""
    step, batch = PRESETS[options.hardware].step, options.target
    adapters = min(batch, slots)
    return step.a + step.b * batch + step.c * adapters + step.d * batch * adapters + step.slot * slots


def service_of(adapter: LogAdapter, options: PinOptions, *, slots: int) -> Seconds:
    """Seconds that a request for an adapter is on its pod: what was given, else prefill and all decode steps."""
    if options.service is not None:
        return options.service
    prompt = adapter.prompt_tokens if adapter.prompt_tokens is not None else options.prompt
    output = adapter.output_tokens if adapter.output_tokens is not None else options.output
    prefill = PRESETS[options.hardware].prefill_per_token
    return max(prompt, 1) * prefill + max(output, 1) * step_seconds(options, slots)
