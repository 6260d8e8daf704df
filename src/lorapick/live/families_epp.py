"""The names under which other endpoint pickers publish requests, so that boards made for those show this picker too.

In: series of requests as counted (see `live.metrics_epp`), one fleet snapshot. Out: prometheus_client families, under
the names of llm-d's router (`llm_d_epp_*`), under the older ones of the Gateway API Inference Extension
(`inference_objective_*`, `inference_pool_*`, `inference_extension_*`), or under both. Not here: counting.

Names and labels are those of llm-d-router's docs/metrics.md; buckets are a choice from theirs. What this picker cannot
know, or has no counterpart of, has no series (docs/metrics.md lists what there is).
"""

from collections.abc import Iterable, Iterator, Sequence
from statistics import stdev
from typing import NamedTuple

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from lorapick import __version__
from lorapick.live.families_kinds import Labels, add_row, empty_row, words_of
from lorapick.live.publish import PodRow
from lorapick.model.pods import Role

DISAGGREGATOR = "disagg-profile-handler"
"""llm-d's plugin that decides on prefill elsewhere; there a label of its counter."""
POOL = "lorapick"
"""Value of the labels that name an InferencePool: one picker serves one pool."""
FLOW = ("model_name", "target_model_name", "fairness_id", "priority")
"""What tells series from one another."""
MODEL = FLOW[:2]

_LATENCY = (0.05, 0.1, 0.2, 0.4, 0.8, 1.5, 3.0, 6.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0)
_TOKENS = (16.0, 64.0, 256.0, 1024.0, 4096.0, 16_384.0, 65_536.0)
_PER_TOKEN = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
_BYTES = (256.0, 1024.0, 4096.0, 16_384.0, 65_536.0, 262_144.0, 1_048_576.0, 8_388_608.0)
WAIT_BOUNDS = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
SCHEDULER_BOUNDS = (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1)


class Shape(NamedTuple):
    """One histogram of requests: its name in both dialects."""

    new: str
    old: str
    text: str
    bounds: tuple[float, ...]
    streaming: str | None = None
    """Value of that label; None: the family has no such label."""


SHAPES = (
    Shape("request_duration_seconds", "request_duration_seconds", "Of served requests, arrival to end.", _LATENCY),
    Shape("request_size_bytes", "request_sizes", "Size of the request's body.", _BYTES),
    Shape("request_ttft_seconds", "request_ttft_seconds", "Arrival to first bytes of the answer.", _LATENCY, "true"),
    Shape("request_ttft_seconds", "request_ttft_seconds", "Arrival to first bytes of the answer.", _LATENCY, "false"),
    Shape("request_streaming_tpot_seconds", "request_tpot_seconds", "Of streamed answers, per token.", _PER_TOKEN),
    Shape("request_ntpot_seconds", "normalized_time_per_output_token_seconds", "Duration / tokens.", _PER_TOKEN),
    Shape("request_input_tokens", "input_tokens", "Prompt tokens, as answers tell.", _TOKENS),
    Shape("request_output_tokens", "output_tokens", "Output tokens, as answers tell.", _TOKENS),
    Shape("request_cached_tokens", "prompt_cached_tokens", "Prompt tokens from the cache, as answers tell.", _TOKENS),
)
DURATION, SIZE, TTFT_STREAMED, TTFT_WHOLE, TPOT, NTPOT, INPUT, OUTPUT, CACHED = range(len(SHAPES))
"""Places in `SHAPES` and in a series' rows."""
BOUNDS = tuple(shape.bounds for shape in SHAPES)


class Dialect(NamedTuple):
    """How one generation of endpoint pickers names things."""

    requests: str
    """Prefix of what is counted of requests; likewise the next two."""
    pool: str
    extension: str
    total: Labels
    errors: Labels
    """Without `error_code`."""
    running: tuple[str, Labels]
    histograms: Labels
    ready: str
    queue: tuple[str, str]
    """Name, and the label that names the pod."""
    pod: str
    """Label that names the pod a request was sent to."""
    split: tuple[str, ...]
    """Names of the counter of prefills on other pods."""
    new: bool
    """Whether it takes the new names of `SHAPES`, and labels that name the plugin."""


_PREFIX = "llm_d_epp_"
ROUTER = Dialect(
    requests=_PREFIX,
    pool=_PREFIX,
    extension=_PREFIX,
    total=FLOW,
    errors=FLOW,
    running=("request_running", FLOW),
    histograms=FLOW,
    ready="ready_endpoints",
    queue=("per_endpoint_queue_size", "model_server_endpoint"),
    pod="endpoint_name",
    split=(f"{_PREFIX}disagg_decision",),
    new=True,
)
"""llm-d-router, 2026."""
GATEWAY = Dialect(
    requests="inference_objective_",
    pool="inference_pool_",
    extension="inference_extension_",
    total=(*MODEL, "priority"),
    errors=MODEL,
    running=("running_requests", MODEL[:1]),
    histograms=MODEL,
    ready="ready_pods",
    queue=("per_pod_queue_size", "model_server_pod"),
    pod="pod_name",
    split=tuple(f"llm_d_inference_scheduler_{name}_decision" for name in ("disagg", "pd")),
    new=False,
)
"""Gateway API Inference Extension, and llm-d's scheduler of its time."""
DIALECTS = {"llm-d": (ROUTER,), "gie": (GATEWAY,), "both": (ROUTER, GATEWAY), "off": ()}
"""By the value of `server.metrics_compat`."""


