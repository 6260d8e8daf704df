"""Labels of pods as filters and scorers compare them: selectors, roles, ranges, places.

In: pods. Out: truth, levels. Not here: the plugins (see `filters`, `scorers`).
"""

from enum import IntEnum
from typing import NamedTuple

from lorapick.model.pods import Pod, Role

ROLE_LABEL = "llm-d.ai/role"
DECODES = ("decode", "prefill-decode", "both", "encode-prefill-decode")
PREFILLS = ("prefill", "encode-prefill", "prefill-decode", "both", "encode-prefill-decode")
ENCODES = ("encode", "encode-prefill", "encode-prefill-decode")


def role_word(pod: Pod) -> str | None:
    """Value of the pod's role label, or its role where the list of pods says it; None: neither."""
    label = pod.labels.get(ROLE_LABEL)
    return label if label is not None or pod.role is Role.BOTH else pod.role.value


class Requirement(NamedTuple):
    """One line of a Kubernetes label selector."""

    key: str
    operator: str
    """In, NotIn, Exists or DoesNotExist."""
    values: tuple[str, ...] = ()

    def holds(self, labels: dict[str, str]) -> bool:
        """Whether labels fulfil it; a label that is missing is not in any list."""
        match self.operator:
            case "Exists":
                return self.key in labels
            case "DoesNotExist":
                return self.key not in labels
            case "NotIn":
                return labels.get(self.key) not in self.values
            case _:
                return labels.get(self.key) in self.values


class Span(NamedTuple):
    """A range of context lengths, both ends in it."""

    least: int
    most: int


def span_of(text: str) -> Span | None:
    """Range of a label such as `0-2048`; None when it is none."""
    lower, dash, upper = text.partition("-")
    parts = (lower.strip(), upper.strip())
    if not dash or not all(part.isascii() and part.isdigit() and len(part) <= 15 for part in parts):
        return None
    span = Span(int(parts[0]), int(parts[1]))
    return span if span.least <= span.most else None


class Level(IntEnum):
    """How near two pods are, the nearest highest."""

    NOWHERE = 0
    REGION = 1
    ZONE = 2
    RACK = 3
    HOST = 4


class Places(NamedTuple):
    """Labels that say where a pod is; empty: none does."""

    host: str = "kubernetes.io/hostname"
    rack: str = "topology.kubernetes.io/rack"
    zone: str = "topology.kubernetes.io/zone"
    region: str = "topology.kubernetes.io/region"

    def level(self, one: Pod, other: Pod) -> Level:
        """The nearest place that both name; a place that is not known is nowhere."""
        for level, label in ((Level.HOST, self.host), (Level.RACK, self.rack), (Level.ZONE, self.zone)):
            here = self._at(one, label)
            if here and here == self._at(other, label):
                return level
        here = self._at(one, self.region)
        return Level.REGION if here and here == self._at(other, self.region) else Level.NOWHERE

    def _at(self, pod: Pod, label: str) -> str | None:
        value = pod.labels.get(label)
        return pod.zone if value is None and label == self.zone else value
