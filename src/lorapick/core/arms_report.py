"""Both arms of a trial side by side, with what can be said of the difference and what cannot.

In: counts of arms. Out: an `ArmsReport`. Not here: counting (see `core.arms`), words of a command (see `cli.report`).

Bounds hold 95 times of 100: Wilson's for shares, those of a Poisson count for loads, ranks by the binomial for
quantiles. They take requests for independent of one another. Those of one session are not, so with few long sessions
the true bounds are wider.
"""

from collections.abc import Iterable
from math import sqrt

from msgspec.structs import replace

from lorapick.core.arms import TOO_MANY_REQUESTS, Arms, route_of
from lorapick.core.arms_tally import BASE, ArmTally, Durations, WouldTally
from lorapick.model.arms import Arm, ArmFigures, ArmFinding, ArmsReport, ArmVerdict, Interval, Mode, ModeKind, WouldBe
from lorapick.model.ledger import RequestRow
from lorapick.model.requests import Outcome
from lorapick.model.settings import Settings
from lorapick.model.tiers import Tier
from lorapick.model.units import Ratio, Seconds

Z = 1.96
"""Standard deviations within which 95 of 100 lie."""
ENOUGH = 100
"""Requests of each arm below which nothing is said of it."""
ALIKE = 0.02
"""Of a figure: what is known to differ by less is alike."""
QUANTILES = (("p50", 0.50), ("p95", 0.95), ("p99", 0.99))
_HIGHER_IS_BETTER = ("hits",)
_ON_GPU = tuple(tier.word for tier in Tier if tier.on_gpu)
_BEFORE_A_LOAD = tuple(tier.word for tier in Tier if tier < Tier.LOADING)
_WORDS = {ArmVerdict.BETTER: "better", ArmVerdict.WORSE: "worse"}


def report(arms: Arms, settings: Settings, *, now: Seconds) -> ArmsReport:
    """Of a running picker: since the mode was set; an arm without requests since then as it was before that."""
    begun, before = arms.begun, arms.before
    tallies = {arm: tally.less(begun.arms[arm]) for arm, tally in arms.tallies.items()}
    would, apart = arms.would.less(begun.would), False
    seconds = now - begun.since
    for arm, tally in tallies.items():
        if not tally.ended:
            earlier = begun.arms[arm].less(before.arms[arm])
            if earlier.ended:
                tallies[arm], apart = earlier, True
                if arm is Arm.OBSERVED:
                    would = begun.would.less(before.would)
    made = compare(tallies, would, mode=arms.mode, seconds=seconds)
    return _placed(made, route=route_of(settings), apart=apart)


def _placed(made: ArmsReport, *, route: str, apart: bool) -> ArmsReport:
    """The report, with how the observed arm is routed; and its sentence, if the arms are of different times."""
    sentence = made.sentence
    if apart:
        sentence += " The arms are of different times, so a change of the traffic counts as one of the routing."
    return replace(made, route=route, apart=apart, sentence=sentence)


def compare(
    tallies: dict[Arm, ArmTally], would: WouldTally, *, mode: Mode, seconds: Seconds, source: str = "picker"
) -> ArmsReport:
    """Compare the arms."""
    figures = {arm: figures_of(arm, tally) for arm, tally in tallies.items()}
    enforced, observed = figures[Arm.ENFORCED], figures[Arm.OBSERVED]
    findings = _findings(enforced, observed)
    verdict = _verdict(enforced, observed, findings=findings)
    return ArmsReport(
        mode=mode.text,
        source=source,
        seconds=seconds,
        arms=(enforced, observed),
        would=would_of(would),
        findings=findings,
        verdict=verdict,
        sentence=_alone(mode, enforced=enforced, observed=observed, would=would_of(would))
        if verdict is ArmVerdict.NOTHING
        else _sentence(enforced, observed, findings=findings, verdict=verdict),
    )


def figures_of(arm: Arm, tally: ArmTally) -> ArmFigures:
    """One arm's figures."""
    placed = sum(tally.by_tier.values())
    return ArmFigures(
        arm=arm,
        requests=tally.ended,
        outcomes={outcome.value: count for outcome, count in tally.outcomes.items()},
        errors=tally.errors,
        by_tier=dict(tally.by_tier),
        hits=tally.hits,
        adapter_requests=tally.adapter_requests,
        loads=tally.loads,
        swap_seconds=tally.swap_seconds,
        hit_ratio=share(tally.hits, tally.adapter_requests),
        loads_per_1000=_rate(tally.loads, placed),
        error_ratio=share(tally.errors, tally.ended),
        ttft=quantiles(tally.ttft),
        latency=quantiles(tally.latency),
    )


