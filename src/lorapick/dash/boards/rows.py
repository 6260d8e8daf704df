"""What the dashboard shows, row by row: from "is it thrash?" to whether the picker does its work.

In: thresholds of a configuration. Out: rows of panels. Not here: how panels look (see `dash.boards.panels`), what is
asked (`dash.queries`, for whatever rules ask too), variables and the file (`dash.boards.board`).
"""

from typing import NamedTuple

from lorapick.dash.boards.panels import BAD, GOOD, WARN, Ask, Drawn, Look, bars, figure, lines, states
from lorapick.dash.boards.prefill import prefill
from lorapick.dash.queries import Queries
from lorapick.dash.rules.thresholds import Thresholds

ASK = Queries("$__rate_interval", 'pod=~"$pod"')
MOST_SHOWN = 10
"""Adapters in a panel of the first few."""


class Row(NamedTuple):
    """One row."""

    title: str
    panels: list[Drawn]


def rows(thresholds: Thresholds) -> list[Row]:
    """All of them, in order."""
    return [
        Row("Is it thrash?", [*_figures(thresholds), *_thrash(thresholds)]),
        Row("What users feel", _users(thresholds)),
        Row("Adapters", _adapters(thresholds)),
        Row("Pods and slots", [*_pods(), *_states()]),
        Row("Prefill on other pods", prefill()),
        Row("Placement", _placement()),
        Row("The picker", _picker(thresholds)),
    ]


def _figures(thresholds: Thresholds) -> list[Drawn]:
    alerts = thresholds.alerts
    small = Look(height=4, width=4)
    share = small._replace(unit="percentunit", falling=True)
    swaps = ((0.1, WARN), (alerts.swap_rate, BAD))
    hits = ((alerts.hit_ratio, WARN), (alerts.hit_ratio_target, GOOD))
    stays = ((alerts.residency_page, WARN), (alerts.residency, GOOD))
    return [
        figure(
            "Swaps per second and pod",
            "Loads that somebody waited for. Healthy is below 0.1, too many from 0.5 on, broken above 1.",
            ask=Ask(ASK.swaps()),
            look=small._replace(steps=swaps),
        ),
        figure(
            "Mean residency",
            "Slots in use / evictions per second of the last 10 minutes. Nothing: nothing left a slot.",
            ask=Ask(ASK.residency()),
            look=small._replace(unit="s", steps=stays, falling=True),
        ),
        figure(
            "Hit ratio",
            "Requests whose adapter was on the GPU when they ran.",
            ask=Ask(ASK.hit_ratio()),
            look=share._replace(steps=hits),
        ),
        figure(
            "Useful share",
            "Time of inference / time that pods were busy. GPU utilisation counts loading as busy; this does not.",
            ask=Ask(ASK.useful()),
            look=share._replace(steps=((alerts.useful_share, WARN), ((1 + alerts.useful_share) / 2, GOOD))),
        ),
        figure(
            "Active adapters per slot",
            "Adapters with a request in the last 10 minutes / GPU slots of the fleet.",
            ask=Ask("max(lorapick_active_adapters_per_slot)"),
            look=small._replace(steps=((alerts.active_per_slot, WARN), (1.0, BAD))),
        ),
        figure(
            "Alerts that stand",
            "Raised by the picker itself; the last row names them.",
            ask=Ask("sum(max by (alert) (lorapick_alert))"),
            look=small._replace(steps=((1.0, WARN),)),
        ),
    ]


def _thrash(thresholds: Thresholds) -> list[Drawn]:
    alerts = thresholds.alerts
    share = Look(unit="percentunit", least=0.0, most=1.0)
    return [
        lines(
            "Swaps per second, by pod",
            "Loads that somebody waited for.",
            asks=(Ask(ASK.swaps_by_pod(), "{{pod}}"),),
            look=Look(least=0.0, steps=((0.1, WARN), (alerts.swap_rate, BAD))),
        ),
        lines(
            "Residency",
            "How long adapters stay in their slots: what conservation allows, and of those that left.",
            asks=(
                Ask(ASK.residency(), "slots in use / evictions"),
                Ask(ASK.residency_quantile(0.5), "p50 of those that ended"),
                Ask(ASK.residency_quantile(0.95), "p95 of those that ended"),
                Ask(
                    'sum(rate(lorapick_hit_to_evict_seconds_sum{pod=~"$pod"}[10m])) / '
                    'sum(rate(lorapick_hit_to_evict_seconds_count{pod=~"$pod"}[10m]))',
                    "last hit to eviction",
                ),
            ),
            look=Look(
                unit="s", least=0.0, steps=((alerts.residency_page, WARN), (alerts.residency, GOOD)), falling=True
            ),
        ),
        lines(
            "Hit ratio, as believed and as it came out",
            "A gap between the two is a picker whose beliefs are wrong.",
            asks=(Ask(ASK.believed_hit_ratio(), "believed"), Ask(ASK.hit_ratio(), "realised")),
            look=share._replace(steps=((alerts.hit_ratio, WARN), (alerts.hit_ratio_target, GOOD)), falling=True),
        ),
        lines(
            "Useful share, beside GPU utilisation",
            "In the article's incident GPUs were 94 % busy, and 15 % of it was inference.",
            asks=(
                Ask(ASK.useful(), "useful share"),
                Ask("avg(DCGM_FI_DEV_GPU_UTIL) / 100", "GPU utilisation (DCGM exporter)", optional=True),
            ),
            look=share._replace(steps=((alerts.useful_share, WARN),), falling=True),
        ),
    ]


