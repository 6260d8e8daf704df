"""A Kubernetes pod as endpoints: one for each of the pool's ports.

In: a Pod, its pool, the time, what was believed of it before. Out: `Endpoints`: the model's pods, and what of its
annotations cannot be read.
Not here: which pods there are (see `live.kubernetes`), what draining means (see `core`).

Names are `POD-rank-I`, I being the port's place in the pool. A pod counts when it is Ready, whatever its phase. One
that is being deleted takes no new requests, and stays known until it is no longer Ready, is gone, or its grace period
is over. What an annotation says wrongly is told and left out; the endpoint keeps what it had.
"""

import ipaddress
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from lorapick.core.retention.policies import EVICTIONS
from lorapick.model.pods import Engine, Pod, PodLimits, Role
from lorapick.model.units import PodName, Seconds
from lorapick.wire.config.engine_words import OF_WORD, engine_label
from lorapick.wire.config.roles import ENCODE, OF_LABEL, ROLE_LABEL
from lorapick.wire.kubernetes.objects import Object, annotations_of, labels_of, look, moment, name_of
from lorapick.wire.kubernetes.pool import MOST_PORTS, Pool

PREFIX = "lorapick.dev/"
ACTIVE_PORTS = ("llm-d.ai/active-ports", "inference.networking.k8s.io/active-ports")
"""The newer name counts before the older."""
ZONE_LABEL = "topology.kubernetes.io/zone"
NODE_LABEL = "kubernetes.io/hostname"
LIMITS: Mapping[str, tuple[str, int]] = {
    "max-loras": ("max_loras", 4096),
    "max-cpu-loras": ("max_cpu_loras", 1_000_000),
    "max-lora-rank": ("max_lora_rank", 4096),
    "max-num-seqs": ("max_num_seqs", 1_000_000),
    "max-queue": ("max_queue", 1_000_000),
}
"""Annotations below `PREFIX` that say sizes: the field of `PodLimits`, and the most it may be."""
OTHERS = ("base-model", "eviction", "kv-events-port", "dcgm-url")
"""The other annotations below `PREFIX`."""
GRACE_SLACK: Seconds = 5.0
"""After a pod's grace period: clocks differ, and the kubelet kills a little later."""
_MOST_DIGITS = 9


class Defaults(msgspec.Struct, frozen=True, kw_only=True):
    """What a pod is that does not say."""

    engine: Engine = Engine.VLLM
    base_model: str = "base"
    limits: PodLimits = PodLimits()


class Endpoints(msgspec.Struct, frozen=True, kw_only=True):
    """One Kubernetes pod."""

    pods: tuple[Pod, ...] = ()
    """Empty: it takes no requests (not Ready, without an address, no active port, only encodes)."""
    problems: tuple[str, ...] = ()


class _Reading:
    """One pod's annotations and labels, and what is wrong with them."""

    def __init__(self, item: Object) -> None:
        self.annotations = annotations_of(item)
        self.labels = labels_of(item)
        self.problems: list[str] = []

    def say(self, key: str, message: str) -> None:
        kind, found = ("annotation", self.annotations) if key in self.annotations else ("label", self.labels)
        self.problems.append(f"{kind} {key}: {message} (found {found.get(key)!r})")

    def number(self, key: str, *, most: int) -> int | None:
        """A whole number of at least 1; None: there is none that could be read."""
        raw = self.annotations.get(key)
        if raw is None:
            return None
        value = _number(raw)
        if value is None or not 1 <= value <= most:
            self.say(key, f"must be a whole number between 1 and {most}")
            return None
        return value


def endpoints(
    item: Object, pool: Pool, *, defaults: Defaults, now: Seconds, before: Mapping[PodName, Pod] | None = None
) -> Endpoints:
    """What one pod offers.

    Args:
        item: the Pod.
        pool: whose ports count.
        defaults: of pods that do not say.
        now: Unix time.
        before: endpoints as they were last told of, by name; theirs is what an unreadable annotation leaves.

    Raises:
        ObjectError: it has no name.
    """
    name = name_of(item)
    leaving = _leaving(item, now=now)
    address = _address(item)
    reading = _Reading(item)
    encodes = reading.labels.get(ROLE_LABEL) == ENCODE
    if address is None or not is_ready(item) or leaving is None or encodes:
        return Endpoints()
    active = _active(reading, pool)
    known = before or {}
    found = tuple(
        _endpoint(reading, name=f"{name}-rank-{rank}", address=f"{address}:{port}", rank=rank, known=known, of=defaults)
        for rank, port in enumerate(pool.ports)
        if port in active
    )
    node = look(item, "spec", "nodeName")
    labels = reading.labels | ({NODE_LABEL: node} if isinstance(node, str) and node else {})
    found = tuple(msgspec.structs.replace(pod, labels=labels, draining=leaving) for pod in found)
    return Endpoints(pods=found, problems=tuple(dict.fromkeys(reading.problems)))


