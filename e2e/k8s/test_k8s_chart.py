"""The chart, by helm itself, and what it renders, on a real API server: lint, equality, dry runs, installation."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from k8s_api import Api
from k8s_build import BINARIES, PUBLISHED
from k8s_server import Cluster
from lorapick.core.picking.policies import POLICIES
from lorapick.live.tls.exposure import check_exposure
from lorapick.wire.config import parse_settings

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
CHART = DEPLOY / "chart" / "lorapick"
RENDERED = DEPLOY / "manifests" / "lorapick.yaml"
EXAMPLES = sorted((DEPLOY / "examples").glob("*.yaml"))
OURS = {
    "inferencepools": "inference.networking.k8s.io_inferencepools",
    "inferenceobjectives": "inference.networking.x-k8s.io_inferenceobjectives",
    "inferencemodelrewrites": "inference.networking.x-k8s.io_inferencemodelrewrites",
}
VARIANTS = (
    "replicas=1",
    "pool.create=false",
    "pool.appProtocol=kubernetes.io/h2c",
    "pool.targetPorts={8000,8001,8002}",
    "rbac.create=false,serviceAccount.create=false,serviceAccount.name=theirs",
    "networkPolicy.enabled=false",
    "networkPolicy.gateways[0].namespaceSelector.matchLabels.role=gateway",
    "networkPolicy.egress[0].ports[0].port=6379",
    "drainSeconds=300,leaveSeconds=20",
    "config.mode=enforce,config.server.body=buffered",
    "image.tag=dev,imagePullSecrets[0].name=pull,priorityClassName=system-cluster-critical",
    "nodeSelector.pool=cpu,tolerations[0].operator=Exists,podLabels.team=ml,podAnnotations.note=x",
    "tls.secret=cert,tls.clientCaSecret=ca",
    "ports.admin=9091,tokens.admin.secret=token,networkPolicy.admins[0].podSelector.matchLabels.role=ops",
    "tokens.metrics.secret=token,tokens.metrics.key=metrics",
    "peers.redis=rediss://redis.db:6380/0,peers.username=u,peers.passwordSecret=redis,peers.caSecret=ca",
    "config.discovery.kubernetes.leader.lease=mine",
    "config.discovery.kubernetes.pool=theirs",
    "config.discovery.kubernetes.selector.app=vllm,config.discovery.kubernetes.target_ports={8000}",
    "env[0].name=TOKEN,env[0].value=x,volumes[0].name=v,volumes[0].emptyDir.sizeLimit=1Gi",
)
REFUSED = (
    ("replicas=0", "minimum"),
    ("replicaCount=2", "replicaCount"),
    ("pool.matchLabels.app=not a label", "matchLabels"),
    ("pool.targetPorts={8000,8000}", "items at 0 and 1 are equal"),
    ("pool.failureMode=open", "failureMode"),
    ("pool.name=Upper", "pattern"),
    ("ports.extproc=80", "want 1,024"),
    ("leaveSeconds=0", "minimum"),
    ("networkPolicy.gateways[0].podSelectors.a=b", "podSelectors"),
    ("serviceMonitor.interval=often", "interval"),
    ("ports.admin=9091", "tokens"),
    ("peers.passwordSecret=redis", "redis"),
    ("peers.redis=redis://redis,peers.caSecret=ca", "redis"),
    ("peers.redis=redis://user:secret@redis", "redis"),
    ("config.discovery.kubernetes.namespace=other", "pool.create must be false"),
)


def helm(*words: str, ok: bool = True) -> str:
    """Run helm; answers stdout where it should succeed, else stderr."""
    done = subprocess.run([str(BINARIES / "helm"), *words], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode == 0) is ok, done.stderr or done.stdout
    return done.stdout if ok else done.stderr


def rendered(namespace: str, *more: str) -> str:
    """What the chart is for a namespace."""
    return helm("template", "lorapick", str(CHART), "--namespace", namespace, *more)


def without_words(schema: Any) -> Any:
    """A schema without descriptions, messages, and bounds that bound nothing: what it means."""
    if isinstance(schema, list):
        return [without_words(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    empty = {"minLength"} if schema.get("minLength") == 0 else set()
    skipped = {name for name in ("description", "message") if isinstance(schema.get(name), str)} | empty
    return {name: without_words(value) for name, value in schema.items() if name not in skipped}


def role(*values: str) -> dict[str, Any]:
    """The chart's Role for some values."""
    sets = [word for value in values for word in ("--set", value)]
    return next(yaml.safe_load_all(rendered("llm", *sets, "--show-only", "templates/rbac.yaml")))


def named(one: dict[str, Any]) -> dict[str, list[str]]:
    """Objects that a Role names, by resource."""
    return {rule["resources"][0]: rule["resourceNames"] for rule in one["rules"] if "resourceNames" in rule}


IN_CLUSTER = "config.discovery.kubernetes"
ROLES = (
    ((), {"inferencepools": ["lorapick"], "leases": ["lorapick-lorapick"]}),
    (("pool.name=a",), {"inferencepools": ["a"], "leases": ["lorapick-a"]}),
    ((f"{IN_CLUSTER}.pool=b", "pool.name=a"), {"inferencepools": ["b"], "leases": ["lorapick-b"]}),
    ((f"{IN_CLUSTER}.leader.lease=mine",), {"inferencepools": ["lorapick"], "leases": ["mine"]}),
    ((f"{IN_CLUSTER}.selector.app=vllm",), {"leases": ["lorapick-pods"]}),
    ((f"{IN_CLUSTER}.leader.enabled=false",), {"inferencepools": ["lorapick"]}),
)


