"""The cells: fleets and traffic, each on pods that load inline and on pods that drain, at several loads.

In: nothing. Out: `Cell`s, which `scenario()` turns into what the simulator plays. Not here: rates (see
`bench.tournament.rates`, which searches how much each fleet bears), running, judging.

Two kinds. *Scenarios* are those of the package, at their own rates, with their phases: policies were built while people
looked at them. *Fresh* traffic is written down here and was played by nobody before: it is what a claim rests on. The
picker's queue is long enough that every cell serves all arrivals: a policy that refuses requests would look fast.
"""

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from lorapick.plan.scenario_files import load_scenario
from lorapick.sim.scenario import Scenario

MODES = ("inline", "drain")
LOADS = (0.3, 0.6, 0.8, 0.95)
"""Shares of the rate that the fleet bears (`bench.tournament.rates`)."""
NOBODY_IS_REFUSED = {"settings.admission": "{max_queued: 100000, max_wait: 1h}"}
"""Requests that no pod has room for wait at the picker. Queues of pods keep their limits: the weights need them to
leave a pod that is full."""
LENGTH, WARM_UP = 150, 30
"""Seconds of a fresh cell, of which the first do not count."""


class Traffic(NamedTuple):
    """A fleet and who asks it for what."""

    name: str
    base: str
    """Scenario of the package that it starts from."""
    changes: tuple[tuple[str, str], ...]
    """Other values for its keys."""
    about: str
    fresh: bool = True
    """Whether rates are searched; otherwise it is a scenario at its own rate."""


class Cell(NamedTuple):
    """One fleet, one kind of pod, one load."""

    traffic: Traffic
    mode: str
    load: float | None
    """None: the scenario's own rate."""

    @property
    def name(self) -> str:
        load = "" if self.load is None else f" {self.load:.0%}"
        return f"{self.traffic.name} {self.mode}{load}"


def _fleet(pods: int, slots: int, *, model: str = "h100-llama8b", cpu_slots: int = 200) -> str:
    return (
        f"{{pods: {pods}, slots: {slots}, cpu_slots: {cpu_slots}, mode: inline, hardware: {model}, max_num_seqs: 128, "
        "max_queue: 32}"
    )


_CHAT = (
    "{prompt: {lognormal: {mean: 300, cv: 1.0, low: 20, high: 3000}}, "
    "output: {lognormal: {mean: 120, cv: 1.0, low: 4, high: 800}}}"
)
_SHORT = "{prompt: 200, output: [4, 12]}"
_MIXED_RANKS = f"{[8] * 10 + [16] * 6 + [32] * 3 + [64]}"
"""Shares .5, .3, .15 and .05."""


def _traffic(about: str, name: str, **parts: str) -> Traffic:
    """Fresh traffic: an own fleet, adapters and arrivals on the plainest scenario."""
    changes = {
        "phases": "[]",
        "expect": "[]",
        "run": f"{{for: {LENGTH}s, warm_up: {WARM_UP}s, window: 10s, seed: 1}}",
        **parts,
    }
    return Traffic(name=name, base="saas-50-uniform", changes=tuple(changes.items()), about=about)


def _adapters(count: int, popularity: str, *, rank: str = "16") -> str:
    return f"{{count: {count}, rank: {rank}, popularity: {popularity}}}"


def _arrivals(process: str, tokens: str = _CHAT) -> str:
    return f"{{rate: 20/s, process: {process}, tokens: {tokens}}}"


