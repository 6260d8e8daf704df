"""Scorers of profiles: those of llm-d's endpoint picker (llm-d-router in August 2026, `plugins/scheduling/scorer`).

In: parameters, once; a decision. Out: a value per candidate. Formulas are those of llm-d, its oddities included: a pod
before its first adapter looks full to `lora-affinity-scorer`, and pages are not corrected by what was sent since.
Not here: weights, clamping, sums (see `policy`); scorers of lorapick's own (see `own`).
"""

from collections.abc import Callable

from lorapick.core.picking.epp.facts import COLD, IN_FLIGHT, TOKENS_IN_FLIGHT
from lorapick.core.picking.epp.filters import figure_of, pod_of
from lorapick.core.picking.epp.labels import Level, Places, Span, span_of
from lorapick.core.picking.gie import lora_affinity
from lorapick.core.picking.query import FleetView, Query
from lorapick.core.scraped import Scraped

BLOCK_TOKENS = 16
"""Tokens that a prefix block stands for (64 bytes)."""


class Simple:
    """What most scorers share."""

    needs: tuple[str, ...] = ()
    reads: tuple[str, ...] = ("scraped",)
    aware = False


class Fewest(Simple):
    """1 for the candidate with the fewest, 0 for the one with the most, 1 for all when they are equal."""

    def __init__(self, figure: Callable[[Scraped], float]) -> None:
        self._figure = figure

    def values(self, query: Query, view: FleetView, *, rows: list[int]) -> list[float]:
        """`queue-scorer` with those that wait, `running-requests-size-scorer` with those that run."""
        del query
        figure, pages = self._figure, view.scraped
        counts = [figure(pages[row]) for row in rows]
        least, most = min(counts), max(counts)
        if most == least:
            return [1.0] * len(rows)
        span = most - least
        return [(most - count) / span for count in counts]


class KvFree(Simple):
    """`kv-cache-utilization-scorer`: share of the KV cache that is free."""

    def values(self, query: Query, view: FleetView, *, rows: list[int]) -> list[float]:
        """Of each."""
        del query
        pages = view.scraped
        return [1.0 - pages[row].kv_usage for row in rows]


class LoraAffinity(Simple):
    """`lora-affinity-scorer`."""

    def values(self, query: Query, view: FleetView, *, rows: list[int]) -> list[float]:
        """1, 0.8, 0.6 or 0 (see `core.picking.gie`)."""
        name, pages = query.adapter, view.scraped
        return [lora_affinity(name, pages[row]) for row in rows]


class LoadAware(Simple):
    """`load-aware-scorer`: 0.5 without a queue, down to 0 with one of the threshold."""

    def __init__(self, threshold: float) -> None:
        self._threshold = threshold

    def values(self, query: Query, view: FleetView, *, rows: list[int]) -> list[float]:
        """Of each."""
        del query
        most = self._threshold
        return [0.5 * (1.0 - min(view.scraped[row].waiting, most) / most) for row in rows]


class Prefix(Simple):
    """`prefix-cache-scorer`: share of the prompt that is cached, and with `weight` how much that is."""

    reads: tuple[str, ...] = ()

    def __init__(self, weight: float, *, scale_tokens: float) -> None:
        self._weight, self._scale = weight, scale_tokens

    def values(self, query: Query, view: FleetView, *, rows: list[int]) -> list[float]:
        """Of each."""
        del view
        if not query.kv:
            return [0.0] * len(rows)
        share_of = query.kv.get
        shares = [share_of(row, 0.0) for row in rows]
        if not self._weight:
            return shares
        whole = query.facts.blocks * BLOCK_TOKENS / self._scale
        return [self._weight * min(1.0, share * whole) ** 2 + (1.0 - self._weight) * share for share in shares]


class ActiveRequests(Simple):
    """`active-request-scorer`: by our own requests that each has."""

    needs: tuple[str, ...] = (IN_FLIGHT,)
    reads: tuple[str, ...] = ()

    def __init__(self, idle: int, *, most: float) -> None:
        self._idle, self._most = idle, most

    def values(self, query: Query, view: FleetView, *, rows: list[int]) -> list[float]:
        """1 up to `idle` of them; above, from `most` down to 0 for the busiest."""
        del view
        counts = [query.facts.in_flight.get(row, 0) for row in rows]
        busiest = max(counts)
        return [1.0 if count <= self._idle else (busiest - count) / busiest * self._most for count in counts]


class TokenLoad(Simple):
    """`token-load-scorer`: by the tokens of our own requests that each has."""

    needs: tuple[str, ...] = (TOKENS_IN_FLIGHT,)
    reads: tuple[str, ...] = ()

    def __init__(self, threshold: float) -> None:
        self._threshold = threshold

    def values(self, query: Query, view: FleetView, *, rows: list[int]) -> list[float]:
        """From 1 without any down to 0 at the threshold."""
        del view
        tokens = query.facts.tokens_in_flight.get
        return [1.0 - min(1.0, tokens(row, 0.0) / self._threshold) for row in rows]


