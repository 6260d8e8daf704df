"""Autoscalers that look at slots and useful time instead of GPU utilisation.

In: thresholds of a configuration, what is scaled, where Prometheus is. Out: documents for KEDA, and for
prometheus-adapter with a HorizontalPodAutoscaler: one or the other. Not here: why, and what to beware of when pods go
(docs/autoscaling.md).

Both signals are ratios of the whole fleet, so both scale as `Value`: wanted = pods × value / target.
"""

from typing import Any, NamedTuple

from lorapick.dash.rules.thresholds import Thresholds, number

PRESSURE_METRIC, WASTE_METRIC = "lorapick_slot_pressure", "lorapick_wasted_time_ratio"
PRESSURE = "max(avg_over_time(lorapick_slot_pressure[5m]))"
"""Over five minutes: one burst of rare adapters is not worth a pod."""
WASTE = (
    "(1 - sum(rate(lorapick_useful_seconds_total[5m])) / sum(rate(lorapick_busy_seconds_total[5m])))"
    " and sum(rate(lorapick_busy_seconds_total[5m])) / count(max by (pod) (lorapick_slots)) > 0.05"
    " or (0 * max(lorapick_slot_pressure))"
)
"""1 - useful share, which grows with need. 0 on an idle fleet; no value at all without a picker, which is not 0."""
GROW: dict[str, Any] = {
    "stabilizationWindowSeconds": 60,
    "policies": [{"type": "Percent", "value": 50, "periodSeconds": 120}],
}
SHRINK: dict[str, Any] = {
    "stabilizationWindowSeconds": 1200,
    "policies": [{"type": "Pods", "value": 1, "periodSeconds": 600}],
}
"""An adapter is active for 10 minutes, and a pod that goes takes what its slots hold: one at a time, and then look."""


class Scaled(NamedTuple):
    """What is scaled."""

    deployment: str = "vllm"
    prometheus: str = "http://prometheus-server.monitoring.svc:80"
    least: int = 2
    """Pods there are always."""
    most: int = 8


def keda(thresholds: Thresholds, scaled: Scaled) -> list[dict[str, Any]]:
    """One ScaledObject."""
    triggers = [
        _trigger(PRESSURE, threshold=thresholds.alerts.active_per_slot, server=scaled.prometheus),
        _trigger(WASTE, threshold=1 - thresholds.alerts.useful_share, server=scaled.prometheus),
    ]
    spec = {
        "scaleTargetRef": {"name": scaled.deployment},
        "minReplicaCount": scaled.least,
        "maxReplicaCount": scaled.most,
        "pollingInterval": 30,
        "advanced": {"horizontalPodAutoscalerConfig": {"behavior": {"scaleUp": GROW, "scaleDown": SHRINK}}},
        "triggers": triggers,
    }
    return [_document("keda.sh/v1alpha1", "ScaledObject", name=f"{scaled.deployment}-slots", spec=spec)]


def _trigger(query: str, *, threshold: float, server: str) -> dict[str, Any]:
    return {
        "type": "prometheus",
        "metricType": "Value",
        "metadata": {
            "serverAddress": server,
            "query": query,
            "threshold": number(threshold),
            # No answer means that nobody knows: the number of pods stays, rather than falling as for 0.
            "ignoreNullValues": "false",
        },
    }


def hpa(thresholds: Thresholds, scaled: Scaled) -> list[dict[str, Any]]:
    """Rules for prometheus-adapter, as values of its Helm chart, and the autoscaler that uses them."""
    adapter = {
        "rules": {
            "external": [
                _external(PRESSURE_METRIC, series="lorapick_slot_pressure", query=PRESSURE),
                _external(WASTE_METRIC, series="lorapick_busy_seconds_total", query=WASTE),
            ]
        }
    }
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": scaled.deployment}
    spec = {
        "scaleTargetRef": target,
        "minReplicas": scaled.least,
        "maxReplicas": scaled.most,
        "behavior": {"scaleUp": GROW, "scaleDown": SHRINK},
        "metrics": [
            _metric(PRESSURE_METRIC, thresholds.alerts.active_per_slot),
            _metric(WASTE_METRIC, 1 - thresholds.alerts.useful_share),
        ],
    }
    return [
        adapter,
        _document("autoscaling/v2", "HorizontalPodAutoscaler", name=f"{scaled.deployment}-slots", spec=spec),
    ]


def _external(name: str, *, series: str, query: str) -> dict[str, Any]:
    # The picker may live in another namespace than the pods, so no label `namespace` is asked for.
    return {"seriesQuery": series, "resources": {"namespaced": False}, "name": {"as": name}, "metricsQuery": query}


def _metric(name: str, target: float) -> dict[str, Any]:
    value = {"type": "Value", "value": f"{round(1000 * target)}m"}
    return {"type": "External", "external": {"metric": {"name": name}, "target": value}}


def _document(version: str, kind: str, *, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}
