"""What a sizing says: figures, every point that was tried, the frontier, P95 over pods.

In: what was found, prices. Out: a `Report`. Not here: the search, how reports look (see `plan.work`).
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import msgspec

from lorapick.plan.bill.fleet import DEFAULTS as FLEET
from lorapick.plan.bill.waste import DEFAULTS as WASTE
from lorapick.plan.fleet_size.choice import cheapest, frontier, nearest
from lorapick.plan.fleet_size.demand import LENGTHS, is_list
from lorapick.plan.fleet_size.memory import other_kv
from lorapick.plan.fleet_size.search import Point
from lorapick.plan.fleet_size.size import Sized
from lorapick.plan.work import GIVEN, Chart, Curve, Figure, Report, Table, shown, tabled
from lorapick.sim.workload.processes import Poisson

GPU_HOUR = next(each for each in WASTE if each.name == "price")
"""Price of a GPU and hour: the same as of `lorapick plan bill`."""
HOURS = next(each for each in FLEET if each.name == "hours")
"""Hours of a month."""
_HELPS = 0.95
"""P95 with more pods to that with fewer, above which they are said not to help."""
_SIMULATED = "simulated; worst of the seeds"


class Price(msgspec.Struct, frozen=True, kw_only=True):
    """What a pod costs, and how many are there in case one fails."""

    gpu_hour: float | None = None
    """Dollars; None: the planner's default."""
    spare: int = 1

    @property
    def dollars(self) -> float:
        """Of a pod and hour; a pod has one GPU."""
        return float(GPU_HOUR.value or 0.0) if self.gpu_hour is None else self.gpu_hour


def sizing_report(sized: Sized, price: Price) -> Report:
    """Everything that is known."""
    found, asked = cheapest(sized.found), sized.asked
    answers = [each.best for each in sized.found if each.best is not None]
    other = other_kv(asked.memory)
    notes = [*_verdict(sized, found), *sized.refused, *([] if other is None else [other])]
    notes += _assumed_lengths(sized)
    if found is not None:
        notes += [*_why(answers, found), _MONOTONE, _SPARES]
    return Report(
        f"pods and slots for {asked.scenario.title}: P95 of at most {shown(asked.limits.p95, 's')}, "
        f"{shown(asked.limits.lost, 'share')} lost",
        (*_answer(sized, found, price=price), *_memory(sized, found), *_effort(sized)),
        notes=tuple(notes),
        assumptions=tuple(_assumptions(sized, price)),
        tables=(
            *([_frontier(answers, found, price=price)] if answers else ()),
            _tried(sized),
        ),
        charts=tuple(_chart(sized)),
    )


_MONOTONE = (
    "More pods are taken never to be worse. The neighbour below each answer was played too, and is among the points "
    "tried, unless the range begins there."
)
_SPARES = "Spare pods stand by for one that fails: what is left keeps the limits. They are no part of what was played."


def _assumed_lengths(sized: Sized) -> Iterator[str]:
    """Token counts that nobody gave decide about latency, and so about all of the answer."""
    told = {"prompt": f"prompts of {sized.traffic.prompt:,.0f}", "output": f"answers of {sized.traffic.output:,.0f}"}
    if sized.asked.unsaid:
        options = ", ".join(f"--{name}" for name in sized.asked.unsaid)
        yield (
            f"Tokens are assumed, since nobody gave them: {' and '.join(told[name] for name in sized.asked.unsaid)} "
            f"({LENGTHS}). Latency follows them; give your own ({options})."
        )


def _why(answers: Sequence[Point], found: Point) -> Iterator[str]:
    """Why this one, where others have as few pods."""
    others = [each for each in answers if each.pods == found.pods and each != found]
    if others:
        listed = ", ".join(f"{each.slots} slots {shown(each.p95, 's')}" for each in others)
        yield (
            f"As few pods do with other slots: P95 is {shown(found.p95, 's')} with {found.slots}, and with {listed}. "
            "All cost the same, so the lowest P95 is called cheapest; of equal ones that with the fewest slots. Fewer "
            "slots leave more KV."
        )


def _verdict(sized: Sized, found: Point | None) -> Iterator[str]:
    asked = sized.asked
    if found is not None:
        if found.pods == asked.pods.least > 1:
            yield f"{found.pods} pods are the fewest that were allowed; fewer may do (--pods)."
        return
    best, limits = nearest(sized.found, asked.limits), asked.limits
    over = [
        f"{name} of {shown(value, unit)} exceeds the limit of {shown(limit, unit)}"
        for name, value, limit, unit in (("P95", best.p95, limits.p95, "s"), ("lost", best.lost, limits.lost, "share"))
        if value is not None and value > limit
    ]
    if best.p95 is None:
        over.append("nothing was served in one of the runs")
    slots = ", ".join(str(each.slots) for each in sized.found)
    hardly = _hardly_helps([each for one in sized.found if one.slots == best.slots for each in one.tried])
    yield (
        f"Nothing suffices among {asked.pods.least} to {asked.pods.most} pods with {slots} slots. The best that was "
        f"tried, {best.pods} pods with {best.slots} slots: {' and '.join(over)}. Allow more pods (--pods), other slots "
        f"(--slots), a higher limit (--p95), or take another policy (--policy).{hardly}"
    )


