"""Rules take their numbers from the configuration, and each alert that the picker raises has one."""

import re
from pathlib import Path

import pytest

from lorapick.core import alarms, thrash_alarms
from lorapick.core.signals import outcomes
from lorapick.dash.autoscaling import PRESSURE, WASTE
from lorapick.dash.boards.rows import rows
from lorapick.dash.queries import Queries
from lorapick.dash.rules import RULES_ONLY, Thresholds, alert_words, rules_document
from lorapick.dash.rules.alerts import FEW_NEW, LEAST_ASKED, LEAST_FAILED, LEAST_REQUESTS, rules
from lorapick.dash.rules.records import HARM_BUSY, LEAST_BUSY, records
from lorapick.dash.rules.thresholds import duration, number, percent
from lorapick.dash.runbooks import runbook_directory
from lorapick.model.alerts import Alert
from lorapick.model.settings import AlertSettings, ScrapeSettings, Settings, SloSettings

ROOT = Path(__file__).parents[3]
SUSTAINED = (
    Alert.ACTIVE_ADAPTERS,
    Alert.SWAP_RATE,
    Alert.RESIDENCY,
    Alert.HIT_RATIO,
    Alert.SWAP_QUEUE,
    Alert.USEFUL_TIME,
    Alert.LATENCY,
)
"""Alerts of which both wait for all of `alerts.sustained`; `HALF`: for half of it (`core.thrash_alarms`)."""
HALF = (Alert.THRASH, Alert.ERROR_RATE, Alert.CRITICAL_QUEUES)


def by_name(thresholds: Thresholds) -> dict[str, str]:
    return {rule.name: rule.expr for rule in rules(thresholds)}


def test_each_alert_of_the_picker_has_a_rule_and_each_rule_a_runbook():
    named = {str(rule.alert) for rule in rules(Thresholds())}
    assert named == {*alert_words()} == {*map(str, Alert), *RULES_ONLY}
    pages = {path.stem for path in runbook_directory().glob("*.md")}
    assert pages == named


def test_bounds_are_those_of_the_configuration():
    alerts = AlertSettings(
        swap_rate=0.25, swap_rate_broken=2.5, residency=240.0, residency_page=50.0, hit_ratio=0.7,
        hit_ratio_target=0.85, active_per_slot=0.6, useful_share=0.4, error_ratio=0.02, critical_queues_share=0.3,
        new_adapters_share=0.05, sustained=90.0,
    )  # fmt: skip
    slo = SloSettings(latency_p95=1.5, ttft_p95=0.4)
    found = by_name(Thresholds.of(Settings(alerts=alerts, slo=slo, scrape=ScrapeSettings(stale_after=7.0))))
    bounds = {
        "LorapickSwapRate": ">= 0.25",
        "LorapickSwapRatePage": ">= 2.5",
        "LorapickResidency": "< 240 ",
        "LorapickResidencyPage": "< 50 ",
        "LorapickThrash": "< 25 ",
        "LorapickHitRatio": "< 0.7 ",
        "LorapickHitRatioTarget": "< 0.85 ",
        "LorapickActiveAdapters": "> 0.6",
        "LorapickUsefulTime": "< 0.4 ",
        "LorapickErrorRate": "> 0.02 ",
        "LorapickCriticalQueues": ">= 0.3",
        "LorapickNewAdapters": ">= 0.05 ",
        "LorapickLatency": "> 1.5",
        "LorapickTimeToFirstToken": "> 0.4",
        "LorapickScrapesStale": "> 7",
    }
    assert {name: bound for name, bound in bounds.items() if bound not in found[name]} == {}
    waits = {rule.name: rule.wait for rule in rules(Thresholds(alerts=alerts))}
    assert waits["LorapickSwapRate"] == 90.0
    assert waits["LorapickThrash"] == 45.0


def test_bounds_that_the_core_keeps_to_itself_are_the_same():
    assert alarms.FEW_NEW == FEW_NEW
    assert (thrash_alarms.LEAST_BUSY, thrash_alarms.HARM_BUSY) == (LEAST_BUSY, HARM_BUSY)
    assert outcomes.FEW == LEAST_FAILED == LEAST_ASKED
    assert outcomes.ENOUGH == LEAST_REQUESTS * 60


def test_what_the_picker_waits_for_as_long_as_the_rule():
    waits = {(rule.alert, rule.wait) for rule in rules(Thresholds()) if rule.alert in {*SUSTAINED, *HALF}}
    own = {(name, 120.0) for name in SUSTAINED} | {(name, 60.0) for name in HALF}
    rules_only = {(Alert.HIT_RATIO, 600.0), (Alert.ERROR_RATE, 180.0)}
    assert waits == own | rules_only, "target of hits; nobody served, which the picker knows after five minutes"


