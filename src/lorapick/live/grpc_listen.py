"""Listening for gRPC on one address: taken whole, or refused with words.

In: `host:port` or `unix:PATH`. Out: a `grpc.aio` server bound to exactly that address, and what was bound.
Not here: services, and the moment to start or stop.
"""

import os
import socket
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc

from lorapick.live.web import BindError, split_bind

_UNIX = "unix:"
_LONGEST_SOCKET_PATH = 107
"""Bytes that the kernel takes, without the closing zero."""


class GrpcListener:
    """One gRPC server and the address that it holds."""

    def __init__(
        self,
        address: str,
        *,
        setting: str,
        options: Sequence[tuple[str, Any]] = (),
        credentials: grpc.ServerCredentials | None = None,
    ) -> None:
        """Bind; port 0 takes a free one.

        Args:
            address: `host:port`, or `unix:PATH` whose folder is created when missing.
            setting: name of the configuration key, for messages.
            options: gRPC channel arguments.
            credentials: of TLS, for ports only; None: plain.

        Raises:
            BindError: somebody listens there, or nobody can.
        """
        # Two servers that share a port would each get a part of the requests, and nobody would know.
        self.server = grpc.aio.server(options=[("grpc.so_reuseport", 0), *options])
        self._credentials = credentials
        self._path: Path | None = None
        self._inode: int | None = None
        if address.startswith(_UNIX):
            self._path = Path(address.removeprefix(_UNIX))
            self.address = self._bind_path(self._path, setting)
        else:
            self.address = self._bind_port(address, setting)

    def _bind_port(self, address: str, setting: str) -> str:
        host, port = split_bind(address, setting=setting)
        try:
            if self._credentials is None:
                bound = self.server.add_insecure_port(address)
            else:
                bound = self.server.add_secure_port(address, self._credentials)
        except RuntimeError:
            bound = 0
        if not bound:
            raise BindError(
                f"{setting}: cannot listen on {address}: port {port} is in use, or {host} is no address of this "
                f"machine; stop the process that has it, or set {setting} to another"
            )
        return f"{address.rpartition(':')[0]}:{bound}"

    def _bind_path(self, path: Path, setting: str) -> str:
        _check_path(path, setting)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)  # left by a process that died
            self.server.add_insecure_port(f"{_UNIX}{path}")
            self._inode = path.stat().st_ino
        except (OSError, RuntimeError) as error:
            raise BindError(f"{setting}: cannot listen on socket {path} ({error}); set {setting} to another") from error
        return f"{_UNIX}{path}"

    def release(self) -> None:
        """Remove the socket file, unless another process has put its own there since."""
        if self._path is None:
            return
        with suppress(OSError):
            if self._path.stat().st_ino == self._inode:
                self._path.unlink()


def _check_path(path: Path, setting: str) -> None:
    length = len(os.fsencode(path))
    if length > _LONGEST_SOCKET_PATH:
        raise BindError(
            f"{setting}: socket path {path} has {length} bytes; the system takes at most {_LONGEST_SOCKET_PATH}; "
            "choose a shorter one"
        )
    if path.exists() and not path.is_socket():
        raise BindError(f"{setting}: {path} exists and is no socket; set {setting} to another path")
    # gRPC would take a socket file away from the process that listens on it: ask first.
    if path.is_socket() and _answers(path):
        raise BindError(
            f"{setting}: socket {path} is in use; stop the process that listens on it, or set {setting} to another"
        )


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(path))
        except TimeoutError:
            return True  # a full queue of connections: somebody has it
        except OSError:
            return False
    return True
