"""The rules of [R1.8], one by one.

In: what is predicted for today and for afterwards, bounds. Out: a finding for each rule. Not here: what would help.
"""

from collections.abc import Iterable, Iterator

import msgspec

from lorapick.model.units import Ratio, Seconds
from lorapick.plan.gate.values import Finding, Level, Rules
from lorapick.plan.prediction.values import Prediction


class Base(msgspec.Struct, frozen=True, kw_only=True):
    """Requests that meet no swap, by which a promise is judged."""

    p95: Seconds
    assumed: bool
    """Whether nobody measured it."""


def judge(
    after: Prediction, *, today: Prediction | None, rules: Rules, base: Base | None = None
) -> tuple[Finding, ...]:
    """Every rule that can be asked about."""
    return tuple(_findings(after, today=today, rules=rules, base=base))


def hopeless(base: Base, rules: Rules) -> bool:
    """Whether requests are slower than promised where no adapter is ever swapped: nothing that is tried can help."""
    return rules.latency_p95 is not None and base.p95 > rules.latency_p95


def worst(findings: Iterable[Finding]) -> Level:
    """The level of all together."""
    levels = {finding.level for finding in findings}
    return next((level for level in (Level.FAIL, Level.WARN) if level in levels), Level.OK)


def _findings(after: Prediction, *, today: Prediction | None, rules: Rules, base: Base | None) -> Iterator[Finding]:
    if after.active == 0:
        message = (
            "nobody asks for any adapter, so there are no hits and no swaps to predict; give rates, or a total (--rate)"
        )
        yield Finding(rule="traffic", level=Level.WARN, message=message)
    yield _active(after, rules)
    if after.hit_ratio is not None:
        yield _hits(after, hits=after.hit_ratio, least=rules.hit_ratio)
    yield _swap_rate(after, rules)
    yield Finding(
        rule="residency",
        level=_if(after.residency is not None and after.residency < rules.residency, Level.WARN),
        message=f"an adapter stays in its slot for {_time(after.residency)}, {_time(rules.residency)} are healthy",
    )
    yield from _slo(after, rules=rules, base=base)
    if today is not None:
        yield _worse(after, today=today, rules=rules)


def _active(after: Prediction, rules: Rules) -> Finding:
    if after.slots == 0:
        message = "the pods have no slots, so no adapter can be served; start them with --max-loras 1 or more"
        return Finding(rule="active_adapters", level=Level.FAIL, message=message)
    ratio = after.active_per_slot
    return Finding(
        rule="active_adapters",
        level=_if(ratio > rules.active_per_slot, Level.WARN),
        message=f"{after.active} active adapters on {after.slots} slots are {ratio:.2f} per slot, up to "
        f"{rules.active_per_slot:g} leave room for a shift of traffic",
    )


def _hits(after: Prediction, *, hits: Ratio, least: Ratio) -> Finding:
    """Below the bound fails; above it, but not by more than the prediction may be off, warns."""
    close = unsure(after, least)
    level = Level.FAIL if hits < least else Level.WARN if close else Level.OK
    told = f"; that is within what the prediction may be off ({after.error_points:g} points)" if close else ""
    message = f"{hits:.1%} of requests find their adapter in a slot, at least {least:.0%} have to{told}"
    return Finding(rule="hit_ratio", level=level, message=message, unsure=close)


def unsure(of: Prediction, least: Ratio) -> bool:
    """Whether hits are nearer to their bound than the prediction may be off; where nothing is ever loaded it is not."""
    if of.hit_ratio is None or of.residency is None:
        return False
    return 100.0 * abs(of.hit_ratio - least) <= of.error_points


def _swap_rate(after: Prediction, rules: Rules) -> Finding:
    rate = after.worst_swap_rate
    level = _if(rate > rules.swap_rate_healthy, Level.WARN)
    if rate > rules.swap_rate:
        level = Level.FAIL
    return Finding(
        rule="swap_rate",
        level=level,
        message=f"{rate:.3f} swaps per second on the pod with the most; up to {rules.swap_rate_healthy:g} are healthy, "
        f"more than {rules.swap_rate:g} fail",
    )


def _slo(after: Prediction, *, rules: Rules, base: Base | None) -> Iterator[Finding]:
    """A promise that is kept by times that nobody measured warns."""
    limit = rules.latency_p95
    if limit is None:
        return
    told = "without bound: swaps take all the time there is" if after.p95 is None else f"about {after.p95:.2f} s"
    more = [f"P95 of latency is {told}, {limit:g} s were promised"]
    if base is not None and hopeless(base, rules):
        more.append(
            f"requests without a swap take {base.p95:.3g} s already, so no change of adapters, slots or pods "
            "helps: make them faster, or promise less (slo.latency_p95)"
        )
    assumed = base is not None and base.assumed
    if assumed:
        more.append("that rests on an assumed latency: give the P95 that is measured (--latency-p95)")
    level = _if(assumed, Level.WARN)
    if after.p95 is None or after.p95 > limit:
        level = Level.FAIL
    yield Finding(rule="slo", level=level, message="; ".join(more))


def _worse(after: Prediction, *, today: Prediction, rules: Rules) -> Finding:
    now, then = today.swap_rate, after.swap_rate
    grown = then > rules.swap_rate_healthy and then >= rules.times_today * now
    times = f"{then / now:.1f} times today's" if now > 0 else "today there are none"
    return Finding(
        rule="than_today",
        level=_if(grown, Level.FAIL),
        message=f"{then:.3f} swaps per second and pod, {times} ({now:.3f}); {rules.times_today:g} times and above "
        f"{rules.swap_rate_healthy:g} fail",
    )


def _if(bad: bool, level: Level) -> Level:
    return level if bad else Level.OK


def _time(seconds: Seconds | None) -> str:
    if seconds is None:
        return "ever"
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
