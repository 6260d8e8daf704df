"""The file that `file-discovery` names: llm-d's list of endpoints, as pods.

In: a node `{endpoints: [{name, namespace, address, port, labels}]}`. Out: `Pod`s with the configuration's defaults.
Not here: lorapick's own list of pods, which such a file may be as well (see `wire.podsfile`).
"""

import ipaddress
from typing import Any

from lorapick.model.pods import Engine, Pod
from lorapick.wire.config.document import At, nearest_word
from lorapick.wire.config.engine_words import OF_WORD, engine_label
from lorapick.wire.config.epp.reading import members, refused
from lorapick.wire.config.pods import PodDefaults
from lorapick.wire.config.readers import Reader, label_text, labels, list_of, text, word
from lorapick.wire.config.roles import settle_role


def are_endpoints(root: At) -> bool:
    """Whether a file is such a list."""
    return root.is_mapping and root.find("endpoints") is not None


def endpoints(found: PodDefaults) -> Reader[tuple[Pod, ...]]:
    """Reader of such a file."""

    def one(at: At) -> Pod:
        values: dict[str, Any] = members(
            at,
            {
                "name": word,
                "namespace": word,
                "address": _ip,
                "port": _port,
                "labels": labels,
                "metricsHost": refused("remove it: a pod is scraped where it serves"),
            },
            required=("name", "address", "port"),
        )
        pod = Pod(
            name=values["name"],
            address=f"{values['address']}:{values['port']}",
            labels=values.get("labels", {}),
            engine=_engine(at, values.get("labels", {}), default=found.engine),
            base_model=found.base_model,
            limits=found.limits,
        )
        return settle_role(at, pod)

    def read(at: At) -> tuple[Pod, ...]:
        pods: tuple[Pod, ...] = members(at, {"endpoints": list_of(one, unique="name")}, required=("endpoints",))[
            "endpoints"
        ]
        return pods

    return read


def _engine(at: At, labels: dict[str, str], *, default: Engine) -> Engine:
    said = engine_label(labels)
    if said is None:
        return default
    key, engine = said
    if engine is None:
        place = at.nearest("labels", key)
        place.refuse(f"must be one of {', '.join(OF_WORD)}", hint=nearest_word(labels[key], OF_WORD) or "take it out")
    return engine


def _ip(at: At) -> str:
    """As it stands in an address: IPv6 in brackets."""
    value = text(at)
    try:
        parsed = ipaddress.ip_address(value.removeprefix("[").removesuffix("]"))
    except ValueError:
        at.refuse("must be an IP address", hint="Envoy resolves no host names of endpoints")
    return f"[{parsed.compressed}]" if parsed.version == 6 else str(parsed)


def _port(at: At) -> int:
    raw = label_text(at)
    if not (raw.isascii() and raw.isdigit() and len(raw) <= 5 and 0 < int(raw) < 65_536):
        at.refuse("must be a port in 1-65535")
    return int(raw)
