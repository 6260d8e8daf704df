"""Filters of profiles, as llm-d's endpoint picker has them (llm-d-router in August 2026, `plugins/scheduling/filter`).

In: parameters, once; a decision. Out: the candidates that remain. Where llm-d reads pages of pods, so does this, from
the last page that had the figure (`core.scraped`); what it counts itself comes from `facts`.
Not here: whether a pod is ready, fresh, of the right base model: `core.picking.filters` asked before.
"""

import operator
from collections.abc import Callable, Sequence
from typing import NamedTuple

from lorapick.core.draw import draw_for
from lorapick.core.picking.epp.facts import IN_FLIGHT, TOKENS_IN_FLIGHT, Facts
from lorapick.core.picking.epp.labels import Level, Places, Requirement, role_word, span_of
from lorapick.core.picking.query import FleetView, Query, host_of
from lorapick.core.scraped import Scraped
from lorapick.model.pods import GpuSource, Pod

TEST_HEADER = "test-epp-endpoint-selection"
"""Header of the conformance tests of the Gateway API Inference Extension."""


def pod_of(view: FleetView, row: int) -> Pod:
    """The pod of a candidate."""
    pod = view.pods[row]
    assert pod is not None, f"row {row} is a candidate and has no pod"
    return pod


class ByLabels:
    """`label-selector-filter`: pods whose labels fulfil every requirement."""

    needs: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()

    def __init__(self, requirements: Sequence[Sequence[object]]) -> None:
        self._requirements = [_requirement(each) for each in requirements]

    def keep(self, query: Query, view: FleetView, *, rows: list[int]) -> list[int]:
        """Those that match."""
        del query
        return [row for row in rows if all(each.holds(pod_of(view, row).labels) for each in self._requirements)]


def _requirement(parts: Sequence[object]) -> Requirement:
    key, operator, values = parts
    assert isinstance(values, list | tuple)
    return Requirement(str(key), str(operator), tuple(str(value) for value in values))


class ByLabel:
    """`by-label`: pods that have one of some values under a label."""

    needs: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()

    def __init__(self, label: str, values: Sequence[str], *, without: bool) -> None:
        self._label, self._values, self._without = label, tuple(values), without

    def keep(self, query: Query, view: FleetView, *, rows: list[int]) -> list[int]:
        """Those that have one, and with `without` those that have no such label."""
        del query
        return [row for row in rows if self._passes(pod_of(view, row).labels.get(self._label))]

    def _passes(self, value: str | None) -> bool:
        return self._without if value is None else value in self._values


class ByRole(ByLabel):
    """`decode-filter` and its like: by the role label, or the role that the list of pods gives."""

    def __init__(self, values: Sequence[str], *, without: bool) -> None:
        super().__init__("", values, without=without)

    def keep(self, query: Query, view: FleetView, *, rows: list[int]) -> list[int]:
        """Those that play it."""
        del query
        return [row for row in rows if self._passes(role_word(pod_of(view, row)))]


class PrefixAffinity:
    """`prefix-cache-affinity-filter`: pods that have most of the prompt cached, unless they are too busy by far."""

    needs: tuple[str, ...] = (TOKENS_IN_FLIGHT,)
    reads: tuple[str, ...] = ()

    def __init__(self, threshold: float, *, explore: float, most_penalty_ms: float, tokens_per_second: float) -> None:
        self._threshold, self._explore = threshold, explore
        self._most = most_penalty_ms / 1000.0
        self._speed = tokens_per_second

    def keep(self, query: Query, view: FleetView, *, rows: list[int]) -> list[int]:
        """Those pods; all when there is none, by chance, or when a request would wait there for too long."""
        del view
        cached = query.kv.get
        sticky = [row for row in rows if cached(row, 0.0) >= self._threshold]
        if not sticky or len(sticky) == len(rows):
            return rows
        if self._explore and draw_for(query.seed, query.request_id, purpose="explore:") < self._explore:
            return rows
        if self._most:
            waits = query.facts.tokens_in_flight.get
            there = min(waits(row, 0.0) for row in sticky)
            elsewhere = min(waits(row, 0.0) for row in rows if row not in sticky)
            if (there - elsewhere) / self._speed > self._most:
                return rows
        return sticky


class ByContextLength:
    """`context-length-aware` with `enableFiltering`: pods whose range holds the prompt, and those without one."""

    needs: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()

    def __init__(self, label: str) -> None:
        self._label = label

    def keep(self, query: Query, view: FleetView, *, rows: list[int]) -> list[int]:
        """Those pods; one with a range that cannot be read holds nothing."""
        return [row for row in rows if self._holds(pod_of(view, row), query.facts.prompt_tokens)]

    def _holds(self, pod: Pod, tokens: int) -> bool:
        text = pod.labels.get(self._label)
        if text is None:
            return True
        span = span_of(text)
        return span is not None and span.least <= tokens <= span.most


class UtilizationDetector:
    """`utilization-detector` in a profile: pods whose queue and KV cache have room; all when none has."""

    needs: tuple[str, ...] = ()
    reads: tuple[str, ...] = ("scraped",)

    def __init__(self, queue: float, *, kv: float, headroom: float) -> None:
        self._queue, self._kv = queue * (1.0 + headroom), kv * (1.0 + headroom)

    def keep(self, query: Query, view: FleetView, *, rows: list[int]) -> list[int]:
        """Those pods."""
        del query
        pages = view.scraped
        free = [row for row in rows if pages[row].waiting < self._queue and pages[row].kv_usage < self._kv]
        return free or rows


