"""What users feel: slow answers, errors, full queues, pods that take nothing.

In: a picture. Out: findings. Not here: why (see the checks beside).
"""

from collections import Counter
from collections.abc import Iterator

from lorapick.core.doctor.findings import Finding, Remedy, Urgency
from lorapick.core.doctor.picture import Picture
from lorapick.core.doctor.saying import facts_in_words, names, number, plural, seconds, share
from lorapick.model.units import Ratio, Seconds

YOUNG: Seconds = 120.0
"""A picker that has watched for less sees the first load of everything."""
LEAST_BUSY: Ratio = 0.05
"""Of GPUs' time, below which it does not matter what they are busy with."""


def harms(picture: Picture) -> tuple[str, ...]:
    """Why users are harmed, as far as known: what turns signs of thrash into a page."""
    signals, bounds = picture.signals, picture.alert_bounds
    if signals is None:
        return ()
    fleet, found = signals.fleet, []
    slo = picture.slo.latency_p95
    if fleet.latency_p95 is not None and slo is not None and fleet.latency_p95 > slo:
        found.append(f"P95 {seconds(fleet.latency_p95)} > {seconds(slo)}")
    if fleet.ttft_p95 is not None and picture.slo.ttft_p95 is not None and fleet.ttft_p95 > picture.slo.ttft_p95:
        found.append(f"first token P95 {seconds(fleet.ttft_p95)} > {seconds(picture.slo.ttft_p95)}")
    if fleet.error_ratio is not None and fleet.error_ratio > bounds.error_ratio:
        found.append(f"errors {share(fleet.error_ratio)} > {share(bounds.error_ratio)}")
    useful = useful_share(picture)
    if useful is not None and useful < bounds.useful_share:
        found.append(f"useful time {share(useful)} < {share(bounds.useful_share)}")
    if signals.pods and fleet.critical_queues / len(signals.pods) >= bounds.critical_queues_share:
        found.append(f"{fleet.critical_queues} of {plural(len(signals.pods), 'queue')} full")
    return tuple(found)


def busy_share(picture: Picture) -> Ratio | None:
    """What GPUs say of themselves, in the mean; None: none does."""
    busy = [pod.gpu_utilization for pod in picture.pods if pod.gpu_utilization is not None]
    return sum(busy) / len(busy) if busy else None


def useful_share(picture: Picture) -> Ratio | None:
    """Useful time, where it says something: not while everything is loaded first, and not of GPUs that idle."""
    if picture.signals is None or (picture.watched is not None and picture.watched < YOUNG):
        return None
    busy = busy_share(picture)
    idle = picture.signals.fleet.requests_per_second <= 0 if busy is None else busy < LEAST_BUSY
    return None if idle else picture.signals.fleet.useful_share


def latency(picture: Picture) -> Iterator[Finding]:
    """P95 against what users were promised."""
    if picture.signals is None:
        return
    fleet, slo = picture.signals.fleet, picture.slo
    for check, word, value, most in (
        ("latency", "answers take", fleet.latency_p95, slo.latency_p95),
        ("ttft", "first tokens take", fleet.ttft_p95, slo.ttft_p95),
    ):
        if value is not None and most is not None and value > most:
            yield Finding(
                check=check,
                urgency=Urgency.PAGE,
                what=f"users wait: {word} {seconds(value)} at P95, and {seconds(most)} was promised",
                arithmetic=(f"P95 of the last minute {seconds(value)} > {seconds(most)} (slo.{check}_p95)",),
                remedies=(Remedy(action="see the findings below for why", price="none"),),
                weight=value / most if most > 0 else 1.0,
            )


def errors(picture: Picture) -> Iterator[Finding]:
    """Requests that fail or are refused."""
    ratio = None if picture.signals is None else picture.signals.fleet.error_ratio
    most = picture.alert_bounds.error_ratio
    if ratio is not None and ratio > most:
        yield Finding(
            check="errors",
            urgency=Urgency.PAGE,
            what=f"{share(ratio)} of the requests fail or are refused",
            arithmetic=(
                f"failed and refused / ended in the last minute {share(ratio)} > {share(most)}",
                *_refused(picture),
            ),
            remedies=(
                Remedy(
                    action="`lorapick explain --refused` says why the last refused request was; `lorapick ledger "
                    "requests --outcome rejected` lists them, `--outcome failed` those that pods failed",
                    price="none",
                ),
                Remedy(action="look at the logs of pods that answer with errors", price="none"),
            ),
            weight=ratio / most if most > 0 else 1.0,
        )


def _refused(picture: Picture) -> Iterator[str]:
    """By reason, the most frequent first."""
    reasons = sorted(picture.refused.items(), key=lambda each: (-each[1], each[0]))
    if reasons:
        yield f"refused in the last minute: {', '.join(f'{count} {reason}' for reason, count in reasons)}"


