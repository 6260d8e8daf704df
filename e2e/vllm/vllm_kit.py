"""Real vLLM servers, `lorapick up` in front of them, and what they wrote down.

In: directories. Out: running processes on 127.0.0.1, ended with their groups whatever happens, and their records.
Not here: checks (the tests), judging beliefs (`judge`), the model (`make_model`).
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from lorapick.live.addresses import free_ports

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
PYTHON = ROOT / ".venv-vllm" / "bin" / "python"
RUN = ROOT / "run" / "e2e-vllm"
BASE = "base"
ADAPTERS = tuple(f"ad{number}" for number in range(6))
MAX_LORAS, MAX_CPU_LORAS = 2, 4
BLOCK = 32
START_WITHIN = 240.0
"""Seconds; 17 to 29 on two idle cores."""


def fetch(url: str, *, timeout: float = 5.0) -> bytes:
    """GET; raises OSError when there is no answer below 400."""
    with urllib.request.urlopen(url, timeout=timeout) as answer:
        return bytes(answer.read())


def post(url: str, body: dict[str, Any]) -> tuple[int, str]:
    """POST JSON: status and text."""
    data = json.dumps(body).encode()
    request = urllib.request.Request(url, data=data, headers={"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def until(what: str, check: Callable[[], Any], *, within: float, every: float = 0.1) -> Any:
    """What `check` returns, once that is true."""
    end = time.monotonic() + within
    while time.monotonic() < end:
        with contextlib.suppress(OSError):
            found = check()
            if found:
                return found
        time.sleep(every)
    raise AssertionError(f"after {within:g} s still not: {what}")


def end_group(process: subprocess.Popen[Any], *, grace: float = 10.0) -> None:
    """End a process that leads a group, and the group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(grace)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def with_parent(*command: str) -> list[str]:
    """The command, ended by the kernel when this process is."""
    return [sys.executable, "-m", "lorapick.live.die_with_parent", str(os.getpid()), *command]


class Server:
    """One vLLM with six adapters."""

    def __init__(self, number: int, *, models: Path) -> None:
        self.number = number
        self.name = f"vllm-{number}"
        self.port = free_ports(1)[0]
        self.record_file = RUN / f"{self.name}.record.jsonl"
        self.log_file = RUN / f"{self.name}.log"
        self.kv_events = f"ipc://{RUN}/kv-{number}.sock"
        self.started_in = 0.0
        self._models = models
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def path_of(self) -> Callable[[str], str]:
        return lambda adapter: str(self._models / adapter)

    def begin(self) -> None:
        """Start the process; `wait` says when it serves."""
        self._began = time.monotonic()
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, str(HERE / "keeper.py"), str(os.getpid()), *self._command()],
                env=self._environment(),
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )

    def wait(self) -> None:
        """Wait until it answers."""

        def healthy() -> bool:
            assert self._process is not None and self._process.poll() is None, f"vLLM ended: {self._tail()}"
            return fetch(f"{self.url}/health") is not None

        until(f"{self.name} serves", healthy, within=START_WITHIN)
        self.started_in = time.monotonic() - self._began

    def end(self, *, grace: float = 10.0) -> None:
        """End all of its processes; safe to call twice."""
        if self._process is not None:
            end_group(self._process, grace=grace)
            self._process = None

    def _tail(self) -> str:
        return self.log_file.read_text(errors="replace")[-3000:]

    def _command(self) -> list[str]:
        events = {"enable_kv_cache_events": True, "publisher": "zmq", "endpoint": self.kv_events, "topic": self.name}
        options = {
            "model": self._models / "base",
            "served-model-name": BASE,
            "host": "127.0.0.1",
            "port": self.port,
            "dtype": "bfloat16",
            "max-model-len": 1024,
            "max-num-seqs": 8,
            "block-size": BLOCK,
            "max-loras": MAX_LORAS,
            "max-cpu-loras": MAX_CPU_LORAS,
            "max-lora-rank": 16,
            "kv-events-config": json.dumps(events),
        }
        flags = [word for name, value in options.items() for word in (f"--{name}", str(value))]
        modules = [f"{name}={self.path_of(name)}" for name in ADAPTERS]
        module = "vllm.entrypoints.openai.api_server"
        return [str(PYTHON), "-m", module, *flags, "--enforce-eager", "--enable-lora", "--lora-modules", *modules]

    def _environment(self) -> dict[str, str]:
        cores = sorted(os.sched_getaffinity(0))
        half = len(cores) // 2
        mine = (cores[:half] or cores, cores[half:])[self.number]
        return {
            **os.environ,
            "VLLM_CPU_OMP_THREADS_BIND": ",".join(map(str, mine)),
            "VLLM_CPU_KVCACHE_SPACE": "1",
            "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "True",
            "VLLM_HOST_IP": "127.0.0.1",
            "VLLM_NO_USAGE_STATS": "1",
            "VLLM_PLUGINS": "lorapick_recorder",
            "LORAPICK_RECORD": str(self.record_file),
            "PYTHONPATH": str(HERE / "recorder"),
            "HF_HUB_OFFLINE": "1",
        }

    def record(self) -> list[dict[str, Any]]:
        """What its worker wrote down."""
        if not self.record_file.exists():
            return []
        return [json.loads(line) for line in self.record_file.read_text().splitlines()]

    def metric(self, start: str) -> float:
        """Sum of the samples whose line begins so."""
        lines = fetch(f"{self.url}/metrics").decode().splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(start))


