"""Alerts for each threshold, in the order of their names: from what comes first to what users feel.

In: thresholds. Out: `Rule`s. Not here: the file that they are written to (see `dash.rules.document`), what to do about
each (see `dash/runbooks`), the same alerts as the picker raises them (`core.alarms`, `core.thrash_alarms`): where both
exist their thresholds are the same numbers of the same configuration.
"""

from lorapick.dash.queries import Queries
from lorapick.dash.rules import records
from lorapick.dash.rules.around import CERTIFICATE_ENDS, KUBERNETES_DOWN, around
from lorapick.dash.rules.rule import INFO, PAGE, WARN, Rule
from lorapick.dash.rules.thresholds import Thresholds, duration, number, percent
from lorapick.model.alerts import Alert
from lorapick.model.units import Seconds

PINS_MISSING, SCRAPES_STALE = "pins_missing", "scrapes_stale"
PICKER_FAULTS, PICKER_BYPASSED, PICKER_ABSENT = "picker_faults", "picker_bypassed", "picker_absent"
RULES_ONLY = (
    PINS_MISSING,
    SCRAPES_STALE,
    KUBERNETES_DOWN,
    CERTIFICATE_ENDS,
    PICKER_FAULTS,
    PICKER_BYPASSED,
    PICKER_ABSENT,
)
"""Alerts that the picker does not raise itself: Prometheus sees what it cannot, or somebody wants to know it anyway."""
FEW_NEW = 3
"""Adapters that nobody asked for before, below which that is a new customer (`core.alarms.FEW_NEW`)."""
LEAST_REQUESTS = 20 / 60
"""Requests per second below which shares of two minutes say nothing."""
LEAST_FAILED = 5
"""Failures of ten minutes below which nobody is woken by their share."""
LEAST_ASKED = 5
"""Decisions of five minutes below which an answer may just be long."""
BYPASSED_SHARE = 0.01
"""Of the requests, sent without a decision, from which on that is no accident."""


def rules(thresholds: Thresholds) -> list[Rule]:
    """All of them."""
    return [
        *_early(thresholds),
        *_thrash(thresholds),
        *_users(thresholds),
        *_core(thresholds),
        *_watched(thresholds),
        *around(),
        *_picker(),
    ]


def _early(thresholds: Thresholds) -> list[Rule]:
    """What changes before anybody notices."""
    alerts = thresholds.alerts
    share = "max(lorapick_new_adapters_traffic_share)"
    appeared = (
        f"({share} >= {number(alerts.new_adapters_share)} and max(lorapick_new_adapters) >= {FEW_NEW})\n"
        'or (max(lorapick_alert{alert="new_adapters"}) > 0)'
    )
    return [
        Rule(
            "LorapickNewAdapters",
            Alert.NEW_ADAPTERS,
            WARN,
            appeared,
            0.0,
            "Adapters that nobody knew take traffic",
            "Asked for first within the last hour: {{ with query `max(lorapick_new_adapters)` }}{{ . | first | value }}"
            "{{ end }} adapters, with {{ with query `max(lorapick_new_adapters_traffic_share)` }}"
            "{{ . | first | value | humanizePercentage }}{{ end }} of the traffic; or adapters that nobody declared.",
        ),
        Rule(
            "LorapickActiveAdapters",
            Alert.ACTIVE_ADAPTERS,
            WARN,
            f"max(lorapick_active_adapters_per_slot) > {number(alerts.active_per_slot)}",
            alerts.sustained,
            "{{ $value | humanize }} active adapters for each slot",
            "{{ $value | humanize }} adapters were asked for in the last 10 minutes for each GPU slot of the fleet. "
            f"Above {number(alerts.active_per_slot)} there is little room for more, or for hot ones on several pods.",
        ),
    ]


