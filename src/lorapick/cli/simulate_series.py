"""`lorapick simulate --series FILE`: the simulated picker's metrics over time, as a Prometheus would have stored them.

In: a simulated fleet, and how often it is looked at. Out: what the live picker's page would show at these times
(`live.metrics`), as OpenMetrics text with timestamps: `promtool tsdb create-blocks-from openmetrics` makes blocks of it
that Prometheus and Grafana read. Not here: what is simulated (see `sim`), what a metric means (docs/metrics.md).

One look follows the other in the file, each family's type before its first sample: what has been written is not held.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Self

from prometheus_client.metrics_core import Metric
from prometheus_client.samples import Sample

from lorapick.core.fleet import Fleet
from lorapick.live.metrics import Metrics
from lorapick.live.published import PublishedViews
from lorapick.model.units import Seconds
from lorapick.plan.simulations import Job
from lorapick.sim.kernel import Priority
from lorapick.sim.report import RunReport
from lorapick.sim.run import Options, run
from lorapick.sim.world import World

SCRAPED = {"job": "lorapick", "instance": "simulated"}
"""Labels that Prometheus adds."""
MONDAY: Seconds = 1_767_571_200.0
"""Midnight of 5 January 2026, UTC: the day of a run that is on no day in particular."""

Look = Callable[[Seconds, Iterable[Metric]], None]
"""Told of all families at a time on the run's clock."""


class SimulatedFleet:
    """A world as `live.published` wants to see a picker."""

    started_at = MONDAY

    def __init__(self, world: World) -> None:
        self.fleet: Fleet = world.fleet
        self._kernel = world.kernel

    def now(self) -> Seconds:
        """The virtual clock."""
        return self._kernel.now


class Watched:
    """The live picker's metrics over a simulated fleet, looked at in regular steps from t = 0 on."""

    def __init__(self, look: Look, *, every: Seconds) -> None:
        """`every`: time between two looks."""
        self._look = look
        self._every = every
        self._looks = 0

    def attach(self, world: World) -> None:
        """Count what happens in a world from now on, which must be its begin."""
        settings = world.settings
        self._world = world
        self._metrics = Metrics(
            adapter_labels=settings.server.metrics_adapters,
            compat=settings.server.metrics_compat,
            slo=settings.slo,
        )
        self._metrics.show(PublishedViews(SimulatedFleet(world)))
        self._metrics.follow(world.fleet)
        world.heard = self._metrics.observe
        self._again()

    def _again(self) -> None:
        self._world.kernel.at(self._looks * self._every, self._sample, priority=Priority.ARRIVAL)
        self._looks += 1

    def _sample(self, _: None) -> None:
        self._look(self._world.kernel.now, self._metrics.families())
        self._again()


class OpenMetricsFile:
    """A file that grows by one look after the other; a context manager, whose end completes the file."""

    def __init__(self, path: Path, *, begin: Seconds) -> None:
        """`begin`: Unix time at t = 0. Raises OSError: it cannot be written."""
        self._file: IO[str] = path.open("w", encoding="utf-8")
        self._begin = begin
        self._typed: dict[str, None] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._file as file:
            file.write("# EOF\n")

    def look(self, t: Seconds, families: Iterable[Metric]) -> None:
        """Write one look."""
        at = f"{self._begin + t:.3f}"
        self._file.writelines(f"{line} {at}\n" if line[0] != "#" else f"{line}\n" for line in self._lines(families))

    def _lines(self, families: Iterable[Metric]) -> Iterator[str]:
        yield f"{series('up', SCRAPED)} 1"
        for family in families:
            if family.name not in self._typed:
                self._typed[family.name] = None
                yield f"# TYPE {family.name} {family.type}"
            for sample in family.samples:
                yield f"{series_of(sample)} {float(sample.value)!r}"


def series_of(sample: Sample) -> str:
    """Name and labels as Prometheus would have them."""
    return series(sample.name, {**sample.labels, **SCRAPED})


def series(name: str, labels: dict[str, str]) -> str:
    """As PromQL writes it."""
    inside = ",".join(f'{key}="{_escaped(value)}"' for key, value in labels.items())
    return f"{name}{{{inside}}}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def play_with_series(job: Job, path: Path, *, every: Seconds, progress: Callable[[float], None] | None) -> RunReport:
    """Play a run and write its series.

    The picker is told when answers begin, as one that looks at bodies (`server.observe: bodies`): it may decide
    otherwise than in a run without series.

    Raises:
        OSError: the file cannot be written.
    """
    plan = job.scenario.run
    begin = plan.unix if plan.unix is not None else MONDAY + plan.begin
    with OpenMetricsFile(path, begin=begin) as file:
        return run(
            job.scenario, policy=job.policy, seed=job.seed, options=watched(file.look, every=every, told=progress)
        )


def watched(look: Look, *, every: Seconds, told: Callable[[float], None] | None = None) -> Options:
    """Options of a run whose metrics are looked at; `told` of its progress. Bounds are not reckoned."""
    return Options(progress=told, prepare=Watched(look, every=every).attach, tells_starts=True, bounds=False)
