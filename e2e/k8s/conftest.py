"""One API server for the whole run, with the project's CRDs, and a namespace for each test."""

import asyncio
import itertools
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from k8s_api import Api
from k8s_build import BINARIES
from k8s_lorapick import ADDRESSES, Engine
from k8s_objects import begin_pod, pool
from k8s_server import Cluster, free_port

# As in tests/conftest.py: keeps a loop from being made that nobody closes.
asyncio.set_event_loop(None)
ROOT = Path(__file__).parents[2]
_sections: dict[str, list[str]] = {}
_numbers = itertools.count()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All of these need the programs that `k8s_build.py` makes."""
    for item in items:
        item.add_marker(pytest.mark.k8s)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show what was measured, as docs/kubernetes.md has it."""
    for title, lines in _sections.items():
        terminalreporter.write_line("\n".join([f"### {title}", "", *lines, ""]))


@pytest.fixture(scope="session")
def report() -> dict[str, list[str]]:
    """Sections of the report: lines by title."""
    return _sections


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory, report: dict[str, list[str]]) -> Iterator[Cluster]:
    """Etcd and the API server, ended with the session."""
    one = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        one.begin()
        report["The API server"] = [f"- ready {one.started_in:.1f} s after its start"]
        yield one
    finally:
        one.end()


@pytest.fixture(scope="session")
def kubectl(cluster: Cluster) -> Callable[..., str]:
    """Run kubectl as the administrator; answers what it printed, fails with what it said unless `ok` is false."""
    config = cluster.kubeconfig(cluster.directory / "admin.json", token=cluster.token)

    def run(*words: str, stdin: str | None = None, ok: bool = True) -> str:
        command = [str(BINARIES / "kubectl"), f"--kubeconfig={config}", *words]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=60, check=False)
        assert not ok or done.returncode == 0, f"kubectl {' '.join(words)}: {done.stderr}"
        return done.stdout

    return run


@pytest.fixture(scope="session")
def crds(kubectl: Callable[..., str]) -> list[str]:
    """All CRDs of deploy/crds, established; answers their names."""
    kubectl("apply", "--server-side", "-f", str(ROOT / "deploy" / "crds"))
    kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
    return [
        name.removeprefix("customresourcedefinition.apiextensions.k8s.io/")
        for name in kubectl("get", "crd", "-o", "name").split()
    ]


@pytest.fixture
def api(cluster: Cluster, crds: list[str]) -> Api:
    """The administrator, in a namespace of its own."""
    assert crds
    name = f"test-{next(_numbers)}"
    one = Api(cluster.url, authority=str(cluster.authority), token=cluster.token, namespace=name)
    one.create("namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    return one


@pytest.fixture(scope="session")
def port() -> int:
    """The port of every engine."""
    return free_port()


@pytest.fixture(scope="session")
def engines(port: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Engine]]:
    """Three engines, by address."""
    directory = tmp_path_factory.mktemp("engines")
    running = {address: Engine(address, port=port, directory=directory) for address in ADDRESSES}
    yield running
    for engine in running.values():
        engine.end()


@pytest.fixture
def two_pods(api: Api, engines: dict[str, Engine], port: int) -> Api:
    """A pool and two ready pods."""
    api.create("inferencepools", pool(ports=(port,)))
    for number, address in enumerate(list(engines)[:2]):
        begin_pod(api, f"llama-{number}", address=address)
    return api