def _hardly_helps(points: Sequence[Point]) -> str:
    """Words for a P95 that more pods did not lower: an adapter's requests may all go where it is."""
    known = sorted((each.pods, each.p95) for each in points if each.p95 is not None)[-2:]
    if len(known) < 2 or known[1][1] < _HELPS * known[0][1]:
        return ""
    (few, before), (many, after) = known
    return f" More pods hardly help: P95 is {shown(before, 's')} with {few} and {shown(after, 's')} with {many}."


def _answer(sized: Sized, found: Point | None, *, price: Price) -> Iterator[Figure]:
    """The cheapest point; figures without a value when there is none."""
    span = sized.asked.pods
    pods, slots = (None, None) if found is None else (found.pods, found.slots)
    rule = f"fewest of {span.least} to {span.most} that keep the limits, with any of the slots"
    yield Figure("pods", pods, "", rule, "searched with the simulator")
    yield Figure(
        "slots of each", slots, "", "fewest pods; then the lowest P95; then the fewest slots", "of what was found"
    )
    yield Figure("P95", None if found is None else found.p95, "s", _each(found, "p95", unit="s"), _SIMULATED)
    yield Figure("lost", None if found is None else found.lost, "share", _each(found, "lost", unit="share"), _SIMULATED)
    yield from _money("", pods, price=price)
    spare = None if pods is None else pods + price.spare
    yield Figure("pods with spares", spare, "", f"{_or_dash(pods)} + {price.spare} spare", "N+1: --spare")
    yield from _money(" with spares", spare, price=price)


def _each(found: Point | None, name: str, *, unit: str) -> str:
    if found is None:
        return "nothing suffices"
    return "worst of " + ", ".join(shown(getattr(each, name), unit) for each in found.outcomes)


def _money(words: str, pods: int | None, *, price: Price) -> Iterator[Figure]:
    hour = None if pods is None else pods * price.dollars
    each = shown(price.dollars, "USD")
    yield Figure(f"an hour{words}", hour, "USD", f"pods: {_or_dash(pods)} × 1 GPU × {each}", "assumed prices")
    hours = float(HOURS.value or 0.0)
    month = None if hour is None else hour * hours
    yield Figure(
        f"a month{words}",
        month,
        "USD",
        f"pods: {_or_dash(pods)} × {each} × {hours:g} h",
        f"assumed prices; {HOURS.source}",
    )


def _or_dash(value: int | None) -> str:
    return "–" if value is None else str(value)


def _memory(sized: Sized, found: Point | None) -> Iterator[Figure]:
    memory = sized.asked.memory
    hardware = memory.hardware
    block = hardware.block_size * hardware.kv_bytes_per_token
    reserved = "vLLM: create_lora_weights; see `lorapick plan slots`" if memory.slot else "unified memory"
    yield Figure("reserved per slot", memory.slot, "B", f"{memory.model.name}, rank {memory.rank}", reserved)
    yield Figure(
        "one more slot: KV blocks", memory.slot / block, "blocks", f"{memory.slot:,} / ({hardware.block_size} tokens × "
        f"{hardware.kv_bytes_per_token:,} B)", "KV gets what slots leave",
    )  # fmt: skip
    slots = None if found is None else found.slots
    formula = f"({memory.pool:,} - {_or_dash(slots)} × {memory.slot:,}) B / {block:,} B"
    yield Figure(
        "KV blocks of a pod", None if found is None else found.kv_blocks, "blocks", formula, f"KV of {hardware.name}"
    )


def _effort(sized: Sized) -> Iterator[Figure]:
    points = [each for one in sized.found for each in one.tried]
    runs = [outcome for each in points for outcome in each.outcomes]
    yield Figure(
        "requests per second, as drawn",
        sized.traffic.rate,
        "req/s",
        f"for {len(sized.traffic.demand)} adapters in the first run; what was asked for is a mean{_mean_rate(sized)}",
        f"arrivals of seed {sized.asked.scenario.run.seed}",
    )
    fewest = min(each.arrivals for each in runs)
    yield Figure(
        "measured requests of a run", fewest, "requests", "fewest of all runs; 5 % lie above the P95", "counted"
    )
    yield Figure("runs", len(runs), "runs", f"{len(points)} points × {sized.asked.seeds} seeds", "counted")


