"""Alerts that stand: whatever pages somebody is in the diagnosis too, and asks for the same.

In: a picture, what the checks found. Out: the findings, with what alerts of severity page add to them. Not here: when
alerts are raised (see `core.thrash_alarms`), what is wrong by the figures of this instant (see the checks beside).

An alert stands for a while after its figure is back within its bound, and the checks look at one instant: without this
the page and the doctor would contradict each other.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from lorapick.core.doctor.findings import Finding, Remedy, Urgency
from lorapick.core.doctor.picture import AlertPicture, Picture
from lorapick.core.doctor.saying import facts_in_words, seconds
from lorapick.model.alerts import Alert, Severity

CHECKS: dict[Alert, tuple[str, ...]] = {
    Alert.LATENCY: ("latency", "ttft"),
    Alert.ERROR_RATE: ("errors",),
    Alert.CRITICAL_QUEUES: ("critical_queues",),
    Alert.THRASH: ("thrash", "churn", "room"),
}
"""Checks that look at the same as an alert; the first finding's check is the name that a finding gets."""
WHAT: dict[Alert, str] = {
    Alert.LATENCY: "users wait longer than promised",
    Alert.ERROR_RATE: "requests fail or are refused",
    Alert.CRITICAL_QUEUES: "on several pods as many requests wait as may",
    Alert.THRASH: "thrash: adapters push each other out, and users are harmed",
}


def with_alerts(picture: Picture, findings: Iterable[Finding]) -> list[Finding]:
    """Findings, those of standing pages made pages, and one more for each page that no check found."""
    found = [*findings]
    for alert in picture.alerts:
        name = _page(alert)
        if name is None:
            continue
        same = [number for number, finding in enumerate(found) if finding.check in CHECKS.get(name, ())]
        told = _told(picture, alert)
        if same:
            for number in same:
                old = found[number]
                found[number] = replace(old, urgency=Urgency.PAGE, arithmetic=(*old.arithmetic, *told))
            first = found[same[0]]
            if name is Alert.THRASH and first.check != "thrash":
                found[same[0]] = replace(first, check="thrash", what=WHAT[name])
        else:
            found.append(_finding(name, told))
    return found


def _page(alert: AlertPicture) -> Alert | None:
    """The alert, if it is known and of severity page."""
    name = next((each for each in Alert if each == alert.name), None)
    return name if name is not None and name.severity is Severity.PAGE else None


def _told(picture: Picture, alert: AlertPicture) -> tuple[str, ...]:
    since = ""
    if alert.since is not None and picture.now is not None:
        since = f" for {seconds(max(0.0, picture.now - alert.since))}"
    facts = "; ".join(facts_in_words(alert.facts))
    return (f"the alert {alert.name} stands{since}{f': {facts}' if facts else ''}",)


def _finding(name: Alert, told: tuple[str, ...]) -> Finding:
    return Finding(
        check=CHECKS.get(name, (str(name),))[0],
        urgency=Urgency.PAGE,
        what=WHAT.get(name, f"the alert {name} stands"),
        arithmetic=told,
        remedies=(Remedy(action=f"its runbook: /runbooks/{name} of the admin API", price="none"),),
        weight=1.0,
    )
