"""A demand as it is given, a list of adapters or a scenario, as a scenario that can be played.

In: a name or a file, what lists do not say. Out: a `Scenario` whose fleet is still to be sized. Not here: what keys of
scenarios mean (see `sim.scenario_text`), how lists are written (see `plan.gate.reading`).
"""

import math
from collections.abc import Mapping
from pathlib import Path

import msgspec

from lorapick.core.picking.policies import POLICIES
from lorapick.model.units import Seconds
from lorapick.plan.gate.reading import LARGEST, parse
from lorapick.plan.gate.rollout import Listed, Rollout, RolloutError, Traffic, today
from lorapick.plan.pins.values import PinOptions
from lorapick.plan.prediction.values import Demand
from lorapick.plan.scenario_files import load_scenario, scenario_names
from lorapick.sim.fleet_changes import Ask, Drain, Join, Move, Pin, Restart, Unask
from lorapick.sim.scenario import Scenario, shortened
from lorapick.sim.scenario_text import parse_scenario
from lorapick.wire.config.document import nearest_word

LOGS = (".csv", ".jsonl", ".ndjson", ".parquet", ".gz", ".zst")
"""What request logs are called."""
REQUESTS = 2_000
"""Measured requests of a run, at least: 100 of them are above its P95."""
_LATENCIES, _SHORTEST = 20, 60
"""Times the limit, and seconds, that are measured at least: queues take time to grow."""
WARM_UP = 0.2
"""Part of a run that is not measured, in which slots fill."""
LONGEST = 30 * 86_400
"""Seconds of a run; scenarios have the same limit."""
RANK = 16
"""Of adapters that do not say."""
SLOWEST = 0.01
"""Requests per second below which nobody needs a search; runs would take weeks."""
_SIZED = ("fleet", "fleet.pods", "fleet.slots", "fleet.kv_blocks")


class DemandError(ValueError):
    """A demand that cannot be read or played; the message says what would be right."""


class Unsaid(msgspec.Struct, frozen=True, kw_only=True):
    """What was said beside the demand. None: nothing."""

    rate: float | None = None
    zipf: float | None = None
    prompt: str | None = None
    """As in a scenario: tokens, or `[low, high]`."""
    output: str | None = None
    hardware: str | None = None
    rank: int | None = None
    seconds: Seconds | None = None
    overrides: Mapping[str, str] = {}
    """Keys of a scenario, with their values."""


PROMPT, OUTPUT = str(PinOptions().prompt), str(PinOptions().output)
"""Tokens, unless somebody says otherwise: as `lorapick plan pins` has them."""
LENGTHS = "means of Azure's conversations of 2023 (19,366 requests), as of `lorapick plan pins`"
"""Where they come from."""
_OF_LISTS = ("arrivals are Poisson, at rates that stay", "all adapters lie in host memory")


def read_demand(source: str, unsaid: Unsaid, *, limit: Seconds) -> Scenario:
    """The demand as a scenario.

    Args:
        source: a scenario's name, its file, or a file with a list of adapters.
        unsaid: what else is known.
        limit: of P95; runs of lists are long beside it.

    Raises:
        DemandError, RolloutError, ConfigError, OSError: it is none of these, or cannot be.
    """
    if unsaid.seconds is not None and not 1 <= unsaid.seconds <= LONGEST:
        raise DemandError(f"--seconds {unsaid.seconds:g}: give 1 to {LONGEST:,} simulated seconds")
    for key in unsaid.overrides:
        if key in _SIZED:
            raise DemandError(f"--set {key}: how large the fleet is, is what is searched; see --pods, --slots, --model")
    path = Path(source)
    if source in scenario_names():
        found = _scenario(source, unsaid)
    else:
        _check_file(source, path)
        content = path.read_bytes()
        found = (
            _scenario(source, unsaid) if _is_scenario(content) else _of_list(content, path, unsaid=unsaid, limit=limit)
        )
    _check_pods(found)
    return found


def is_list(scenario: Scenario) -> bool:
    """Whether it was made of a list of adapters."""
    return scenario.name == "demand" and scenario.assumes == _OF_LISTS


def unsaid_lengths(scenario: Scenario, unsaid: Unsaid) -> tuple[str, ...]:
    """Which of `prompt` and `output` nobody gave, so that they are `PROMPT` and `OUTPUT`; of lists only."""
    if not is_list(scenario):
        return ()
    keys = tuple(unsaid.overrides)
    return tuple(
        name
        for name in ("prompt", "output")
        if getattr(unsaid, name) is None
        and not any(each == "arrivals.tokens" or each.startswith(f"arrivals.tokens.{name}") for each in keys)
    )


def _check_file(source: str, path: Path) -> None:
    if path.is_dir():
        raise DemandError(f"{source}: a directory; give a list of adapters with their rates, or a scenario")
    if not path.is_file():
        hint = nearest_word(source, scenario_names())
        raise DemandError(f"{source!r} is neither a file nor a scenario; {hint or 'see `lorapick scenarios`'}")
    if path.suffix in LOGS:
        raise DemandError(f"{source}: a request log, to go by its name; `lorapick plan pins` reads logs")
    if path.stat().st_size > LARGEST:
        raise DemandError(f"{source}: larger than {LARGEST} bytes, so neither a list of adapters nor a scenario")