def queues(picture: Picture) -> Iterator[Finding]:
    """Pods whose queues are full, and the picker's own."""
    full = [pod for pod in picture.pod_signals if pod.queue_critical]
    if full:
        ratio = len(full) / len(picture.pod_signals)
        most = picture.alert_bounds.critical_queues_share
        lengths = [_length(picture, pod.pod) for pod in full]
        yield Finding(
            check="critical_queues",
            urgency=Urgency.PAGE if ratio >= most else Urgency.WARN,
            what=f"on {plural(len(full), 'pod')} as many requests wait as may: {names([pod.pod for pod in full])}",
            arithmetic=(
                f"full queues / pods {len(full)}/{len(picture.pod_signals)} = {ratio:.2f}, page from {most:.2f}",
                *(text for text in lengths[:3] if text is not None),
            ),
            remedies=(Remedy(action="add pods, or make requests wait less for adapters (below)", price="a GPU each"),),
            weight=ratio / most if most > 0 else 1.0,
            pods=tuple(pod.pod for pod in full),
        )
    alert = picture.alert("queues")
    if alert is not None:
        yield Finding(
            check="queues",
            urgency=Urgency.WARN,
            what="what waits at the picker is near its bound, in number or in time",
            arithmetic=facts_in_words(alert.facts),
            remedies=(
                Remedy(action="add slots or pods; see what requests wait for (`lorapick explain`)", price="GPUs"),
            ),
        )


def _length(picture: Picture, name: str) -> str | None:
    pod = picture.pod(name)
    if pod is None or pod.queue_depth is None or pod.max_queue is None:
        return None
    return f"{name}: {number(pod.queue_depth)} wait of at most {pod.max_queue}"


def convoy(picture: Picture) -> Iterator[Finding]:
    """As many pods load as may, and requests wait."""
    alert = picture.alert("convoy")
    if alert is not None:
        yield Finding(
            check="convoy",
            urgency=Urgency.WARN,
            what="a convoy: as many pods load adapters as may, and requests wait behind the loads",
            arithmetic=_convoy(alert.facts),
            remedies=(
                Remedy(
                    action="preload what is asked for at known times: `lorapick adapters preload NAME`", price="slots"
                ),
                Remedy(
                    action="keep budgets.pods_loading_share as low as it is: more pods that load at once make a convoy "
                    "longer",
                    price="requests wait for their turn to load",
                ),
            ),
        )


def _convoy(facts: dict[str, str | float]) -> tuple[str, ...]:
    """Who loads what, and who waits."""
    loading, most = facts.get("count"), facts.get("most")
    there, here = facts.get("waiting_at_pods"), facts.get("waiting")
    found = []
    if isinstance(loading, float | int) and isinstance(most, float | int):
        found.append(f"{plural(int(loading), 'pod')} load of at most {number(most)}: {facts.get('pods', 'unknown')}")
    if "adapters" in facts:
        found.append(f"what is loaded: {facts['adapters']}")
    waits = ((here, "at the picker"), (there, "at pods"))
    told = [f"{plural(int(value), 'request')} {where}" for value, where in waits if isinstance(value, float | int)]
    if told:
        found.append(f"waiting: {', '.join(told)}")
    return tuple(found) or facts_in_words(facts)


def pressure(picture: Picture) -> Iterator[Finding]:
    """Pods whose memory is short."""
    pressed = [pod for pod in picture.pods if pod.pressure in ("hard", "critical")]
    if pressed:
        used = [f"{pod.name}: KV {share(pod.kv_usage)}, {pod.pressure}" for pod in pressed if pod.kv_usage is not None]
        yield Finding(
            check="pressure",
            urgency=Urgency.WARN,
            what=f"{plural(len(pressed), 'pod')} short of memory: {names([pod.name for pod in pressed])}",
            arithmetic=tuple(used[:5]),
            remedies=(
                Remedy(action="fewer slots there, or a lower max_lora_rank", price="more loads"),
                Remedy(action="add pods", price="a GPU each"),
            ),
            weight=len(pressed) / max(1, len(picture.pods)),
            pods=tuple(pod.name for pod in pressed),
        )


def unready(picture: Picture) -> Iterator[Finding]:
    """Pods that take no requests, and those of which nothing was heard lately."""
    known = [pod for pod in picture.pods if pod.ready is not None]
    out = [pod for pod in known if not pod.ready]
    if out:
        reasons = Counter(pod.reason or "unknown" for pod in out)
        why = ", ".join(f"{count} {reason}" for reason, count in sorted(reasons.items()))
        errors_told = [f"{pod.name}: {pod.last_error}" for pod in out if pod.last_error]
        yield Finding(
            check="not_ready",
            urgency=Urgency.PAGE if len(out) == len(known) else Urgency.WARN,
            what=f"{len(out)} of {plural(len(known), 'pod')} take no requests ({why}): {names([p.name for p in out])}",
            arithmetic=(f"ready pods {len(known) - len(out)}/{len(known)}", *errors_told[:5]),
            remedies=(Remedy(action="see why: each pod's own log and metrics page", price="none"),),
            weight=len(out) / len(known),
            pods=tuple(pod.name for pod in out),
        )
    after = picture.stale_after
    old = [pod for pod in known if pod.ready and pod.scrape_age is not None and after and pod.scrape_age > after]
    if old:
        ages = [f"{pod.name}: {seconds(pod.scrape_age)} > {seconds(after)}" for pod in old if pod.scrape_age and after]
        yield Finding(
            check="stale",
            urgency=Urgency.WARN,
            what=f"what is known of {plural(len(old), 'pod')} is old: {names([pod.name for pod in old])}",
            arithmetic=tuple(ages[:5]),
            remedies=(Remedy(action="look at the pod's metrics page, and at budgets.scrape_core_share", price="none"),),
            pods=tuple(pod.name for pod in old),
        )
