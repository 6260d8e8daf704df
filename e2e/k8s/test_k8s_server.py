"""The API server itself, so that the other tests can rely on it: CRDs, pods, watches, their end, restarts."""

import pytest

from k8s_api import Api, ApiError
from k8s_objects import POOL, begin_pod, pod, pool, set_ready
from k8s_server import Cluster

PORT_TWICE, NINE_PORTS = (8000, 8000), tuple(range(8000, 8009))


def test_our_crds_are_established_and_structural(api: Api, crds: list[str]) -> None:
    assert "inferencepools.inference.networking.k8s.io" in crds
    for name in crds:
        conditions = api.get("customresourcedefinitions", name)["status"]["conditions"]
        said = {one["type"]: one["status"] for one in conditions}
        assert said["Established"] == "True"
        assert said.get("NonStructuralSchema", "False") == "False", conditions


def test_a_pool_gets_the_published_defaults(api: Api) -> None:
    made = api.create("inferencepools", pool())
    assert made["spec"]["endpointPickerRef"] == {
        "group": "",
        "kind": "Service",
        "name": "lorapick",
        "port": {"number": 9002},
        "failureMode": "FailClose",
    }


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"ports": PORT_TWICE}, "a port may stand here once"),
        ({"ports": NINE_PORTS}, "must have at most 8 items"),
        ({"ports": ()}, "should have at least 1 items"),
        ({"endpointPickerRef": {"name": "lorapick"}}, "a Service needs a port"),
        ({"appProtocol": "grpc"}, "Unsupported value"),
        ({"selector": {"matchLabels": {}}}, "should have at least 1 properties"),
    ],
)
def test_pools_that_upstream_refuses_are_refused(api: Api, change: dict[str, object], words: str) -> None:
    with pytest.raises(ApiError, match=words) as refused:
        api.create("inferencepools", pool(**change))  # type: ignore[arg-type]
    assert refused.value.status == 422


@pytest.mark.parametrize("weight", [0, 1_000_001])
def test_weights_of_rewrites_are_bounded(api: Api, weight: int) -> None:
    targets = [{"modelRewrite": "sql-v2", "weight": weight}]
    spec = {"poolRef": {"name": POOL}, "rules": [{"targets": targets}]}
    made = {"kind": "InferenceModelRewrite", "metadata": {"name": "one"}, "spec": spec}
    with pytest.raises(ApiError, match="weight"):
        api.create("inferencemodelrewrites", {"apiVersion": "inference.networking.x-k8s.io/v1alpha2", **made})


def test_a_watch_tells_of_pods_from_their_creation_to_their_end(api: Api) -> None:
    since = api.list("pods")["metadata"]["resourceVersion"]
    begin_pod(api, "llama-0", address="127.0.0.2")
    set_ready(api, "llama-0", address="127.0.0.2", ready=False)
    api.delete("pods", "llama-0")
    leaving = api.get("pods", "llama-0")
    api.delete("pods", "llama-0", grace_seconds=0)
    first, *between, last = (event["type"] for event in api.watch("pods", since=since, seconds=1))
    assert (first, {*between}, last) == ("ADDED", {"MODIFIED"}, "DELETED")
    assert leaving["metadata"]["deletionGracePeriodSeconds"] == 60


def test_a_pod_without_a_node_is_gone_at_once(api: Api) -> None:
    without = pod("llama-0")
    del without["spec"]["nodeName"]
    api.create("pods", without)
    api.delete("pods", "llama-0")
    with pytest.raises(ApiError) as gone:
        api.get("pods", "llama-0")
    assert gone.value.status == 404


def test_what_was_forgotten_cannot_be_watched(api: Api, cluster: Cluster) -> None:
    since = api.list("pods")["metadata"]["resourceVersion"]
    begin_pod(api, "llama-0", address="127.0.0.2")
    cluster.compact()
    cluster.stop_api_server()
    cluster.start_api_server()
    with pytest.raises(ApiError) as expired:
        list(api.watch("pods", since=since, seconds=5))
    assert expired.value.status == 410


def test_objects_outlive_the_api_server(api: Api, cluster: Cluster) -> None:
    api.create("inferencepools", pool())
    cluster.stop_api_server(hard=True)
    with pytest.raises(OSError):
        api.get("inferencepools", POOL)
    cluster.start_api_server()
    assert api.get("inferencepools", POOL)["metadata"]["name"] == POOL
