"""The shipped rules under the real promtool: each alert fires when it must, and not for the near miss.

A case gives series in promtool's notation, one sample each 15 s, and what must be firing at which minute: all of it, so
that no case raises anything else by the way.
"""

from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from prometheus_kit import promtool

from lorapick.dash.rules import Thresholds, rules_document
from lorapick.dash.rules.alerts import rules
from lorapick.model.settings import SloSettings

pytestmark = pytest.mark.system
THRESHOLDS = Thresholds(slo=SloSettings(latency_p95=2.0, ttft_p95=0.5))
RUNBOOKS = "http://127.0.0.1:9091/runbooks"
STEPS = 100
"""Samples of each series: 25 minutes."""

Firing = dict[int, set[str]]
"""By the minute: names of the alerts that fire, each with its pod (or kind, or instance) behind a colon."""


class Case(NamedTuple):
    name: str
    series: dict[str, str]
    firing: Firing


def still(value: float) -> str:
    """A gauge that stays."""
    return f"{value}x{STEPS}"


def rate(per_second: float) -> str:
    """A counter that grows so much each second."""
    return f"0+{15 * per_second:g}x{STEPS}"


def histogram(name: str, fast: float, slow: float, *, bounds: tuple[str, str] = ("1", "4")) -> dict[str, str]:
    """A latency histogram: so many a second below the first bound, so many between it and the second."""
    first, second = bounds
    return {
        f'{name}_bucket{{le="{first}"}}': rate(fast),
        f'{name}_bucket{{le="{second}"}}': rate(fast + slow),
        f'{name}_bucket{{le="+Inf"}}': rate(fast + slow),
    }


PICKER = {'lorapick_info{version="0",policy="cost",job="lorapick",instance="p"}': still(1)}
SLOTS = {f'lorapick_{name}{{pod="{pod}"}}': still(4) for name in ("slots", "slots_used") for pod in ("a", "b")}
REST = PICKER | SLOTS
HARM = histogram("lorapick_latency_seconds", 9, 1)
"""P95 is 2.5 s with 2 s promised, from the first two minutes on."""


def evictions(per_second: float, by: str = "capacity") -> dict[str, str]:
    return {f'lorapick_evictions_total{{pod="a",by="{by}"}}': rate(per_second)}


def swaps(per_second: float, *, steps: str | None = None) -> dict[str, str]:
    return {'lorapick_swaps_total{pod="a",from="cpu"}': steps or rate(per_second)}


def picks(per_second: float, hits: float) -> dict[str, str]:
    return {
        'lorapick_picks_total{adapter="x",tier="gpu_idle"}': rate(per_second),
        'lorapick_hits_total{adapter="x",tier="gpu_idle"}': rate(hits),
    }


def useful(share: float, busy: float = 0.9) -> dict[str, str]:
    return {
        'lorapick_busy_seconds_total{pod="a"}': rate(2 * busy),
        'lorapick_useful_seconds_total{pod="a"}': rate(2 * busy * share),
    }


def alert(name: str) -> dict[str, str]:
    return {f'lorapick_alert{{alert="{name}"}}': still(1)}


def gauges(name: str, *values: float) -> dict[str, str]:
    return {f'lorapick_{name}{{pod="{pod}"}}': still(value) for pod, value in zip("abcd", values, strict=False)}


def requests(served: float, failed: float, reason: str = "none") -> dict[str, str]:
    outcome = "failed" if reason == "none" else "rejected"
    return {
        'lorapick_requests_total{outcome="served",reason="none"}': rate(served),
        f'lorapick_requests_total{{outcome="{outcome}",reason="{reason}"}}': rate(failed),
    }


def ended(per_second: float, *, outcome: str, reason: str = "none") -> dict[str, str]:
    return {f'lorapick_requests_total{{outcome="{outcome}",reason="{reason}"}}': rate(per_second)}


def decided(per_second: float, *, outcome: str = "dispatched", reason: str = "none") -> dict[str, str]:
    return {f'lorapick_decisions_total{{outcome="{outcome}",reason="{reason}"}}': rate(per_second)}