class LastOfSession(Simple):
    """`session-affinity-scorer`: 1 for the pod that served the session last, 0 for the others."""

    reads: tuple[str, ...] = ()

    def values(self, query: Query, view: FleetView, *, rows: list[int]) -> list[float]:
        """Of each."""
        del view
        return [1.0 if row == query.session_row else 0.0 for row in rows]


class Range(Simple):
    """`endpoint-attribute-scorer`: the place of GPU utilisation, or of another attribute, between two bounds.

    Without bounds between the candidates' own figures.
    """

    reads: tuple[str, ...] = ("scraped",)

    def __init__(self, *, lower: bool, least: float | None, most: float | None, attribute: str | None = None) -> None:
        self._lower, self._least, self._most, self._attribute = lower, least, most, attribute

    def values(self, query: Query, view: FleetView, *, rows: list[int]) -> list[float]:
        """0 without a figure; 1 for all when the candidates' figures are one and no bounds are given."""
        del query
        figures = [figure_of(view, row, attribute=self._attribute) for row in rows]
        known = [figure for figure in figures if figure is not None]
        if not known:
            return [0.0] * len(rows)
        least = min(known) if self._least is None else self._least
        most = max(known) if self._most is None else self._most
        return [0.0 if figure is None else self._place(figure, least=least, most=most) for figure in figures]

    def _place(self, figure: float, *, least: float, most: float) -> float:
        if least == most:
            return 1.0
        place = min(1.0, max(0.0, (figure - least) / (most - least)))
        return 1.0 - place if self._lower else place


class HeaderLabel(Simple):
    """`header-label-affinity-scorer`: 1 for pods whose label has the value of a header of the request."""

    reads: tuple[str, ...] = ()

    def __init__(self, header: str, *, label: str) -> None:
        self._header, self._label = header, label

    def values(self, query: Query, view: FleetView, *, rows: list[int]) -> list[float]:
        """0 for the others; for all when the header is missing or empty."""
        asked = query.facts.headers.get(self._header)
        if not asked:
            return [0.0] * len(rows)
        return [1.0 if pod_of(view, row).labels.get(self._label) == asked else 0.0 for row in rows]


class NoHitLru(Simple):
    """`no-hit-lru-scorer`: requests that nobody has cached go to whom that has not happened for longest."""

    needs: tuple[str, ...] = (COLD,)
    reads: tuple[str, ...] = ()

    def values(self, query: Query, view: FleetView, *, rows: list[int]) -> list[float]:
        """0.5 for all when some candidate has a part cached; else 1 for the first that never had one, down to 0."""
        del view
        if any(query.kv.get(row, 0.0) > 0.0 for row in rows):
            return [0.5] * len(rows)
        if len(rows) == 1:
            return [1.0]
        ranks = {row: place for place, row in enumerate(query.facts.cold)}
        never = [row for row in rows if row not in ranks]
        places = {row: place for place, row in enumerate(never)}
        last = len(rows) - 1
        return [max(0.0, 1.0 - places.get(row, len(never) + ranks.get(row, 0)) / last) for row in rows]


class ContextLength(Simple):
    """`context-length-aware`: how well the range under a pod's label fits the prompt."""

    reads: tuple[str, ...] = ()

    def __init__(self, label: str) -> None:
        self._label = label

    def values(self, query: Query, view: FleetView, *, rows: list[int]) -> list[float]:
        """0.5 without the label, 0 with one that cannot be read."""
        tokens = query.facts.prompt_tokens
        found = []
        for row in rows:
            text = pod_of(view, row).labels.get(self._label)
            span = span_of(text) if text is not None else None
            found.append(fit(tokens, span) if span is not None else 0.5 if text is None else 0.0)
        return found


def fit(tokens: int, span: Span) -> float:
    """Above 0.3 within the range, the more the tighter it is and the more room it leaves; below 0.3 outside."""
    if span.least <= tokens <= span.most:
        width = span.most - span.least
        if not width:
            return 1.0
        return 0.3 + 0.7 * (0.7 / (1.0 + width / 10_000.0) + 0.3 * (span.most - tokens) / width)
    beyond = tokens - span.most if tokens > span.most else span.least - tokens
    return 0.3 / (1.0 + beyond / 1000.0)


NEARNESS = {Level.HOST: 1.0, Level.RACK: 0.2, Level.ZONE: 0.05, Level.REGION: 0.02, Level.NOWHERE: 0.0}


class Near(Simple):
    """`topology-affinity-scorer`: by how near a pod is to the one that decodes."""

    reads: tuple[str, ...] = ()

    def __init__(self, places: dict[str, str]) -> None:
        self._places = Places(**places)

    def values(self, query: Query, view: FleetView, *, rows: list[int]) -> list[float]:
        """0 for all when nobody decodes yet."""
        if query.facts.peer < 0:
            return [0.0] * len(rows)
        peer = pod_of(view, query.facts.peer)
        return [NEARNESS[self._places.level(pod_of(view, row), peer)] for row in rows]
