"""lorapick follows the pods of a pool: scale, readiness, restart, drain, expired watches, no API server."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from k8s_api import Api
from k8s_lorapick import ADDRESSES, Picker, begin_picker, eventually, names
from k8s_objects import POOL, begin_pod, set_ready
from k8s_server import Cluster


@pytest.fixture
def picker(two_pods: Api, cluster: Cluster, tmp_path: Path) -> Iterator[Picker]:
    """A picker that knows both."""
    one = begin_picker("picker-0", two_pods, cluster=cluster, directory=tmp_path)
    yield one
    one.end()


def test_requests_go_to_pods_of_the_pool(picker: Picker, port: int) -> None:
    assert set(picker.pods()) == {"llama-0-rank-0", "llama-1-rank-0"}
    assert {picker.pick("adapter-001") for _ in range(5)} <= {f"{address}:{port}" for address in ADDRESSES[:2]}


def test_scale_up_and_down(picker: Picker, api: Api) -> None:
    begin_pod(api, "llama-2", address=ADDRESSES[2])
    eventually(picker.pods, names(0, 1, 2))
    api.delete("pods", "llama-2", grace_seconds=0)
    eventually(picker.pods, lambda pods: set(pods) == {"llama-0-rank-0", "llama-1-rank-0"})


def test_pods_of_others_are_left_alone(picker: Picker, api: Api) -> None:
    begin_pod(api, "other", address="127.0.0.9", labels={"app": "other"})
    begin_pod(api, "llama-2", address=ADDRESSES[2])
    assert "other-rank-0" not in eventually(picker.pods, names(0, 1, 2))


def test_a_pod_that_is_not_ready_gets_no_requests_until_it_is(picker: Picker, api: Api, port: int) -> None:
    set_ready(api, "llama-0", address=ADDRESSES[0], ready=False)
    eventually(picker.pods, names(1))
    assert {picker.pick("adapter-002") for _ in range(5)} == {f"{ADDRESSES[1]}:{port}"}
    set_ready(api, "llama-0", address=ADDRESSES[0])
    eventually(picker.pods, names(0, 1))


def test_a_pod_that_terminates_drains_until_it_is_gone(picker: Picker, api: Api, port: int) -> None:
    api.delete("pods", "llama-0")  # its kubelet has a minute
    eventually(picker.pods, lambda pods: pods.get("llama-0-rank-0") == "draining")
    assert {picker.pick("adapter-003") for _ in range(5)} == {f"{ADDRESSES[1]}:{port}"}
    api.delete("pods", "llama-0", grace_seconds=0)
    eventually(picker.pods, lambda pods: set(pods) == {"llama-1-rank-0"})


def test_a_pod_of_the_same_name_elsewhere_takes_its_place(picker: Picker, api: Api, port: int) -> None:
    api.delete("pods", "llama-0", grace_seconds=0)
    begin_pod(api, "llama-0", address=ADDRESSES[2])
    wanted = {f"{ADDRESSES[1]}:{port}", f"{ADDRESSES[2]}:{port}"}
    eventually(picker.addresses, lambda addresses: addresses == wanted)
    eventually(picker.pods, names(0, 1))


def test_another_selector_means_other_pods(picker: Picker, api: Api) -> None:
    begin_pod(api, "llama-2", address=ADDRESSES[2], labels={"tier": "gold"})
    eventually(picker.pods, names(0, 1, 2))
    api.merge("inferencepools", POOL, {"spec": {"selector": {"matchLabels": {"tier": "gold"}}}})
    eventually(picker.pods, lambda pods: set(pods) == {"llama-2-rank-0"})


def test_without_an_api_server_the_last_known_pods_serve(picker: Picker, api: Api, cluster: Cluster) -> None:
    cluster.stop_api_server(hard=True)
    try:
        assert picker.pick("adapter-004")
        eventually(lambda: "last" in picker.said(), bool)
        assert names(0, 1)(picker.pods())
    finally:
        cluster.start_api_server()
    begin_pod(api, "llama-2", address=ADDRESSES[2])
    eventually(picker.pods, names(0, 1, 2), within=60)


def test_a_watch_that_expired_while_the_api_server_was_away_is_listed_anew(
    picker: Picker, api: Api, cluster: Cluster
) -> None:
    """The server has forgotten what came after the picker's last version: 410, and a new list tells of both changes.

    The picker is halted after its watch has ended, or the events would wait for it in the socket.
    """
    cluster.stop_api_server(hard=True)
    eventually(lambda: "the last" in picker.said(), bool)
    picker.process.send_signal(signal.SIGSTOP)
    try:
        cluster.start_api_server()
        api.delete("pods", "llama-0", grace_seconds=0)
        begin_pod(api, "llama-2", address=ADDRESSES[2])
        cluster.stop_api_server()
        cluster.compact()
        cluster.start_api_server()
    finally:
        picker.process.send_signal(signal.SIGCONT)
    eventually(picker.pods, lambda pods: set(pods) == {"llama-1-rank-0", "llama-2-rank-0"}, within=60)
    assert "listed anew" in picker.said()
    assert (picker.metric("lorapick_kubernetes_relists_total", '{kind="pods"}') or 0) > 0