def _users(thresholds: Thresholds) -> list[Drawn]:
    slo = thresholds.slo
    return [
        lines(
            "Latency",
            "Of served requests, from arrival at the picker to the end of the answer.",
            asks=tuple(Ask(ASK.latency(share), f"p{100 * share:g}") for share in (0.5, 0.95, 0.99)),
            look=Look(unit="s", least=0.0, steps=() if slo.latency_p95 is None else ((slo.latency_p95, BAD),)),
        ),
        lines(
            "Time to first token",
            "From arrival to the first bytes of the answer; only with `server.observe: bodies`.",
            asks=tuple(Ask(ASK.ttft(share), f"p{100 * share:g}", optional=True) for share in (0.5, 0.95, 0.99)),
            look=Look(unit="s", least=0.0, steps=() if slo.ttft_p95 is None else ((slo.ttft_p95, BAD),)),
        ),
        lines(
            "Requests that ended",
            "By what became of them.",
            asks=(Ask("sum by (outcome) (rate(lorapick_requests_total[$__rate_interval]))", "{{outcome}}"),),
            look=Look(unit="reqps", least=0.0, width=8),
        ),
        lines(
            "Error ratio",
            "Failed and refused / ended; clients' mistakes that the picker refuses aside.",
            asks=(Ask(ASK.error_ratio(), "errors"),),
            look=Look(unit="percentunit", least=0.0, steps=((thresholds.alerts.error_ratio, BAD),), width=8),
        ),
        lines(
            "Waiting",
            "At the picker, by what for; at pods; for a load, wherever.",
            asks=(
                Ask("sum by (for) (lorapick_requests_waiting)", "at the picker: {{for}}"),
                Ask(f"sum({ASK.gauge('queue_depth')})", "at pods"),
                Ask(ASK.swap_queue(), "for a load"),
            ),
            look=Look(least=0.0, width=8),
        ),
    ]


def _first_few(metric: str, window: str) -> str:
    return f"topk({MOST_SHOWN}, sum by (adapter) (increase({metric}[{window}])))"


def _adapters(thresholds: Thresholds) -> list[Drawn]:
    new = thresholds.alerts.new_adapters_share
    return [
        bars(
            "Busiest adapters",
            "Requests in the last 10 minutes.",
            ask=Ask(_first_few("lorapick_picks_total", "10m"), "{{adapter}}"),
            look=Look(least=0.0, width=8),
        ),
        bars(
            "Most evicted adapters",
            "Evictions in the last 10 minutes. One that is busy as well is what others are loaded for.",
            ask=Ask(_first_few("lorapick_adapter_evictions_total", "10m"), "{{adapter}}"),
            look=Look(least=0.0, width=8, steps=((1.0, WARN),)),
        ),
        bars(
            "Slots held",
            "GPU slots of the fleet by adapter, now.",
            ask=Ask(f"topk({MOST_SHOWN}, max by (adapter) (lorapick_adapter_slots_used))", "{{adapter}}"),
            look=Look(least=0.0, width=8),
        ),
        lines(
            "Active adapters",
            "With a request in the last 10 minutes and in the last hour, beside the slots that there are.",
            asks=(
                Ask("max by (window) (lorapick_distinct_active_adapters)", "active in {{window}}"),
                Ask(f"sum({ASK.gauge('slots')})", "slots"),
            ),
            look=Look(least=0.0, width=8),
        ),
        lines(
            "New adapters",
            "First asked for within the last hour: how many, and their share of the traffic.",
            asks=(
                Ask("max(lorapick_new_adapters_traffic_share)", "share of traffic"),
                Ask('max(lorapick_new_adapters) / max(lorapick_distinct_active_adapters{window="1h"})', "of the names"),
            ),
            look=Look(unit="percentunit", least=0.0, steps=((new, WARN),), width=8),
        ),
        lines(
            "Slowest adapters",
            "Mean latency of served requests, by adapter.",
            asks=(
                Ask(
                    f"topk({MOST_SHOWN}, sum by (adapter) (rate(lorapick_adapter_latency_seconds_sum[5m])) / "
                    "(sum by (adapter) (rate(lorapick_adapter_latency_seconds_count[5m])) > 0))",
                    "{{adapter}}",
                ),
            ),
            look=Look(unit="s", least=0.0, width=8),
        ),
    ]


