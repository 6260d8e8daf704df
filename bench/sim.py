"""What a simulated request costs: requests and events per second on one core, and memory over the length of a trace.

    python -m bench.sim [--rounds 3] [--brief] [--json]

`saas-50` with the article's weights, invariants sampled (every 20,000 events), bounds included. Requests per second are
per second of CPU, which is what one core does when nobody else is on it; the wall-clock figure stands beside it. The
parts are measured by themselves: making arrivals; the decision core, fed with the events of a recorded run; the pods,
fed with its requests. The rest is the clock, the scrapes, the statistics. `per_step_requests_per_s` is the same run if
its pods were the slow twin of the tests, which makes every step by itself: its time for the first requests in place of
the pods'. Memory is the peak of a process of its own,
for a trace and for one four times as long. `war_story` is 09:00 to 16:00 of that scenario, 1.27 million requests;
with --brief the first 45 minutes, and the whole in proportion (`war_story_share`).
"""

import argparse
import gc
import importlib.util
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lorapick.core.fleet import Fleet
from lorapick.model.effects import Dispatch, Effect
from lorapick.model.events import Event
from lorapick.plan.scenario_files import load_scenario
from lorapick.pod.engine import PodEngine
from lorapick.pod.values import PodRequest
from lorapick.sim.build import arrivals_of, pod_config, settings_of, specs_of, world_of
from lorapick.sim.run import Options, run
from lorapick.sim.scenario import Scenario, shortened
from lorapick.sim.tally import Tally

SAMPLED = 20_000
POLICY = "weighted"
TWIN = Path(__file__).parent.parent / "tests" / "properties" / "pod_twin.py"
TWIN_REQUESTS = 3000
"""That the slow twin is given."""
BRIEF = 45 * 60.0


def seconds_of(work: Callable[[], object]) -> tuple[float, float]:
    """CPU and wall seconds."""
    gc.collect()
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return time.process_time() - cpu, time.perf_counter() - wall


def saas(minutes: int) -> Scenario:
    """The scenario for some minutes, always with as many windows."""
    return load_scenario(
        "saas-50", overrides={"run": f"{{for: {minutes}m, warm_up: 30s, window: {minutes * 2}s, seed: 1}}"}
    )


def whole(scenario: Scenario) -> dict[str, float]:
    """A run as people make it."""
    found: list[Any] = []
    options = Options(check_every=SAMPLED)
    cpu, wall = seconds_of(lambda: found.append(run(scenario, policy=POLICY, options=options)))
    requests = sum(1 for _ in arrivals_of(scenario, 1))
    return {
        "requests": requests,
        "requests_per_s": requests / cpu,
        "requests_per_wall_s": requests / wall,
        "events_per_s": found[0].events / cpu,
        "us_per_request": 1e6 * cpu / requests,
        "events_per_request": found[0].events / requests,
    }


def parts(scenario: Scenario) -> dict[str, float]:
    """Microseconds per request of each part by itself."""
    events, requests = recorded(scenario)
    count = len(requests)
    arrivals, _ = seconds_of(lambda: sum(1 for _ in arrivals_of(scenario, 1)))
    core, _ = seconds_of(lambda: feed_core(scenario, events))
    pods, _ = seconds_of(lambda: feed_pods(scenario, requests))
    twin, _ = seconds_of(lambda: feed_twins(scenario, requests[:TWIN_REQUESTS]))
    return {
        "arrivals_us": 1e6 * arrivals / count,
        "core_us": 1e6 * core / count,
        "core_events_per_request": len(events) / count,
        "pods_us": 1e6 * pods / count,
        "per_step_pods_us": 1e6 * twin / min(count, TWIN_REQUESTS),
    }


def recorded(scenario: Scenario) -> tuple[list[Event], list[tuple[float, str, PodRequest]]]:
    """All events of the core, and all requests of the pods."""
    events: list[Event] = []
    requests: list[tuple[float, str, PodRequest]] = []
    arrivals = {arrival.id: arrival for arrival in arrivals_of(scenario, 1)}

    def heard(event: Event, effects: Any) -> None:
        events.append(event)
        requests.extend((event.t, each.target.pod, asked(each)) for each in effects if isinstance(each, Dispatch))

    def asked(effect: Effect) -> PodRequest:
        assert isinstance(effect, Dispatch)
        arrival = arrivals[effect.request_id]
        return PodRequest(
            id=arrival.id,
            adapter=arrival.adapter,
            prompt_tokens=arrival.prompt_tokens,
            output_tokens=arrival.output_tokens,
        )

    tally = Tally(start=0.0, window=60.0)
    world = world_of(scenario, policy=POLICY, seed=1, observer=tally)
    events.extend(first_events(scenario))
    world.heard = heard
    world.run(arrivals.values(), until=scenario.run.length)
    return events, requests