class ConcurrencyDetector:
    """`concurrency-detector` in a profile: pods with fewer own requests, or tokens, in flight than they may have."""

    needs: tuple[str, ...] = (IN_FLIGHT, TOKENS_IN_FLIGHT)
    reads: tuple[str, ...] = ()

    def __init__(self, mode: str, *, requests: int, tokens: int, headroom: float) -> None:
        self._requests = int(requests * (1.0 + headroom)) if mode != "tokens" else None
        self._tokens = int(tokens * (1.0 + headroom)) if mode != "requests" else None

    def keep(self, query: Query, view: FleetView, *, rows: list[int]) -> list[int]:
        """Those pods."""
        del view
        facts, requests, tokens = query.facts, self._requests, self._tokens
        return [
            row
            for row in rows
            if (requests is None or facts.in_flight.get(row, 0) < requests)
            and (tokens is None or facts.tokens_in_flight.get(row, 0.0) < tokens)
        ]


_Reading = Callable[[Facts, Scraped, int], float]
READINGS: dict[str, _Reading] = {
    "active-requests": lambda facts, _, row: float(facts.in_flight.get(row, 0)),
    "running-requests": lambda _, page, __: page.running,
    "waiting-queue": lambda _, page, __: page.waiting,
    "kv-cache-utilization": lambda _, page, __: page.kv_usage,
}
"""Figures that a condition may name."""


class Condition(NamedTuple):
    """A figure and the most that it may be."""

    reading: _Reading
    most: float


class Utilization:
    """`utilization-filter`: pods that fulfil every condition."""

    needs: tuple[str, ...] = (IN_FLIGHT,)
    reads: tuple[str, ...] = ("scraped",)

    def __init__(self, conditions: Sequence[Sequence[object]], *, fall_back: bool) -> None:
        self._conditions = [Condition(READINGS[str(metric)], float(str(most))) for metric, most in conditions]
        self._fall_back = fall_back

    def keep(self, query: Query, view: FleetView, *, rows: list[int]) -> list[int]:
        """Those pods; with `fall_back` all when there is none."""
        facts, pages = query.facts, view.scraped
        kept = [
            row for row in rows if all(each.reading(facts, pages[row], row) <= each.most for each in self._conditions)
        ]
        return kept or (rows if self._fall_back else [])


def gpu_of(view: FleetView, row: int) -> float | None:
    """GPU utilisation of a pod in [0, 1], as its exporter or its page says it; None: neither does."""
    return view.gpu[row] if view.gpu_source[row] in (GpuSource.DCGM, GpuSource.POD) else None


def figure_of(view: FleetView, row: int, *, attribute: str | None) -> float | None:
    """An attribute of a pod (None: its GPU utilisation); None: nobody has said it yet."""
    return gpu_of(view, row) if attribute is None else view.scraped[row].attributes.get(attribute)


COMPARES: dict[str, Callable[[float, float], bool]] = {
    "LessThan": operator.lt,
    "LessThanOrEqual": operator.le,
    "GreaterThan": operator.gt,
    "GreaterThanOrEqual": operator.ge,
    "Equal": operator.eq,
    "NotEqual": operator.ne,
}


class Threshold:
    """`endpoint-attribute-filter`: pods whose GPU utilisation, or another attribute, compares true."""

    needs: tuple[str, ...] = ()
    reads: tuple[str, ...] = ("scraped",)

    def __init__(
        self, compare: str, *, value: float, passes: bool, fall_back: bool, attribute: str | None = None
    ) -> None:
        self._compare, self._value, self._attribute = COMPARES[compare], value, attribute
        self._passes, self._fall_back = passes, fall_back

    def keep(self, query: Query, view: FleetView, *, rows: list[int]) -> list[int]:
        """Those pods, with `passes` those without a figure too; with `fall_back` all when there is none."""
        del query
        kept = [row for row in rows if self._holds(figure_of(view, row, attribute=self._attribute))]
        return kept or (rows if self._fall_back else [])

    def _holds(self, value: float | None) -> bool:
        return self._passes if value is None else self._compare(value, self._value)


class LastOfSession:
    """`session-affinity-filter`: the pod that served the session last, where it is a candidate."""

    needs: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()

    def keep(self, query: Query, view: FleetView, *, rows: list[int]) -> list[int]:
        """That pod alone; all when there is none."""
        del view
        return [query.session_row] if query.session_row in rows else rows


class ByAddress:
    """`header-based-testing-filter`: pods whose IP, or IP and port, a header lists; nobody without the header."""

    needs: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()

    def keep(self, query: Query, view: FleetView, *, rows: list[int]) -> list[int]:
        """Those pods."""
        listed = [each.strip() for each in query.facts.headers.get(TEST_HEADER, "").split(",")]
        return [row for row in rows if (address := pod_of(view, row).address) in listed or host_of(address) in listed]


class Near:
    """`topology-affinity-filter`: pods near the one that decodes; all when none is, or nobody decodes yet."""

    needs: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()

    def __init__(self, least: str, *, places: dict[str, str]) -> None:
        self._least = Level[least.upper()]
        self._places = Places(**places)

    def keep(self, query: Query, view: FleetView, *, rows: list[int]) -> list[int]:
        """Those pods."""
        if query.facts.peer < 0:
            return rows
        peer = pod_of(view, query.facts.peer)
        return [row for row in rows if self._places.level(pod_of(view, row), peer) >= self._least] or rows
