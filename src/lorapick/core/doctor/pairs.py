"""Prefill on other pods: whether it comes about, why not, and roles that cannot work together.

In: a picture. Out: findings. Not here: what a pair is chosen by (see `core.picking.pairing`), how it is known that
nothing comes to a pod (see `core.signals.handovers`).
"""

from collections.abc import Iterator

from lorapick.core.doctor.findings import Finding, Remedy, Urgency
from lorapick.core.doctor.picture import Picture, PodPicture
from lorapick.core.doctor.saying import names, plural, share
from lorapick.model.pods import Role
from lorapick.model.units import Ratio

LEAST_DISPATCHES = 20
"""Of the last ten minutes, below which nobody is told that few of them were split."""
FEW: Ratio = 0.02
"""Share of the requests that are split, below which pods that prefill idle."""
WHY = {
    "few_tokens": "{count} with too few tokens that were not cached (disaggregation.uncached_tokens)",
    "unknown_length": "{count} of unknown length",
    "dearer": "{count} that took less on one pod",
    "nobody_prefills": "{count} when no pod could prefill",
}
"""Of `FleetSignals.splits`."""


def in_words(splits: dict[str, int]) -> str | None:
    """How many requests of late were split, and why the others were not; None: none was dispatched."""
    every = sum(splits.values())
    if not every:
        return None
    some = splits.get("split", 0)
    said = f"{some} of {plural(every, 'request')} of the last 10 minutes prefilled on another pod"
    why = [text.format(count=splits[word]) for word, text in WHY.items() if splits.get(word)]
    return f"{said}; not: {', '.join(why)}" if why else said


def roles(picture: Picture) -> Iterator[Finding]:
    """Roles that leave pods, or requests, alone."""
    if picture.roles:
        yield Finding(
            check="roles",
            urgency=Urgency.WARN,
            what=f"roles that cannot work: {picture.roles[0]}",
            arithmetic=tuple(picture.roles[1:]),
            remedies=(Remedy(action="correct the roles in the list of pods, or disaggregation.decide", price="none"),),
            weight=len(picture.roles),
        )


def unreached(picture: Picture) -> Iterator[Finding]:
    """Pods that were named as those that prefill, and whose own counters say that nothing came."""
    found = {pod.name: pod.unreached for pod in picture.pods if pod.unreached}
    if not found:
        return
    pod, times = max(found.items(), key=lambda each: each[1])
    said = f"{pod} was named {times} times to prefill and got no request"
    others = f" (nor did {names([name for name in found if name != pod], 4)})" if len(found) > 1 else ""
    yield Finding(
        check="unreached",
        urgency=Urgency.WARN,
        what=f"{said}{others}: do the decode pods have a routing sidecar, and does the list have its port?",
        arithmetic=(
            *(
                f"{name}: named {count} times, prompt tokens and requests there 0"
                for name, count in [*found.items()][:5]
            ),
            "what is said of adapters on these pods follows from the naming, unless the pods report it themselves",
        ),
        remedies=(
            Remedy(
                action="give the sidecar's port as the address of each pod that decodes, not the engine's", price="none"
            ),
            Remedy(action="or prefill where it is decoded: disaggregation: {decide: never}", price="slower answers"),
        ),
        weight=100.0 + times,
        pods=tuple(found),
    )


def down(picture: Picture) -> Iterator[Finding]:
    """All pods that only prefill are away, or fail."""
    prefill = _prefill(picture)
    out = [(pod, why) for pod in prefill if (why := _why(pod)) is not None]
    if not prefill or not picture.splits_requests or not out:
        return
    every = len(out) == len(prefill)
    count = plural(len(prefill), "pod")
    yield Finding(
        check="no_prefill" if every else "prefill_pods",
        urgency=Urgency.WARN,
        what=f"none of the {count} that prefill does: requests are prefilled where they are decoded"
        if every
        else f"{len(out)} of the {count} that prefill do not: {names([pod.name for pod, _ in out])}",
        arithmetic=tuple(f"{pod.name}: {why}" for pod, why in out[:5]),
        remedies=(Remedy(action="the log's lines prefill_failed, and the pods' own logs, say why", price="none"),),
        weight=100.0 if every else len(out) / len(prefill),
        pods=tuple(pod.name for pod, _ in out),
    )


def idle(picture: Picture) -> Iterator[Finding]:
    """Next to nothing is split, so that pods that only prefill have nothing to do."""
    prefill = _prefill(picture)
    splits = {} if picture.signals is None else picture.signals.fleet.splits
    every, told = sum(splits.values()), in_words(splits)
    if not prefill or every < LEAST_DISPATCHES or told is None or splits.get("split", 0) > FEW * every:
        return
    if all(_why(pod) is not None for pod in prefill):
        return  # `down` says so
    yield Finding(
        check="prefill_idle",
        urgency=Urgency.WARN,
        what=f"{plural(len(prefill), 'pod')} that only prefill idle{'s' if len(prefill) == 1 else ''}: "
        f"{share(splits.get('split', 0) / every)} of the requests are split",
        arithmetic=(told,),
        remedies=(
            Remedy(action="give them the role both or decode, as the prompts are", price="none"),
            Remedy(action="a lower disaggregation.uncached_tokens", price="short prompts pay for a transfer"),
        ),
        weight=1.0,
        pods=tuple(pod.name for pod in prefill),
    )


def _prefill(picture: Picture) -> list[PodPicture]:
    return [pod for pod in picture.pods if pod.role is Role.PREFILL]


def _why(pod: PodPicture) -> str | None:
    """Why a pod does not prefill now; None: it does, or might."""
    if pod.ready is False:
        return f"takes no requests ({pod.reason or 'unknown'})"
    return "its prefills fail again and again" if pod.prefills_fail else None
