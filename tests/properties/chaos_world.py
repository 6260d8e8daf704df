"""Simulated fleets in which commands go wrong: pods die mid-load, loads fail, answers come late, twice or never.

In: a seed and what may go wrong. Out: for how long pins were missing, in truth: as the pods have it, not as the core
believes; with what happened meanwhile. Not here: what is expected (see `test_controller_chaos`).
"""

from random import Random
from typing import NamedTuple

from lorapick.core.placement.commands import LONGEST
from lorapick.model import events as said
from lorapick.model.adapters import Adapter, PinSpec
from lorapick.model.effects import Load, Register, Touch
from lorapick.model.pods import Pod, PodLimits
from lorapick.model.settings import PlacementSettings, Settings
from lorapick.pod.values import AdapterEvicted, AdapterSpec, PodConfig, StepCosts, SwapCosts, SwapEnded, SwapMode
from lorapick.sim.arrivals import Arrival
from lorapick.sim.failing import FailingLoads
from lorapick.sim.setup import Setup
from lorapick.sim.tally import Tally
from lorapick.sim.world import World

PODS = tuple(f"pod-{number}" for number in range(4))
PINS = {
    "everywhere": PinSpec(pods=PODS),
    "twice": PinSpec(replicas=2),
    "first": PinSpec(pods=PODS[:1]),
    "second": PinSpec(pods=PODS[1:2]),
}
OTHERS = tuple(f"other-{number}" for number in range(12))
STEP = StepCosts(a=0.01, b=0.0, c=0.0, d=0.0)
SWAP = SwapCosts(
    deallocation=0.005, fragmentation=0.0, cpu_bandwidth=1e10, disk_bandwidth=1e9, initialisation=0.02, warm_up=0.1
)
LOAD = 0.225
"""Seconds that a load takes from disk, with 100 MB adapters: 5 + 100 + 20 + 100 ms."""
ANSWERS = (said.LoadSucceeded, said.LoadFailed, said.Touched, said.TouchFailed)


class Faults(NamedTuple):
    """What goes wrong, as shares of commands, until `until`."""

    fails: float = 0.0
    """Of loads, not of commands: those of requests too."""
    late: float = 0.0
    """Answers that come up to `LATEST` later."""
    twice: float = 0.0
    lost: float = 0.0
    """Commands that nobody hears of again."""
    kills: float = 0.0
    """Commands during which the pod dies."""
    until: float = 30.0


LATEST = 2.0
DOWN = 3.0
"""Seconds that a pod that died is away, at most."""


class Gap(NamedTuple):
    """A time in which a pin was not in a slot of its pod."""

    seconds: float
    down: float
    """Of these the pod was away."""
    commands: int
    """Commands that the pod was given in this time."""
    lost: int
    """Commands that nobody heard of again, and that were not given up before."""


class ChaosWorld(World):
    """A world that loses, delays and repeats."""

    def __init__(self, setup: Setup, *, faults: Faults, seed: int) -> None:
        self.faults = faults
        self.chance = Random(seed)
        self.lost: dict[str, list[float]] = {pod: [] for pod in PODS}
        self.given = dict.fromkeys(PODS, 0)
        self.deaths = dict.fromkeys(PODS, 0)
        self.downs: dict[str, list[tuple[float, float]]] = {pod: [] for pod in PODS}
        self.truth = Truth(self)
        super().__init__(setup, observer=self.truth, seed=seed)
        for kind in (Load, Register, Touch):
            self._actions[kind] = self.tampered(self._actions[kind])

    @property
    def at_it(self) -> bool:
        return self.kernel.now < self.faults.until

    def happens(self, share: float) -> bool:
        return self.at_it and self.chance.random() < share

    def tampered(self, perform):
        """Commands get lost, or their pod dies while it does what it was told."""

        def command(effect):
            self.given[effect.pod] += 1
            if self.happens(self.faults.lost):
                self.lost[effect.pod].append(self.kernel.now)
                return
            if self.happens(self.faults.kills):
                self.kernel.at(
                    self.kernel.now + self.chance.random() * LOAD, self.kill, argument=effect.pod, priority=3
                )
            perform(effect)

        return command

    def kill(self, pod):
        if self.pods[pod].alive:
            down = self.chance.uniform(0.1, DOWN)
            self.deaths[pod] += 1
            self.downs[pod].append((self.kernel.now, self.kernel.now + down))
            self.restart_pod(pod, down=down)

    def pin(self):
        for name, pin in PINS.items():
            self.apply(said.PinSet, adapter=name, pin=pin)
        self.truth.begin(self.kernel.now)

    def pinned_on(self, name):
        state = self.fleet.state
        return [state.columns.targets[row].pod for row in state.placement.pinned.rows.get(name, ())]

    def missing(self):
        """Pins that are not where they should be."""
        held = {pod: self.pods[pod].engine.stats(self.kernel.now).on_gpu for pod in PODS}
        return [(pod, name) for name in PINS for pod in self.pinned_on(name) if name not in held[pod]]

    def apply(self, kind, **fields):
        """Answers come late or twice; those of a process that has died meanwhile are failures."""
        if kind not in ANSWERS or fields.get("why") == "the pod died":
            super().apply(kind, **fields)
            return
        wait = self.chance.uniform(0.0, LATEST) if self.happens(self.faults.late) else 0.0
        again = self.happens(self.faults.twice)
        if wait:
            answer = (kind, fields, self.deaths[fields["pod"]])
            self.kernel.at(self.kernel.now + wait, self.deliver, argument=answer, priority=0)
        else:
            super().apply(kind, **fields)
        if again:
            answer = (kind, fields, self.deaths[fields["pod"]])
            self.kernel.at(self.kernel.now + wait + 0.05, self.deliver, argument=answer, priority=0)

    def deliver(self, answer):
        kind, fields, deaths = answer
        if self.deaths[fields["pod"]] == deaths:
            super().apply(kind, **fields)
        elif kind in (said.LoadSucceeded, said.Touched):
            failed = said.LoadFailed if kind is said.LoadSucceeded else said.TouchFailed
            super().apply(failed, **fields, why="the pod died")


