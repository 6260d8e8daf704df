"""What is counted of prefill on one pod and decode on another, and its families on the pod's page.

In: how each step of a handover ended. Out: prometheus_client families: vLLM's of its NixlConnector, and our own.
Not here: what a handover is (see `sidecar`, `pulling`, `holding`).

vLLM has its families only where a KV connector is configured; here they show on pods that were given a role, and on
others from their first handover on.
"""

from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum

from prometheus_client import Counter, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from lorapick.live.podserver.options import PodServerOptions
from lorapick.model.pods import Role
from lorapick.model.units import Bytes, Seconds


class Prefilled(StrEnum):
    """How the sidecar's first step ended."""

    OK = "ok"
    REFUSED = "refused"
    """The prefiller answered 4xx, which the client got."""
    CLIENT_GONE = "client_gone"
    UNREACHABLE = "prefiller_unreachable"
    ERROR = "prefiller_error"
    """It answered neither 2xx nor 4xx."""
    TIMEOUT = "prefiller_timeout"
    NO_KV = "no_kv"
    """It answered 2xx without `kv_transfer_params` that say where KV is."""
    BAD_ANSWER = "bad_answer"
    """Its answer is none of vLLM's, or longer than any."""


class Pulled(StrEnum):
    """How a pull of KV by the pod that decodes ended."""

    OK = "ok"
    MISMATCH = "kv_mismatch"
    """Computed under another adapter, or for another prompt."""
    UNKNOWN = "kv_unknown"
    """Not held (any more), or the pod is another process by now."""
    UNREACHABLE = "kv_unreachable"
    """The pod that has it does not answer."""
    FORBIDDEN = "kv_forbidden"
    """The pod that has it is none of `prefillers`."""
    INCOMPLETE = "kv_incomplete"
    """`kv_transfer_params` lack what is needed."""
    LOST = "kv_lost"
    """It went, or its pod did, during the transfer."""
    ABORTED = "aborted"
    """The client went away during the transfer."""


class Let(StrEnum):
    """How KV held for another pod was let go."""

    RELEASED = "released"
    """The other pod has it, or does not want it."""
    EXPIRED = "expired"
    LOST = "lost"
    """The pod restarted."""


LOCAL = (
    *(Prefilled.UNREACHABLE, Prefilled.ERROR, Prefilled.TIMEOUT, Prefilled.NO_KV, Prefilled.BAD_ANSWER),
    *(Pulled.MISMATCH, Pulled.UNKNOWN, Pulled.UNREACHABLE, Pulled.FORBIDDEN, Pulled.INCOMPLETE, Pulled.LOST),
)
"""Why a pod computed a prompt that should have been prefilled elsewhere."""

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 5.0)
_BYTES = tuple(2.0 ** (10 + place) for place in range(1, 25, 2))


