"""The section `disaggregation`.

In: a node. Out: `DisaggregationSettings`; its defaults are there. Not here: roles of pods (see `pods`).
"""

from lorapick.model.disaggregation import Choice, Decide, DisaggregationSettings, LinkSpeeds
from lorapick.wire.config.document import At
from lorapick.wire.config.readers import Reader, boolean, choice, duration, integer, label_text, record, size


def _decide(at: At) -> Decide:
    return Decide(choice(*(each.value for each in Decide))(at))


def _choice(at: At) -> Choice:
    return Choice(choice(*(each.value for each in Choice))(at))


def _speed(at: At) -> float:
    """Bytes in one second."""
    return float(size()(at))


_links: Reader[LinkSpeeds] = record(LinkSpeeds, {"same_node": _speed, "same_zone": _speed, "elsewhere": _speed})

disaggregation: Reader[DisaggregationSettings] = record(
    DisaggregationSettings,
    {
        "decide": _decide,
        "choice": _choice,
        "uncached_tokens": integer(least=1),
        "kv_bytes_per_token": size(most=2**30),
        "links": _links,
        "link_latency": duration(most=60.0),
        "node_label": label_text,
        "pass_encoders": boolean,
    },
)
