"""Two pickers of one pool: both pick, one leads, until it ends, dies, or loses the API server."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from k8s_api import Api
from k8s_lorapick import Picker, begin_picker, eventually
from k8s_server import Cluster

LEASE = "lorapick-llama"


@pytest.fixture
def both(two_pods: Api, cluster: Cluster, tmp_path: Path) -> Iterator[list[Picker]]:
    """Two pickers; the first leads."""
    running: list[Picker] = []
    try:
        running.append(begin_picker("picker-0", two_pods, cluster=cluster, directory=tmp_path))
        eventually(lambda: leads(running[0]), bool)
        running.append(begin_picker("picker-1", two_pods, cluster=cluster, directory=tmp_path))
        yield running
    finally:
        for one in running:
            one.end()


def leads(picker: Picker) -> bool:
    """Whether a picker says that it leads."""
    return picker.metric("lorapick_leader") == 1


def holder(api: Api) -> str:
    """Who holds the lease, as the API server has it."""
    return str(api.get("leases", LEASE)["spec"].get("holderIdentity") or "")


def test_both_pick_and_one_leads(both: list[Picker], api: Api) -> None:
    assert [leads(one) for one in both] == [True, False]
    assert all(one.pick("adapter-001") for one in both)
    assert holder(api)


def test_a_leader_that_ends_gives_the_lead_back(both: list[Picker], api: Api) -> None:
    before = holder(api)
    both[0].end()
    eventually(lambda: leads(both[1]), bool)
    assert holder(api) not in ("", before)


def test_a_leader_that_dies_is_followed_when_its_lease_is_over(both: list[Picker], api: Api) -> None:
    before = holder(api)
    both[0].end(hard=True)
    assert both[1].pick("adapter-001")
    eventually(lambda: leads(both[1]), bool)
    assert holder(api) not in ("", before)


def test_without_an_api_server_nobody_leads_and_both_pick(both: list[Picker], cluster: Cluster) -> None:
    cluster.stop_api_server(hard=True)
    try:
        eventually(lambda: leads(both[0]), lambda leading: not leading)
        assert not leads(both[1])
        assert all(one.pick("adapter-001") for one in both)
    finally:
        cluster.start_api_server()
    eventually(lambda: [leads(one) for one in both].count(True), lambda count: count == 1, within=60)