def _assumptions(sized: Sized, price: Price) -> Iterator[Figure]:
    asked = sized.asked
    fleet, run = asked.scenario.fleet, asked.scenario.run
    limits = fleet.limits
    yield from _lengths(sized)
    yield Figure("policy", asked.policy, "", "how the picker chooses", "--policy, or the configuration's default")
    yield Figure("p95", asked.limits.p95, "s", "highest that is allowed, in every seed", GIVEN)
    yield Figure("most lost", asked.limits.lost, "share", "failed, rejected, abandoned / arrivals", "--lost")
    yield Figure("hardware", fleet.hardware, "", "of each pod", "; ".join(asked.memory.hardware.sources))
    yield Figure("model", asked.memory.model.name, "", "whose layers a slot is made for", asked.memory.model.source)
    yield Figure("rank", asked.memory.rank, "", "highest that the engine takes", "--rank, or the demand's highest")
    yield Figure("mode", fleet.mode.value, "", "how a pod swaps", "scenario; of a list: as scenarios do")
    yield Figure("seats", limits.max_num_seqs, "requests", "a pod runs at once", "fleet.max_num_seqs")
    yield Figure("simulated", run.length, "s", f"of a run, of which {run.warm_up:g} s warm up", _length(sized))
    yield Figure("seeds", asked.seeds, "", "each point is played with each; the worst counts", "--seeds")
    source = GPU_HOUR.source if price.gpu_hour is None else GIVEN
    yield Figure("gpu-hour", price.dollars, "USD", "of a GPU and hour", source)
    yield HOURS
    for number, words in enumerate(asked.scenario.assumes, start=1):
        yield Figure(f"scenario, {number}", words, "", "assumed by it", asked.scenario.source)


def _mean_rate(sized: Sized) -> str:
    """The rate of a list, in words; of a scenario it may change over time."""
    scenario = sized.asked.scenario
    process = scenario.workload.flows[0].process if is_list(scenario) else None
    return f" of {process.rate:g}" if isinstance(process, Poisson) else ""


def _lengths(sized: Sized) -> Iterator[Figure]:
    """Tokens, as they were drawn."""
    for name, mean, what in (
        ("prompt", sized.traffic.prompt, "of a prompt, mean of those drawn"),
        ("output", sized.traffic.output, "of an answer, mean of those drawn"),
    ):
        if name in sized.asked.unsaid:
            source = f"assumed: {LENGTHS}"
        else:
            source = GIVEN if is_list(sized.asked.scenario) else "the scenario"
        yield Figure(name, mean, "tokens", what, source)


def _length(sized: Sized) -> str:
    if not is_list(sized.asked.scenario):
        return "the scenario's run, or --seconds"
    return "max(2,000 requests / rate, 20 × p95, 60 s) / 0.8, or --seconds"


_POINT = (("pods", ""), ("slots", ""), ("KV blocks", ""), ("P95", "s"), ("lost", "share"))
_POINT_FORMULA = "KV blocks as above, of a pod; P95 and lost requests: the worst of the seeds"


def _row(point: Point) -> tuple[float | None, ...]:
    return (point.pods, point.slots, point.kv_blocks, point.p95, point.lost)


def _tried(sized: Sized) -> Table:
    values = (
        (*_row(each), "yes" if each.kept else "no", "yes" if each.pods == one.guess else "")
        for one in sized.found
        for each in sorted(one.tried, key=lambda point: point.pods)
    )
    limits = sized.asked.limits
    return tabled(
        "points tried",
        (*_POINT, ("keeps", ""), ("first guess", "")),
        values=values,
        formula=(
            f"{_POINT_FORMULA}; keeps: P95 at most {shown(limits.p95, 's')} and lost at most "
            f"{shown(limits.lost, 'share')} in every seed"
        ),
        source=_SIMULATED,
    )


def _frontier(answers: Sequence[Point], found: Point | None, *, price: Price) -> Table:
    """The least pods for each number of slots, and which of them nothing beats."""
    best = frontier(answers)
    values = (
        (
            *_row(each),
            each.pods * price.dollars,
            "yes" if each in best else "no",
            "yes" if each == found else "",
        )
        for each in sorted(answers, key=lambda point: (point.pods, point.slots))
    )
    return tabled(
        "least pods by slots; frontier: nothing beats it in pods, KV and P95",
        (*_POINT, ("an hour", "USD"), ("frontier", ""), ("cheapest", "")),
        values=values,
        formula=f"{_POINT_FORMULA}; an hour = pods × 1 GPU × {shown(price.dollars, 'USD')}",
        source=f"{_SIMULATED}; assumed prices",
    )


def _chart(sized: Sized) -> Iterator[Chart]:
    """P95 over pods; nothing when only one number of pods was tried."""
    pods = sorted({each.pods for one in sized.found for each in one.tried})
    if len(pods) < 2:
        return
    curves = []
    for one in sized.found:
        known = {each.pods: each.p95 for each in one.tried if each.p95 is not None}
        curves.append(Curve(f"{one.slots} slots", tuple(_between(known, at) for at in pods)))
    limit = Curve("limit", tuple(sized.asked.limits.p95 for _ in pods))
    yield Chart(
        title="P95 in seconds, by slots of a pod",
        x="pods; straight lines between those that were tried",
        xs=tuple(float(each) for each in pods),
        curves=(*curves, limit),
        log=all(value > 0 for curve in curves for value in curve.values if value is not None),
    )


def _between(known: dict[int, float], at: int) -> float | None:
    """The value there, or on the line between its neighbours; None: beyond the outermost."""
    if at in known:
        return known[at]
    for low, high in pairwise(sorted(known)):
        if low < at < high:
            return known[low] + (known[high] - known[low]) * (at - low) / (high - low)
    return None
