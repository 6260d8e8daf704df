"""Objects beside pods: aliases and adapters, followed while a picker runs, and told of in status and events."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from k8s_api import Api
from k8s_lorapick import Picker, begin_picker, eventually
from k8s_objects import POOL
from k8s_server import Cluster


@pytest.fixture
def picker(two_pods: Api, cluster: Cluster, tmp_path: Path) -> Iterator[Picker]:
    """A picker that leads."""
    one = begin_picker("picker-0", two_pods, cluster=cluster, directory=tmp_path)
    eventually(lambda: one.metric("lorapick_leader"), lambda leads: leads == 1)
    yield one
    one.end()


def adapter(name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "lorapick.dev/v1alpha1", "kind": "LoraAdapter", "metadata": {"name": name}, "spec": spec}


def conditions(api: Api, name: str) -> dict[str, str]:
    """Status of each condition of an adapter."""
    status = api.get("loraadapters", name).get("status", {})
    return {one["type"]: one["status"] for one in status.get("conditions", [])}


def pin(picker: Picker) -> Any:
    """The pin of adapter-005 as the picker has it."""
    return picker.ask("/v1/adapters/adapter-005")["adapter"]["pin"]


def test_a_rewrite_is_an_alias_from_its_creation_to_its_end(picker: Picker, api: Api) -> None:
    rules = [{"matches": [{"model": {"value": "sql"}}], "targets": [{"modelRewrite": "adapter-003"}]}]
    head = {"apiVersion": "inference.networking.x-k8s.io/v1alpha2", "kind": "InferenceModelRewrite"}
    spec = {"poolRef": {"name": POOL}, "rules": rules}
    assert picker.pick("sql") == ""
    api.create("inferencemodelrewrites", {**head, "metadata": {"name": "sql"}, "spec": spec})
    eventually(lambda: picker.pick("sql"), bool)
    api.delete("inferencemodelrewrites", "sql")
    eventually(lambda: picker.pick("sql"), lambda address: address == "")


def test_a_pin_of_an_adapter_is_placed_and_told_of(picker: Picker, api: Api) -> None:
    api.create("loraadapters", adapter("adapter-005", replicas=2))
    eventually(lambda: conditions(api, "adapter-005").get("Placed"), lambda status: status == "True", within=60)
    made = api.get("loraadapters", "adapter-005")
    assert conditions(api, "adapter-005")["Accepted"] == "True"
    assert all(one["observedGeneration"] == made["metadata"]["generation"] for one in made["status"]["conditions"])
    told = [event for event in api.list("events")["items"] if event["involvedObject"]["name"] == "adapter-005"]
    assert told
    assert pin(picker) is not None


def test_an_adapter_that_contradicts_itself_is_refused_by_schema_or_status(picker: Picker, api: Api) -> None:
    assert picker.is_up()
    api.create("loraadapters", adapter("adapter-006", replicas=3, placement={"pods": ["llama-0-rank-0"]}))
    eventually(lambda: conditions(api, "adapter-006").get("Accepted"), lambda status: status == "False")


def test_objects_outlive_the_picker(picker: Picker, api: Api, cluster: Cluster, tmp_path: Path) -> None:
    api.create("loraadapters", adapter("adapter-005", replicas=1))
    eventually(lambda: pin(picker), bool)
    picker.end()
    again = begin_picker("picker-1", api, cluster=cluster, directory=tmp_path)
    try:
        eventually(lambda: pin(again), bool)
    finally:
        again.end()
