"""A real redis-server of this test alone: on a unix socket, without files, ended by its pid."""

import os
import signal
import socket
import subprocess
import time
from contextlib import closing
from pathlib import Path


class RedisServer:
    """May be killed, stopped and started again at the same place; what it held is gone then."""

    def __init__(self, directory: Path) -> None:
        self.socket = directory / "redis.sock"
        self._log = directory / "redis.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"unix://{self.socket}"

    def start(self, *arguments: str) -> None:
        command = ["redis-server", "--port", "0", "--unixsocket", str(self.socket), "--save", "", "--appendonly", "no"]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*command, *arguments], stdout=log, stderr=log, cwd=self.socket.parent, start_new_session=True
            )
        end = time.monotonic() + 20
        while not self._answers():
            assert self._process.poll() is None and time.monotonic() < end, self._log.read_text()
            time.sleep(0.02)

    def _answers(self) -> bool:
        with closing(socket.socket(socket.AF_UNIX)) as probe:
            probe.settimeout(1.0)
            try:
                probe.connect(str(self.socket))
                probe.sendall(b"PING\r\n")
                return probe.recv(100)[:1] in (b"+", b"-")
            except OSError:
                return False

    def signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        os.kill(self._process.pid, number)

    def kill(self) -> None:
        """At once, and in the middle of whatever it does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)
            self._process = None
            self.socket.unlink(missing_ok=True)