NEW = {"lorapick_new_adapters": still(3), "lorapick_new_adapters_traffic_share": still(0.01)}
LATE = {"LorapickLatency"}

CASES = [
    Case("nothing happens", {}, {15: set()}),
    Case("new adapters", NEW, {1: {"LorapickNewAdapters"}}),
    Case("two new ones are a customer", NEW | {"lorapick_new_adapters": still(2)}, {15: set()}),
    Case("new ones hardly asked for", NEW | {"lorapick_new_adapters_traffic_share": still(0.009)}, {15: set()}),
    Case("undeclared adapters, as the picker says", alert("new_adapters"), {1: {"LorapickNewAdapters"}}),
    Case("no room", {"lorapick_active_adapters_per_slot": still(0.81)}, {1: set(), 3: {"LorapickActiveAdapters"}}),
    Case("just enough room", {"lorapick_active_adapters_per_slot": still(0.8)}, {15: set()}),
    Case("swaps", swaps(0.6), {2: set(), 6: {"LorapickSwapRate:a"}}),
    Case("nearly too many swaps", swaps(0.48), {15: set()}),
    Case("a burst of swaps", swaps(0, steps="0x20 0+12x8 96x130"), {6: set(), 8: set(), 10: set()}),
    Case("broken, and nobody is harmed", swaps(1.5), {15: {"LorapickSwapRate:a"}}),
    Case("broken, and users wait", swaps(1.1) | HARM, {15: {"LorapickSwapRate:a", "LorapickSwapRatePage:a", *LATE}}),
    Case("swaps of two pickers add up", {
        'lorapick_swaps_total{pod="a",from="cpu",instance="p"}': rate(0.3),
        'lorapick_swaps_total{pod="a",from="cpu",instance="q"}': rate(0.3),
    }, {15: {"LorapickSwapRate:a"}}),
    Case("residency of 200 s", evictions(0.02), {2: set(), 15: {"LorapickResidency:a"}}),
    Case("residency of 320 s", evictions(0.0125), {15: set()}),
    Case("one rare adapter left early", evictions(0) | {
        'lorapick_evictions_total{pod="a",by="capacity"}': "0x60 1x99",
        'lorapick_residency_seconds_bucket{pod="a",le="30"}': "0x60 1x99",
        'lorapick_residency_seconds_bucket{pod="a",le="+Inf"}': "0x60 1x99",
    }, {16: set(), 20: set(), 25: set()}),
    Case("a restart evicts nobody", evictions(0.2, by="restart"), {15: set()}),
    Case("two pickers see the same evictions", {
        f'lorapick_evictions_total{{pod="a",by="capacity",instance="{each}"}}': rate(0.0125) for each in "pq"
    }, {15: set()}),
    Case("residency of 40 s, and nobody is harmed", evictions(0.1), {15: {"LorapickResidency:a"}}),
    Case("residency of 40 s, and users wait", evictions(0.1) | HARM, {
        15: {"LorapickResidency:a", "LorapickResidencyPage:a", *LATE},
    }),
    Case("residency of 25 s, and pods load instead of working", evictions(0.16) | useful(0.3), {
        15: {"LorapickResidency:a", "LorapickResidencyPage:a", "LorapickThrash:a", "LorapickUsefulTime"},
    }),
    Case("residency of 25 s, and a fleet with little to do", evictions(0.16) | useful(0.3, busy=0.28), {
        15: {"LorapickResidency:a", "LorapickUsefulTime"},
    }),
    Case("residency of 25 s, and queues are full", evictions(0.16) | gauges("queue_critical", 1, 0), {
        15: {"LorapickResidency:a", "LorapickResidencyPage:a", "LorapickThrash:a", "LorapickCriticalQueues"},
    }),
    Case("residency of 25 s, and requests wait at the picker", evictions(0.16) | alert("queues"), {
        15: {"LorapickResidency:a", "LorapickResidencyPage:a", "LorapickThrash:a", "LorapickQueues"},
    }),
    Case("hits below the target", picks(10, 8.5), {8: set(), 14: {"LorapickHitRatioTarget"}}),
    Case("hits at the target", picks(10, 9.1), {15: set()}),
    Case("too few hits", picks(10, 7.5), {2: set(), 6: {"LorapickHitRatio"}, 15: {
        "LorapickHitRatio", "LorapickHitRatioTarget",
    }}),
    Case("no hit at all", {'lorapick_picks_total{adapter="x",tier="disk"}': rate(5)}, {6: {"LorapickHitRatio"}}),
    Case("the base model cannot be missed", {'lorapick_picks_total{adapter="base",tier="none"}': rate(5)}, {15: set()}),
    Case("too few requests to tell", picks(0.3, 0.1), {15: set()}),
    Case("somebody always waits for a load", gauges("swap_queue_depth", 0, 2), {1: set(), 3: {"LorapickSwapQueue"}}),
    Case("somebody waits now and then", {'lorapick_swap_queue_depth{pod="a"}': "1 1 0 " * 40}, {15: set()}),
    Case("loading instead of working", useful(0.45), {2: set(), 6: {"LorapickUsefulTime"}}),
    Case("half of it is work", useful(0.52), {15: set()}),
    Case("hardly anything to do", useful(0.2, busy=0.03), {15: set()}),
    Case("late", HARM, {1: set(), 6: LATE}),
    Case("in time", histogram("lorapick_latency_seconds", 97, 3), {15: set()}),
    Case("first tokens are late", histogram("lorapick_ttft_seconds", 9, 1, bounds=("0.25", "1")), {
        1: set(), 6: {"LorapickTimeToFirstToken"},
    }),
    Case("first tokens in time", histogram("lorapick_ttft_seconds", 97, 3, bounds=("0.25", "1")), {15: set()}),
    Case("errors", requests(98, 2), {1: set(), 4: {"LorapickErrorRate"}}),
    Case("hardly any errors", requests(99.5, 0.5), {15: set()}),
    Case("refused for want of room", requests(90, 10, "shed"), {6: {"LorapickErrorRate"}}),
    Case("clients ask for what there is not", requests(50, 50, "adapter_unknown"), {15: set()}),
    Case("few requests, and a third of them fail", requests(0.1, 0.05), {1: set(), 15: {"LorapickErrorRate"}}),
    Case("all of a few fail", requests(0, 0.1) | decided(0.1), {
        9: {"LorapickErrorRate", "LorapickNothingServed"},
    }),
    Case("four failures at night", requests(0.1, 0) | {
        'lorapick_requests_total{outcome="failed",reason="none"}': "0x40 1 2 3 4x99",
    }, {12: set(), 16: set(), 20: set()}),
    Case("errors are over, of many requests", requests(10, 0) | {
        'lorapick_requests_total{outcome="failed",reason="none"}': "0x20 0+15x20 300x99",
    }, {8: {"LorapickErrorRate"}, 13: set()}),
    Case("a few failed, and none since", requests(0.1, 0) | {
        'lorapick_requests_total{outcome="failed",reason="none"}': "0x30 0+1x8 8x99",
    }, {12: {"LorapickErrorRate"}, 15: set()}),
    Case("all give up", ended(0.2, outcome="abandoned") | decided(0.2), {2: set(), 6: {"LorapickNothingServed"}}),
    Case("all hang", decided(0.1), {8: {"LorapickNothingServed"}}),
    Case("served until a while ago", decided(1) | {
        'lorapick_requests_total{outcome="served",reason="none"}': "0+15x40 600x99",
    }, {13: set(), 16: {"LorapickNothingServed"}}),
    Case("some are served", requests(0.02, 0) | ended(1, outcome="abandoned") | decided(1), {15: set()}),
    Case("a single long answer", {
        'lorapick_decisions_total{outcome="dispatched",reason="none"}': "0x20 1x99",
    }, {8: set(), 12: set()}),
    Case("one client, and all of it mistakes", ended(1, outcome="failed", reason="client_error") | decided(1), {
        15: set(),
    }),
    Case("names that there are not", decided(5, outcome="rejected", reason="adapter_unknown"), {15: set()}),
    Case("half of the queues are full", gauges("queue_critical", 1, 0), {0: set(), 2: {"LorapickCriticalQueues"}}),
    Case("no queue is full", gauges("queue_critical", 0, 0), {15: set()}),
    Case("one of three queues is full", gauges("queue_critical", 1, 0, 0) | gauges("slots", 4, 4, 4), {15: set()}),
    Case("convoy", alert("convoy"), {1: {"LorapickConvoy"}}),
    Case("pressure", alert("pressure"), {1: {"LorapickPressure"}}),
    Case("queues", alert("queues"), {1: {"LorapickQueues"}}),
    Case("quarantine", alert("quarantine"), {1: {"LorapickQuarantine"}}),
    Case("nobody prefills", alert("no_prefill"), {1: {"LorapickNoPrefill"}}),
    Case("pickers cannot agree", alert("peers_down"), {1: {"LorapickPeersDown"}}),
    Case("none of them", {f'lorapick_alert{{alert="{name}"}}': still(0) for name in ("convoy", "queues")}, {15: set()}),
    Case("a pin is missing", {"lorapick_pins_missing": still(1)}, {4: set(), 6: {"LorapickPinsMissing"}}),
    Case("a pin is missing for a restart", {"lorapick_pins_missing": "1x12 0x140"}, {4: set(), 6: set()}),
    Case("a pod is silent", gauges("scrape_age_seconds", 1, 6), {0: set(), 2: {"LorapickScrapesStale:b"}}),
    Case("a pod is slow", gauges("scrape_age_seconds", 4.9), {15: set()}),
    Case("the API server is not heard", {'lorapick_kubernetes_up{kind="pods"}': "1x20 0x140"}, {
        5: set(), 6: set(), 8: {"LorapickKubernetesDown:pods"},
    }),
    Case("a watch begins anew", {'lorapick_kubernetes_up{kind="pods"}': "1x20 0x4 1x140"}, {8: set()}),
    Case("a certificate ends in a week", {'lorapick_tls_not_after_seconds{server="extproc"}': still(7 * 86400 + 600)}, {
        9: set(), 14: set(), 16: {"LorapickCertificateEnds"},
    }),
    Case("certificates that last", {'lorapick_tls_not_after_seconds{server="extproc"}': still(9e8)}, {15: set()}),
    Case("a fault", {'lorapick_faults_total{kind="scoring_error"}': "0x20 1x140"}, {
        4: set(), 6: {"LorapickPickerFaults:scoring_error"}, 15: set(),
    }),
    Case("no decisions", {
        'lorapick_passed_total{why="undecided"}': rate(1), "lorapick_arrivals_total": rate(50),
    }, {0: set(), 3: {"LorapickPickerBypassed"}}),
    Case("lists of models need no decision", {
        'lorapick_passed_total{why="no_body"}': rate(9), "lorapick_arrivals_total": rate(50),
    }, {15: set()}),
    Case("Envoy goes on alone", {
        "lorapick_envoy_without_picker_total": rate(1), "lorapick_envoy_requests_total": rate(50),
    }, {3: {"LorapickPickerBypassed"}}),
    Case("Envoy went on alone once", {
        "lorapick_envoy_without_picker_total": "0x40 1x120", "lorapick_envoy_requests_total": rate(50),
    }, {12: set()}),
    Case("one of two pickers is down", {
        'lorapick_info{job="lorapick",instance="q"}': "1x40",
        'up{job="lorapick",instance="q"}': "1x40 0x120",
        'up{job="lorapick",instance="p"}': still(1),
        'up{job="other",instance="z"}': still(0),
    }, {9: set(), 14: {"LorapickPickerDown:q"}}),
]  # fmt: skip

