"""What is asked of Prometheus, once: rules, dashboard and autoscalers put the same questions.

In: the window of rates, a matcher for pods. Out: PromQL. Not here: thresholds (see `dash.rules`), what is drawn (see
`dash.boards`). Names of metrics: docs/metrics.md.

Several pickers of one fleet each count the requests that they sent, so counters of requests, swaps and useful time are
added up. All of them see the same pods: of gauges, and of evictions, in which every picker believes, the most is taken.
"""

from typing import NamedTuple

CLIENTS_MISTAKES = "adapter_unknown|body_invalid|body_too_large|path_refused|client_error"
"""Reasons of rejections and failures that are no errors of ours."""
RESIDENCY_WINDOW = "10m"
"""In which adapters leave their slots (`model.signals.RESIDENCY_WINDOW`)."""


class Queries(NamedTuple):
    """Questions over one window, about all pods or some."""

    window: str
    """Of rates, such as `2m`."""
    pods: str = ""
    """Matcher for the label `pod`, such as `pod=~"$pod"`; empty: all pods."""

    def _by_pod(self, metric: str, *, of: str = "") -> str:
        matchers = ",".join(each for each in (of, self.pods) if each)
        return f"{metric}{{{matchers}}}" if matchers else metric

    def gauge(self, name: str) -> str:
        """A gauge of pods, as the picker that shows most has it."""
        return f"max by (pod) ({self._by_pod(f'lorapick_{name}')})"

    # -- is it thrash?

    def swaps_by_pod(self) -> str:
        """Loads per second that somebody waited for."""
        return f"sum by (pod) (rate({self._by_pod('lorapick_swaps_total')}[{self.window}]))"

    def swaps(self) -> str:
        """The same per pod, in the mean."""
        return f"sum(rate({self._by_pod('lorapick_swaps_total')}[{self.window}])) / {self.count_of_pods()}"

    def count_of_pods(self) -> str:
        """Pods that have slots."""
        return f"count({self.gauge('slots')})"

    def evictions_by_pod(self) -> str:
        """Adapters per second that left a slot for another one, or as somebody asked: no restarts or failed loads."""
        evictions = self._by_pod("lorapick_evictions_total", of='by!~"restart|load_failed"')
        return f"max by (pod) (sum without (by) (rate({evictions}[{RESIDENCY_WINDOW}])))"

    def used_by_pod(self) -> str:
        """Slots in use, in the mean of the same time."""
        return f"max by (pod) (avg_over_time({self._by_pod('lorapick_slots_used')}[{RESIDENCY_WINDOW}]))"

    def residency_by_pod(self) -> str:
        """Mean residency that conservation allows: slots in use / evictions per second. Nothing where nobody left."""
        return f"{self.used_by_pod()} / ({self.evictions_by_pod()} > 0)"

    def residency(self) -> str:
        """The same of all pods."""
        return f"sum({self.used_by_pod()}) / (sum({self.evictions_by_pod()}) > 0)"

    def residency_quantile(self, share: float, *, by: str = "") -> str:
        """Of residencies that ended; `by` is empty, or `pod`."""
        buckets = f"rate({self._by_pod('lorapick_residency_seconds_bucket')}[{RESIDENCY_WINDOW}])"
        return f"histogram_quantile({share}, sum by ({'le, ' + by if by else 'le'}) ({buckets}))"

    def hit_ratio(self) -> str:
        """Requests whose adapter was there when they ran / requests for adapters."""
        return f"({self._rate('lorapick_hits_total')} or vector(0)) / {self.asked()}"

    def believed_hit_ratio(self) -> str:
        """Requests sent where their adapter was believed to be / requests for adapters."""
        believed = 'lorapick_picks_total{tier=~"gpu_.*"}'
        return f"({self._rate(believed)} or vector(0)) / {self.asked()}"

    def asked(self) -> str:
        """Requests for adapters, per second."""
        return self._rate('lorapick_picks_total{tier!="none"}')

    def useful(self) -> str:
        """Seconds of inference / seconds that pods were busy with our requests."""
        return f"{self._seconds('useful')} / {self._seconds('busy')}"

    def useful_by_pod(self) -> str:
        """The same for each pod."""
        useful, busy = (self._by_pod(f"lorapick_{kind}_seconds_total") for kind in ("useful", "busy"))
        return f"sum by (pod) (rate({useful}[{self.window}])) / sum by (pod) (rate({busy}[{self.window}]))"

    def busy(self) -> str:
        """Seconds per second and pod that pods were busy."""
        return f"{self._seconds('busy')} / {self.count_of_pods()}"

    def _seconds(self, kind: str) -> str:
        return f"sum(rate({self._by_pod(f'lorapick_{kind}_seconds_total')}[{self.window}]))"

    # -- users

    def latency(self, share: float) -> str:
        """Quantile of served requests, from arrival at the picker to the end of the answer."""
        return f"histogram_quantile({share}, sum by (le) (rate(lorapick_latency_seconds_bucket[{self.window}])))"

    def ttft(self, share: float) -> str:
        """Quantile of the time to the first bytes of an answer's body."""
        return f"histogram_quantile({share}, sum by (le) (rate(lorapick_ttft_seconds_bucket[{self.window}])))"

    def errors(self) -> str:
        """Requests per second that failed or were refused, clients' mistakes aside."""
        bad = f'lorapick_requests_total{{outcome=~"failed|rejected",reason!~"{CLIENTS_MISTAKES}"}}'
        return f"({self._rate(bad)} or vector(0))"

    def error_ratio(self) -> str:
        """The same / requests that ended; who gave up counts nowhere."""
        return f"{self.errors()} / {self.ended()}"

    def ended(self) -> str:
        """Requests per second that ended without being given up."""
        return self._rate('lorapick_requests_total{outcome!="abandoned"}')

    def decisions(self) -> str:
        """Decisions per second but those on clients' mistakes: whatever came and deserved an answer, held or not."""
        return self._rate(f'lorapick_decisions_total{{reason!~"{CLIENTS_MISTAKES}"}}')

    def answered(self) -> str:
        """Requests per second that a pod answered, if only by telling a client of its mistake."""
        kinds = ('outcome="served"', 'reason="client_error"')
        rates = " or ".join(f"rate(lorapick_requests_total{{{kind}}}[{self.window}])" for kind in kinds)
        return f"(sum({rates}) or vector(0))"

    def _rate(self, metric: str) -> str:
        return f"sum(rate({metric}[{self.window}]))"

    def swap_queue(self) -> str:
        """Requests that wait for loads, at the picker or at pods."""
        return f"sum({self._by_pod('lorapick_swap_queue_depth')})"

    def critical_share(self) -> str:
        """Share of the pods whose queue is full."""
        return f"sum({self.gauge('queue_critical')}) / {self.count_of_pods()}"