class HandoverCounts(Collector):
    """The families of one pod, all of which live as long as its process."""

    def __init__(self, options: PodServerOptions) -> None:
        self._role = options.role
        self._engine = ("model_name", "engine"), (options.base_model, "0")
        self.held: Callable[[], int] = lambda: 0
        """Prompts whose KV is held for other pods now."""
        self.broken: Callable[[], int] = lambda: 0
        """Times that a reserved adapter had to leave memory."""
        self.awaited: Callable[[], int] = lambda: 0
        """Times that an adapter left its slot while a request for it was here, prefilled elsewhere."""
        self._used = False
        self._prefills = _counter(
            "prefill_requests", "First steps of this pod's sidecar, by how they ended.", label="result"
        )
        self._pulls = _counter("kv_transfers", "Pulls of KV from other pods, by how they ended.", label="result")
        self._local = _counter(
            "local_prefills", "Prompts computed here though a prefiller was named, by the reason.", label="reason"
        )
        self._let = _counter("kv_releases", "Prompts whose held KV was let go, by how.", label="result")
        self._bytes = self._histogram(
            "nixl_bytes_transferred", "Histogram of bytes transferred per NIXL KV Cache transfers.", bounds=_BYTES
        )
        self._seconds = self._histogram(
            "nixl_xfer_time_seconds", "Histogram of transfer duration for NIXL KV Cache transfers.", bounds=_SECONDS
        )
        self._failed = self._count("nixl_num_failed_transfers", "Number of failed NIXL KV Cache transfers.")
        self._expired = self._count("nixl_num_kv_expired_reqs", "Number of requests that had their KV expire.")
        self._declare()

    def prefilled(self, result: Prefilled) -> None:
        """The sidecar's first step ended."""
        self._used = True
        self._prefills.labels(result.value).inc()

    def pulled(self, result: Pulled) -> None:
        """A pull ended."""
        self._used = True
        self._pulls.labels(result.value).inc()
        if result is Pulled.LOST:
            self._failed.labels(*self._engine[1]).inc()

    def moved(self, size: Bytes, seconds: Seconds) -> None:
        """A transfer of `size` bytes took real `seconds`."""
        self._bytes.labels(*self._engine[1]).observe(size)
        self._seconds.labels(*self._engine[1]).observe(seconds)

    def computed_here(self, reason: Prefilled | Pulled) -> None:
        """A prompt that should have been prefilled elsewhere is computed here."""
        self._used = True
        self._local.labels(reason.value).inc()

    def let_go(self, how: Let) -> None:
        """Held KV was let go."""
        self._used = True
        self._let.labels(how.value).inc()
        if how is Let.EXPIRED:
            self._expired.labels(*self._engine[1]).inc()

    def used(self) -> None:
        """A handover concerns this pod: from now on its families show."""
        self._used = True

    def describe(self) -> Iterable[Metric]:
        """For the registry, which finds families by name from the start, shown or not."""
        return self._families()

    def collect(self) -> Iterable[Metric]:
        """Called by the registry for each page."""
        return self._families() if self._used or self._role is not Role.BOTH else ()

    def _families(self) -> Iterator[Metric]:
        for vllm in (self._bytes, self._seconds, self._failed, self._expired):
            yield from vllm.collect()
        for own in (self._prefills, self._pulls, self._local, self._let):
            yield from own.collect()
        text = "Times that an adapter left its slot though a request that is prefilled elsewhere had reserved it."
        yield CounterMetricFamily("lorapick_pod_reservations_broken", text, value=self.broken())
        text = "Times that an adapter left its slot while a request that is prefilled elsewhere waited for it here."
        yield CounterMetricFamily("lorapick_pod_awaited_evictions", text, value=self.awaited())
        yield GaugeMetricFamily("lorapick_pod_kv_held", "Prompts whose KV is held for other pods.", value=self.held())
        role = GaugeMetricFamily("lorapick_pod_role", "Part of a disaggregated fleet, of value 1.", labels=["role"])
        role.add_metric([self._role.value], 1)
        yield role

    def _declare(self) -> None:
        """Every series is there from the start, at 0."""
        for result in Prefilled:
            self._prefills.labels(result.value)
        for pulled in Pulled:
            self._pulls.labels(pulled.value)
        for reason in LOCAL:
            self._local.labels(reason.value)
        for let in Let:
            self._let.labels(let.value)

    def _count(self, name: str, text: str) -> Counter:
        counter = Counter(f"vllm:{name}", text, self._engine[0], registry=None)
        counter.labels(*self._engine[1])
        return counter

    def _histogram(self, name: str, text: str, *, bounds: tuple[float, ...]) -> Histogram:
        histogram = Histogram(f"vllm:{name}", text, self._engine[0], buckets=bounds, registry=None)
        histogram.labels(*self._engine[1])
        return histogram


def _counter(name: str, text: str, *, label: str) -> Counter:
    return Counter(f"lorapick_pod_{name}", text, (label,), registry=None)
