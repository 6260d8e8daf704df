"""Short words for the pod model's unit tests: times in whole milliseconds, requests by name."""

from lorapick.model.pods import PodLimits
from lorapick.pod.engine import PodEngine
from lorapick.pod.values import AdapterSpec, PodConfig, PodRequest, StepCosts, SwapCosts, SwapMode

MS = 1e-3
MB = 1_000_000


def config(mode=SwapMode.INLINE, *, slots=2, host=4, seqs=8, **more):
    """Steps of 10 ms whatever runs; a load takes 5 (when a slot is freed) + 3 (CPU) or 13 (disk) + 20 + 75 ms."""
    more.setdefault("step", StepCosts(a=10 * MS, b=0, c=0, d=0))
    more.setdefault("swap", SwapCosts(cpu_bandwidth=50 * MB / (3 * MS)))
    more.setdefault("prefill_per_token", 0.0)
    limits = PodLimits(max_loras=slots, max_cpu_loras=host, max_num_seqs=seqs)
    return PodConfig(mode=mode, limits=limits, **more)


def pod(mode=SwapMode.INLINE, *, names="abcdef", size=50 * MB, draw=None, **more):
    """A pod at time 0 with adapters of 50 MB called a, b, c ..."""
    return PodEngine(config(mode, **more), [AdapterSpec(name=name, size=size) for name in names], now=0.0, draw=draw)


def ask(name, adapter=None, *, prompt=16, output=1, blocks=()):
    return PodRequest(id=name, adapter=adapter, prompt_tokens=prompt, output_tokens=output, blocks=blocks)


def told(events):
    """Events as (milliseconds, what, whom)."""
    return [(round(event.t / MS, 3), type(event).__name__, _whom(event)) for event in events]


def _whom(event):
    return event.request_id if hasattr(event, "request_id") else event.adapter


def rest(engine):
    """Let the pod come to rest; returns everything that happened."""
    events = []
    while (change := engine.next_change()) is not None:
        events += engine.advance(change)
        engine.check()
    return events


def serve(engine, request, now):
    """Submit, and let the pod come to rest; returns the time."""
    engine.submit(request, now)
    return rest(engine)[-1].t


def warm(engine, *names):
    """Bring adapters into slots, the last named the most recently used; returns the time."""
    now = 0.0
    for name in names:
        now = serve(engine, ask(f"warm-{name}", name), now)
    return now
