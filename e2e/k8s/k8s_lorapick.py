"""lorapick beside an API server: emulated engine pods on loopback addresses, pickers, and what they say.

In: a kubeconfig, names. Out: processes that are ended with the test; the fleet as a picker sees it, its metrics, picks.
Not here: the API server (see `k8s_server`).

Every engine listens on an address of its own in 127.0.0.0/8 and on the same port, as pods of a cluster do.
"""

import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import grpc
from envoy.service.ext_proc.v3.external_processor_pb2_grpc import ExternalProcessorStub

from k8s_api import Api
from k8s_objects import POOL
from k8s_server import Cluster, free_port, tied
from lorapick.testing import extproc as gateway

T = TypeVar("T")
LORAPICK = (sys.executable, "-m", "lorapick.cli.main")
WITHIN_SECONDS = 30.0
DESTINATION = "x-gateway-destination-endpoint"
ADDRESSES = ("127.0.0.2", "127.0.0.3", "127.0.0.4")
FAST_LEADER = {"duration": "3s", "renew_within": "2s", "retry": "300ms"}


def eventually(look: Callable[[], T], until: Callable[[T], bool], *, within: float = WITHIN_SECONDS) -> T:
    """Answer what `look` finds as soon as `until` holds of it; fail with the last of it."""
    end = time.monotonic() + within
    while True:
        found = look()
        if until(found):
            return found
        assert time.monotonic() < end, f"not within {within:.0f} s; last: {found!r}"
        time.sleep(0.1)


class Child:
    """A process of ours; its output goes to a file."""

    def __init__(self, command: tuple[str, ...], log: Path) -> None:
        self.log = log
        with log.open("ab") as out:
            self.process = subprocess.Popen(tied(*command), stdout=out, stderr=out, start_new_session=True)

    def end(self, *, hard: bool = False) -> None:
        """End it: in order, or as a machine that is lost would."""
        if self.process.poll() is None:
            (self.process.kill if hard else self.process.terminate)()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def said(self) -> str:
        """What it printed so far."""
        return self.log.read_text(errors="replace")


class Engine(Child):
    """An emulated engine at `address`."""

    def __init__(self, address: str, *, port: int, directory: Path, adapters: int = 8) -> None:
        self.address = address
        where = ("--host", address, "--port", str(port), "--name", address)
        super().__init__((*LORAPICK, "pod", *where, "--adapters", str(adapters)), directory / f"engine-{address}.log")


class Picker(Child):
    """`lorapick serve` with pods from the API server; `settings` are laid over its configuration."""

    def __init__(self, name: str, *, kubeconfig: Path, directory: Path, pool: str, **settings: Any) -> None:
        self.name = name
        self.admin, self.metrics_at, health = (f"127.0.0.1:{free_port()}" for _ in range(3))
        self.socket = directory / f"{name}.sock"
        kubernetes = {"pool": pool, "kubeconfig": str(kubeconfig), "leader": FAST_LEADER}
        server = {"extproc": f"unix:{self.socket}", "health": health, "metrics": self.metrics_at, "admin": self.admin}
        config = {
            "discovery": {"kubernetes": kubernetes},
            "server": server,
            "scrape": {"interval": "500ms"},
            **settings,
        }
        path = directory / f"{name}.yaml"
        path.write_text(json.dumps(config))
        super().__init__((*LORAPICK, "serve", "--config", str(path)), directory / f"{name}.log")
        self.or_end(lambda: eventually(self.is_up, bool))

    def or_end(self, wait: Callable[[], object]) -> None:
        """Do `wait`; where it fails, end the process and say what it said last."""
        try:
            wait()
        except BaseException as error:
            self.end()
            error.add_note(self.said()[-3000:])
            raise

    def is_up(self) -> bool:
        """Whether the admin API answers.

        Raises:
            RuntimeError: the picker has ended.
        """
        if self.process.poll() is not None:
            raise RuntimeError(self.said()[-2000:])
        try:
            self.ask("/healthz")
        except OSError:
            return False
        return True

    def ask(self, path: str) -> Any:
        """Answer what the admin API says."""
        with urllib.request.urlopen(f"http://{self.admin}{path}", timeout=10) as answer:
            return json.load(answer)

    def pods(self) -> dict[str, str]:
        """Of each endpoint, by name: "ready", or the reason why it gets no requests."""
        return {pod["name"]: "ready" if pod["ready"] else pod["reason"] for pod in self.ask("/v1/fleet")["pods"]}

    def addresses(self) -> set[str]:
        """Addresses of the endpoints."""
        return {pod["address"] for pod in self.ask("/v1/fleet")["pods"]}

    def metric(self, name: str, labels: str = "") -> float | None:
        """Answer one sample; None: there is none."""
        with urllib.request.urlopen(f"http://{self.metrics_at}/metrics", timeout=10) as answer:
            lines = answer.read().decode().splitlines()
        found = [line.rpartition(" ")[2] for line in lines if line.startswith(f"{name}{labels} ")]
        return float(found[0]) if found else None

    def pick(self, model: str, *headers: tuple[str, str]) -> str:
        """Answer the address that a gateway is told for a request; "" when the request is refused."""
        modes = (gateway.BUFFERED, gateway.NO_BODY)
        first = gateway.request_headers(headers=[("x-request-id", "r"), *headers], modes=modes)
        body = json.dumps({"model": model, "prompt": "Hello", "max_tokens": 1}).encode()
        with grpc.insecure_channel(f"unix:{self.socket}") as channel:
            for answer in ExternalProcessorStub(channel).Process(iter([first, gateway.request_body(body)]), timeout=20):
                for part in (answer.request_headers, answer.request_body):
                    for header in part.response.header_mutation.set_headers:
                        if header.header.key == DESTINATION:
                            return str(header.header.raw_value.decode()).partition(",")[0]
        return ""


def begin_picker(name: str, api: Api, *, cluster: Cluster, directory: Path, **settings: object) -> Picker:
    """Start a picker in the namespace of `api`, as its administrator, and wait until it knows two ready pods."""
    config = cluster.kubeconfig(directory / f"{name}.json", token=cluster.token, namespace=api.namespace)
    one = Picker(name, kubeconfig=config, directory=directory, pool=POOL, **settings)
    one.or_end(lambda: eventually(one.pods, names(0, 1)))
    return one


def names(*numbers: int) -> Callable[[dict[str, str]], bool]:
    """Whether exactly these endpoints are ready."""
    wanted = {f"llama-{number}-rank-0" for number in numbers}
    return lambda pods: {name for name, state in pods.items() if state == "ready"} == wanted