ABSENT = Case("no picker", {'up{job="x",instance="p"}': still(1)}, {1: set(), 3: {"LorapickPickerAbsent"}})


def firing_test(case: Case, *, rest: dict[str, str]) -> dict[str, Any]:
    """As promtool reads it."""
    series = [{"series": name, "values": values} for name, values in (rest | case.series).items()]
    expected = [
        {"expr": FIRING, "eval_time": f"{minute}m", "exp_samples": [sample(each) for each in sorted(alerts)]}
        for minute, alerts in case.firing.items()
    ]
    return {"name": case.name, "interval": "15s", "input_series": series, "promql_expr_test": expected}


FIRING = 'sum by (alertname, of) (label_join(ALERTS{alertstate="firing"}, "of", "", "pod", "kind", "instance")) '


def sample(alert: str) -> dict[str, Any]:
    name, _, of = alert.partition(":")
    labels = f'alertname="{name}"' + (f', of="{of}"' if of else "")
    return {"labels": f"{{{labels}}}", "value": 1}


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("rules")
    (made / "rules.yaml").write_text(yaml.safe_dump(rules_document(THRESHOLDS, runbooks=RUNBOOKS)))
    return made


def run(directory: Path, tests: list[dict[str, Any]]) -> None:
    document = {"rule_files": ["rules.yaml"], "evaluation_interval": "30s", "tests": tests}
    (directory / "test.yaml").write_text(yaml.safe_dump(document, width=1000))
    answer = promtool("test", "rules", "test.yaml", cwd=directory)
    assert answer.returncode == 0, answer.stdout + answer.stderr


