"""InferencePools, and who they are for."""

import contextlib

import pytest
from hypothesis import given, settings
from objects_kit import JSON

from lorapick.model.settings import KubernetesSettings
from lorapick.wire.kubernetes.objects import ObjectError
from lorapick.wire.kubernetes.pool import Pool, is_for, pool_of_settings, read_pool


def inference_pool(**spec):
    found = {"selector": {"matchLabels": {"app": "vllm", "a": "b"}}, "targetPorts": [{"number": 8000}], **spec}
    return {"metadata": {"name": "llama", "labels": {"tier": "gold"}}, "spec": found}


def test_a_pool():
    found = read_pool(inference_pool(targetPorts=[{"number": 8000}, {"number": 8001}], endpointPickerRef={"name": "x"}))
    assert found == Pool(
        name="llama", selector={"app": "vllm", "a": "b"}, ports=(8000, 8001), labels={"tier": "gold"}, protocol="http"
    )
    assert found.label_selector == "a=b,app=vllm"


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ({"selector": {}}, "spec.selector.matchLabels: must have a label"),
        ({"selector": {"app": "vllm"}}, "spec.selector.matchLabels: must have a label"),
        ({"targetPorts": []}, "spec.targetPorts: must have 1 to 8 ports (found 0)"),
        ({"targetPorts": [{"number": n + 1} for n in range(9)]}, "must have 1 to 8 ports (found 9)"),
        ({"targetPorts": [{"number": 1}, {"number": 1}]}, "spec.targetPorts[1].number: must be a port of its own"),
        ({"targetPorts": [{"number": 70_000}]}, "must be a port of its own in 1-65535 (found 70000)"),
        ({"targetPorts": [{"number": "http"}]}, "must be a whole number (found 'http')"),
        ({"targetPorts": 8000}, "spec.targetPorts: must be a list of ports"),
        ({"appProtocol": "grpc"}, "spec.appProtocol: must be one of http, kubernetes.io/h2c"),
    ],
)
def test_what_is_wrong_is_said(spec, says):
    with pytest.raises(ObjectError) as refused:
        read_pool(inference_pool(**spec))
    assert says in str(refused.value)


@settings(max_examples=30)
@given(JSON)
def test_anything_is_a_pool_or_an_error(spec):
    with contextlib.suppress(ObjectError):
        assert read_pool({"metadata": {"name": "p"}, "spec": spec}).ports
    is_for({"spec": spec}, Pool(name="p", selector={"a": "b"}, ports=(1,)))


def test_labels_of_the_configuration_are_a_pool_too():
    found = pool_of_settings(KubernetesSettings(selector={"app": "x"}, target_ports=(1, 2)))
    assert (found.name, found.selector, found.ports) == (None, {"app": "x"}, (1, 2))


@pytest.mark.parametrize(
    ("spec", "ours"),
    [
        ({}, True),
        ({"poolRef": {"name": "llama"}}, True),
        ({"poolRef": {"name": "llama", "kind": "InferencePool", "group": "inference.networking.k8s.io"}}, True),
        ({"poolRef": {"name": "llama", "kind": "Service"}}, False),
        ({"poolRef": {"name": "qwen"}}, False),
        ({"poolRefs": [{"name": "qwen"}, {"name": "llama"}]}, True),
        ({"poolRefs": [{"name": "qwen"}]}, False),
        ({"poolSelector": {"matchLabels": {"tier": "gold"}}}, True),
        ({"poolSelector": {"matchLabels": {"tier": "silver"}}}, False),
        ({"poolSelector": {"matchLabels": {}}}, False),
        ({"poolSelector": {"matchLabels": {"tier": "gold"}, "matchExpressions": [{}]}}, False),
    ],
)
def test_who_is_meant(spec, ours):
    assert is_for({"spec": spec}, read_pool(inference_pool())) is ours
    assert is_for({"spec": spec}, Pool(selector={"a": "b"}, ports=(1,)))