class Truth(Tally):
    """For how long pins were missing."""

    def __init__(self, world: ChaosWorld) -> None:
        super().__init__(start=0.0, window=10.0)
        self.world = world
        self.since: dict[tuple[str, str], tuple[float, int]] = {}
        """Pins that are missing: since when, and how many commands their pod had been given by then."""
        self.gaps: list[Gap] = []

    def begin(self, now):
        """From now on pins are wanted."""
        for name in PINS:
            for pod in PODS:
                if name not in self.world.pods[pod].engine.stats(now).on_gpu:
                    self.gone(pod, name, t=now)

    def happened(self, pod, event):
        super().happened(pod, event)
        match event:
            case SwapEnded(adapter=name, t=t):
                self.there(pod, name, t=t)
            case AdapterEvicted(adapter=name, t=t):
                self.gone(pod, name, t=t)

    def restarted(self, pod, now):
        super().restarted(pod, now)
        for name in PINS:
            self.gone(pod, name, t=now)

    def gone(self, pod, name, *, t):
        if pod in self.world.pinned_on(name):
            self.since.setdefault((pod, name), (t, self.world.given[pod]))

    def there(self, pod, name, *, t):
        began = self.since.pop((pod, name), None)
        if began is not None:
            since, given = began
            downs = [(max(since, start), min(t, end)) for start, end in self.world.downs[pod]]
            down = sum(max(0.0, end - start) for start, end in downs)
            lost = sum(since - LONGEST <= when for when in self.world.lost[pod])
            self.gaps.append(Gap(t - since, down, self.world.given[pod] - given, lost))


def chaos(faults: Faults, *, seed: int, rate: float, settles: float) -> ChaosWorld:
    """Traffic, pins from the first second on, and faults; then time to settle."""
    failing = FailingLoads(most=faults.fails, seed=seed)
    failing.share = faults.fails
    world = ChaosWorld(fleet(faults, draws=failing.draws), faults=faults, seed=seed)
    world.check_every = 20
    world.kernel.at(1.0, lambda _: world.pin(), priority=3)
    world.kernel.at(faults.until, lambda _: setattr(failing, "share", 0.0), priority=3)
    end = faults.until + settles
    world.run(traffic(seed, rate=rate, until=end), until=end)
    return world


def fleet(faults: Faults, *, draws=None, placement: PlacementSettings | None = None) -> Setup:
    """Four pods of four slots, and more adapters than those."""
    limits = PodLimits(max_loras=4, max_cpu_loras=16, max_num_seqs=16, max_queue=16)
    config = PodConfig(limits=limits, mode=SwapMode.INLINE, step=STEP, swap=SWAP, load_failure_share=faults.fails)
    names = (*PINS, *OTHERS)
    return Setup(
        settings=Settings(
            adapters=tuple(Adapter(name=name, declared=True) for name in names),
            placement=placement or PlacementSettings(),
        ),
        pods=[(Pod(name=pod, address=f"sim:{pod}", limits=limits), config) for pod in PODS],
        adapters=[AdapterSpec(name=name, size=100_000_000) for name in names],
        draws=draws,
    )


def traffic(seed: int, *, rate: float, until: float):
    """Requests for pinned and other adapters."""
    chance, t, count = Random(seed), 0.0, 0
    names = [*PINS, *OTHERS, *OTHERS]
    while (t := t + chance.expovariate(rate)) < until:
        count += 1
        yield Arrival(t=t, id=f"r{count}", adapter=chance.choice(names), prompt_tokens=10, output_tokens=20)