def test_promtool_takes_the_rules(directory):
    answer = promtool("check", "rules", "--lint=all", "--lint-fatal", "rules.yaml", cwd=directory)
    assert answer.returncode == 0, answer.stdout + answer.stderr


def test_alerts_fire_when_they_must_and_at_no_near_miss(directory):
    run(directory, [firing_test(case, rest=REST) for case in CASES] + [firing_test(ABSENT, rest={})])


def test_no_alert_is_left_out():
    fired = {
        alert.partition(":")[0] for case in (*CASES, ABSENT) for alerts in case.firing.values() for alert in alerts
    }
    assert fired == {rule.name for rule in rules(THRESHOLDS)}


def test_without_a_promise_the_running_pickers_counts(directory):
    (directory / "open").mkdir()
    (directory / "open/rules.yaml").write_text(yaml.safe_dump(rules_document(Thresholds(), runbooks=RUNBOOKS)))
    slo = {'lorapick_slo_seconds{objective="latency_p95"}': still(2)}
    run(
        directory / "open",
        [
            firing_test(Case("promised", HARM | slo, {6: LATE}), rest=REST),
            firing_test(Case("nothing promised", HARM, {6: set()}), rest=REST),
        ],
    )


def test_texts_have_their_values(directory):
    told = {
        "eval_time": "15m",
        "alertname": "LorapickThrash",
        "exp_alerts": [
            {
                "exp_labels": {"pod": "a", "severity": "page", "alert": "thrash"},
                "exp_annotations": {
                    "summary": "Pod a thrashes",
                    "description": "On pod a adapters stay 25s in their slots, in the mean (slots in use / evictions "
                    "per second of the last 10 minutes, each slot having changed its adapter); less than 30s is "
                    "thrash. "
                    "Users are harmed too: P95 is over its promise, pods do little else than load, or queues are full.",
                    "runbook_url": f"{RUNBOOKS}/thrash",
                },
            }
        ],
    }
    new = {
        "eval_time": "5m",
        "alertname": "LorapickNewAdapters",
        "exp_alerts": [
            {
                "exp_labels": {"severity": "warn", "alert": "new_adapters"},
                "exp_annotations": {
                    "summary": "Adapters that nobody knew take traffic",
                    "description": "Asked for first within the last hour: 3 adapters, with 1% of the traffic; or "
                    "adapters that nobody declared.",
                    "runbook_url": f"{RUNBOOKS}/new_adapters",
                },
            }
        ],
    }
    tests = []
    for series, expected in ((evictions(0.16) | HARM, told), (NEW, new)):
        test = firing_test(Case("texts", series, {}), rest=REST)
        tests.append(test | {"alert_rule_test": [expected]})
    run(directory, tests)