_LONG_TAIL = _adapters(24, "{zipf: 1.0}")
FRESH = (
    _traffic(
        "24 adapters, Zipf 1.0, on 4 pods with 4 slots: two thirds fit", "zipf",
        fleet=_fleet(4, 4), adapters=_LONG_TAIL, arrivals=_arrivals("poisson"),
    ),
    _traffic(
        "the same with all adapters alike", "uniform",
        fleet=_fleet(4, 4), adapters=_adapters(24, "uniform"), arrivals=_arrivals("poisson"),
    ),
    _traffic(
        "one adapter has half of the traffic", "hot",
        fleet=_fleet(4, 4), adapters=_adapters(20, "{top: 1, share: 0.5}"), arrivals=_arrivals("poisson"),
    ),
    _traffic(
        "100 adapters, Zipf 0.9: six for each slot", "many",
        fleet=_fleet(4, 4), adapters=_adapters(100, "{zipf: 0.9}"), arrivals=_arrivals("poisson"),
    ),
    _traffic(
        "12 adapters in 16 slots: nobody need ever load", "roomy",
        fleet=_fleet(4, 4), adapters=_adapters(12, "{zipf: 1.0}"), arrivals=_arrivals("poisson"),
    ),
    _traffic(
        "short answers on Llama 70B, the article's kind of fleet", "short-70b",
        fleet=_fleet(4, 4, model="h100-llama70b-int4"), adapters=_LONG_TAIL, arrivals=_arrivals("poisson", _SHORT),
    ),
    _traffic(
        "what leaves a slot is read from disk again", "disk",
        fleet=_fleet(4, 4, cpu_slots=4), adapters=_LONG_TAIL, arrivals=_arrivals("poisson"),
    ),
    _traffic(
        "ranks 8, 16, 32, 64 for .5, .3, .15, .05 of the adapters, read from disk", "ranks",
        fleet=_fleet(4, 4, cpu_slots=8), adapters=_adapters(40, "{zipf: 1.0}", rank=_MIXED_RANKS),
        arrivals=_arrivals("poisson"),
    ),
    _traffic(
        "S-LoRA's grid, alpha 0.6, gaps of cv 1, ranks in turn, on 4 pods", "s-lora-steep",
        fleet=_fleet(4, 16), adapters=_adapters(200, "{power: 0.6}", rank="[64, 32, 16, 8]"),
        arrivals=_arrivals("{gamma: {cv: 1}}", "{prompt: [8, 511], output: [8, 511]}"),
    ),
    _traffic(
        "S-LoRA's grid, alpha 1, gaps of cv 4, ranks in turn, on 4 pods", "s-lora-bursty",
        fleet=_fleet(4, 16), adapters=_adapters(200, "{power: 1}", rank="[64, 32, 16, 8]"),
        arrivals=_arrivals("{gamma: {cv: 4}}", "{prompt: [8, 511], output: [8, 511]}"),
    ),
    _traffic(
        "ServeGen's measured clients as adapters", "servegen",
        fleet=_fleet(6, 3), adapters=_adapters(43, "uniform"),
        arrivals="{clients: {file: traces/servegen_m_small.csv.zst, span: [40h, 41h]}, rate: 20/s, process: poisson, "
        f"tokens: {_CHAT}}}",
    ),
    _traffic(
        "a flash crowd: three times the rate at 60 s, fading in half a minute", "flash",
        fleet=_fleet(4, 4), adapters=_LONG_TAIL,
        arrivals=_arrivals("{flash: {at: 60s, factor: 3, decay: 30s, cv: 1}}"),
    ),
    _traffic(
        "prompts and answers of Azure's conversations", "azure-lengths",
        fleet=_fleet(4, 4), adapters=_LONG_TAIL,
        arrivals=_arrivals("poisson", "{trace: traces/AzureLLMInferenceTrace_2023_conv.csv.zst}"),
    ),
)  # fmt: skip

SCENARIOS = tuple(
    Traffic(name=name, base=name, changes=tuple(changes.items()), about=load_scenario(name).title, fresh=False)
    for name, changes in {
        "saas-50": {}, "saas-50-uniform": {}, "convoy": {}, "hotspot": {}, "code-4": {}, "restart": {},
        "stampede": {}, "starvation": {}, "ghost": {}, "legal-12": {}, "pipeline": {}, "rolling-upgrade": {},
        "azure": {"run": "{for: 10m, warm_up: 2m, window: 10s}"},
        "mooncake": {"run": "{for: 10m, warm_up: 2m, window: 10s}"},
    }.items()
)  # fmt: skip


def cells(*, loads: tuple[float, ...] = LOADS) -> Iterator[Cell]:
    """All of them, fresh ones first."""
    for traffic in FRESH:
        yield from (Cell(traffic, mode, load) for mode in MODES for load in loads)
    for traffic in SCENARIOS:
        yield from (Cell(traffic, mode, None) for mode in MODES)


@cache
def _parsed(base: str, changes: tuple[tuple[str, str], ...]) -> Scenario:
    return load_scenario(base, overrides=dict(changes))


def scenario(cell: Cell, *, rate: float | None) -> Scenario:
    """What the simulator plays.

    Args:
        cell: which.
        rate: arrivals per second; None: the scenario's own.
    """
    changes = dict(cell.traffic.changes) | NOBODY_IS_REFUSED | {"fleet.mode": cell.mode}
    if rate is not None:
        changes["arrivals.rate"] = f"{rate:.6g}/s"
    return _parsed(cell.traffic.base, tuple(changes.items()))