def first_events(scenario: Scenario) -> list[Event]:
    """What the core hears while the world is made."""
    found: list[Event] = []

    class Early(Fleet):
        def apply(self, event: Event, now: float) -> list[Effect]:
            found.append(event)
            return super().apply(event, now)

    import lorapick.sim.world as module

    kept, module.Fleet = module.Fleet, Early  # type: ignore[misc]
    try:
        world_of(scenario, policy=POLICY, seed=1, observer=Tally(start=0.0, window=60.0))
    finally:
        module.Fleet = kept  # type: ignore[misc]
    return found


def feed_core(scenario: Scenario, events: list[Event]) -> None:
    """Events through the core, as fast as can be."""
    fleet = Fleet(settings_of(scenario, POLICY), seed=1, journal=False)
    for event in events:
        fleet.apply(event, event.t)


def feed_pods(scenario: Scenario, requests: list[tuple[float, str, PodRequest]]) -> None:
    """Requests through the pods, each pod advanced when a request comes."""
    config, specs = pod_config(scenario), specs_of(scenario)
    engines = {name: PodEngine(config, specs, now=0.0) for name in scenario.fleet.names()}
    for t, pod, request in requests:
        engine = engines[pod]
        engine.submit(request, t)
        engine.advance(t)


def feed_twins(scenario: Scenario, requests: list[tuple[float, str, PodRequest]]) -> None:
    """Requests through pods that make every step."""
    spec = importlib.util.spec_from_file_location("pod_twin", TWIN)
    assert spec is not None and spec.loader is not None, TWIN
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    config, specs = pod_config(scenario), specs_of(scenario)
    twins = {name: module.PodTwin(config, specs, now=0.0) for name in scenario.fleet.names()}
    for t, pod, request in requests:
        twin = twins[pod]
        twin.do("submit", request, t)
        # It keeps all that ever came, and looks through them.
        twin.arrival_order = twin.in_flight()


def memory(minutes: int) -> float:
    """Peak megabytes of a process that plays so many minutes."""
    command = [sys.executable, "-m", "bench.sim", "--peak", str(minutes)]
    return float(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def peak(minutes: int) -> None:
    run(saas(minutes), policy=POLICY, options=Options(check_every=SAMPLED))
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def war_story(*, brief: bool) -> dict[str, float]:
    """The incident's day."""
    scenario = load_scenario("war-story")
    everything = scenario.run.length
    if brief:
        scenario = shortened(scenario, BRIEF)
    share = scenario.run.length / everything
    cpu, wall = seconds_of(lambda: run(scenario, policy=POLICY, options=Options(check_every=SAMPLED)))
    return {"war_story_s": cpu / share, "war_story_wall_s": wall / share, "war_story_share": share}


def medians(rounds: list[dict[str, float]]) -> dict[str, float]:
    return {name: statistics.median(each[name] for each in rounds) for name in rounds[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--brief", action="store_true", help="a part of the war story only")
    parser.add_argument("--json", action="store_true", help="say it as JSON")
    parser.add_argument("--peak", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.peak is not None:
        peak(arguments.peak)
        return
    scenario = saas(10)
    figures = medians([whole(scenario) for _ in range(arguments.rounds)])
    figures |= medians([parts(scenario) for _ in range(arguments.rounds)])
    figures["rest_us"] = figures["us_per_request"] - sum(figures[f"{name}_us"] for name in ("arrivals", "core", "pods"))
    per_step = figures["us_per_request"] - figures["pods_us"] + figures["per_step_pods_us"]
    figures["per_step_requests_per_s"] = 1e6 / per_step
    figures["peak_mb"], figures["peak_mb_4_times_as_long"] = memory(10), memory(40)
    figures |= war_story(brief=arguments.brief)
    if arguments.json:
        print(json.dumps(figures, indent=1))
    else:
        for name, value in figures.items():
            print(f"{name:28} {value:,.4g}")


if __name__ == "__main__":
    main()
