"""Which metrics of pods' pages become attributes."""

import pytest
from epp_kit import HEAD, parse

from lorapick.model.pods import Engine
from lorapick.model.profiles import CustomMetric
from lorapick.wire.config import ConfigError

SCORER = (
    "- {type: endpoint-attribute-scorer, name: by-KEY,"
    " parameters: {attributeKey: KEY, algorithm: {type: linear_lower_is_better}}}\n"
)


def metrics(parameters, *, scores=()):
    text = f"plugins:\n- {{type: core-metrics-extractor, parameters: {parameters}}}\n- {{type: queue-scorer}}\n"
    for key in scores:
        text += SCORER.replace("KEY", key)
    return parse(HEAD + text).profiles.metrics


def of(spec):
    metric = f"{{attributeKey: a, metricSpec: '{spec}'}}"
    (found,) = metrics(f"{{engineConfigs: [{{name: vllm, customMetrics: [{metric}]}}]}}")
    return found.family, found.labels


@pytest.mark.parametrize(
    ("spec", "family", "labels"),
    [
        ("vllm:x", "vllm:x", {}),
        ("vllm:x{}", "vllm:x", {}),
        ("x{a=b}", "x", {"a": "b"}),
        ('x{a="b c", d = e-1 }', "x", {"a": "b c", "d": "e-1"}),
    ],
)
def test_a_metric_has_a_name_and_perhaps_labels(spec, family, labels):
    assert of(spec) == (family, labels)


@pytest.mark.parametrize("spec", ["1x", "x{a}", "x{a!=b}", "x{a=b", "{a=b}", "x y", "rate(x[1m])"])
def test_what_names_no_metric(spec):
    with pytest.raises(ConfigError, match="must name a metric"):
        of(spec)


def test_each_engine_has_its_own():
    found = metrics(
        "{engineConfigs: [{name: vllm, customMetrics: [{attributeKey: a, metricSpec: x}]},"
        " {name: triton-tensorrt-llm, kvUsageSpec: k,"
        " customMetrics: [{attributeKey: a, metricSpec: y, optional: true}]},"
        " {name: sglang}]}",
        scores=["a/core-metrics-extractor", "GPUUtilization/dcgm-extractor"],
    )
    assert found == (
        CustomMetric(engine=Engine.VLLM, attribute="a", family="x"),
        CustomMetric(engine=Engine.TRITON, attribute="a", family="y"),
    )


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ("{customMetrics: []}", "write them under engineConfigs"),
        ("{engineConfigs: [{name: my-engine}]}", "name: must be"),
        ("{engineConfigs: [{name: vllm}, {name: vllm}]}", "twice"),
        ("{engineConfigs: [{name: vllm, customMetrics: [{attributeKey: a}]}]}", 'the key "metricSpec" is missing'),
        ("{engineConfigs: [{name: vllm, customMetrics: [{metricSpec: a}]}]}", 'the key "attributeKey" is missing'),
        ("{engineConfigs: [{name: vllm, metrics: []}]}", "unknown key"),
    ],
)
def test_what_cannot_be(parameters, said):
    with pytest.raises(ConfigError, match=said):
        metrics(parameters)


def test_who_compares_an_attribute_that_nobody_reads_is_told():
    with pytest.raises(ConfigError, match=r"plugins\[2\].parameters.attributeKey: must be GPUUtilization") as said:
        metrics("{}", scores=["other"])
    assert len(said.value.problems) == 1
