"""Recording rules: the ratios that alerts, dashboards of others and a tired person ask for.

In: thresholds, for what counts as harm. Out: names and PromQL, in the order in which they rest on each other.
Not here: alerts (see `dash.rules.alerts`). Names are `level:metric:what`, as Prometheus's own practice has it.
"""

from lorapick.dash.queries import Queries
from lorapick.dash.rules.thresholds import RATE_WINDOW, Thresholds, duration, number

WINDOW = duration(RATE_WINDOW)
LEAST_BUSY = 0.05
"""Of their time that pods must be busy before it is worth asking with what."""
HARM_BUSY = 0.3
"""Below which what they waste harms nobody: there is time for all."""
HARM = "lorapick:harm"

SWAPS_BY_POD = f"pod:lorapick_swaps:rate{WINDOW}"
RESIDENCY_BY_POD = "pod:lorapick_residency_seconds:mean10m"
TURNED_OVER_BY_POD = "pod:lorapick_evictions_per_slot:increase10m"
HIT_RATIO = f"lorapick:hits_per_request:ratio_rate{WINDOW}"
USEFUL = f"lorapick:useful_per_busy:ratio_rate{WINDOW}"
BUSY = f"lorapick:busy_per_pod:rate{WINDOW}"
LATENCY = f"lorapick:latency_seconds:p95_rate{WINDOW}"
TTFT = f"lorapick:ttft_seconds:p95_rate{WINDOW}"
ERRORS = f"lorapick:errors_per_request:ratio_rate{WINDOW}"
ENDED = f"lorapick:requests:rate{WINDOW}"
ERRORS_LATELY = "lorapick:errors_per_request:ratio_rate10m"
FAILED_LATELY = "lorapick:errors:increase10m"
ASKED = "lorapick:decisions:increase5m"
ANSWERED = f"lorapick:answered:rate{WINDOW}"
CRITICAL = "lorapick:critical_queues_per_pod:ratio"
SWAP_QUEUE = "lorapick:swap_queue_depth:sum"


def records(thresholds: Thresholds) -> list[tuple[str, str]]:
    """Name and expression of each."""
    ask = Queries(WINDOW)
    turned_over = f"{ask.evictions_by_pod()} * 600 / (max by (pod) (lorapick_slots) > 0)"
    return [
        (SWAPS_BY_POD, ask.swaps_by_pod()),
        (f"lorapick:swaps_per_pod:rate{WINDOW}", ask.swaps()),
        (RESIDENCY_BY_POD, ask.residency_by_pod()),
        ("lorapick:residency_seconds:mean10m", ask.residency()),
        (TURNED_OVER_BY_POD, turned_over),
        ("lorapick:residency_seconds:p50_10m", ask.residency_quantile(0.5)),
        ("lorapick:residency_seconds:p95_10m", ask.residency_quantile(0.95)),
        ("pod:lorapick_residency_seconds:p50_10m", ask.residency_quantile(0.5, by="pod")),
        (HIT_RATIO, ask.hit_ratio()),
        (f"lorapick:believed_hits_per_request:ratio_rate{WINDOW}", ask.believed_hit_ratio()),
        (USEFUL, ask.useful()),
        (f"pod:lorapick_useful_per_busy:ratio_rate{WINDOW}", ask.useful_by_pod()),
        (BUSY, ask.busy()),
        (LATENCY, ask.latency(0.95)),
        (TTFT, ask.ttft(0.95)),
        (ERRORS, ask.error_ratio()),
        (ENDED, ask.ended()),
        (ERRORS_LATELY, Queries("10m").error_ratio()),
        (FAILED_LATELY, f"{Queries('10m').errors()} * 600"),
        (ASKED, f"{Queries('5m').decisions()} * 300"),
        (ANSWERED, ask.answered()),
        (SWAP_QUEUE, ask.swap_queue()),
        (CRITICAL, ask.critical_share()),
        (HARM, harm(thresholds)),
    ]


def harm(thresholds: Thresholds) -> str:
    """1 while users are harmed or GPUs wasted, no sample otherwise. What a page needs beside a threshold."""
    return "\n".join(["group(", "    " + "\n  or ".join(_harms(thresholds)), ")"])


def _harms(thresholds: Thresholds) -> list[str]:
    alerts = thresholds.alerts
    return [
        late(LATENCY, "latency_p95", promised=thresholds.slo.latency_p95),
        late(TTFT, "ttft_p95", promised=thresholds.slo.ttft_p95),
        wasted(thresholds, busy=HARM_BUSY),
        f"({CRITICAL} > 0) >= {number(alerts.critical_queues_share)}",
        'max(lorapick_alert{alert="queues"}) > 0',
    ]


def late(record: str, objective: str, *, promised: float | None) -> str:
    """P95 over what was promised; where the configuration promises nothing, over what the running picker's does."""
    if promised is not None:
        return f"{record} > {number(promised)}"
    return f'{record} > max(lorapick_slo_seconds{{objective="{objective}"}})'


def wasted(thresholds: Thresholds, *, busy: float = LEAST_BUSY) -> str:
    """Useful share below its bound, on a fleet that has something to do: is busy for that share of the time."""
    return f"{USEFUL} < {number(thresholds.alerts.useful_share)} and {BUSY} >= {busy}"
