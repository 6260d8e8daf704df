"""A real Kubernetes API server with its etcd, on 127.0.0.1.

In: the programs that `k8s_build.py` made, a directory. Out: an address, a CA file, an administrator's token, the audit
log; stop and start again with other flags while etcd keeps what it has. Not here: nodes, kubelets, controllers. A pod
is an object whose status the tests write, as a kubelet would.
"""

import contextlib
import json
import os
import secrets
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from k8s_build import BINARIES
from lorapick.live import die_with_parent

START_WITHIN_SECONDS = 90.0
STOP_WITHIN_SECONDS = 20.0
AUDIT_POLICY = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]  # a watch has ended only when its server does
rules:
  - level: Metadata
    userGroups: ["system:serviceaccounts"]
  - level: None
"""


def free_port() -> int:
    """Answer a TCP port of 127.0.0.1 that nothing listens on now."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def tied(*command: str) -> list[str]:
    """Answer a command that the kernel ends with us, even where we are killed: no API server must stay behind."""
    return [sys.executable, "-I", "-S", die_with_parent.__file__, str(os.getpid()), *command]


class Cluster:
    """One etcd and one API server; end it with `end()`."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.port, self.etcd_port = free_port(), free_port()
        self.url = f"https://127.0.0.1:{self.port}"
        self.etcd_url = f"http://127.0.0.1:{self.etcd_port}"
        self.token = secrets.token_hex(16)
        self.authority = directory / "ca.crt"
        self.audit_log = directory / "audit.jsonl"
        self.started_in = 0.0
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def begin(self) -> None:
        """Make certificates, start both.

        Raises:
            RuntimeError: one of them ended, or was not ready in time; with the last lines of its log.
        """
        make_certificates(self.directory)
        (self.directory / "audit.yaml").write_text(AUDIT_POLICY)
        (self.directory / "tokens.csv").write_text(f"{self.token},admin,admin,system:masters\n")
        self._start("etcd", self._etcd_flags())
        self.start_api_server()

    def start_api_server(self, *more: str) -> None:
        """Start the API server, with `more` flags, and wait until it says that it is ready."""
        started = time.monotonic()
        self._start("kube-apiserver", [*self._api_server_flags(), *more])
        while not self._is_ready():
            self._alive_or_raise("kube-apiserver", waited=time.monotonic() - started)
            time.sleep(0.1)
        self.started_in = time.monotonic() - started

    def stop_api_server(self, *, hard: bool = False) -> None:
        """End the API server: in order, or `hard` as a machine that is lost would."""
        self._stop("kube-apiserver", signal.SIGKILL if hard else signal.SIGTERM)

    def end(self) -> None:
        """End both."""
        for name in list(self._running)[::-1]:
            self._stop(name, signal.SIGTERM)

    def compact(self) -> int:
        """Have etcd forget everything but its present state; answer the revision that it keeps."""
        there = self._etcd("kv/range", {"key": "AA=="})
        revision = int(there["header"]["revision"])
        self._etcd("kv/compaction", {"revision": revision, "physical": True})
        return revision

    def kubeconfig(self, path: Path, *, token: str, namespace: str = "default") -> Path:
        """Write a kubeconfig for whoever holds `token`; JSON, which is YAML."""
        cluster = {"server": self.url, "certificate-authority": str(self.authority)}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": "test", "user": {"token": token}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test", "namespace": namespace}}],
            "current-context": "test",
        }
        path.write_text(json.dumps(config, indent=1))
        return path

    def _etcd(self, path: str, body: dict[str, object]) -> dict[str, dict[str, str]]:
        """One call of etcd's JSON gateway."""
        request = urllib.request.Request(f"{self.etcd_url}/v3/{path}", data=json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=10) as answer:
            return dict(json.load(answer))

    def _is_ready(self) -> bool:
        context = ssl.create_default_context(cafile=str(self.authority))
        with contextlib.suppress(urllib.error.URLError, OSError):
            with urllib.request.urlopen(f"{self.url}/readyz", timeout=5, context=context) as answer:
                return bool(answer.status == 200)
        return False

    def _start(self, name: str, flags: Sequence[str]) -> None:
        with (self.directory / f"{name}.log").open("ab") as log:
            command = tied(str(BINARIES / name), *flags)
            self._running[name] = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)

    def _alive_or_raise(self, name: str, *, waited: float) -> None:
        ended = next((one for one, process in self._running.items() if process.poll() is not None), None)
        if ended or waited > START_WITHIN_SECONDS:
            last = (self.directory / f"{ended or name}.log").read_text(errors="replace").splitlines()[-15:]
            raise RuntimeError("\n".join([f"{ended or name}: " + ("ended" if ended else f"{waited:.0f} s"), *last]))

    def _stop(self, name: str, how: signal.Signals) -> None:
        process = self._running.pop(name)
        process.send_signal(how)
        try:
            process.wait(STOP_WITHIN_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _etcd_flags(self) -> list[str]:
        peers = f"http://127.0.0.1:{free_port()}"
        return [
            f"--data-dir={self.directory / 'etcd'}",
            f"--listen-client-urls={self.etcd_url}",
            f"--advertise-client-urls={self.etcd_url}",
            f"--listen-peer-urls={peers}",
            f"--initial-advertise-peer-urls={peers}",
            f"--initial-cluster=default={peers}",
            "--log-level=warn",
            "--unsafe-no-fsync",
        ]

    def _api_server_flags(self) -> list[str]:
        here = self.directory
        return [
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            "--endpoint-reconciler-type=none",  # no other server to agree with
            f"--secure-port={self.port}",
            f"--etcd-servers={self.etcd_url}",
            f"--tls-cert-file={here / 'server.crt'}",
            f"--tls-private-key-file={here / 'server.key'}",
            f"--service-account-key-file={here / 'accounts.key'}",
            f"--service-account-signing-key-file={here / 'accounts.key'}",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--authorization-mode=RBAC",
            f"--token-auth-file={here / 'tokens.csv'}",
            # No controller makes the accounts named "default" that this plugin wants pods to have.
            "--disable-admission-plugins=ServiceAccount",
            f"--audit-policy-file={here / 'audit.yaml'}",
            f"--audit-log-path={self.audit_log}",
            "--v=1",
        ]


def make_certificates(directory: Path) -> None:
    """Write `ca`, `server` (for 127.0.0.1) and `accounts` (signs tokens) as .crt and .key, good for ten days."""
    authority = ["-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=keyCertSign,cRLSign"]
    _self_signed(directory, "ca", *authority)
    _self_signed(directory, "accounts")
    signer = ["-CA", str(directory / "ca.crt"), "-CAkey", str(directory / "ca.key")]
    name = ["-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost", "-addext", "basicConstraints=CA:FALSE"]
    _self_signed(directory, "server", *signer, *name)


def _self_signed(directory: Path, name: str, *more: str) -> None:
    """Have openssl write `name`.key and `name`.crt; `more` may have another sign it."""
    out = ["-keyout", str(directory / f"{name}.key"), "-out", str(directory / f"{name}.crt")]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "10", "-subj", f"/CN={name}"]
    subprocess.run([*command, *out, *more], check=True, capture_output=True)
