"""lorapick as a service account that has the chart's Role and nothing else: it can do all that it does, and is refused
nothing; and what the Role allows, it uses."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from k8s_api import Api
from k8s_lorapick import FAST_LEADER, Picker, eventually, names
from k8s_objects import POOL, begin_pod
from k8s_server import Cluster
from test_k8s_chart import CHART, helm

ADAPTER = {"apiVersion": "lorapick.dev/v1alpha1", "kind": "LoraAdapter", "metadata": {"name": "adapter-001"}}


class Asked(NamedTuple):
    """One line of the audit log: what the account asked for, and the answer."""

    verb: str
    resource: str
    code: int


@pytest.fixture
def account(api: Api, kubectl: Callable[..., str]) -> str:
    """The chart's service account with its Role; answers its name."""
    parts = [word for name in ("serviceaccount", "rbac") for word in ("--show-only", f"templates/{name}.yaml")]
    where = ("--namespace", api.namespace, "--set", f"pool.name={POOL}")
    kubectl("apply", "-f", "-", stdin=helm("template", "lorapick", str(CHART), *where, *parts))
    return "lorapick"


@pytest.fixture
def picker(two_pods: Api, account: str, cluster: Cluster, tmp_path: Path) -> Iterator[Picker]:
    """A picker with the account's token."""
    token = two_pods.account_token(account)
    config = cluster.kubeconfig(tmp_path / "account.json", token=token, namespace=two_pods.namespace)
    one = Picker("picker-0", kubeconfig=config, directory=tmp_path, pool=POOL)
    yield one
    one.end()


def asked(cluster: Cluster, namespace: str) -> set[Asked]:
    """All that the account of a namespace asked for."""
    user = f"system:serviceaccount:{namespace}:lorapick"
    lines = [json.loads(line) for line in cluster.audit_log.read_text().splitlines()]
    return {
        Asked(
            line["verb"],
            "/".join(filter(None, (line["objectRef"]["resource"], line["objectRef"].get("subresource")))),
            line["responseStatus"]["code"],
        )
        for line in lines
        if line["user"]["username"] == user
    }


def test_the_role_is_enough_and_nothing_else_is_asked_for(
    picker: Picker, api: Api, cluster: Cluster, report: dict[str, list[str]]
) -> None:
    eventually(picker.pods, names(0, 1))
    eventually(lambda: picker.metric("lorapick_leader"), lambda leads: leads == 1)
    api.create("loraadapters", {**ADAPTER, "spec": {"replicas": 1}})
    eventually(lambda: api.get("loraadapters", "adapter-001").get("status"), bool)
    eventually(lambda: api.list("events")["items"], bool)
    begin_pod(api, "llama-2", address="127.0.0.4")
    eventually(picker.pods, names(0, 1, 2))
    found = asked(cluster, api.namespace)
    assert [one for one in found if one.code in (401, 403)] == []
    verbs: dict[str, list[str]] = {}
    for verb, resource in sorted({(one.verb, one.resource) for one in found}):
        verbs.setdefault(resource, []).append(verb)
    report["What lorapick asked the API server for"] = [
        "| objects | verbs |",
        "|---|---|",
        *(f"| {resource} | {', '.join(each)} |" for resource, each in sorted(verbs.items())),
    ]
    assert verbs == allowed()


def allowed() -> dict[str, list[str]]:
    """Verbs that the chart's Role allows, by resource."""
    role = next(yaml.safe_load_all(helm("template", "lorapick", str(CHART), "--show-only", "templates/rbac.yaml")))
    verbs: dict[str, set[str]] = {}
    for rule in role["rules"]:
        for resource in rule["resources"]:
            verbs.setdefault(resource, set()).update(rule["verbs"])
    return {resource: sorted(each) for resource, each in verbs.items()}


def test_the_role_for_another_lease_is_enough_for_it_and_not_for_the_usual_one(
    two_pods: Api, kubectl: Callable[..., str], cluster: Cluster, tmp_path: Path
) -> None:
    parts = [word for name in ("serviceaccount", "rbac") for word in ("--show-only", f"templates/{name}.yaml")]
    values = f"pool.name={POOL},config.discovery.kubernetes.leader.lease=mine"
    where = ("--namespace", two_pods.namespace, "--set", values)
    kubectl("apply", "-f", "-", stdin=helm("template", "lorapick", str(CHART), *where, *parts))
    who = (f"--as=system:serviceaccount:{two_pods.namespace}:lorapick", "-n", two_pods.namespace)
    # `can-i` asks by a SelfSubjectAccessReview.
    for name, allowed_to in (("mine", "yes"), (f"lorapick-{POOL}", "no")):
        said = kubectl("auth", "can-i", "update", f"leases.coordination.k8s.io/{name}", *who, ok=allowed_to == "yes")
        assert said.strip() == allowed_to
    token = two_pods.account_token("lorapick")
    config = cluster.kubeconfig(tmp_path / "account.json", token=token, namespace=two_pods.namespace)
    kubernetes = {"pool": POOL, "kubeconfig": str(config), "leader": {**FAST_LEADER, "lease": "mine"}}
    discovery = {"kubernetes": kubernetes}
    one = Picker("picker-0", kubeconfig=config, directory=tmp_path, pool=POOL, discovery=discovery)
    try:
        eventually(lambda: one.metric("lorapick_leader"), lambda leads: leads == 1)
        eventually(one.pods, names(0, 1))
    finally:
        one.end()
    found = asked(cluster, two_pods.namespace)
    assert [each for each in found if each.code in (401, 403)] == []


@pytest.mark.parametrize(
    ("verb", "resource"),
    [
        ("delete", "pods"),
        ("create", "pods"),
        ("get", "secrets"),
        ("list", "configmaps"),
        ("get", "nodes"),
        ("update", "inferencepools"),
        ("update", "loraadapters"),
        ("delete", "leases.coordination.k8s.io"),
    ],
)
def test_the_account_may_do_nothing_else(
    verb: str, resource: str, account: str, api: Api, kubectl: Callable[..., str]
) -> None:
    who = f"--as=system:serviceaccount:{api.namespace}:{account}"
    said = kubectl("auth", "can-i", verb, resource, who, "-n", api.namespace, ok=False)
    assert said.strip() == "no"
