"""Counts requests the way other endpoint pickers do.

In: what `live.metrics` learns of each request. Out: series for `live.families_epp`, as of the last `freeze`. Not here:
names and labels on the page.

A series is one combination of model, target model, fairness id and priority. Models that have no label of their own,
and fairness ids once there are many series, share the label `other`: clients choose both, and a page must not grow
with them.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator

from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from lorapick.live import families_epp as epp
from lorapick.live.families_epp import Series
from lorapick.live.families_kinds import Labels, empty_row
from lorapick.live.labels import OTHER
from lorapick.live.publish import PodRow
from lorapick.model.events import RequestEnded
from lorapick.model.requests import Outcome, Request
from lorapick.model.units import Seconds

MOST_SERIES = 32
"""With a fairness id or a model of their own; one more for each priority takes the rest."""
_EXACT = 24
"""Of these, how many may have a fairness id of their own."""
MOST_ATTEMPTS = 500
"""Pairs of target model and pod that are counted apart."""
DEFAULT_FLOW = "default-flow"
"""Fairness id of requests that name none, as elsewhere."""
UNKNOWN = "unknown"
DISPATCHED, REJECTED, CANCELLED, EXPIRED = "Dispatched", "RejectedOther", "EvictedContextCancelled", "EvictedTTL"
"""What ended a wait."""
# Looking a member up in its enum, or a name in another module, takes longer than what is done with it.
_SERVED, _BOUNDS = Outcome.SERVED, epp.BOUNDS
_DURATION, _INPUT, _OUTPUT, _CACHED, _NTPOT = epp.DURATION, epp.INPUT, epp.OUTPUT, epp.CACHED, epp.NTPOT
_CODES = {403: "Forbidden", 404: "NotFound", 429: "ResourceExhausted", 500: "Internal"}


class Asked:
    """One request that was sent to a pod."""

    __slots__ = ("began", "series", "stream")

    def __init__(self, series: Series, *, stream: bool) -> None:
        self.series = series
        self.stream = stream
        self.began: Seconds | None = None
        """When the first bytes of its answer came."""


class EppMetrics(Collector):
    """Counts, and shows them in the dialects that are wanted."""

    def __init__(self, dialects: tuple[epp.Dialect, ...]) -> None:
        self._dialects = dialects
        self._series: dict[Labels, Series] = {}
        self._attempts: dict[Labels, int] = {}
        self._scheduler = empty_row(epp.SCHEDULER_BOUNDS)
        self._seen = epp.Seen()

    @property
    def wanted(self) -> bool:
        """Whether anybody will see it."""
        return bool(self._dialects)

    def _folded(self, key: tuple[str, str, str, str], *, known: bool) -> Series:
        """The series of a combination that has none: a new one while there is room, else one that it shares."""
        model, target, fairness, priority = key
        for tried, most in (
            (key, _EXACT if fairness != DEFAULT_FLOW else MOST_SERIES),
            ((model, target, OTHER, priority), MOST_SERIES),
        ):
            found = self._series.get(tried)
            if found is None and known and len(self._series) < most:
                found = self._series[tried] = Series(tried)
            if found is not None:
                return found
        shared = (OTHER, OTHER, OTHER, priority)
        return self._series.get(shared) or self._series.setdefault(shared, Series(shared))

    # -- one request

    def arrived(self, request: Request, target: str, *, label: str | None) -> Series:
        """A request for `target` arrived; `label` is its adapter's, None: the name may be anything."""
        model = request.model
        if label == OTHER:
            model = target = OTHER
        key = (model, target, request.fairness_id or DEFAULT_FLOW, str(request.priority))
        series = self._series.get(key) or self._folded(key, known=label is not None)
        series.requests += 1
        if request.body_bytes is not None:
            _add(series, epp.SIZE, value=request.body_bytes)
        return series

    def sent(self, series: Series, *, pod: str, address: str, stream: bool, split: bool = False) -> Asked:
        """A request went to a pod; `split`: another one prefills it."""
        series.running += 1
        series.sent += 1
        series.split += split
        self._attempt(("success", series.key[1], pod, address))
        return Asked(series, stream=stream)

    def refused(self, series: Series, status: int) -> None:
        """A request was answered by us."""
        self._error(series, error_code(status))
        self._attempt(("failure", series.key[1], "", ""))

    def refused_unread(self, status: int) -> None:
        """A transport refused a request of which nobody knows what it was for."""
        key = (UNKNOWN, UNKNOWN, UNKNOWN, "0")
        series = self._series.get(key) or self._series.setdefault(key, Series(key))
        series.requests += 1
        self._error(series, error_code(status))

    def waits(self, series: Series) -> None:
        """A request begins to wait."""
        series.waiting += 1

    def waited(self, series: Series, seconds: Seconds, *, outcome: str) -> None:
        """It waits no longer."""
        series.waiting -= 1
        row = series.waits.get(outcome)
        if row is None:
            row = series.waits[outcome] = empty_row(epp.WAIT_BOUNDS)
        row[bisect_left(epp.WAIT_BOUNDS, seconds)] += 1.0
        row[-1] += seconds

    def body_started(self, asked: Asked, now: Seconds, *, seconds: Seconds) -> None:
        """The first bytes of an answer came, so long after the arrival."""
        asked.began = now
        _add(asked.series, epp.TTFT_STREAMED if asked.stream else epp.TTFT_WHOLE, value=seconds)

    def ended(self, asked: Asked, event: RequestEnded, *, seconds: Seconds) -> None:
        """A request left, so long after its arrival."""
        series = asked.series
        series.running -= 1
        if event.outcome is _SERVED:
            _add(series, _DURATION, value=seconds)
            self._tokens(asked, event, seconds=seconds)
        else:
            self._error(series, "ModelServerError" if event.outcome is Outcome.FAILED else "Unknown")

    @staticmethod
    def _tokens(asked: Asked, event: RequestEnded, *, seconds: Seconds) -> None:
        series, output = asked.series, event.output_tokens
        if event.prompt_tokens is not None:
            _add(series, _INPUT, value=event.prompt_tokens)
        if event.cached_tokens is not None:
            _add(series, _CACHED, value=event.cached_tokens)
        if output is None:
            return
        _add(series, _OUTPUT, value=output)
        if output > 0:
            _add(series, _NTPOT, value=seconds / output)
        if output > 1 and asked.stream and asked.began is not None:
            _add(series, epp.TPOT, value=(event.t - asked.began) / (output - 1))

    def decided(self, seconds: Seconds) -> None:
        """A decision took so long."""
        self._scheduler[bisect_left(epp.SCHEDULER_BOUNDS, seconds)] += 1.0
        self._scheduler[-1] += seconds

    @staticmethod
    def _error(series: Series, code: str) -> None:
        series.errors[code] = series.errors.get(code, 0) + 1

    def _attempt(self, key: Labels) -> None:
        """Count one, by status, target model, pod and its address."""
        count = self._attempts.get(key)
        if count is None and len(self._attempts) >= MOST_ATTEMPTS:
            key = (key[0], OTHER, *key[2:])
            count = self._attempts.get(key)
        self._attempts[key] = (count or 0) + 1

    # -- the page

    def forget_pod(self, pod: str) -> None:
        """Drop the series of a pod that is gone."""
        for key in [key for key in self._attempts if key[2] == pod]:
            del self._attempts[key]

    def freeze(self, pods: list[PodRow] | tuple[PodRow, ...] | None) -> None:
        """Show everything as it is now; `pods` as published, None: nobody publishes them."""
        self._seen = epp.Seen(
            series=[series.copy() for series in self._series.values()],
            attempts=[*self._by_port().items()],
            scheduler=[*self._scheduler],
            pods=pods,
        )

    def _by_port(self) -> Counter[Labels]:
        """Attempts by the labels that are shown; a pod may have come back at another address."""
        shown: Counter[Labels] = Counter()
        for (status, target, pod, address), count in self._attempts.items():
            shown[status, target, pod, "", address.rpartition(":")[2]] += count
        return shown

    def collect(self) -> Iterator[Metric]:
        """What was frozen last, in each dialect."""
        for dialect in self._dialects:
            yield from epp.families(self._seen, dialect)


def _add(series: Series, place: int, *, value: float) -> None:
    row = series.rows[place]
    row[bisect_left(_BOUNDS[place], value)] += 1.0
    row[-1] += value


def error_code(status: int) -> str:
    """The word that other endpoint pickers have for a refusal with this HTTP status."""
    return _CODES.get(status, "BadRequest" if status < 500 else "ServiceUnavailable")
