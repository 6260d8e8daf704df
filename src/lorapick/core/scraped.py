"""What a picker that only reads metrics pages knows of a pod: the view of llm-d's endpoint picker.

In: reports of scrapes. Out: `Scraped`, one value per pod. Not here: our own dispatches, residency beliefs, and
whatever else we know better (see `core.podload`, `core.residency`).

As in llm-d's extractor (`datalayer/extractor/metrics`), a figure that a page lacks keeps its last value, also over a
restart of the pod's process, and everything is 0 or empty before the first page that has it.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from lorapick.model.pods import PodReport
from lorapick.model.units import AdapterName, Ratio


class Scraped(NamedTuple):
    """Figures of the last page that had them."""

    waiting: float
    """Requests in the engine's queue."""
    kv_usage: Ratio
    running_adapters: frozenset[AdapterName]
    """Names under `running_lora_adapters`: adapters with requests in flight, not those resident."""
    waiting_adapters: frozenset[AdapterName]
    """Names under `waiting_lora_adapters`; a real vLLM puts the same names there."""
    max_loras: int
    """Label `max_lora` of the same series; 0 before an adapter was first used on the pod."""
    running: float = 0.0
    """Requests that the engine runs."""
    attributes: Mapping[str, float] = MappingProxyType({})
    """Metrics that a configuration names."""

    def after(self, report: PodReport) -> "Scraped":
        """The same pod after one more page."""
        running, queued, max_loras = self.running_adapters, self.waiting_adapters, self.max_loras
        if (both := report.in_flight_adapters) is not None:
            running = queued = frozenset(both)
            if report.running_adapters is not None:
                running = frozenset(report.running_adapters)
            if report.waiting_adapters is not None:
                queued = frozenset(report.waiting_adapters)
            max_loras = max_loras if report.max_loras is None else report.max_loras
        waiting, usage, runs = report.waiting, report.kv_usage, report.running
        return Scraped(
            self.waiting if waiting is None else float(max(0, waiting)),
            usage if usage is not None and 0.0 <= usage <= 1.0 else self.kv_usage,
            running,
            queued,
            max_loras,
            self.running if runs is None else float(max(0, runs)),
            {**self.attributes, **dict(report.attributes)} if report.attributes else self.attributes,
        )


NEVER_SCRAPED = Scraped(0.0, 0.0, frozenset(), frozenset(), 0)
"""A pod before its first page."""
