"""A verdict as a report that shows its work: figures with the numbers put in, bounds, findings, changes, curves.

In: what was checked. Out: a `Report`. Not here: how it looks (see `plan.work`, `plan.work_page`), the judgement itself
(see `gate.check`).
"""

from collections.abc import Iterator

import msgspec

from lorapick.plan.gate.changes import MOST_SLOTS, with_slots
from lorapick.plan.gate.fitting import LEAST_SWAP, Times
from lorapick.plan.gate.formats import basis, headline, reliability
from lorapick.plan.gate.values import Change, Plan, Rules, Verdict
from lorapick.plan.prediction.predict import predict
from lorapick.plan.prediction.values import Costs, Prediction
from lorapick.plan.work import GIVEN, Chart, Curve, Figure, Report, Table, plain, shown

POINTS = 12
"""Of a curve, at most: each one is a prediction."""
PAGE = "docs/check.md, How it is predicted"
LRU = f"characteristic time of an LRU cache: Che, Tung and Wang 2002; {PAGE}"
ERRORS = "docs/check.md, Against the simulator"
ESTIMATE = "P95 is an estimate for a gate, and no promise: it knows nothing of queues that come from traffic alone"


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked, and what was said."""

    now: Plan | None
    then: Plan
    rules: Rules
    times: Times
    verdict: Verdict
    told_by: str
    """Where the fleet comes from."""

    @property
    def costs(self) -> Costs:
        """What was predicted with."""
        return self.times.costs


def report(checked: Checked, *, curves: bool) -> Report:
    """All that led to the verdict; `curves` take two predictions for each of some slots, and are for a page."""
    verdict = checked.verdict
    both = verdict.today is not None
    figures = [*_figures(verdict.today, checked, when=" today")] if verdict.today is not None else []
    figures += _figures(verdict.after, checked, when=" then" if both else "")
    return Report(
        _clean(headline(verdict)),
        tuple(figures),
        tuple(_notes(checked)),
        tuple(_assumptions(checked)),
        tuple(_tables(verdict)),
        _charts(checked) if curves else (),
    )


def _notes(checked: Checked) -> Iterator[str]:
    yield basis(checked.then)
    yield from reliability(checked.verdict)
    yield ESTIMATE
    if checked.times.contradiction is not None:
        yield checked.times.contradiction


def _clean(text: str) -> str:
    """Names come from files: nothing of them may act on a terminal, or be no text."""
    return text if text.isprintable() else "".join(letter if letter.isprintable() else "?" for letter in text)


# -- figures


def _figures(of: Prediction, checked: Checked, *, when: str) -> Iterator[Figure]:
    plan = checked.now if when == " today" and checked.now is not None else checked.then
    pods = len(plan.fleet.pods)
    loads = of.swap_rate * pods
    ratio = of.active_per_slot if of.slots else None
    yield Figure(
        f"active adapters / slots{when}", ratio, "", f"{of.active:,} / {of.slots:,}", "those with traffic, all pods"
    )
    rates = f"sum of the rates of {of.active:,} adapters"
    yield Figure(
        f"requests{when}", of.requests, "per second", rates, "the list, a picker's measures, or --rate by Zipf"
    )
    yield Figure(f"hits{when}", of.hit_ratio, "share", _hits(of), LRU)
    why = of.note or f"the most that simulated fleets with {plan.fleet.policy} were off, rounded up"
    yield Figure(f"hits may be off{when}", of.error_points, "points", why, ERRORS)
    yield Figure(
        f"swaps per pod{when}",
        of.swap_rate,
        "per second",
        f"{plain(of.load_ratio or 0.0)} loads per request × {plain(of.requests)} per second / {pods:,} pods",
        LRU,
    )
    yield Figure(
        f"swaps of the worst pod{when}",
        of.worst_swap_rate,
        "per second",
        f"the most of {pods:,} pods, as far as {plan.fleet.policy} tells them apart",
        LRU,
    )
    used = "nothing is loaded again"
    if of.residency is not None:
        used = f"{plain(round(of.residency * loads, 6))} slots in use / {plain(loads)} loads per second"
    yield Figure(f"mean residency{when}", of.residency, "s", used, "conservation (Little's law)")
    swap = shown(checked.costs.swap, "s")
    yield Figure(f"time for swaps{when}", of.busy, "share", f"{plain(of.swap_rate)} per second × {swap}", PAGE)
    yield Figure(f"P95 of latency, estimated{when}", of.p95, "s", _slowest(of, checked.costs), PAGE)


def _hits(of: Prediction) -> str:
    if of.hit_ratio is None:
        return "there are no requests"
    return f"1 − {plain((1.0 - of.hit_ratio) * of.requests)} misses / {plain(of.requests)} requests per second"


def _slowest(of: Prediction, costs: Costs) -> str:
    if of.p95 is None:
        return f"no bound: swaps take {shown(of.busy, 'share')} of the time"
    missed = 0.0 if of.hit_ratio is None else 1.0 - of.hit_ratio
    wait = shown(costs.swap / (1.0 - of.busy), "s") if of.busy < 1.0 else "without end"
    return (
        f"log-normal with median {shown(costs.latency, 's')} and P95 {shown(costs.latency_p95, 's')}; "
        f"{shown(missed, 'share')} of requests wait {wait} for a load"
    )


# -- what they start from


def _assumptions(checked: Checked) -> Iterator[Figure]:
    fleet, rules = checked.then.fleet, checked.rules
    told = _clean(checked.told_by)
    slots = sorted({pod.limits.max_loras for pod in fleet.pods})
    yield Figure("pods", len(fleet.pods), "", "that share the traffic then", told)
    yield Figure(
        "slots per pod", slots[0] if len(slots) == 1 else ", ".join(map(str, slots)), "", "max_loras, then", told
    )
    yield Figure("policy", fleet.policy, "", "picking.policy", told)
    yield from _times(checked.times)
    for name, unit, what in _RULES:
        value = getattr(rules, name)
        default = value == getattr(Rules(), name)
        key = _KEYS.get(name)
        source = f"default of {key}" if key and default else f"{key} in {told}" if key else "R1.8 of the specification"
        yield Figure(f"bound of {name.replace('_', ' ')}", value, unit, what, source)


def _times(times: Times) -> Iterator[Figure]:
    """Each with where it comes from: the article has neither the median nor one length of a load."""
    costs, told = times.costs, times.told
    healthy = GIVEN if told.p95 is not None else "assumed: 220 ms, of the article's healthy fleet; give yours"
    if times.today is not None:
        yield Figure("P95 today", times.today, "s", "as the fleet shows it, with today's swaps", healthy)
        healthy = "searched: with it P95 of today comes out, or as near as can be"
    yield Figure("latency p95", costs.latency_p95, "s", "95th percentile of requests that meet no swap", healthy)
    half = "assumed: half of their P95; the article has none"
    yield Figure("latency", costs.latency, "s", "their median", half if told.median is None else GIVEN)
    swap = GIVEN
    if told.swap is None and costs.swap == Costs().swap:
        swap = "assumed: the middle of the article's 200 to 500 ms, which has no other number"
    elif told.swap is None and told.p95 is None and costs.swap == LEAST_SWAP:
        swap = "assumed: the shortest of the article's 200 to 500 ms, since P95 of today leaves no room for more"
    elif told.swap is None:
        swap = f"as long as P95 of today leaves room for; otherwise {shown(Costs().swap, 's')} are assumed"
    yield Figure("swap", costs.swap, "s", "what a load keeps its requests waiting", swap)


_RULES = (
    ("active_per_slot", "", "above it warns"),
    ("residency", "s", "a mean stay below it warns"),
    ("swap_rate_healthy", "per second", "of the pod with the most; above it warns"),
    ("swap_rate", "per second", "of the pod with the most; above it fails"),
    ("hit_ratio", "share", "below it fails"),
    ("times_today", "times", "of today's swap rate; from it on, and above what is healthy, it fails"),
    ("latency_p95", "s", "P95 that was promised; above it fails"),
)
_KEYS = {
    "active_per_slot": "alerts.active_per_slot", "residency": "alerts.residency", "swap_rate": "alerts.swap_rate",
    "hit_ratio": "alerts.hit_ratio", "latency_p95": "slo.latency_p95",
}  # fmt: skip
"""Of the configuration, where a bound has one."""


# -- tables and curves


def _tables(verdict: Verdict) -> Iterator[Table]:
    rows = tuple((each.rule, each.level.value, _clean(each.message)) for each in verdict.findings)
    yield Table("findings", ("rule", "level", ""), rows, leads=True)
    if verdict.changes:
        best = verdict.cheapest
        title = "what would pass, cheapest first" if best else "nothing that was tried would pass"
        head = ("change", "then", "hits", "swaps/s/pod", "residency", "P95", "costs")
        yield Table(title, head, tuple(_row(each) for each in verdict.changes))


def _row(change: Change) -> tuple[str, ...]:
    of = change.prediction
    then = "passes" if change.passes else f"fails {', '.join(each.rule for each in change.failing)}"
    return (
        _clean(change.words),
        then,
        shown(of.hit_ratio, "share") + (f" ± {of.error_points:g}" if change.unsure else ""),
        f"{of.swap_rate:.3f}",
        "for ever" if of.residency is None else shown(round(of.residency), "s"),
        "no bound" if of.p95 is None else f"{of.p95:.2f} s",
        change.costs,
    )


def _charts(checked: Checked) -> tuple[Chart, ...]:
    xs = _slots(checked.then)
    plans = {"then": checked.then}
    if checked.now is not None and checked.verdict.today is not None:
        plans = {"today": checked.now, "then": checked.then}
    found = {name: [_at(plan, slots, costs=checked.costs) for slots in xs] for name, plan in plans.items()}
    even = all(len({pod.limits.max_loras for pod in plan.fleet.pods}) == 1 for plan in plans.values())
    x = "slots per pod" if even else "slots of the smallest pod; the others have as many more as they have now"
    hits = [Curve(name, tuple(_percent(each.hit_ratio) for each in many)) for name, many in found.items()]
    swaps = [Curve(name, tuple(each.swap_rate for each in many)) for name, many in found.items()]
    bound = 100.0 * checked.rules.hit_ratio
    hits.append(Curve("what has to be", tuple(bound for _ in xs)))
    return (
        Chart(title="hits by slots, in per cent", x=x, xs=xs, curves=tuple(hits)),
        Chart(title="swaps per second and pod by slots", x=x, xs=xs, curves=tuple(swaps)),
    )


def _slots(plan: Plan) -> tuple[float, ...]:
    """From one slot of the smallest pod to twice what it has, or to one for everybody; and where it is now."""
    least = min(pod.limits.max_loras for pod in plan.fleet.pods)
    active = sum(each.rate > 0 for each in plan.demand)
    room = -(-active // len(plan.fleet.pods)) + 1
    most = max(2, min(max(2 * least, room), least + MOST_SLOTS))
    step = -(-(most - 1) // (POINTS - 2))
    return tuple(map(float, sorted({*range(1, most, step), most, max(least, 1)})))


def _at(plan: Plan, slots: float, *, costs: Costs) -> Prediction:
    least = min(pod.limits.max_loras for pod in plan.fleet.pods)
    moved = with_slots(plan, int(slots) - least)
    return predict(moved.fleet, moved.demand, costs=costs)


def _percent(ratio: float | None) -> float | None:
    return None if ratio is None else 100.0 * ratio