class Series:
    """What is counted of the requests with one combination of labels."""

    __slots__ = ("errors", "key", "requests", "rows", "running", "sent", "split", "waiting", "waits")

    def __init__(self, key: Labels) -> None:
        self.key = key
        """Values of `FLOW`."""
        self.requests = self.running = self.waiting = self.sent = 0
        self.split = 0
        """Of those that were sent, how many another pod prefills."""
        self.errors: dict[str, int] = {}
        """By error code."""
        self.waits: dict[str, list[float]] = {}
        """Waits at the picker, by what ended them."""
        self.rows = [empty_row(shape.bounds) for shape in SHAPES]

    def copy(self) -> "Series":
        """As it is now, for a page that is made while counting goes on."""
        same = Series.__new__(Series)
        same.key, same.requests, same.running, same.waiting = self.key, self.requests, self.running, self.waiting
        same.sent, same.split = self.sent, self.split
        same.errors = dict(self.errors)
        same.waits = {outcome: [*row] for outcome, row in self.waits.items()}
        same.rows = [[*row] for row in self.rows]
        return same


class Seen(NamedTuple):
    """What is shown, at one instant."""

    series: Sequence[Series] = ()
    attempts: Sequence[tuple[Labels, int]] = ()
    """By status, target model, pod, namespace and port."""
    scheduler: Sequence[float] = ()
    """Row of `SCHEDULER_BOUNDS`."""
    pods: Sequence[PodRow] | None = None
    """None: nobody shows the fleet."""


def families(seen: Seen, dialect: Dialect) -> Iterator[Metric]:
    """All families of one dialect."""
    yield from _counts(seen.series, dialect)
    yield from _histograms(seen.series, dialect)
    yield from _waits(seen.series, dialect)
    yield from _scheduler(seen, dialect)
    if seen.pods is not None:
        yield from _pool(seen.pods, dialect)
    yield from _splits(seen, dialect)


def _groups(series: Iterable[Series], labels: Labels) -> dict[Labels, list[Series]]:
    """Series that differ in other labels only, together."""
    places = [FLOW.index(label) for label in labels]
    found: dict[Labels, list[Series]] = {}
    for each in series:
        found.setdefault(tuple(each.key[place] for place in places), []).append(each)
    return found


def _counts(series: Sequence[Series], dialect: Dialect) -> Iterator[Metric]:
    total = CounterMetricFamily(f"{dialect.requests}request", "Requests that arrived.", labels=dialect.total)
    for key, those in _groups(series, dialect.total).items():
        total.add_metric(key, sum(each.requests for each in those))
    yield total
    text = "Requests that failed or were refused."
    errors = CounterMetricFamily(f"{dialect.requests}request_error", text, labels=(*dialect.errors, "error_code"))
    for key, those in _groups(series, dialect.errors).items():
        for code in {code: None for each in those for code in each.errors}:
            errors.add_metric((*key, code), sum(each.errors.get(code, 0) for each in those))
    yield errors
    name, labels = dialect.running
    running = GaugeMetricFamily(dialect.requests + name, "Requests sent to pods that have not ended.", labels=labels)
    for key, those in _groups(series, labels).items():
        running.add_metric(key, sum(each.running for each in those))
    yield running


def _histograms(series: Sequence[Series], dialect: Dialect) -> Iterator[Metric]:
    groups = _groups(series, dialect.histograms)
    made: dict[str, HistogramMetricFamily] = {}
    for place, shape in enumerate(SHAPES):
        places: tuple[int, ...] = (place,)
        streaming = (shape.streaming,) if shape.streaming is not None and dialect.new else ()
        if shape.streaming is not None and not dialect.new:
            if place == TTFT_WHOLE:
                continue  # without the label it is one with the streamed ones
            places = (TTFT_STREAMED, TTFT_WHOLE)
        name = dialect.requests + (shape.new if dialect.new else shape.old)
        labels = (*dialect.histograms, *("streaming" for _ in streaming))
        family = made.setdefault(name, HistogramMetricFamily(name, shape.text, labels=labels))
        for key, those in groups.items():
            row = _sum([each.rows[at] for each in those for at in places])
            if any(row[:-1]):
                add_row(family, (*key, *streaming), row=row, words=words_of(shape.bounds))
    yield from made.values()


def _sum(rows: Sequence[Sequence[float]]) -> Sequence[float]:
    return rows[0] if len(rows) == 1 else [sum(column) for column in zip(*rows, strict=True)]