def _thrash(thresholds: Thresholds) -> list[Rule]:
    alerts, waited = thresholds.alerts, thresholds.alerts.sustained
    swaps, residency, turned = records.SWAPS_BY_POD, records.RESIDENCY_BY_POD, records.TURNED_OVER_BY_POD
    harmed = f"and on () {records.HARM}"
    rate = "Pod {{ $labels.pod }} begins {{ $value | humanize }} loads per second that requests wait for"
    stay = "On pod {{ $labels.pod }} adapters stay {{ $value | humanizeDuration }} in their slots, in the mean"
    by_slots = "slots in use / evictions per second of the last 10 minutes, each slot having changed its adapter"
    hurts = "Users are harmed too: P95 is over its promise, pods do little else than load, or queues are full."

    def short(most: Seconds) -> str:
        return f"{residency} < {number(most)} and {turned} >= 1"

    return [
        Rule(
            "LorapickSwapRate",
            Alert.SWAP_RATE,
            WARN,
            f"{swaps} >= {number(alerts.swap_rate)}",
            waited,
            "Pod {{ $labels.pod }} swaps adapters too often",
            f"{rate}; from {number(alerts.swap_rate)} on that is too many, healthy is below 0.1.",
        ),
        Rule(
            "LorapickResidency",
            Alert.RESIDENCY,
            WARN,
            short(alerts.residency),
            waited,
            "Adapters leave pod {{ $labels.pod }} soon after they came",
            f"{stay} ({by_slots}); less than {duration(alerts.residency)} is too short.",
        ),
        Rule(
            "LorapickSwapRatePage",
            Alert.THRASH,
            PAGE,
            f"{swaps} >= {number(alerts.swap_rate_broken)} {harmed}",
            waited / 2,
            "Pod {{ $labels.pod }} swaps all the time, and users are harmed",
            f"{rate}; from {number(alerts.swap_rate_broken)} on it is broken. {hurts}",
        ),
        Rule(
            "LorapickResidencyPage",
            Alert.THRASH,
            PAGE,
            f"{short(alerts.residency_page)} {harmed}",
            waited / 2,
            "Adapters hardly stay on pod {{ $labels.pod }}, and users are harmed",
            f"{stay} ({by_slots}); less than {duration(alerts.residency_page)} pages. {hurts}",
        ),
        Rule(
            "LorapickThrash",
            Alert.THRASH,
            PAGE,
            f"{short(thresholds.thrash_residency)} {harmed}",
            waited / 2,
            "Pod {{ $labels.pod }} thrashes",
            f"{stay} ({by_slots}); less than {duration(thresholds.thrash_residency)} is thrash. {hurts}",
        ),
        *_ratios(thresholds),
    ]


def _ratios(thresholds: Thresholds) -> list[Rule]:
    alerts, waited = thresholds.alerts, thresholds.alerts.sustained
    enough = f'and sum(rate(lorapick_picks_total{{tier!="none"}}[{records.WINDOW}])) >= {LEAST_REQUESTS:.4f}'
    return [
        Rule(
            "LorapickHitRatioTarget",
            Alert.HIT_RATIO,
            INFO,
            f"{records.HIT_RATIO} < {number(alerts.hit_ratio_target)} {enough}",
            5 * waited,
            "{{ $value | humanizePercentage }} of requests found their adapter on the GPU",
            f"The target is {percent(alerts.hit_ratio_target)}; below {percent(alerts.hit_ratio)} it needs tuning.",
        ),
        Rule(
            "LorapickHitRatio",
            Alert.HIT_RATIO,
            WARN,
            f"{records.HIT_RATIO} < {number(alerts.hit_ratio)} {enough}",
            waited,
            "Only {{ $value | humanizePercentage }} of requests found their adapter on the GPU",
            f"Below {percent(alerts.hit_ratio)} it needs tuning; {percent(alerts.hit_ratio_target)} is the target.",
        ),
        Rule(
            "LorapickSwapQueue",
            Alert.SWAP_QUEUE,
            WARN,
            f"{records.SWAP_QUEUE} > 0",
            waited,
            "Requests wait for loads all the time",
            "{{ $value | humanize }} requests wait for an adapter to be loaded, and at every look "
            f"of the last {duration(waited)} some did: loads are the bottleneck.",
        ),
        Rule(
            "LorapickUsefulTime",
            Alert.USEFUL_TIME,
            WARN,
            records.wasted(thresholds),
            waited,
            "Only {{ $value | humanizePercentage }} of busy time is inference",
            f"The rest is draining, loading and warming up. Below {percent(alerts.useful_share)} pods do something "
            "else than what they are for; GPU utilisation does not show it, because loading counts as busy.",
        ),
    ]


def _users(thresholds: Thresholds) -> list[Rule]:
    """What users feel."""
    alerts, slo, waited = thresholds.alerts, thresholds.slo, thresholds.alerts.sustained
    promised = {
        name: "what was promised (`slo` of the picker)" if seconds is None else f"the {number(seconds)} s promised"
        for name, seconds in (("latency", slo.latency_p95), ("ttft", slo.ttft_p95))
    }
    return [
        Rule(
            "LorapickLatency",
            Alert.LATENCY,
            PAGE,
            records.late(records.LATENCY, "latency_p95", promised=slo.latency_p95),
            waited,
            "P95 latency is {{ $value | humanizeDuration }}",
            f"From arrival at the picker to the end of the answer, over {promised['latency']}.",
        ),
        Rule(
            "LorapickTimeToFirstToken",
            Alert.LATENCY,
            PAGE,
            records.late(records.TTFT, "ttft_p95", promised=slo.ttft_p95),
            waited,
            "P95 time to the first token is {{ $value | humanizeDuration }}",
            f"From arrival at the picker to the first bytes of the answer, over {promised['ttft']}.",
        ),
        Rule(
            "LorapickErrorRate",
            Alert.ERROR_RATE,
            PAGE,
            _failing(thresholds),
            waited / 2,
            "{{ $value | humanizePercentage }} of requests fail or are refused",
            f"More than {percent(alerts.error_ratio)} of two minutes, of ten where few come, and at least "
            f"{LEAST_FAILED} in ten minutes. Clients' mistakes are not among them.",
        ),
        Rule(
            "LorapickNothingServed",
            Alert.ERROR_RATE,
            PAGE,
            f"{records.ASKED} >= {LEAST_ASKED} unless on () {records.ANSWERED} > 0",
            1.5 * waited,
            "Requests come, and none is served",
            "{{ $value | humanize }} decisions in 5 min, and for minutes not one request was answered: they hang, "
            "or are given up, or fail.",
        ),
        Rule(
            "LorapickCriticalQueues",
            Alert.CRITICAL_QUEUES,
            PAGE,
            f"({records.CRITICAL} > 0) >= {number(alerts.critical_queues_share)}",
            waited / 2,
            "On {{ $value | humanizePercentage }} of the pods the queue is full",
            f"From {percent(alerts.critical_queues_share)} of the pods on there is nowhere to go: what comes next "
            "waits at the picker, or is refused.",
        ),
    ]