def would_of(tally: WouldTally) -> WouldBe:
    """What would have been."""
    return WouldBe(
        decisions=sum(tally.by_result.values()),
        by_result=dict(tally.by_result),
        hits=tally.hits,
        adapter_requests=tally.adapter_requests,
        hit_ratio=share(tally.hits, tally.adapter_requests),
        compared=tally.compared,
        agreed=tally.agreed,
        agreement=tally.agreed / tally.compared if tally.compared else None,
    )


# -- bounds


def share(part: int, whole: int) -> Interval | None:
    """A share with Wilson's bounds; None of nothing."""
    if not whole:
        return None
    p, z2 = part / whole, Z * Z
    middle = (p + z2 / (2 * whole)) / (1 + z2 / whole)
    half = Z * sqrt(p * (1 - p) / whole + z2 / (4 * whole * whole)) / (1 + z2 / whole)
    return Interval(value=p, low=max(0.0, min(p, middle - half)), high=min(1.0, max(p, middle + half)))


def _rate(count: int, whole: int) -> Interval | None:
    """Per thousand, with bounds of a Poisson count (Byar's)."""
    if not whole:
        return None
    low = count * (1 - 1 / (9 * count) - Z / (3 * sqrt(count))) ** 3 if count else 0.0
    more = count + 1
    high = more * (1 - 1 / (9 * more) + Z / (3 * sqrt(more))) ** 3
    return Interval(value=1e3 * count / whole, low=1e3 * max(0.0, low) / whole, high=1e3 * high / whole)


def quantiles(durations: Durations) -> dict[str, Interval]:
    """P50, P95 and P99 of what there is; bounds where enough lies on either side of the quantile.

    Bounds are those of whole buckets: two arms whose quantiles lie in neighbouring ones may have the same.
    """
    count = durations.count
    if not count:
        return {}
    found = {}
    for name, quantile in QUANTILES:
        half = Z * sqrt(count * quantile * (1 - quantile))
        first, last = int(count * quantile - half), int(count * quantile + half) + 1
        bounded = first >= 1 and last <= count
        found[name] = Interval(
            value=durations.at(max(1, round(count * quantile))),
            low=durations.over(first) if bounded else None,
            high=durations.at(last) if bounded else None,
        )
    return found


# -- the comparison


def _findings(enforced: ArmFigures, observed: ArmFigures) -> tuple[ArmFinding, ...]:
    pairs = [
        ("hits", enforced.hit_ratio, observed.hit_ratio),
        ("loads", enforced.loads_per_1000, observed.loads_per_1000),
        ("errors", enforced.error_ratio, observed.error_ratio),
    ]
    for what in ("ttft", "latency"):
        one, other = getattr(enforced, what), getattr(observed, what)
        names = [name for name, _ in QUANTILES if name in one or name in other]
        pairs += [(f"{what} {name}", one.get(name), other.get(name)) for name in names]
    enough = min(enforced.requests, observed.requests) >= ENOUGH
    return tuple(
        ArmFinding(
            what=what,
            enforced=one,
            observed=other,
            verdict=_of(what, one, other=other) if enough else ArmVerdict.TOO_FEW,
        )
        for what, one, other in pairs
    )


def _of(what: str, one: Interval | None, *, other: Interval | None) -> ArmVerdict:
    """Whether bounds lie apart; or both so near to one another that it does not matter."""
    if one is None or other is None or one.low is None or other.low is None or one.high is None or other.high is None:
        return ArmVerdict.TOO_FEW
    if one.low > other.high or one.high < other.low:
        return ArmVerdict.BETTER if (one.low > other.high) == (what in _HIGHER_IS_BETTER) else ArmVerdict.WORSE
    span, scale = max(one.high, other.high) - min(one.low, other.low), max(one.value, other.value)
    return (
        ArmVerdict.ALIKE
        if span <= ALIKE * max(scale, 1.0 if what in ("hits", "errors") else 0.0)
        else ArmVerdict.TOO_FEW
    )


def _verdict(enforced: ArmFigures, observed: ArmFigures, *, findings: tuple[ArmFinding, ...]) -> ArmVerdict:
    if not enforced.requests or not observed.requests:
        return ArmVerdict.NOTHING
    said = [finding.verdict for finding in findings]
    better, worse = ArmVerdict.BETTER in said, ArmVerdict.WORSE in said
    if better and worse:
        return ArmVerdict.MIXED
    if better or worse:
        return ArmVerdict.BETTER if better else ArmVerdict.WORSE
    decided = [each for each in said if each is ArmVerdict.ALIKE]
    return ArmVerdict.ALIKE if decided and len(decided) == len(said) else ArmVerdict.TOO_FEW