def _waits(series: Sequence[Series], dialect: Dialect) -> Iterator[Metric]:
    labels = ("fairness_id", "priority", "outcome", "inference_pool", *MODEL)
    name = f"{dialect.extension}flow_control_request_queue_duration_seconds"
    waits = HistogramMetricFamily(name, "Waits at the picker, of requests that did wait.", labels=labels)
    size = GaugeMetricFamily(
        f"{dialect.extension}flow_control_queue_size",
        "Requests that wait at the picker.",
        labels=("fairness_id", "priority", "inference_pool", *MODEL),
    )
    for each in series:
        model, target, fairness, priority = each.key
        for outcome, row in each.waits.items():
            key = (fairness, priority, outcome, POOL, model, target)
            add_row(waits, key, row=row, words=words_of(WAIT_BOUNDS))
        if each.waits or each.waiting:
            size.add_metric((fairness, priority, POOL, model, target), each.waiting)
    yield waits
    yield size


def _scheduler(seen: Seen, dialect: Dialect) -> Iterator[Metric]:
    decisions = HistogramMetricFamily(f"{dialect.extension}scheduler_e2e_duration_seconds", "Time of one decision.")
    row = seen.scheduler or empty_row(SCHEDULER_BOUNDS)
    add_row(decisions, (), row=row, words=words_of(SCHEDULER_BOUNDS))
    yield decisions
    labels = ("status", "target_model_name", dialect.pod, "namespace", "port")
    attempts = CounterMetricFamily(f"{dialect.extension}scheduler_attempts", "Decisions.", labels=labels)
    for key, count in seen.attempts:
        attempts.add_metric(key, count)
    yield attempts
    info = GaugeMetricFamily(f"{dialect.extension}info", "This build.", labels=("commit", "build_ref"))
    info.add_metric(("", __version__), 1)
    yield info


def _splits(seen: Seen, dialect: Dialect) -> Iterator[Metric]:
    """Samples only in a fleet with roles, as there: it is a plugin's."""
    roles = any(pod.role is not Role.BOTH for pod in seen.pods or ()) or any(each.split for each in seen.series)
    groups = _groups(seen.series, FLOW[1:2]) if roles else {}
    plugin = {"plugin_name": DISAGGREGATOR, "plugin_type": DISAGGREGATOR} if dialect.new else {}
    for name in dialect.split:
        text = "Requests sent to pods, by whether another pod prefills."
        family = CounterMetricFamily(name, text, labels=(*plugin, "model_name", "decision_type"))
        for (target,), those in groups.items():
            sent, split = (sum(each.sent for each in those), sum(each.split for each in those))
            for word, count in (("decode-only", sent - split), ("prefill-decode", split)):
                family.add_metric((*plugin.values(), target, word), count)
        yield family


def _pool(pods: Sequence[PodRow], dialect: Dialect) -> Iterator[Metric]:
    ready = sum(pod.ready for pod in pods)
    for name, text, values in (
        (dialect.ready, "Pods that may get requests.", [ready * 1.0]),
        ("average_queue_size", "Mean over pods of what waits there.", _mean(pod.queue_depth for pod in pods)),
        ("average_kv_cache_utilization", "Mean over pods.", _mean(pod.kv_usage for pod in pods)),
        ("average_running_requests", "Mean over pods of what runs there.", _mean(pod.running for pod in pods)),
        *(_spreads(pods) if dialect.new else ()),
    ):
        gauge = GaugeMetricFamily(dialect.pool + name, text, labels=("name",))
        for value in values:
            gauge.add_metric((POOL,), value)
        yield gauge
    name, label = dialect.queue
    queue = GaugeMetricFamily(dialect.pool + name, "Requests that wait at the pod.", labels=("name", label))
    for pod in pods:
        if pod.queue_depth is not None:
            queue.add_metric((POOL, pod.name), pod.queue_depth)
    yield queue


def _spreads(pods: Sequence[PodRow]) -> list[tuple[str, str, list[float]]]:
    """Which only the newer dialect has."""
    return [
        ("std_dev_queue_size", "Spread over pods of what waits there.", _spread(pod.queue_depth for pod in pods)),
        ("std_dev_kv_cache_utilization", "Spread over pods.", _spread(pod.kv_usage for pod in pods)),
        ("std_dev_running_requests", "Spread over pods of what runs there.", _spread(pod.running for pod in pods)),
    ]


def _spread(values: Iterable[float | None]) -> list[float]:
    """The standard deviation of a sample, of what is known; of one pod it is 0. A list as of `_mean`."""
    known = [value for value in values if value is not None]
    return [stdev(known) if len(known) > 1 else 0.0] if known else []


def _mean(values: Iterable[float | None]) -> list[float]:
    """The mean of what is known, as a list of one; nothing is known: none."""
    known = [value for value in values if value is not None]
    return [sum(known) / len(known)] if known else []
