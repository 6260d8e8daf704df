"""Roles of pods: from the pod's own `role`, or from the label that llm-d gives its pods.

In: a pod's node and the pod as read so far; all pods. Out: the pod with its role; what roles cannot work together.
Not here: what a role means for a decision (see `core.picking.filters`).

Values of the label are those of llm-d's `decode-filter` and `prefill-filter`. To encode is no role here: this picker
sends nobody to a pod for that, so the part of a value that says it counts for nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher

import msgspec

from lorapick.model.disaggregation import Decide
from lorapick.model.pods import Pod, Role
from lorapick.wire.config.document import At, nearest_word

ROLE_LABEL = "llm-d.ai/role"
OF_LABEL: Mapping[str, Role] = {
    "decode": Role.DECODE,
    "prefill": Role.PREFILL,
    "both": Role.BOTH,
    "prefill-decode": Role.BOTH,
    "encode-prefill": Role.PREFILL,
    "encode-prefill-decode": Role.BOTH,
}
ENCODE = "encode"
NEAR = 0.88
"""How alike a label's name must be to the one that says the role, to be taken for a slip."""
ROLES_HEADING = "roles that cannot work"


def settle_role(at: At, pod: Pod) -> Pod:
    """The pod with the role that its label says, if its entry says none; a contradiction is noted.

    A label with a value that nobody knows is no matter where the entry says the role.
    """
    told, explicit = pod.labels.get(ROLE_LABEL), at.find("role") is not None
    if told is None:
        return pod
    place = at.nearest("labels", ROLE_LABEL)
    role = OF_LABEL.get(told)
    if told == ENCODE:
        place.note("is the role of a pod that only encodes; requests are sent to no such pod", hint="take the pod out")
    elif role is None and not explicit:
        place.note(
            f"must be a role that llm-d knows, for who says none beside it: {', '.join(OF_LABEL)}",
            hint=nearest_word(told, OF_LABEL) or "or write role: both, prefill or decode beside it",
        )
    elif role is not None and explicit and role is not pod.role:
        place.note(
            f"is {role.value} as a role, and `role` of the same pod is {pod.role.value}", hint="take one of the two out"
        )
    elif role is not None:
        return msgspec.structs.replace(pod, role=role)
    return pod


def roles_in_words(pods: Sequence[Pod]) -> str:
    """How many pods have which role, `2 prefill, 4 decode`; empty where all do both."""
    counts = {role: sum(pod.role is role for pod in pods) for role in (Role.PREFILL, Role.DECODE, Role.BOTH)}
    if counts[Role.BOTH] == len(pods):
        return ""
    return ", ".join(f"{count} {role.value}" for role, count in counts.items() if count)


def useless_roles(pods: Sequence[Pod], *, decide: Decide, configured: bool = False) -> tuple[str, ...]:
    """What cannot work of the roles, a line each: pods or models that get no requests, pairs that cannot form.

    Pods that only decode are fine, unless somebody asked for pairs: by `configured`, a section `disaggregation`.
    """
    said = list(_slips(pods))
    for model in dict.fromkeys(pod.base_model for pod in pods):
        those = [pod for pod in pods if pod.base_model == model]
        prefill = [pod.name for pod in those if pod.role is Role.PREFILL]
        if not prefill:
            if configured and decide is not Decide.NEVER and (alone := _unpaired(those)) is not None:
                said.append(f"disaggregation is configured, and no pair can form among the pods of {model}: {alone}")
            continue
        named = f"{len(prefill)} pod{'' if len(prefill) == 1 else 's'} of {model} (first: {prefill[0]})"
        if len(prefill) == len(those):
            said.append(f"{named} prefill and none of this model decodes: its requests find no pod")
        elif decide is Decide.NEVER:
            said.append(f"{named} prefill only, and disaggregation.decide is never: no request goes there")
    return tuple(said)


def _unpaired(pods: Sequence[Pod]) -> str | None:
    """Why pods of one model, of which none only prefills, form no pairs; None: they do."""
    roles = {pod.role: None for pod in pods}
    if len(roles) > 1:
        return None
    does = "does both" if Role.BOTH in roles else "only decodes"
    return f"each {does}; give some the role prefill"


def _slips(pods: Sequence[Pod]) -> Iterator[str]:
    """Labels that look like the one that says the role, on pods that do both since nothing says otherwise."""
    found: dict[str, list[Pod]] = {}
    for pod in pods:
        if pod.role is Role.BOTH and ROLE_LABEL not in pod.labels:
            for key, value in pod.labels.items():
                if _alike(key, value):
                    found.setdefault(key, []).append(pod)
    for key, those in found.items():
        count = f"{len(those)} pod{'' if len(those) == 1 else 's'} (first: {those[0].name})"
        yield f"the label {key} of {count} says nothing, and they do both: is {ROLE_LABEL} meant?"


def _alike(key: str, value: str) -> bool:
    name = key.casefold()
    if name.rpartition("/")[2] in ("role", "roles") and value.casefold() in OF_LABEL:
        return True
    return SequenceMatcher(None, name, ROLE_LABEL).ratio() >= NEAR
