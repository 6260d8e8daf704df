"""Pods as people write them: in a pods file, or in place under `discovery`.

In: nodes, and what the configuration says about every pod. Out: `Pod` values.
Not here: reading the file (see `wire.podsfile`, `live.discovery`).
"""

import ipaddress
from typing import Any

import msgspec

from lorapick.core.retention.policies import EVICTIONS
from lorapick.model.pods import Engine, Pod, PodLimits, Role
from lorapick.model.settings import DiscoverySettings
from lorapick.wire.config.cluster import kubernetes
from lorapick.wire.config.document import At, Refused, Report
from lorapick.wire.config.readers import (
    Reader,
    boolean,
    choice,
    integer,
    labels,
    list_of,
    no_duplicates,
    record,
    text,
    web_address,
    word,
)
from lorapick.wire.config.roles import settle_role

_ENGINES = tuple(engine.value for engine in Engine)
_ROLES = tuple(role.value for role in Role)
LIMITS: dict[str, Reader[Any]] = {
    "max_loras": integer(least=1, most=4096),
    "max_cpu_loras": integer(least=1, most=1_000_000),
    "max_lora_rank": integer(least=1, most=4096),
    "max_num_seqs": integer(least=1, most=1_000_000),
    "max_queue": integer(least=1, most=1_000_000),
}
"""Readers of the fields of `PodLimits`."""


class PodDefaults(msgspec.Struct, frozen=True, kw_only=True):
    """What a pod is when its entry does not say: `defaults:` and `base_model:` of the configuration."""

    engine: Engine = Engine.VLLM
    base_model: str = "base"
    limits: PodLimits = PodLimits()


def _defaults(*, engine: str = Engine.VLLM.value, **limits: int) -> PodDefaults:
    return PodDefaults(engine=Engine(engine), limits=PodLimits(**limits))


def _check_limits(at: At, limits: PodLimits) -> None:
    if limits.max_cpu_loras < limits.max_loras:
        at.nearest("max_cpu_loras").note(
            f"max_cpu_loras is {limits.max_cpu_loras} and must be at least max_loras, which is {limits.max_loras}",
            hint="the engine's host level holds the adapters on the GPU too",
            value="",
        )


defaults: Reader[PodDefaults] = record(
    _defaults,
    {"engine": choice(*_ENGINES), **LIMITS},
    check=lambda at, found: _check_limits(at, found.limits),
)
"""`defaults:` of the configuration, without the base model."""


def address(at: At) -> str:
    """`ip:port` of a pod, in the one spelling that Envoy has for it: it looks picks up by their text."""
    value = text(at)
    host, separator, port = value.rpartition(":")
    if not separator or not port.isascii() or not port.isdigit() or len(port) > 5 or not 0 < int(port) < 65_536:
        at.refuse("must be ip:port with a port in 1-65535", hint='for example "10.0.0.7:8000" or "[fd00::7]:8000"')
    bracketed = host.startswith("[") and host.endswith("]")
    try:
        found = ipaddress.ip_address(host[1:-1] if bracketed else host)
    except ValueError:
        at.refuse(
            f'must be an IP address with a port; "{host}" is no IP address',
            hint="Envoy sends a request to the address that the picker names, and resolves no host names there",
        )
    if bracketed != (found.version == 6):
        at.refuse("must have an IPv6 address in brackets, and no other", hint='for example "[fd00::7]:8000"')
    host = f"[{_spelling(found)}]" if found.version == 6 else str(found)
    return f"{host}:{int(port)}"


def _spelling(found: ipaddress.IPv6Address) -> str:
    """As the system writes it (RFC 5952): IPv4 inside IPv6 keeps its dots."""
    return found.compressed if found.ipv4_mapped is None else f"::ffff:{found.ipv4_mapped}"


def http_url(at: At) -> str:
    """An http or https address of a page."""
    return web_address(at, must="must be an http:// or https:// URL", example="http://10.0.0.7:9400/metrics").geturl()


def zmq_endpoint(at: At) -> str:
    """Where a pod publishes: `tcp://ip:port` or `ipc://path`, which the picker connects to."""
    value = text(at)
    scheme, _, rest = value.partition("://")
    host, _, port = rest.rpartition(":")
    valid = bool(rest) if scheme == "ipc" else scheme == "tcp" and bool(host) and port.isascii() and port.isdigit()
    if not valid or host == "*":
        at.refuse(
            "must be the ZMQ endpoint on which the pod publishes, tcp://ip:port or ipc://path",
            hint='for example "tcp://10.0.0.7:5557" for a vLLM whose own endpoint is "tcp://*:5557"',
        )
    return value


def pods(found: PodDefaults) -> Reader[tuple[Pod, ...]]:
    """Reader of a list of pods with these defaults."""

    def build(*, engine: str | None = None, role: str = Role.BOTH.value, **values: Any) -> Pod:
        limits = {name: values.pop(name) for name in LIMITS if name in values}
        values.setdefault("base_model", found.base_model)
        return Pod(
            engine=found.engine if engine is None else Engine(engine),
            role=Role(role),
            limits=msgspec.structs.replace(found.limits, **limits),
            **values,
        )

    one = record(
        build,
        {
            "name": word,
            "address": address,
            "role": choice(*_ROLES),
            "zone": word,
            "labels": labels,
            "engine": choice(*_ENGINES),
            "base_model": text,
            "eviction": choice(*EVICTIONS),
            "dcgm_url": http_url,
            "kv_events": zmq_endpoint,
            "draining": boolean,
            **LIMITS,
        },
        required=("name", "address"),
        check=lambda at, pod: _check_limits(at, pod.limits),
    )

    def with_role(at: At) -> Pod:
        return settle_role(at, one(at))

    all_pods = list_of(with_role, unique="name")

    def read(at: At) -> tuple[Pod, ...]:
        places = (place for item in at.items() if (place := item.find("address")))
        no_duplicates(places, what="address", same=_one_spelling)
        return all_pods(at)

    return read


def _one_spelling(place: At) -> str:
    """What an address is compared by; one that is wrong by its text, since its own reader complains."""
    aside = At(place.node, place.field, Report(""))
    try:
        return address(aside)
    except Refused:
        return str(place.node.value)


_WAYS = ("file", "kubernetes", "pods")


def discovery(found: PodDefaults) -> Reader[DiscoverySettings]:
    """Reader of `discovery:`: exactly one way to find pods."""
    ways = {"file": text, "kubernetes": kubernetes, "pods": pods(found)}

    def check(at: At, _: DiscoverySettings) -> None:
        given = [way for way in at.entries() if way in _WAYS]
        if len(given) != 1:
            at.note(f"must have exactly one of {', '.join(_WAYS)}; has {' and '.join(given) or 'none'}", value="")

    return record(DiscoverySettings, ways, check=check)