def test_the_page_lists_the_facts_of_each_alert():
    page = (ROOT / "docs/alerts.md").read_text()
    assert [each for each in (*SUSTAINED, *HALF) if f"| `{each}` | `" not in page] == []


def test_without_a_promise_latency_is_compared_with_the_running_pickers():
    found = by_name(Thresholds())
    assert 'lorapick_slo_seconds{objective="latency_p95"}' in found["LorapickLatency"]
    assert 'lorapick_slo_seconds{objective="ttft_p95"}' in found["LorapickTimeToFirstToken"]


def test_every_record_that_is_used_exists_and_comes_before():
    known: set[str] = set()
    for name, expr in records(Thresholds()):
        assert {*re.findall(r"\w+:lorapick_\w+:\w+|lorapick:\w+(?::\w+)?", expr)} <= known
        known.add(name)
    for rule in rules(Thresholds()):
        assert {*re.findall(r"\w+:lorapick_\w+:\w+|lorapick:\w+(?::\w+)?", rule.expr)} <= known


def test_pages_need_harm_or_are_harm():
    pages = {rule.name for rule in rules(Thresholds()) if rule.severity == "page" and "lorapick:harm" not in rule.expr}
    assert pages == {
        "LorapickLatency",
        "LorapickTimeToFirstToken",
        "LorapickErrorRate",
        "LorapickNothingServed",
        "LorapickCriticalQueues",
        "LorapickPickerAbsent",
    }


def test_the_pickers_pages_are_pages_and_no_others():
    pages = {rule.alert for rule in rules(Thresholds()) if rule.severity == "page"}
    assert pages & {*Alert} == {alert for alert in Alert if alert.severity == "page"}


def test_each_alert_links_to_its_runbook_with_values_in_its_words():
    document = rules_document(Thresholds(), runbooks="https://ops.example.com/lorapick/")
    _, alerts = document["groups"]
    for rule in alerts["rules"]:
        assert rule["annotations"]["runbook_url"] == f"https://ops.example.com/lorapick/{rule['labels']['alert']}"
        assert rule["labels"]["severity"] in {"page", "warn", "info"}
        texts = rule["annotations"]["summary"] + rule["annotations"]["description"]
        assert texts.count("{{") == texts.count("}}")
    assert len({rule["alert"] for rule in alerts["rules"]}) == len(alerts["rules"])


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(7200.0, "2h"), (120.0, "2m"), (90.0, "90s"), (1.5, "1500ms"), (300.0, "5m"), (0.25, "250ms")],
)
def test_durations_are_written_as_prometheus_reads_them(seconds, text):
    assert duration(seconds) == text


def test_numbers_are_short():
    assert [number(value) for value in (0.5, 1.0, 300.0, 0.1 + 0.2)] == ["0.5", "1", "300", "0.3"]
    assert percent(0.8) == "80 %"


def test_pods_are_matched_where_they_are_named():
    ask = Queries("5m", 'pod=~"a.*"')
    assert ask.swaps_by_pod() == 'sum by (pod) (rate(lorapick_swaps_total{pod=~"a.*"}[5m]))'
    assert '{by!~"restart|load_failed",pod=~"a.*"}' in ask.evictions_by_pod()
    assert Queries("2m").gauge("slots") == "max by (pod) (lorapick_slots)"


def test_the_page_on_alerts_names_each_with_its_severity():
    page = (Path(__file__).parents[3] / "docs/alerts.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith(("| `", "| |"))]
    for rule in rules(Thresholds()):
        (row,) = [row for row in rows if re.search(rf"\b{rule.name}\b", row)]
        assert f"| {rule.severity} |" in row, rule.name
    assert all(f"`{alert}`" in page for alert in alert_words())


def test_every_metric_that_is_asked_for_is_documented():
    page = (Path(__file__).parents[3] / "docs/metrics.md").read_text()
    asked = [rule.expr for rule in rules(Thresholds())] + [expr for _, expr in records(Thresholds())]
    asked += [ask.expr for row in rows(Thresholds()) for drawn in row.panels for ask in drawn.asks]
    asked += [PRESSURE, WASTE, *(path.read_text() for path in runbook_directory().glob("*.md"))]
    names = {name for expr in asked for name in re.findall(r"(?<![:\w])lorapick_\w+", expr)}
    assert len(names) > 40
    shown = {re.sub(r"_(bucket|sum|count)$", "", name) for name in names}
    assert sorted(name for name in shown if f"`{name}`" not in page) == []
