"""Sections about what somebody should be told: bounds of alerts, promises to users.

In: nodes. Out: values of `model.settings`; their defaults are there. Bounds that contradict each other, that always or
never hold, and promises that nothing measures are refused. Not here: what is compared with them (see
`core.thrash_alarms`, `dash.rules`).
"""

from lorapick.model.settings import AlertSettings, ServerSettings, SloSettings
from lorapick.model.units import Ratio
from lorapick.wire.config.document import At
from lorapick.wire.config.readers import Reader, duration, number, positive_share, record, share

_HOUR = 3600.0
_RISING = (
    ("swap_rate", "swap_rate_broken", "what pages is worse than what warns"),
    ("residency_page", "residency", "adapters stay for less time where it pages than where it warns"),
    ("hit_ratio", "hit_ratio_target", "the target is better than what warns"),
)
"""Bounds of alerts of which the first must not be above the second, and why."""


def _check_alerts(at: At, alerts: AlertSettings) -> None:
    for lower, upper, why in _RISING:
        least, most = getattr(alerts, lower), getattr(alerts, upper)
        if least > most:
            word, other, bound = (lower, upper, "at most") if at.find(lower) else (upper, lower, "at least")
            is_ = f"{getattr(alerts, other):g}{'s' if 'residency' in other else ''}"
            by_default = "" if at.find(other) else " by default"
            at.nearest(word).note(f"must be {bound} {other}, which is {is_}{by_default}", hint=why)


def _above_zero(read: Reader[float], *, why: str) -> Reader[float]:
    def positive(at: At) -> float:
        value = read(at)
        if value == 0:
            at.refuse("must be above 0", hint=why)
        return value

    return positive


def _share_below_one(at: At) -> Ratio:
    value = share(at)
    if value == 1:
        at.refuse("must be a share below 1", hint="every pod drains and loads at times, so the alert would never end")
    return value


def _rate(*, why: str) -> Reader[float]:
    return _above_zero(number(least=0.0, most=1e6), why=why)


alerts: Reader[AlertSettings] = record(
    AlertSettings,
    {
        "after": duration(most=_HOUR),
        "clear_after": duration(most=_HOUR),
        "new_adapters_share": share,
        "queue_share": share,
        "swap_rate": _rate(why="a pod without swaps would raise the alert; healthy is below 0.1"),
        "swap_rate_broken": _rate(why="a pod without swaps would page; it is 1 by default"),
        "residency": duration(),
        "residency_page": duration(),
        "hit_ratio": share,
        "hit_ratio_target": share,
        "active_per_slot": _rate(why="the first request would raise the alert; it is 0.8 by default"),
        "useful_share": _share_below_one,
        "error_ratio": _above_zero(share, why="one failure of a million would page; it is 0.01 by default"),
        "critical_queues_share": positive_share,
        "sustained": duration(most=_HOUR),
    },
    check=_check_alerts,
)

_promise = duration(least=0.001, most=_HOUR)
slo: Reader[SloSettings] = record(SloSettings, {"ttft_p95": _promise, "latency_p95": _promise})


def check_measured(root: At, slo: SloSettings, *, server: ServerSettings) -> None:
    """Refuse a promise of first tokens to a picker that does not look when they come."""
    if slo.ttft_p95 is not None and server.observe != "bodies":
        root.nearest("slo", "ttft_p95").note(
            f"is not measured while server.observe is {server.observe}, so no alert would come",
            hint="write server: {observe: bodies}, or promise latency_p95 only",
        )