def _is_scenario(content: bytes) -> bool:
    try:
        found = msgspec.yaml.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError):
        return False
    return isinstance(found, dict) and ("fleet" in found or "arrivals" in found)


# -- scenarios


def _scenario(source: str, unsaid: Unsaid) -> Scenario:
    given = [name for name in ("rate", "zipf", "prompt", "output") if getattr(unsaid, name) is not None]
    if given:
        key = {"rate": "arrivals.rate", "zipf": "adapters.popularity"}.get(given[0], "arrivals.tokens")
        raise DemandError(f"--{given[0]}: {source} is a scenario, which says that itself; change it with --set {key}=…")
    hardware = {} if unsaid.hardware is None else {"fleet.hardware": unsaid.hardware}
    found = load_scenario(source, overrides={**hardware, **unsaid.overrides})
    if unsaid.seconds is None:
        return found
    try:
        return shortened(found, unsaid.seconds)
    except ValueError as error:
        raise DemandError(f"--seconds {unsaid.seconds:g}: {error}") from None


def _check_pods(scenario: Scenario) -> None:
    """Pods that have names must be there, and which there are is what is searched."""
    named: list[str] = list(scenario.fleet.later)
    for change in scenario.changes:
        match change:
            case Restart() | Drain() | Join():
                named.append(change.pod)
            case Ask() | Unask():
                named += change.pods
            case Move():
                named += (change.source, change.target)
            case Pin():
                named += change.pin.pods
            case _:
                pass
    named += [name for each in scenario.settings.adapters if each.pin is not None for name in each.pin.pods]
    if named:
        raise DemandError(
            f"{scenario.name} speaks of {named[0]}, and which pods there are is what is searched; take its phases and "
            "pins of single pods out"
        )


# -- lists


def _of_list(content: bytes, path: Path, *, unsaid: Unsaid, limit: Seconds) -> Scenario:
    listed = _listed(parse(content, file=str(path)), path)
    if not listed:
        raise DemandError(f"{path}: lists no adapters")
    demand = today(listed, Traffic(rate=unsaid.rate or 0.0, zipf=1.0 if unsaid.zipf is None else unsaid.zipf))
    rate = sum(each.rate for each in demand)
    if not SLOWEST <= rate <= 1e6:
        raise DemandError(f"{path}: {rate:g} requests per second in all; give {SLOWEST:g} to 1,000,000 (--rate)")
    document = _document(path.name, listed, demand=demand, unsaid=unsaid, limit=limit)
    tokens = {
        "arrivals.tokens.prompt": unsaid.prompt or PROMPT,
        "arrivals.tokens.output": unsaid.output or OUTPUT,
    }
    return parse_scenario(
        msgspec.yaml.encode(document),
        file=f"{path}, as a scenario",
        policies=POLICIES,
        overrides={**tokens, **unsaid.overrides},
    )


def _listed(rollout: Rollout, path: Path) -> tuple[Listed, ...]:
    if rollout.adapters is None or rollout.added or rollout.removed or rollout.splits:
        raise RolloutError(f"{path}: changes of a list; give the list itself, with what is asked for in all")
    return rollout.adapters


def _document(
    name: str, listed: tuple[Listed, ...], *, demand: tuple[Demand, ...], unsaid: Unsaid, limit: Seconds
) -> dict[str, object]:
    rate = sum(each.rate for each in demand)
    most = RANK if unsaid.rank is None else unsaid.rank
    ranks = [each.rank or min(RANK, most) for each in listed]
    length = run_length(rate, limit) if unsaid.seconds is None else unsaid.seconds
    pins = [_pin(each) for each in listed if each.pin is not None]
    return {
        "name": "demand",
        "title": f"demand of {name}",
        "source": name,
        "assumes": list(_OF_LISTS),
        "fleet": {
            "pods": 1,
            "slots": 1,
            "cpu_slots": len(listed),
            "max_lora_rank": max(*ranks, most),
            **({} if unsaid.hardware is None else {"hardware": unsaid.hardware}),
        },
        "adapters": {
            "names": [each.adapter for each in demand],
            "rank": ranks,
            "popularity": {"weights": [f"{each.rate / rate:.12f}" for each in demand]},
        },
        "arrivals": {"rate": f"{rate:.6f}/s", "process": "poisson"},
        "run": {"for": f"{length:.3f}s", "warm_up": f"{WARM_UP * length:.3f}s"},
        **({"pins": pins} if pins else {}),
    }


def _pin(listed: Listed) -> dict[str, object]:
    pin = listed.pin
    if pin is None or pin.replicas is None or pin.pods or pin.selector:
        raise DemandError(
            f"{listed.name} is pinned to certain pods, and which there are is what is searched; pin it by replicas"
        )
    return {"adapter": listed.name, "replicas": pin.replicas}


def run_length(rate: float, limit: Seconds) -> Seconds:
    """Simulated seconds of a run of a list, warm-up included: `REQUESTS` are measured, 20 limits, a minute at least."""
    return math.ceil(max(REQUESTS / rate, _LATENCIES * limit, _SHORTEST) / (1 - WARM_UP))
