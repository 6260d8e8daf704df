"""All plugins of profiles that run here, by type. Their parameters are the arguments that `wire.config.epp` reads.

Add one: a class in `filters` or `scorers`, one line here, one entry in `wire.config.epp.catalogue`.
"""

from collections.abc import Callable

from lorapick.core.picking.epp import filters, own, pickers, scorers
from lorapick.core.picking.epp.labels import DECODES, ENCODES, PREFILLS
from lorapick.core.picking.epp.pickers import Picker
from lorapick.core.picking.epp.plugin import Filter, Scorer
from lorapick.model.profiles import PluginSpec
from lorapick.model.settings import PickingSettings

FILTERS: dict[str, Callable[..., Filter]] = {
    "label-selector-filter": filters.ByLabels,
    "by-label-selector": filters.ByLabels,
    "by-label": filters.ByLabel,
    "decode-filter": lambda: filters.ByRole(DECODES, without=True),
    "prefill-filter": lambda: filters.ByRole(PREFILLS, without=False),
    "encode-filter": lambda: filters.ByRole(ENCODES, without=False),
    "prefix-cache-affinity-filter": filters.PrefixAffinity,
    "context-length-aware": filters.ByContextLength,
    "utilization-detector": filters.UtilizationDetector,
    "concurrency-detector": filters.ConcurrencyDetector,
    "utilization-filter": filters.Utilization,
    "session-affinity-filter": filters.LastOfSession,
    "topology-affinity-filter": filters.Near,
    "endpoint-attribute-filter": filters.Threshold,
    "header-based-testing-filter": filters.ByAddress,
}
SCORERS: dict[str, Callable[..., Scorer]] = {
    "queue-scorer": lambda: scorers.Fewest(lambda page: page.waiting),
    "running-requests-size-scorer": lambda: scorers.Fewest(lambda page: page.running),
    "kv-cache-utilization-scorer": scorers.KvFree,
    "prefix-cache-scorer": scorers.Prefix,
    "precise-prefix-cache-scorer": scorers.Prefix,
    "lora-affinity-scorer": scorers.LoraAffinity,
    "load-aware-scorer": scorers.LoadAware,
    "active-request-scorer": scorers.ActiveRequests,
    "token-load-scorer": scorers.TokenLoad,
    "session-affinity-scorer": scorers.LastOfSession,
    "no-hit-lru-scorer": scorers.NoHitLru,
    "context-length-aware": scorers.ContextLength,
    "topology-affinity-scorer": scorers.Near,
    "endpoint-attribute-scorer": scorers.Range,
    "header-label-affinity-scorer": scorers.HeaderLabel,
}
OWN: dict[str, Callable[[PickingSettings], Scorer]] = {
    "lorapick-residency-scorer": own.Residency,
    "lorapick-weighted-scorer": own.WeightedSum,
    "lorapick-cost-scorer": own.LeastSeconds,
}
"""Scorers that take the weights and affinities of `picking` for their parameters."""
PICKERS: dict[str, Picker] = {
    "max-score-picker": pickers.by_score,
    "random-picker": pickers.by_chance,
    "weighted-random-picker": pickers.by_weight,
}


def make_filter(spec: PluginSpec) -> Filter:
    """The filter of a checked profile."""
    return FILTERS[spec.type](**spec.parameters)


def make_scorer(spec: PluginSpec, settings: PickingSettings) -> Scorer:
    """The scorer of a checked profile."""
    if spec.type in OWN:
        return OWN[spec.type](settings)
    return SCORERS[spec.type](**spec.parameters)
