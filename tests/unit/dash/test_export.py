"""Exported files say whether somebody has edited them, and autoscalers ask what is documented."""

import json
import re

import pytest
import yaml

from lorapick.dash.autoscaling import PRESSURE, WASTE, Scaled
from lorapick.dash.export import Options, files, untouched
from lorapick.dash.rules import Thresholds, alert_words
from lorapick.model.settings import AlertSettings

OPTIONS = Options(Thresholds(), "http://127.0.0.1:9091/runbooks", Scaled())
TEXTS = files(OPTIONS)


def test_all_files_are_there():
    pages = [f"runbooks/{alert}.md" for alert in alert_words()]
    assert [*TEXTS] == ["rules.yaml", "dashboard.json", "keda.yaml", "hpa.yaml", *pages]


@pytest.mark.parametrize("name", ["rules.yaml", "dashboard.json", "keda.yaml", "hpa.yaml", "runbooks/thrash.md"])
def test_an_edit_shows(name):
    text = TEXTS[name]
    assert untouched(text)
    assert not untouched(text.replace("lorapick", "lorapicker", 1))
    assert not untouched(text + "\n")
    assert not untouched("something else")


def test_the_dashboard_is_json_and_the_rest_yaml():
    assert "Written by `lorapick dashboards export`" in json.loads(TEXTS["dashboard.json"])["description"]
    assert [len([*yaml.safe_load_all(TEXTS[name])]) for name in ("rules.yaml", "keda.yaml", "hpa.yaml")] == [1, 1, 2]
    assert "&id" not in "".join(TEXTS.values())


def test_links_between_runbooks_lead_to_files():
    for name, text in TEXTS.items():
        for target in re.findall(r"\]\(([^):]+)\)", text if name.endswith(".md") else ""):
            assert f"runbooks/{target}" in TEXTS, f"{name} links to {target}"


def test_both_autoscalers_ask_the_same_with_the_same_targets():
    options = OPTIONS._replace(
        thresholds=Thresholds(alerts=AlertSettings(active_per_slot=0.7, useful_share=0.6)),
        scaled=Scaled("llama", "http://prom:9090", 3, 9),
    )
    texts = files(options)
    (scaled,) = yaml.safe_load_all(texts["keda.yaml"])
    adapter, hpa = yaml.safe_load_all(texts["hpa.yaml"])
    assert (scaled["apiVersion"], scaled["kind"]) == ("keda.sh/v1alpha1", "ScaledObject")
    assert (hpa["apiVersion"], hpa["kind"]) == ("autoscaling/v2", "HorizontalPodAutoscaler")
    triggers = scaled["spec"]["triggers"]
    assert [trigger["metadata"]["query"] for trigger in triggers] == [PRESSURE, WASTE]
    assert [trigger["metadata"]["threshold"] for trigger in triggers] == ["0.7", "0.4"]
    assert {trigger["metricType"] for trigger in triggers} == {"Value"}
    assert {trigger["metadata"]["ignoreNullValues"] for trigger in triggers} == {"false"}
    assert [rule["metricsQuery"] for rule in adapter["rules"]["external"]] == [PRESSURE, WASTE]
    metrics = [each["external"] for each in hpa["spec"]["metrics"]]
    assert [each["metric"]["name"] for each in metrics] == [r["name"]["as"] for r in adapter["rules"]["external"]]
    assert [each["target"] for each in metrics] == [{"type": "Value", "value": v} for v in ("700m", "400m")]
    assert (hpa["spec"]["minReplicas"], hpa["spec"]["maxReplicas"]) == (3, 9)
    assert (scaled["spec"]["minReplicaCount"], scaled["spec"]["maxReplicaCount"]) == (3, 9)
    assert scaled["spec"]["scaleTargetRef"]["name"] == hpa["spec"]["scaleTargetRef"]["name"] == "llama"


def test_pods_go_one_at_a_time_and_later_than_adapters_stay_active():
    (scaled,) = yaml.safe_load_all(TEXTS["keda.yaml"])
    _, hpa = yaml.safe_load_all(TEXTS["hpa.yaml"])
    behavior = scaled["spec"]["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]
    assert behavior == hpa["spec"]["behavior"]
    assert behavior["scaleDown"]["stabilizationWindowSeconds"] > 600
    assert behavior["scaleDown"]["policies"] == [{"type": "Pods", "value": 1, "periodSeconds": 600}]