def slim(item: Object) -> dict[str, Any]:
    """What `endpoints` reads of a pod, and no more."""
    metadata = look(item, "metadata")
    kept = ("name", "uid", "labels", "annotations", "deletionTimestamp", "resourceVersion")
    return {
        "metadata": {key: metadata[key] for key in kept if key in metadata} if isinstance(metadata, Mapping) else None,
        "spec": {"nodeName": look(item, "spec", "nodeName")},
        "status": {"podIP": look(item, "status", "podIP"), "conditions": look(item, "status", "conditions")},
    }


def is_ready(item: Object) -> bool:
    """Whether the condition Ready is True; the phase says less."""
    conditions = look(item, "status", "conditions")
    return isinstance(conditions, list) and any(
        look(each, "type") == "Ready" and look(each, "status") == "True" for each in conditions
    )


def is_leaving(item: Object) -> bool:
    """Whether it is being deleted."""
    return look(item, "metadata", "deletionTimestamp") is not None


def _leaving(item: Object, *, now: Seconds) -> bool | None:
    """Whether the pod drains; None: its grace period is over, though nobody has said that it is gone."""
    if not is_leaving(item):
        return False
    until = moment(look(item, "metadata", "deletionTimestamp"))
    return True if until is None or now < until + GRACE_SLACK else None


def _address(item: Object) -> str | None:
    try:
        found = ipaddress.ip_address(str(look(item, "status", "podIP")))
    except ValueError:
        return None
    return f"[{found.compressed}]" if found.version == 6 else str(found)


def _active(reading: _Reading, pool: Pool) -> Sequence[int]:
    """The pool's ports that count; an annotation that names none of them leaves all out, as it says."""
    key = next((key for key in ACTIVE_PORTS if key in reading.annotations), None)
    if key is None:
        return pool.ports
    written = [part.strip() for part in reading.annotations[key].split(",") if part.strip()]
    numbers = [_number(part) for part in written]
    if None in numbers:
        reading.say(key, 'must be port numbers with commas between, such as "8000,8001"; what is none counts for none')
    if not any(port in pool.ports for port in numbers):
        reading.say(key, f"names none of the pool's ports {', '.join(map(str, pool.ports))}; the pod gets no request")
    return [number for number in numbers if number is not None]


def _number(raw: str) -> int | None:
    return int(raw) if raw.isascii() and raw.isdigit() and len(raw) <= _MOST_DIGITS else None


def _endpoint(
    reading: _Reading, *, name: PodName, address: str, rank: int, known: Mapping[PodName, Pod], of: Defaults
) -> Pod:
    last = known.get(name)
    kept = last.limits if last is not None else of.limits
    return Pod(
        name=name,
        address=address,
        role=_role(reading),
        zone=reading.labels.get(ZONE_LABEL),
        engine=_engine(reading, of),
        base_model=reading.annotations.get(f"{PREFIX}base-model", "").strip() or of.base_model,
        limits=_limits(reading, kept=kept, defaults=of.limits),
        eviction=_chosen(reading, "eviction", known=EVICTIONS, default="lru"),
        kv_events=_kv_events(reading, address=address, rank=rank),
        dcgm_url=_dcgm(reading),
    )


def _limits(reading: _Reading, *, kept: PodLimits, defaults: PodLimits) -> PodLimits:
    values: dict[str, Any] = {}
    for word, (field, most) in LIMITS.items():
        key = PREFIX + word
        value = reading.number(key, most=most)
        if value is None:
            value = getattr(kept if key in reading.annotations else defaults, field)
        values[field] = value
    if values["max_cpu_loras"] < values["max_loras"]:
        if PREFIX + "max-cpu-loras" in reading.annotations:
            reading.say(PREFIX + "max-cpu-loras", f"must be at least max-loras, which is {values['max_loras']}")
        values["max_cpu_loras"] = values["max_loras"]
    return PodLimits(**values)


def _role(reading: _Reading) -> Role:
    told = reading.labels.get(ROLE_LABEL)
    if told is not None and told not in OF_LABEL:
        reading.say(ROLE_LABEL, f"must be one of {', '.join(OF_LABEL)}; both is assumed")
    return OF_LABEL.get(told or "", Role.BOTH)


def _engine(reading: _Reading, of: Defaults) -> Engine:
    found = engine_label(reading.labels)
    if found is None:
        return of.engine
    key, engine = found
    if engine is None:
        reading.say(key, f"must be one of {', '.join(OF_WORD)}; {of.engine.value} is assumed")
        return of.engine
    return engine


def _chosen(reading: _Reading, word: str, *, known: Sequence[str] | Mapping[str, Any], default: str) -> str:
    raw = reading.annotations.get(PREFIX + word, default)
    if raw in known:
        return raw
    reading.say(PREFIX + word, f"must be one of {', '.join(known)}")
    return default


def _kv_events(reading: _Reading, *, address: str, rank: int) -> str | None:
    """A rank of a data-parallel vLLM publishes on its own port, one after the other."""
    port = reading.number(PREFIX + "kv-events-port", most=65_535 - MOST_PORTS)
    return None if port is None else f"tcp://{address.rpartition(':')[0]}:{port + rank}"


def _dcgm(reading: _Reading) -> str | None:
    url = reading.annotations.get(PREFIX + "dcgm-url")
    if url is None or url.startswith(("http://", "https://")):
        return url
    reading.say(PREFIX + "dcgm-url", "must be an http:// or https:// URL")
    return None