@pytest.mark.parametrize(("values", "names"), ROLES)
def test_the_role_follows_the_configuration(values: tuple[str, ...], names: dict[str, list[str]]) -> None:
    assert named(role(*values)) == names
    allows = {resource for rule in role(*values)["rules"] for resource in rule["resources"]}
    assert {"inferencepools", "leases"} & allows == set(names)


def test_the_role_is_where_the_pods_are() -> None:
    values = ("--set", f"{IN_CLUSTER}.namespace=models,pool.create=false", "--show-only", "templates/rbac.yaml")
    ours, binding = yaml.safe_load_all(rendered("llm", *values))
    assert (ours["metadata"]["namespace"], binding["metadata"]["namespace"]) == ("models", "models")
    assert binding["subjects"][0]["namespace"] == "llm"


@pytest.mark.parametrize("values", VARIANTS)
def test_the_picker_can_read_what_values_make_of_its_configuration(values: str) -> None:
    text = rendered("llm", "--set", values, "--show-only", "templates/configmap.yaml")
    settings = parse_settings(yaml.safe_load(text)["data"]["lorapick.yaml"], file="lorapick.yaml", policies=POLICIES)
    assert check_exposure(settings) is not None


def test_lint() -> None:
    assert "0 chart(s) failed" in helm("lint", "--strict", str(CHART))


def test_the_manifests_are_what_the_chart_renders() -> None:
    """To write them anew: .k8s/bin/helm template lorapick deploy/chart/lorapick --namespace llm > RENDERED."""
    assert rendered("llm") == RENDERED.read_text()


@pytest.mark.parametrize("name", OURS)
def test_our_crds_mean_what_the_published_ones_mean(name: str) -> None:
    published = PUBLISHED / "inference-extension" / "config" / "crd" / "bases" / f"{OURS[name]}.yaml"
    ours, theirs = (yaml.safe_load(path.read_text())["spec"] for path in (DEPLOY / "crds" / f"{name}.yaml", published))
    if name == "inferencepools":  # ours has columns for kubectl, and lets go without a picker, as later releases do
        del ours["versions"][0]["additionalPrinterColumns"]
        theirs["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["required"].remove("endpointPickerRef")
    for spec in (ours, theirs):
        for schema in spec["versions"]:
            required = schema["schema"]["openAPIV3Schema"]["properties"]["spec"]["required"]
            required.sort()
    assert without_words(ours) == without_words(theirs)


def test_the_api_server_takes_the_manifests(api: Api, kubectl: Callable[..., str]) -> None:
    said = kubectl("apply", "-n", api.namespace, "--dry-run=server", "-f", "-", stdin=rendered(api.namespace))
    kinds = [line.partition("/")[0].partition(".")[0] for line in said.splitlines()]
    assert len(kinds) == len(list(yaml.safe_load_all(RENDERED.read_text())))
    assert "unknown" not in said


@pytest.mark.parametrize("values", VARIANTS)
def test_the_api_server_takes_what_values_make_of_them(values: str, api: Api, kubectl: Callable[..., str]) -> None:
    text = rendered(api.namespace, "--set", values)
    kubectl("apply", "-n", api.namespace, "--dry-run=server", "--validate=strict", "-f", "-", stdin=text)


@pytest.mark.parametrize(("values", "words"), REFUSED)
def test_values_that_cannot_be_are_refused(values: str, words: str) -> None:
    assert words in helm("template", "lorapick", str(CHART), "--set", values, ok=False)


def test_pods_of_the_chart_pass_the_restricted_standard(api: Api, kubectl: Callable[..., str]) -> None:
    kubectl("label", "namespace", api.namespace, "pod-security.kubernetes.io/enforce=restricted")
    kubectl("apply", "-n", api.namespace, "-f", "-", stdin=rendered(api.namespace))
    (deployment,) = [one for one in yaml.safe_load_all(rendered(api.namespace)) if one["kind"] == "Deployment"]
    template = deployment["spec"]["template"]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {**template["metadata"], "name": "one"}}
    assert api.create("pods", {**pod, "spec": template["spec"]})["metadata"]["name"] == "one"


def test_install_upgrade_and_uninstall(api: Api, cluster: Cluster, tmp_path: Path) -> None:
    config = cluster.kubeconfig(tmp_path / "helm.json", token=cluster.token, namespace=api.namespace)
    where = ("--kubeconfig", str(config), "--namespace", api.namespace)
    helm("install", "picker", str(CHART), *where)
    assert api.get("inferencepools", "picker")["spec"]["endpointPickerRef"]["failureMode"] == "FailOpen"
    helm("upgrade", "picker", str(CHART), *where, "--set", "pool.failureMode=FailClose,replicas=1")
    assert api.get("inferencepools", "picker")["spec"]["endpointPickerRef"]["failureMode"] == "FailClose"
    helm("uninstall", "picker", *where)
    assert api.list("inferencepools")["items"] == []


@pytest.fixture(scope="session")
def gateways(kubectl: Callable[..., str], crds: list[str]) -> None:
    """The CRDs of the Gateway API and of Istio, as they publish them."""
    assert crds
    kubectl("apply", "--server-side", "-f", str(PUBLISHED / "gateway-api" / "config" / "crd" / "standard"))
    istio = PUBLISHED / "istio" / "kubernetes" / "customresourcedefinitions.gen.yaml"
    kubectl("apply", "--server-side", "-f", str(istio))
    kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
    kubectl("create", "namespace", "llm")


@pytest.mark.usefixtures("gateways")
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_api_server_takes_the_examples(path: Path, kubectl: Callable[..., str]) -> None:
    said = kubectl("apply", "--dry-run=server", "--validate=strict", "-f", str(path))
    assert len(said.splitlines()) == len([one for one in yaml.safe_load_all(path.read_text()) if one])
