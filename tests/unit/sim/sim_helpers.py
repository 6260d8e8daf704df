"""Small worlds whose numbers can be worked out by hand."""

from collections.abc import Sequence

from lorapick.model.adapters import Adapter
from lorapick.model.pods import Pod, PodLimits
from lorapick.model.settings import AdmissionSettings, PickingSettings, Settings
from lorapick.pod.values import AdapterSpec, PodConfig, StepCosts, SwapCosts, SwapMode
from lorapick.sim.arrivals import Arrival
from lorapick.sim.tally import Tally
from lorapick.sim.world import Setup, World

ROUND = StepCosts(a=0.01, b=0.0, c=0.0, d=0.0)
"""Every step takes 10 ms, whoever runs."""
SWAP = SwapCosts(
    deallocation=0.005,
    fragmentation=0.0,
    cpu_bandwidth=1e10,
    disk_bandwidth=1e10,
    initialisation=0.02,
    warm_up=0.05,
)
"""With 100 MB adapters: 10 ms from host memory, 20 ms from disk; 90 ms from disk into a free slot, 95 into a full."""


def config(
    *, slots: int = 1, mode: SwapMode = SwapMode.DRAIN, seats: int = 8, queue: int = 8, prefill: float = 0.0
) -> PodConfig:
    """A pod with round numbers."""
    limits = PodLimits(max_loras=slots, max_cpu_loras=16, max_num_seqs=seats, max_queue=queue)
    return PodConfig(limits=limits, mode=mode, step=ROUND, swap=SWAP, prefill_per_token=prefill)


def world(
    *,
    pods: int = 1,
    adapters: Sequence[str] = ("x", "y", "z"),
    policy: str = "weighted",
    admission: AdmissionSettings | None = None,
    pod: PodConfig | None = None,
    tally: Tally | None = None,
    tells_starts: bool = False,
) -> tuple[World, Tally]:
    """A world of equal pods, and its tally."""
    pod = pod or config()
    tally = tally or Tally(start=0.0, window=1.0)
    setup = Setup(
        settings=Settings(
            picking=PickingSettings(policy=policy),
            admission=admission or AdmissionSettings(),
            adapters=tuple(Adapter(name=name, declared=True) for name in adapters),
        ),
        pods=[(Pod(name=f"pod-{n}", address=f"sim:{n}", limits=pod.limits), pod) for n in range(1, pods + 1)],
        adapters=[AdapterSpec(name=name, size=100_000_000) for name in adapters],
        tells_starts=tells_starts,
    )
    made = World(setup, observer=tally, seed=7)
    made.check_every = 1
    return made, tally


def ask(t: float, adapter: str | None, *, name: str | None = None, output: int = 10, prompt: int = 10) -> Arrival:
    """One request."""
    return Arrival(t=t, id=name or f"{adapter}@{t:g}", adapter=adapter, prompt_tokens=prompt, output_tokens=output)


SCENARIO = """
name: tiny
title: Two pods, four adapters
source: none
assumes: ["nothing"]
fleet: {pods: 2, slots: 2, cpu_slots: 4, hardware: h100-llama8b, max_num_seqs: 16}
adapters: {count: 4, popularity: {zipf: 1.0}}
arrivals: {rate: 20/s, tokens: {prompt: 50, output: [4, 12]}}
run: {for: 20s, warm_up: 5s, window: 1s}
"""
"""A scenario that plays in a moment."""