def _pods() -> list[Drawn]:
    third = Look(least=0.0, width=8)
    return [
        lines(
            "Slots in use",
            "Of all slots of each pod.",
            asks=(Ask(f"{ASK.gauge('slots_used')} / ({ASK.gauge('slots')} > 0)", "{{pod}}"),),
            look=third._replace(unit="percentunit", most=1.0),
        ),
        lines(
            "Mean residency, by pod",
            "Slots in use / evictions per second of the last 10 minutes.",
            asks=(Ask(ASK.residency_by_pod(), "{{pod}}"),),
            look=third._replace(unit="s"),
        ),
        lines(
            "Useful share, by pod",
            "Time of inference / time that the pod was busy.",
            asks=(Ask(ASK.useful_by_pod(), "{{pod}}"),),
            look=third._replace(unit="percentunit", most=1.0),
        ),
        lines(
            "Loads by where they come from",
            "From disk a load takes several times as long as from host memory.",
            asks=(
                Ask(
                    'sum by (from, by) (rate(lorapick_loads_total{pod=~"$pod"}[$__rate_interval]))',
                    "{{from}}, by {{by}}",
                ),
                Ask('sum(rate(lorapick_loads_coalesced_total{pod=~"$pod"}[$__rate_interval])) or vector(0)', "avoided"),
                Ask('sum(rate(lorapick_load_failures_total{pod=~"$pod"}[$__rate_interval])) or vector(0)', "failed"),
            ),
            look=third._replace(unit="ops"),
        ),
        lines(
            "Evictions, by cause",
            "capacity: another adapter came; unload: somebody asked; restart: the pod's process ended.",
            asks=(Ask('sum by (by) (rate(lorapick_evictions_total{pod=~"$pod"}[$__rate_interval]))', "{{by}}"),),
            look=third._replace(unit="ops"),
        ),
        lines(
            "Queues at pods",
            "Requests that wait there.",
            asks=(Ask(ASK.gauge("queue_depth"), "{{pod}}"),),
            look=third,
        ),
    ]


def _states() -> list[Drawn]:
    return [
        states(
            "Pressure",
            "Tier of each pod's memory pressure.",
            ask=Ask(ASK.gauge("pressure_tier"), "{{pod}}"),
            words=("none", "soft", "hard", "critical"),
            look=Look(),
        ),
        states(
            "Queue full",
            "Whether as many requests wait at the pod as may.",
            ask=Ask(ASK.gauge("queue_critical"), "{{pod}}"),
            words=("room", "full"),
            look=Look(),
        ),
    ]


def _placement() -> list[Drawn]:
    third = Look(least=0.0, width=8)
    return [
        lines(
            "Pins",
            "Pairs of a pinned adapter and a pod that should have it; of these, those that are not in a slot.",
            asks=(Ask("max(lorapick_pins_wanted)", "wanted"), Ask("max(lorapick_pins_missing)", "missing")),
            look=third,
        ),
        lines(
            "Commands to pods",
            "What the controller asked for, and what for.",
            asks=(
                Ask(
                    "sum by (kind, why) (rate(lorapick_placement_commands_total[5m])) or vector(0)", "{{kind}} {{why}}"
                ),
            ),
            look=third._replace(unit="ops"),
        ),
        lines(
            "Churn and refusals",
            "Loads of the last minute that count against the budget; loads that the guard refused.",
            asks=(
                Ask("max(lorapick_placement_moves_last_minute)", "moves in a minute"),
                Ask("sum(increase(lorapick_placement_refusals_total[1m])) or vector(0)", "refused in a minute"),
            ),
            look=third,
        ),
    ]


def _picker(thresholds: Thresholds) -> list[Drawn]:
    pick = "histogram_quantile({share}, sum by (le) (rate(lorapick_pick_seconds_bucket[$__rate_interval])))"
    return [
        lines(
            "Time of a decision",
            "In the picker, without what it waits for.",
            asks=tuple(Ask(pick.format(share=share), f"p{100 * share:g}") for share in (0.5, 0.99)),
            look=Look(unit="s", least=0.0, width=8),
        ),
        lines(
            "Age of what pods reported",
            "At the stale limit a pod takes no more requests.",
            asks=(Ask(ASK.gauge("scrape_age_seconds"), "{{pod}}"),),
            look=Look(unit="s", least=0.0, steps=((thresholds.scrape.stale_after, BAD),), width=8),
        ),
        lines(
            "Faults, and requests without a decision",
            "Any fault is worth a look.",
            asks=(
                Ask("sum by (kind) (rate(lorapick_faults_total[$__rate_interval]))", "fault: {{kind}}"),
                Ask("sum by (why) (rate(lorapick_passed_total[$__rate_interval]))", "passed: {{why}}"),
            ),
            look=Look(unit="ops", least=0.0, width=8),
        ),
        states(
            "Alerts of the picker",
            "What each means, and what to do: /runbooks on the picker's admin address.",
            ask=Ask("max by (alert) (lorapick_alert)", "{{alert}}"),
            words=("-", "raised"),
            look=Look(height=12, width=16),
        ),
        lines(
            "CPU of the picker",
            "Cores.",
            asks=(
                Ask(
                    "rate(process_cpu_seconds_total[$__rate_interval]) and on (job, instance) lorapick_info",
                    "{{instance}}",
                ),
            ),
            look=Look(least=0.0, height=12, width=8),
        ),
    ]
