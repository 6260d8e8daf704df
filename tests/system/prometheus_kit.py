"""The real Prometheus and promtool of the Debian package, for tests.

In: rules, series. Out: what promtool says; a server on a free port over a directory, which ends with its block.
"""

import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def program(name: str) -> str:
    """Path of a program of the package. A test without it fails: it would show nothing."""
    found = shutil.which(name)
    assert found is not None, f"{name} is missing: run `make test-system` as root, or install the package prometheus"
    return found


def promtool(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run it."""
    return subprocess.run(
        [program("promtool"), *arguments], cwd=cwd, capture_output=True, text=True, timeout=120, check=False
    )


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def get(url: str) -> Any:
    """A JSON answer of the server on this machine; an error's too."""
    try:
        with urllib.request.urlopen(url, timeout=20) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        return json.load(error)


class Server:
    """A running Prometheus."""

    def __init__(self, url: str) -> None:
        self.url = url

    def query(self, expr: str, at: float) -> list[dict[str, Any]]:
        """The vector that an expression gives at a time. Fails on an expression that Prometheus refuses."""
        answer = get(f"{self.url}/api/v1/query?{urllib.parse.urlencode({'query': expr, 'time': at})}")
        assert answer["status"] == "success", f"{expr}: {answer}"
        result: list[dict[str, Any]] = answer["data"]["result"]
        return result

    def groups(self) -> list[dict[str, Any]]:
        """Groups of rules that are loaded."""
        found: list[dict[str, Any]] = get(f"{self.url}/api/v1/rules")["data"]["groups"]
        return found


@contextmanager
def prometheus(directory: Path, *, config: str = "") -> Iterator[Server]:
    """A server over the blocks in `directory / "data"`; any time may be asked for."""
    port = free_port()
    (directory / "prometheus.yml").write_text(config)
    arguments = [
        "--config.file=prometheus.yml",
        "--storage.tsdb.path=data",
        "--storage.tsdb.retention.time=100y",
        f"--web.listen-address=127.0.0.1:{port}",
        "--log.level=warn",
    ]
    with (directory / "prometheus.log").open("wb") as log:
        process = subprocess.Popen([program("prometheus"), *arguments], cwd=directory, stdout=log, stderr=log)
    try:
        server = Server(f"http://127.0.0.1:{port}")
        _wait(server.url, process, log=directory / "prometheus.log")
        yield server
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(url: str, process: subprocess.Popen[bytes], *, log: Path) -> None:
    for _ in range(200):
        assert process.poll() is None, f"prometheus ended at once:\n{log.read_text()}"
        try:
            with urllib.request.urlopen(f"{url}/-/ready", timeout=5):
                return
        except OSError:
            time.sleep(0.1)
    raise AssertionError(f"prometheus is not ready:\n{log.read_text()}")
