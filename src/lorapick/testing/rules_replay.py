"""Which alerts the shipped rules raise over the series of a simulated run, as the real promtool says, and the picker.

In: a scenario. Out: when each alert first fired and for how long. Only series that the rules name are kept.
Not here: rules (see `dash.rules`), what a run's series are (see `cli.simulate_series`).

`promtool test rules` evaluates alerts over series, but tells only what differs from what was expected. So nothing is
expected, and what it complains of is the answer.
"""

import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from prometheus_client.metrics_core import Metric

from lorapick.cli.simulate_series import SCRAPED, Watched, series, series_of
from lorapick.dash.rules import Thresholds, rules_document
from lorapick.model.effects import Clear, Effect, Raise
from lorapick.model.events import Event
from lorapick.model.units import Seconds
from lorapick.sim.report import RunReport
from lorapick.sim.run import Options, run
from lorapick.sim.scenario import Scenario
from lorapick.sim.world import World

FIRING = 'sum by (alertname, of) (label_join(ALERTS{alertstate="firing"}, "of", "", "pod", "kind", "instance"))'
_AT = re.compile(r"time: (\S+),\s+exp:.*?got:(.*?)(?=\n\s+expr:|\Z)", re.DOTALL)
_ALERT = re.compile(r'alertname="(\w+)"(?:, of="([^"]*)")?')
_PART = re.compile(r"(\d+)(ms|s|m|h|d|w|y)")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0, "y": 31_536_000.0}


class Fired(NamedTuple):
    """One alert of one pod, or of the whole fleet."""

    alert: str
    of: str
    """The pod; empty where it is of the fleet."""
    first: Seconds
    """When it first fired, on the run's clock."""
    seconds: Seconds
    """For how long, all times together."""


class Collected:
    """What a run's looks gave, as promtool takes it."""

    def __init__(self, rules: Mapping[str, Any]) -> None:
        """Keep what the rules name."""
        text = yaml.safe_dump(rules, width=10_000)
        self._names = dict.fromkeys(re.findall(r"lorapick_\w+", text))
        self._values: dict[str, list[float | None]] = {}
        self.looks = 0

    def look(self, t: Seconds, families: Iterable[Metric]) -> None:
        """One look; they must come in regular steps."""
        del t
        self._add(series("up", SCRAPED), 1.0)
        for family in families:
            for sample in family.samples:
                if sample.name in self._names:
                    self._add(series_of(sample), sample.value)
        self.looks += 1

    def _add(self, name: str, value: float) -> None:
        values = self._values.setdefault(name, [])
        values.extend([None] * (self.looks - len(values)))
        values.append(value)

    def input(self) -> list[dict[str, str]]:
        """As `input_series` of a test."""
        return [{"series": name, "values": " ".join(_notation(values))} for name, values in self._values.items()]


def _notation(values: Iterable[float | None]) -> Iterable[str]:
    """Runs of the same value in one word: a value and how often it comes again."""
    for value, same in groupby(values):
        again = sum(1 for _ in same) - 1
        word = "_" if value is None else f"{value!r}"
        # `_xN` is N in all, `VxN` is V and N more.
        yield word if not again else f"_x{again + 1}" if value is None else f"{word}x{again}"


def alerts(
    rules: Mapping[str, Any], collected: Collected, *, every: Seconds, step: Seconds, directory: Path
) -> list[Fired]:
    """All that fired, first ones first: looked at each `step`. Looks and evaluations are `every` apart."""
    (directory / "rules.yaml").write_text(yaml.safe_dump(dict(rules)))
    last = (collected.looks - 1) * every
    times = [number * step for number in range(1, int(last // step) + 1)]
    test = {
        "interval": f"{every:g}s",
        "input_series": collected.input(),
        "promql_expr_test": [{"expr": FIRING, "eval_time": f"{t:g}s", "exp_samples": []} for t in times],
    }
    document = {"rule_files": ["rules.yaml"], "evaluation_interval": f"{every:g}s", "tests": [test]}
    (directory / "test.yaml").write_text(yaml.dump(document, Dumper=_dumper(), width=1e9))
    command = ["promtool", "test", "rules", "test.yaml"]
    answer = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=900, check=False)
    return _fired(answer.stdout + answer.stderr, step=step)


def _dumper() -> Any:
    """The quick one where it is there: tests of long runs are megabytes."""
    return getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def _fired(text: str, *, step: Seconds) -> list[Fired]:
    assert "FAILED" in text or "SUCCESS" in text, f"promtool says:\n{text[:4000]}"
    assert ", err: " not in text, f"promtool says:\n{text[:4000]}"
    times: dict[tuple[str, str], list[Seconds]] = {}
    for at, got in _AT.findall(text):
        for alert, of in _ALERT.findall(got):
            times.setdefault((alert, of), []).append(seconds_of(at))
    found = [Fired(alert, of, min(at), len(at) * step) for (alert, of), at in times.items()]
    return sorted(found, key=lambda each: (each.first, each))


def seconds_of(text: str) -> Seconds:
    """Of a duration as Prometheus writes it: `1h15m`."""
    return sum(int(number) * _UNITS[unit] for number, unit in _PART.findall(text))


class OwnAlerts:
    """Alerts that a world's picker raises and clears by itself."""

    def __init__(self) -> None:
        self._stood: dict[str, list[tuple[Seconds, Seconds | None]]] = {}

    def heard(self, event: Event, effects: Sequence[Effect]) -> None:
        """One event and its effects."""
        for effect in effects:
            if isinstance(effect, Raise):
                self._stood.setdefault(effect.alert, []).append((event.t, None))
            elif isinstance(effect, Clear):
                since, _ = self._stood[effect.alert].pop()
                self._stood[effect.alert].append((since, event.t))

    def all(self, end: Seconds) -> list[Fired]:
        """First ones first; all of the whole fleet."""
        found = [
            Fired(name, "", times[0][0], sum((end if until is None else until) - since for since, until in times))
            for name, times in self._stood.items()
        ]
        return sorted(found, key=lambda each: (each.first, each))


class Replayed(NamedTuple):
    """What came of one run."""

    report: RunReport
    fired: list[Fired]
    """By the rules."""
    own: list[Fired]
    """By the picker."""


def replay(scenario: Scenario, *, every: Seconds, step: Seconds, directory: Path) -> Replayed:
    """Play a scenario with its own policy and seed, looked at in steps of `every`, and ask promtool (see `alerts`)."""
    rules = rules_document(Thresholds.of(scenario.settings), runbooks="http://127.0.0.1:9091/runbooks")
    collected, own = Collected(rules), OwnAlerts()
    watch = Watched(collected.look, every=every)

    def prepare(world: World) -> None:
        watch.attach(world)
        observe = world.heard
        assert observe is not None, "somebody counts"

        def heard(event: Event, effects: Sequence[Effect]) -> None:
            observe(event, effects)
            own.heard(event, effects)

        world.heard = heard

    report = run(scenario, options=Options(prepare=prepare, tells_starts=True, bounds=False))
    fired = alerts(rules, collected, every=every, step=step, directory=directory)
    return Replayed(report, fired, own.all(scenario.run.length))