def _sentence(
    enforced: ArmFigures, observed: ArmFigures, *, findings: tuple[ArmFinding, ...], verdict: ArmVerdict
) -> str:
    fewer = min(enforced.requests, observed.requests)
    if fewer < ENOUGH:
        return f"Too few to tell: one arm has {fewer} requests, and below {ENOUGH} nothing is said of it."
    told = [
        f"{finding.what} {_WORDS[finding.verdict]} ({_number(finding.what, finding.enforced)} against "
        f"{_number(finding.what, finding.observed)})"
        for finding in findings
        if finding.verdict in _WORDS
    ]
    if not told:
        alike = verdict is ArmVerdict.ALIKE
        return "Both arms are alike." if alike else "Too few to tell: no figure's bounds lie apart yet."
    return f"Where lorapick's picks are in force: {', '.join(told)}."


def _alone(mode: Mode, *, enforced: ArmFigures, observed: ArmFigures, would: WouldBe) -> str:
    """Where one arm has no requests: what the mode says of that, and not only which arm it is."""
    if not enforced.requests and not observed.requests:
        return "Nothing to compare: no request has left since the mode was set."
    if mode.kind is ModeKind.PERCENT:
        share, one = f"{mode.percent:g} % of the requests", "with" if enforced.requests else "without"
        return (
            f"Nothing to compare yet: picks are to be in force for {share}, and all that have left were {one} them. "
            "All requests of a session are in one arm."
        )
    if not observed.requests and mode.kind is ModeKind.OBSERVE:
        return "Nothing to compare yet: no request has left since picks were in force for none."
    if not observed.requests:
        return "Nothing to compare: picks are in force for all requests. `lorapick mode percent 50` compares."
    if mode.kind is ModeKind.ENFORCE:
        return "Nothing to compare yet: no request has left since picks came into force for all."
    if would.hit_ratio is None or observed.hit_ratio is None:
        return "Nothing to compare yet: picks are in force for no request."
    return (
        f"Picks are in force for no request. {_percent(observed.hit_ratio.value)} found their adapter in a slot; "
        f"{_percent(would.hit_ratio.value)} would have, where lorapick would have sent them, at pods as they were then."
    )


def _number(what: str, interval: Interval | None) -> str:
    if interval is None:
        return "unknown"
    if what in ("hits", "errors"):
        return _percent(interval.value)
    return f"{interval.value:.3g} per 1000" if what == "loads" else f"{interval.value:.3g} s"


def _percent(value: Ratio) -> str:
    return f"{100 * value:.3g} %"


# -- of a ledger


def report_of_rows(rows: Iterable[RequestRow], *, seconds: Seconds) -> ArmsReport:
    """Of requests that left, as a ledger has them; rows without an arm are of versions that knew none.

    Loads are those that requests were behind, with the seconds that each waited for its own.
    """
    tallies = {arm: ArmTally() for arm in Arm}
    would = WouldTally()
    for row in rows:
        if row.arm is not None and row.id is not None:
            _take(tallies[row.arm], row)
            if row.would_be is not None:
                _take_would(would, row)
    enforced, observed = (tallies[arm].ended for arm in (Arm.ENFORCED, Arm.OBSERVED))
    percent = 100.0 * enforced / (enforced + observed) if enforced + observed else 100.0
    mode = Mode(kind=ModeKind.PERCENT, percent=round(percent, 1))
    return compare(tallies, would, mode=mode, seconds=seconds, source="ledger")


def _take(tally: ArmTally, row: RequestRow) -> None:
    tally.outcomes[row.outcome] += 1
    refused = row.status is None or row.status >= TOO_MANY_REQUESTS
    tally.errors += row.outcome in (Outcome.FAILED, Outcome.REJECTED) and refused
    if row.outcome is Outcome.SERVED:
        tally.latency.add(row.ended - row.arrived)
        if row.prefill is not None:
            tally.ttft.add(row.ended - row.arrived - (row.decode or 0.0))
    if row.pod is None:
        return
    tally.by_tier[row.tier or BASE] += 1
    if row.hit is not None:
        tally.adapter_requests += 1
        tally.hits += row.hit
    if row.tier in _BEFORE_A_LOAD:
        tally.loads += 1
        tally.swap_seconds += row.load_wait


def _take_would(would: WouldTally, row: RequestRow) -> None:
    assert row.would_be is not None
    would.by_result[row.would_be] += 1
    if row.adapter is not None:
        would.adapter_requests += 1
        would.hits += row.would_be in _ON_GPU
    if row.would_pod is not None and row.pod is not None:
        would.compared += 1
        would.agreed += row.would_pod == row.pod
