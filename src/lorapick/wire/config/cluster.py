"""`discovery.kubernetes`: where the API server is, which pods are ours, who leads.

In: nodes. Out: `KubernetesSettings`. Not here: Kubernetes objects (see `wire.kubernetes`), talking to the API server
(see `live.kubernetes`).
"""

import re

from lorapick.model.settings import KubernetesSettings, LeaderSettings
from lorapick.wire.config.document import At
from lorapick.wire.config.readers import Reader, boolean, duration, integer, labels, list_of, record, text, web_address

MOST_PORTS = 8
"""Of an InferencePool too."""
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_LONGEST_NAME = 253


def object_name(at: At) -> str:
    """Name of a Kubernetes object."""
    value = text(at)
    if len(value) > _LONGEST_NAME or not _NAME.fullmatch(value):
        at.refuse(f"must be a name of at most {_LONGEST_NAME} lower-case letters, digits, dashes and dots")
    return value


def _server(at: At) -> str:
    must = "must be the http:// or https:// URL of an API server that asks for no credentials"
    return web_address(at, must=must, example="http://127.0.0.1:8001").geturl().rstrip("/")


def _ports(at: At) -> tuple[int, ...]:
    found = list_of(integer(least=1, most=65_535), least=1, unique="")(at)
    if len(found) > MOST_PORTS:
        at.refuse(f"has {len(found)} ports; at most {MOST_PORTS} can be told apart as ranks of a pod")
    return found


def _check_leader(at: At, leader: LeaderSettings) -> None:
    if leader.renew_within >= leader.duration:
        at.nearest("renew_within").note(
            f"renew_within is {leader.renew_within:g}s and must be less than duration, which is {leader.duration:g}s",
            hint="otherwise two replicas could lead for a moment",
            value="",
        )
    if leader.retry >= leader.renew_within:
        at.nearest("retry").note(
            f"retry is {leader.retry:g}s and must be less than renew_within, which is {leader.renew_within:g}s",
            hint="otherwise a single failed renewal ends the lead",
            value="",
        )


_leader: Reader[LeaderSettings] = record(
    LeaderSettings,
    {
        "enabled": boolean,
        "lease": object_name,
        "duration": duration(least=1.0, most=3600.0),
        "renew_within": duration(least=0.5, most=3600.0),
        "retry": duration(least=0.1, most=3600.0),
    },
    check=_check_leader,
)


def _check(at: At, found: KubernetesSettings) -> None:
    if (found.pool is None) == (not found.selector):
        given = "both" if found.pool is not None else "neither"
        at.note(f"must have one of pool and selector; has {given}", hint="an InferencePool has a selector", value="")
    elif found.pool is not None and found.target_ports:
        at.nearest("target_ports").note("belongs to selector; the InferencePool has its own ports", value="")
    elif found.selector and not found.target_ports:
        at.nearest("selector").note("needs target_ports beside it", hint="for example target_ports: [8000]", value="")
    if found.server is not None and (found.kubeconfig is not None or found.context is not None):
        at.nearest("server").note("takes the place of kubeconfig and context; remove one of them", value="")
    if found.context is not None and found.kubeconfig is None and found.server is None:
        at.nearest("context").note("is a part of a kubeconfig; name the file too", value="")


kubernetes: Reader[KubernetesSettings] = record(
    KubernetesSettings,
    {
        "pool": object_name,
        "selector": labels,
        "target_ports": _ports,
        "namespace": object_name,
        "kubeconfig": text,
        "context": text,
        "server": _server,
        "leader": _leader,
    },
    check=_check,
)
"""`discovery.kubernetes`."""
