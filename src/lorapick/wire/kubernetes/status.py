"""What is true of a LoraAdapter: the `status` that the leader writes, and the Events about changes of it.

In: `AdapterTruth`, the status as it was, the time. Out: the new status, or None when nothing changed; Events.
Not here: where the facts come from, and who may write (see `live.kubernetes`).
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
import xxhash

from lorapick.model.units import PodName, Seconds
from lorapick.wire.kubernetes.objects import Object, look, name_of, rfc3339

ACCEPTED: Final = "Accepted"
PLACED: Final = "Placed"
DEGRADED: Final = "Degraded"
MOST_PODS: Final = 50
"""Named in a status; the count is of all."""
_MOST_MESSAGE = 1024
COMPONENT: Final = "lorapick"


class Condition(msgspec.Struct, frozen=True, kw_only=True):
    """One condition, without its times."""

    type: str
    status: bool
    reason: str
    message: str = ""


class AdapterTruth(msgspec.Struct, frozen=True, kw_only=True):
    """What the picker knows of one LoraAdapter."""

    generation: int | None
    """`metadata.generation` of the spec that this is about."""
    desired: int
    """Pods that should hold it for good; 0: requests decide."""
    pods: tuple[PodName, ...]
    """Pods that hold it now, in the fleet's order."""
    refused: tuple[str, str] | None = None
    """Reason and message, when the adapter was not accepted."""
    trouble: tuple[str, str] | None = None
    """Reason and message, when it cannot be loaded, or not where it should be."""


def conditions(truth: AdapterTruth) -> tuple[Condition, ...]:
    """Accepted, Placed and Degraded, in that order."""
    loaded, wanted = len(truth.pods), truth.desired
    if truth.refused is not None:
        reason, message = truth.refused
        return (
            Condition(type=ACCEPTED, status=False, reason=reason, message=message),
            Condition(type=PLACED, status=False, reason="NotAccepted"),
            Condition(type=DEGRADED, status=True, reason=reason, message=message),
        )
    if not wanted:
        placed = Condition(type=PLACED, status=True, reason="OnDemand", message="requests decide where it is")
    elif loaded >= wanted:
        placed = Condition(type=PLACED, status=True, reason="Loaded")
    else:
        placed = Condition(type=PLACED, status=False, reason="Waiting", message=f"fewer than {wanted} pods hold it")
    if truth.trouble is None:
        degraded = Condition(type=DEGRADED, status=False, reason="AsExpected")
    else:
        reason, message = truth.trouble
        degraded = Condition(type=DEGRADED, status=True, reason=reason, message=message)
    return (Condition(type=ACCEPTED, status=True, reason="Accepted"), placed, degraded)


def next_status(truth: AdapterTruth, before: object, *, now: Seconds) -> dict[str, Any] | None:
    """The status to write; None: the one that stands says the same.

    Args:
        truth: what is known.
        before: the object's status as it stands; anything.
        now: Unix time; a condition's time moves only when its status does.
    """
    wanted: dict[str, Any] = {
        "replicas": len(truth.pods),
        "desiredReplicas": truth.desired,
        "pods": list(truth.pods[:MOST_PODS]),
        "conditions": [_condition(each, truth, before=before, now=now) for each in conditions(truth)],
    }
    if truth.generation is not None:
        wanted["observedGeneration"] = truth.generation
    return None if all(look(before, key) == value for key, value in wanted.items()) else wanted


def _condition(condition: Condition, truth: AdapterTruth, *, before: object, now: Seconds) -> dict[str, Any]:
    status = "True" if condition.status else "False"
    old = _old(before, condition.type)
    since = look(old, "lastTransitionTime") if look(old, "status") == status else None
    found: dict[str, Any] = {
        "type": condition.type,
        "status": status,
        "reason": condition.reason,
        "message": condition.message[:_MOST_MESSAGE],
        "lastTransitionTime": since if isinstance(since, str) else rfc3339(now),
    }
    if truth.generation is not None:
        found["observedGeneration"] = truth.generation
    return found


def _old(before: object, kind: str) -> object:
    listed = look(before, "conditions")
    every: Sequence[object] = listed if isinstance(listed, list) else ()
    return next((each for each in every if look(each, "type") == kind), None)


def news(status: Mapping[str, Any], before: object) -> list[Condition]:
    """Conditions of a new status that are worth an Event: another status, or another reason."""
    found = []
    for each in status["conditions"]:
        old = _old(before, each["type"])
        if (look(old, "status"), look(old, "reason")) != (each["status"], each["reason"]):
            found.append(
                Condition(
                    type=each["type"],
                    status=each["status"] == "True",
                    reason=each["reason"],
                    message=each["message"],
                )
            )
    return [each for each in found if _worth_telling(each)]


def _worth_telling(condition: Condition) -> bool:
    """Trouble, and where an adapter has come to; not that all is as it should be, which the status says."""
    if condition.type == PLACED:
        return condition.reason in ("Loaded", "Waiting")
    return _is_bad(condition)


def _is_bad(condition: Condition) -> bool:
    return condition.type != PLACED and condition.status == (condition.type == DEGRADED)


def event(item: Object, condition: Condition, *, by: str, now: Seconds) -> dict[str, Any]:
    """A core/v1 Event about one condition.

    Args:
        item: the object that it is about.
        condition: what is new.
        by: the replica that says so.
        now: Unix time.
    """
    metadata = look(item, "metadata") or {}
    mark = xxhash.xxh64_hexdigest(f"{condition.type}/{condition.reason}/{now!r}".encode())
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{name_of(item)[:200]}.{mark}", "namespace": metadata.get("namespace")},
        "involvedObject": {
            "apiVersion": item.get("apiVersion"),
            "kind": item.get("kind"),
            "name": name_of(item),
            "namespace": metadata.get("namespace"),
            "uid": metadata.get("uid"),
            "resourceVersion": metadata.get("resourceVersion"),
        },
        "type": "Warning" if _is_bad(condition) else "Normal",
        "reason": condition.reason,
        "message": condition.message or f"{condition.type} is {condition.status}",
        "source": {"component": COMPONENT, "host": by},
        "reportingComponent": f"lorapick.dev/{COMPONENT}",
        "reportingInstance": by[:128],
        "firstTimestamp": rfc3339(now),
        "lastTimestamp": rfc3339(now),
        "count": 1,
    }
