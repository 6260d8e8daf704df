"""An InferencePool, and who belongs to it.

In: an InferencePool (`inference.networking.k8s.io/v1`), or what the configuration says in its place. Out: `Pool`; and
whether an object's reference means it.
Not here: its pods (see `pods`). `endpointPickerRef` is for gateways: it says where we are, which we know.
"""

from collections.abc import Mapping

import msgspec

from lorapick.model.settings import KubernetesSettings
from lorapick.wire.kubernetes.objects import Object, ObjectError, expect, labels_of, look, name_of, words

GROUP = "inference.networking.k8s.io"
MOST_PORTS = 8
PROTOCOLS = ("http", "kubernetes.io/h2c")


class Pool(msgspec.Struct, frozen=True, kw_only=True):
    """Which pods, and which of their ports."""

    name: str | None = None
    """None: the configuration selects by labels, without an InferencePool."""
    selector: dict[str, str]
    ports: tuple[int, ...]
    labels: dict[str, str] = {}
    protocol: str = "http"

    @property
    def label_selector(self) -> str:
        """For the API server."""
        return ",".join(f"{key}={value}" for key, value in sorted(self.selector.items()))


def pool_of_settings(settings: KubernetesSettings) -> Pool:
    """The pool that `selector` and `target_ports` describe."""
    return Pool(selector=settings.selector, ports=settings.target_ports)


def read_pool(item: Object) -> Pool:
    """An InferencePool.

    Raises:
        ObjectError: it selects nothing or everything, or its ports cannot be.
    """
    selector = words(item, "spec", "selector", "matchLabels")
    if not selector:
        found = look(item, "spec", "selector")
        raise ObjectError("spec.selector.matchLabels", "must have a label, or every pod would belong", found=found)
    protocol = look(item, "spec", "appProtocol") or "http"
    if protocol not in PROTOCOLS:
        raise ObjectError("spec.appProtocol", f"must be one of {', '.join(PROTOCOLS)}", found=protocol)
    return Pool(
        name=name_of(item), selector=selector, ports=_ports(item), labels=labels_of(item), protocol=str(protocol)
    )


def _ports(item: Object) -> tuple[int, ...]:
    listed = expect(look(item, "spec", "targetPorts"), list, field="spec.targetPorts", what="a list of ports")
    if not 1 <= len(listed) <= MOST_PORTS:
        raise ObjectError("spec.targetPorts", f"must have 1 to {MOST_PORTS} ports", found=len(listed))
    ports = []
    for index, each in enumerate(listed):
        field = f"spec.targetPorts[{index}].number"
        port = expect(look(each, "number"), int, field=field, what="a whole number")
        if not 0 < port < 65_536 or port in ports:
            raise ObjectError(field, "must be a port of its own in 1-65535", found=port)
        ports.append(port)
    return tuple(ports)


def is_for(item: Object, pool: Pool) -> bool:
    """Whether an objective, a rewrite or an adapter is for this pool, by `poolRef`, `poolRefs` or `poolSelector`.

    One that names no pool is for every picker of its namespace; a picker without an InferencePool takes all.
    """
    spec = look(item, "spec")
    reference, references, selector = (look(spec, key) for key in ("poolRef", "poolRefs", "poolSelector"))
    if pool.name is None or (reference is None and references is None and selector is None):
        return True
    if isinstance(references, list) and any(_means(each, pool) for each in references):
        return True
    if isinstance(selector, Mapping):
        wanted = words(selector, "matchLabels")
        if wanted and not look(selector, "matchExpressions") and wanted.items() <= pool.labels.items():
            return True
    return reference is not None and _means(reference, pool)


def _means(reference: object, pool: Pool) -> bool:
    """The group is not compared: upstream's default for it changed, and there is one kind of InferencePool here."""
    return look(reference, "name") == pool.name and look(reference, "kind") in (None, "", "InferencePool")
