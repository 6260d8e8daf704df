"""All retention policies by name. Add a policy: one file, one line here; it then runs live and in simulation."""

from collections.abc import Callable

from lorapick.core.retention.cost_aware import CostAware
from lorapick.core.retention.fifo import Fifo
from lorapick.core.retention.lfu import Lfu
from lorapick.core.retention.lru import Lru
from lorapick.core.retention.time_weighted import TimeWeighted
from lorapick.model.retention import FactsOf, Retention
from lorapick.model.settings import RetentionSettings

RETENTIONS: dict[str, Callable[[RetentionSettings, FactsOf], Retention]] = {
    "lru": Lru,
    "lfu": Lfu,
    "window": TimeWeighted,
    "cost": CostAware,
}
EVICTIONS = {**RETENTIONS, "fifo": Fifo}
"""By what engines may evict; nobody would choose the last one (`Pod.eviction`)."""


def make_retention(settings: RetentionSettings, facts: FactsOf) -> Retention:
    """The policy that the settings name, for one pod.

    Raises:
        ValueError: no policy has that name; the message lists those that exist.
    """
    maker = RETENTIONS.get(settings.policy)
    if maker is None:
        raise ValueError(f"retention.policy: {settings.policy!r} is unknown; use one of {', '.join(RETENTIONS)}")
    return maker(settings, facts)