class Front:
    """A running `lorapick up` before the servers."""

    def __init__(self, ready: dict[str, Any], directory: Path) -> None:
        self.endpoint: str = ready["endpoint"]
        self.admin: str = ready["page"]
        self.event_log = directory / "lorapick-0.events.jsonl"

    def ask(self, path: str) -> Any:
        """A document of the admin API."""
        return json.loads(fetch(self.admin + path))

    def decisions(self) -> list[dict[str, Any]]:
        """All dispatches so far: `t`, `request_id`, `pod`, `tier` as it was believed, and the adapter asked for."""
        time.sleep(1.5)  # it is flushed once a second
        models: dict[str, str] = {}
        found, t = [], 0.0
        for line in self.event_log.read_bytes().splitlines()[1:]:
            row = json.loads(line)
            t = row.get("t", t)
            if row["type"] == "RequestArrived":
                models[row["request"]["id"]] = row["request"]["model"]
            found += [
                {"t": t, "tier": None, **answer, "adapter": models[answer["request_id"]]}
                for answer in row.get("answers", ())
                if answer["kind"] == "dispatch"
            ]
        return found


def configuration(servers: list[Server], settings: dict[str, Any]) -> dict[str, Any]:
    """`lorapick.yaml` for these servers."""
    limits = {"max_loras": MAX_LORAS, "max_cpu_loras": MAX_CPU_LORAS, "max_lora_rank": 16, "max_num_seqs": 8}
    pods = [
        {"name": server.name, "address": f"127.0.0.1:{server.port}", "kv_events": server.kv_events, **limits}
        for server in servers
    ]
    return {
        "base_model": BASE,
        "discovery": {"pods": pods},
        "scrape": {"interval": "500ms", "models_every": "1s"},
        **settings,
    }


@contextlib.contextmanager
def front(servers: list[Server], name: str, **settings: Any) -> Iterator[Front]:
    """`lorapick up` before the servers, with these settings besides."""
    directory = RUN / name
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "fleet.yaml"
    path.write_bytes(msgspec.yaml.encode(configuration(servers, settings)))
    flags = ("--config", str(path), "--run-dir", str(directory), "--event-log", "--json")
    names = ("--port", "--admin-port", "--metrics-port", "--health-port")
    ports = [word for flag, port in zip(names, free_ports(4), strict=True) for word in (flag, str(port))]
    with (directory / "up.log").open("wb") as log:
        process = subprocess.Popen(
            with_parent(sys.executable, "-m", "lorapick.cli.main", "up", *flags, *ports),
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
        )
    try:
        assert process.stdout is not None
        ready = next((facts for line in process.stdout if (facts := json.loads(line))["event"] == "ready"), None)
        assert ready is not None, (directory / "up.log").read_text()
        models = f"{ready['endpoint']}/models"
        # Until a pod has said which names it serves, requests for them wait, or are refused where nobody may wait.
        until("every adapter is known", lambda: all(name in fetch(models).decode() for name in ADAPTERS), within=30)
        yield Front(ready, directory)
    finally:
        end_group(process)
        if process.stdout is not None:
            process.stdout.close()
