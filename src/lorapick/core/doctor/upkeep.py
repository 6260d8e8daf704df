"""What somebody should put in order: pins, quarantines, drift, sources, a picker that is passed by, faults.

In: a picture. Out: findings. Not here: load (see the checks beside).
"""

from collections.abc import Iterator

from lorapick.core.doctor.findings import Finding, Remedy, Urgency
from lorapick.core.doctor.picture import Picture
from lorapick.core.doctor.saying import names, plural, seconds, share
from lorapick.model.units import Ratio, Seconds

PIN_MISSING: Seconds = 10.0
"""For how long a pin may be missing before that is told: loads take a while."""
PASSED: Ratio = 0.01
"""Of all requests, those that no picker saw."""
PASSED_MOST: Ratio = 0.5
FAULTS: Ratio = 0.001


def pins(picture: Picture) -> Iterator[Finding]:
    """Pins that are not where they should be, and pins that do not fit."""
    longest = picture.pin_missing_longest
    if picture.pins_missing and (longest is None or longest > PIN_MISSING):
        wanted = f" of {picture.pins_wanted}" if picture.pins_wanted is not None else ""
        told = f"; one was missing for {seconds(longest)} at most" if longest is not None else ""
        yield Finding(
            check="pins_missing",
            urgency=Urgency.WARN,
            what=f"{plural(picture.pins_missing, 'pin')}{wanted} not in a slot where they should be{told}",
            arithmetic=(f"missing {picture.pins_missing}{wanted}",),
            remedies=(Remedy(action="`lorapick placement` says what stands in the way of each", price="none"),),
            weight=picture.pins_missing,
        )
    if picture.pins_without_place or picture.pin_problems:
        count = picture.pins_without_place or len(picture.pin_problems)
        yield Finding(
            check="pins_do_not_fit",
            urgency=Urgency.WARN,
            what=f"{plural(count, 'pinned adapter')} cannot be where asked for: {names([*picture.pin_problems])}",
            arithmetic=tuple(f"{name}: {why}" for name, why in [*picture.pin_problems.items()][:5]),
            remedies=(Remedy(action="fewer replicas, fewer pins, or more slots", price="slots"),),
            weight=count,
            adapters=tuple(picture.pin_problems),
        )


def quarantine(picture: Picture) -> Iterator[Finding]:
    """Pods that keep failing to load an adapter."""
    alert = picture.alert("quarantine")
    if alert is not None:
        yield Finding(
            check="quarantine",
            urgency=Urgency.WARN,
            what="pods keep failing to load an adapter, and are left alone with it",
            arithmetic=tuple(f"{key}: {value}" for key, value in alert.facts.items()),
            remedies=(Remedy(action="look at the adapter's files, and at the pod's log", price="none"),),
        )


def drift(picture: Picture) -> Iterator[Finding]:
    """Pods that are other than the configuration says."""
    drifted = [pod for pod in picture.pods if pod.drift]
    if drifted:
        lines = [line for pod in drifted for line in pod.drift]
        yield Finding(
            check="drift",
            urgency=Urgency.WARN,
            what=f"{plural(len(drifted), 'pod')} other than configured: {names([pod.name for pod in drifted])}",
            arithmetic=tuple(lines[:5]),
            remedies=(Remedy(action="correct the pods file, or the pods' flags", price="none, or a restart"),),
            weight=len(lines),
            pods=tuple(pod.name for pod in drifted),
        )


def bypass(picture: Picture) -> Iterator[Finding]:
    """Requests that went to pods without a decision."""
    every, without = picture.envoy_requests, picture.envoy_without_picker
    if every and without and without / every >= PASSED:
        ratio = without / every
        yield Finding(
            check="bypass",
            urgency=Urgency.PAGE if ratio >= PASSED_MOST else Urgency.WARN,
            what=f"Envoy sent {share(ratio)} of the requests on without asking the picker",
            arithmetic=(f"without a picker / all, since Envoy's start {without}/{every} = {share(ratio)}",),
            remedies=(
                Remedy(action="look at the ext_proc filter, its timeout, and the picker's socket", price="none"),
            ),
            weight=ratio,
        )
    passed = sum(picture.passed.values())
    if picture.arrivals is not None and passed and passed / (passed + picture.arrivals) >= PASSED:
        why = ", ".join(f"{count} {reason}" for reason, count in sorted(picture.passed.items()) if count)
        yield Finding(
            check="undecided",
            urgency=Urgency.WARN,
            what=f"{plural(passed, 'request')} went to any pod without a decision ({why})",
            arithmetic=(f"{passed} / {passed + picture.arrivals} = {share(passed / (passed + picture.arrivals))}",),
            remedies=(Remedy(action="see docs/envoy.md: what the picker must be sent of a request", price="none"),),
            weight=passed / (passed + picture.arrivals),
        )


def faults(picture: Picture) -> Iterator[Finding]:
    """What went wrong inside the picker."""
    count = sum(picture.faults.values())
    if count:
        ratio = count / picture.arrivals if picture.arrivals else None
        of_all = f", {share(ratio)} of the requests" if ratio is not None else ""
        yield Finding(
            check="faults",
            urgency=Urgency.WARN if ratio is None or ratio >= FAULTS else Urgency.INFO,
            what=f"{plural(count, 'fault')} in the picker itself since its start{of_all}",
            arithmetic=tuple(f"{kind}: {each}" for kind, each in sorted(picture.faults.items()) if each),
            remedies=(Remedy(action="the picker's log says what happened; please report it", price="none"),),
            weight=ratio or 0.0,
        )


def certificate(picture: Picture) -> Iterator[Finding]:
    """Files of the certificate that changed and cannot be used."""
    if picture.certificate_problem is not None:
        yield Finding(
            check="certificate",
            urgency=Urgency.WARN,
            what="the certificate's files have changed and cannot be used; the one from before is still shown",
            arithmetic=(picture.certificate_problem,),
            remedies=(Remedy(action="write certificate and key anew; they are taken without a restart", price="none"),),
        )


def sources(picture: Picture) -> Iterator[Finding]:
    """Adapters that nobody can load: no source, unknown to pods, or with broken files."""
    lost = [each for each in picture.adapters if each.declared and each.source is None and each.known_to == 0]
    if lost:
        asked = [each.name for each in lost if each.requests]
        yield Finding(
            check="no_source",
            urgency=Urgency.WARN if asked else Urgency.INFO,
            what=f"{plural(len(lost), 'declared adapter')} without a source, and unknown to all pods: "
            f"{names([each.name for each in lost])}",
            arithmetic=(f"asked for: {names(asked) or 'none'}",),
            remedies=(Remedy(action="declare where each is to be loaded from, or retire it", price="none"),),
            weight=len(lost),
            adapters=tuple(each.name for each in lost),
        )
    broken = [each for each in picture.adapters if each.problem is not None]
    if broken:
        yield Finding(
            check="files",
            urgency=Urgency.WARN,
            what=f"nobody is told to load {plural(len(broken), 'adapter')}: {names([each.name for each in broken])}",
            arithmetic=tuple(f"{each.name}: {each.problem}" for each in broken[:5]),
            remedies=(Remedy(action="correct the files, or the declaration", price="none"),),
            weight=len(broken),
            adapters=tuple(each.name for each in broken),
        )