def _failing(thresholds: Thresholds) -> str:
    """The share of two minutes; where too few requests end in them, of ten, if the last failure is not long ago."""
    bound = number(thresholds.alerts.error_ratio)
    enough, busy = f"{records.FAILED_LATELY} >= {LEAST_FAILED}", f"{records.ENDED} >= {LEAST_REQUESTS:.4f}"
    return (
        f"({records.ERRORS} > {bound} and {enough} and {busy})\n"
        f"or ({records.ERRORS_LATELY} > {bound} and {enough} and {Queries('5m').errors()} > 0 unless {busy})"
    )


def _core(thresholds: Thresholds) -> list[Rule]:
    """What only the picker can tell; it has waited `alerts.after` already."""
    told = (
        (Alert.CONVOY, "As many pods load as may, and requests wait"),
        (Alert.PRESSURE, "Pods stay in a hard or critical pressure tier"),
        (Alert.QUEUES, f"What waits at the picker is near its bound ({percent(thresholds.alerts.queue_share)} of it)"),
        (Alert.QUARANTINE, "Pods keep failing to load an adapter"),
        (Alert.PEERS_DOWN, "The store that pickers agree through is out of reach"),
        (Alert.NO_PREFILL, "Pods that only prefill are down, or get nothing of what they are named for"),
    )
    return [
        Rule(
            f"Lorapick{alert.title().replace('_', '')}",
            alert,
            WARN,
            f'max(lorapick_alert{{alert="{alert}"}}) > 0',
            0.0,
            summary,
            f"The picker raised {alert}; GET /v1/alerts on its admin address has the facts.",
        )
        for alert, summary in told
    ]


def _watched(thresholds: Thresholds) -> list[Rule]:
    """What the picker sees of pods, and does not raise itself."""
    stale = thresholds.scrape.stale_after
    return [
        Rule(
            "LorapickPinsMissing",
            PINS_MISSING,
            WARN,
            "max(lorapick_pins_missing) > 0",
            300.0,
            "{{ $value | humanize }} pinned adapters are not in a slot",
            "Pairs of a pinned adapter and a pod that should have it, missing for longer than a restart takes.",
        ),
        Rule(
            "LorapickScrapesStale",
            SCRAPES_STALE,
            WARN,
            f"max by (pod) (lorapick_scrape_age_seconds) > {number(stale)}",
            60.0,
            "Pod {{ $labels.pod }} has not reported for {{ $value | humanizeDuration }}",
            f"After {duration(stale)} it takes no more requests, and what is believed of it gets old.",
        ),
    ]


def _picker() -> list[Rule]:
    """Whether the picker does its work."""
    passed = 'sum(rate(lorapick_passed_total{why=~"body_mode|undecided"}[5m]))'
    arrived = "sum(rate(lorapick_arrivals_total[5m]))"
    without = "max(rate(lorapick_envoy_without_picker_total[5m])) / max(rate(lorapick_envoy_requests_total[5m]))"
    return [
        Rule(
            "LorapickPickerFaults",
            PICKER_FAULTS,
            WARN,
            "sum by (kind) (increase(lorapick_faults_total[5m])) > 0",
            0.0,
            "The picker has faults: {{ $labels.kind }}",
            "About {{ $value | humanize }} in the last 5 minutes; any is worth a look. Requests are still answered.",
        ),
        Rule(
            "LorapickPickerBypassed",
            PICKER_BYPASSED,
            WARN,
            f"({passed} / {arrived} > {BYPASSED_SHARE})\nor ({without} > {BYPASSED_SHARE})",
            60.0,
            "{{ $value | humanizePercentage }} of requests go to some pod without a decision",
            "Envoy went on without the picker's word, or the picker sent them to any ready pod: their adapters are "
            "loaded wherever they land.",
        ),
        Rule(
            "LorapickPickerAbsent",
            PICKER_ABSENT,
            PAGE,
            "absent(lorapick_info)",
            120.0,
            "No picker is to be seen",
            "Prometheus scrapes none. If none runs, Envoy sends requests to any pod, and all other alerts are blind.",
        ),
        Rule(
            "LorapickPickerDown",
            PICKER_ABSENT,
            WARN,
            "(up == 0) and on (job, instance) last_over_time(lorapick_info[1h])",
            120.0,
            "The picker at {{ $labels.instance }} does not answer",
            "It did within the last hour, and Prometheus cannot scrape it now.",
        ),
    ]
