"""The manifests under deploy/: valid against Kubernetes' own schemas, and as safe as they claim to be.

`make test-k8s` compares them with what the chart renders, and asks a real API server.
"""

import json
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from lorapick.core.picking.policies import POLICIES
from lorapick.wire.config import parse_settings

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
CHART = DEPLOY / "chart" / "lorapick"
VERSIONS = ("1.29", "1.37")
"""The oldest that the chart allows, and the newest that the validator knows."""
MANIFESTS: list[dict[str, Any]] = list(yaml.safe_load_all((DEPLOY / "manifests" / "lorapick.yaml").read_text()))
CORE = [one for one in MANIFESTS if one["kind"] != "InferencePool"]
VALUES = yaml.safe_load((CHART / "values.yaml").read_text())
SCHEMA = json.loads((CHART / "values.schema.json").read_text())


def of_kind(kind: str) -> dict[str, Any]:
    (one,) = [one for one in MANIFESTS if one["kind"] == kind]
    return one


POD = of_kind("Deployment")["spec"]["template"]["spec"]
(CONTAINER,) = POD["containers"]
CONFIG = yaml.safe_load(of_kind("ConfigMap")["data"]["lorapick.yaml"])


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("manifest", CORE, ids=lambda one: one["kind"])
def test_manifests_fit_the_schemas_of_kubernetes(manifest, version):
    kubernetes_validate.validate(manifest, version, strict=True)


@pytest.mark.parametrize("path", sorted((DEPLOY / "crds").glob("*.yaml")), ids=lambda path: path.stem)
def test_crds_fit_the_schema_of_crds(path):
    for manifest in yaml.safe_load_all(path.read_text()):
        kubernetes_validate.validate(manifest, VERSIONS[-1], strict=True)


def test_the_chart_brings_our_own_crd():
    ours = CHART / "crds" / "lorapick-loraadapters.yaml"
    assert ours.read_text() == (DEPLOY / "crds" / ours.name).read_text()


def test_the_pool_fits_its_crd():
    crd = yaml.safe_load((DEPLOY / "crds" / "inferencepools.yaml").read_text())
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    jsonschema.validate(of_kind("InferencePool"), schema, format_checker=None)


def test_the_pod_is_restricted():
    """What the pod security standard `restricted` asks for, and a root that cannot be written."""
    assert POD["securityContext"]["runAsNonRoot"] is True
    assert POD["securityContext"]["runAsUser"] > 0
    assert POD["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert CONTAINER["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(POD)
    assert {kind for volume in POD["volumes"] for kind in volume} == {"name", "configMap", "emptyDir"}


def test_streams_can_end_before_the_pod_is_killed():
    drain = int(CONFIG["server"]["drain_timeout"].removesuffix("s"))
    leave = int(CONTAINER["lifecycle"]["preStop"]["exec"]["command"][1])
    assert POD["terminationGracePeriodSeconds"] > drain + leave


def test_ports_of_the_configuration_are_those_of_the_pod_and_the_service():
    ports = {one["name"]: one["containerPort"] for one in CONTAINER["ports"]}
    for name, number in ports.items():
        assert CONFIG["server"][name] == f"0.0.0.0:{number}"
    assert {one["targetPort"] for one in of_kind("Service")["spec"]["ports"]} == {"extproc", "metrics"}
    assert of_kind("InferencePool")["spec"]["endpointPickerRef"]["port"]["number"] == ports["extproc"]
    probes = [CONTAINER[name]["grpc"] for name in ("startupProbe", "livenessProbe", "readinessProbe")]
    assert {probe["port"] for probe in probes} == {ports["health"]}
    assert [probe["service"] for probe in probes] == ["liveness", "liveness", "readiness"]


def test_the_picker_can_read_its_configuration():
    settings = parse_settings(of_kind("ConfigMap")["data"]["lorapick.yaml"], file="lorapick.yaml", policies=POLICIES)
    assert settings.discovery.kubernetes is not None
    assert settings.discovery.kubernetes.pool == of_kind("InferencePool")["metadata"]["name"]


def test_the_admin_api_listens_on_loopback_only():
    assert CONFIG["server"]["admin"] == "127.0.0.1:9091"
    assert "9091" not in yaml.safe_dump(of_kind("NetworkPolicy"))


def test_the_role_is_of_the_namespace_and_writes_only_status_events_and_leases():
    assert not [one for one in MANIFESTS if one["kind"].startswith("Cluster")]
    writes = {
        resource: sorted(set(rule["verbs"]) - {"get", "list", "watch"})
        for rule in of_kind("Role")["rules"]
        for resource in rule["resources"]
        if set(rule["verbs"]) - {"get", "list", "watch"} and "resourceNames" not in rule
    }
    assert writes == {"loraadapters/status": ["patch"], "events": ["create"], "leases": ["create"]}


def test_the_values_fit_their_schema_and_strangers_do_not():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.validate(VALUES, SCHEMA)
    assert set(SCHEMA["properties"]) == {*VALUES, "global"}
    with pytest.raises(jsonschema.ValidationError, match="replicaCount"):
        jsonschema.validate({**VALUES, "replicaCount": 2}, SCHEMA)


def test_each_nested_value_is_in_the_schema():
    for name, value in VALUES.items():
        known = SCHEMA["properties"][name].get("properties")
        if isinstance(value, dict) and known is not None:
            assert set(value) <= set(known), name


TOGETHER = (
    ({"ports": {"admin": 9091}, "tokens": {"admin": {"secret": "token"}}}, {"ports": {"admin": 9091}}),
    (
        {"peers": {"redis": "redis://redis:6379/0", "passwordSecret": "redis"}},
        {"peers": {"redis": "", "passwordSecret": "redis"}},
    ),
    (
        {"peers": {"redis": "rediss://redis:6380/0", "caSecret": "ca"}},
        {"peers": {"redis": "redis://redis:6380/0", "caSecret": "ca"}},
    ),
    ({"peers": {"redis": "redis://redis/0"}}, {"peers": {"redis": "redis://user:secret@redis/0"}}),
    ({"tls": {"secret": "cert"}}, {"tls": {"secret": "Not A Name"}}),
)


@pytest.mark.parametrize(("good", "bad"), TOGETHER)
def test_values_that_need_each_other(good, bad):
    jsonschema.validate(good, SCHEMA)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(bad, SCHEMA)
