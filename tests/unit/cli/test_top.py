"""`lorapick top` against a real admin API: one frame, and keys on a terminal while the picker restarts."""

import asyncio
import os
import pty
import select
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest
import typer
from typer.testing import CliRunner, Result

from lorapick.cli import admin_client
from lorapick.cli.top import register
from lorapick.cli.top_feed import Follower, frames
from lorapick.live.admin import serve_admin
from lorapick.live.admin_views import Frame
from lorapick.testing.published import small_fleet


class Served:
    """The admin API in a thread with a loop of its own, on the same port each time."""

    def __init__(self) -> None:
        self.bind = "127.0.0.1:0"

    def start(self) -> None:
        self._loop, self._stop, up = asyncio.new_event_loop(), asyncio.Event(), threading.Event()

        async def serve() -> None:
            async with serve_admin(small_fleet(), bind=self.bind) as bound:
                self.bind = bound
                up.set()
                await self._stop.wait()

        self._thread = threading.Thread(target=lambda: self._loop.run_until_complete(serve()))
        self._thread.start()
        assert up.wait(10)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)
        self._loop.close()

    @property
    def url(self) -> str:
        return f"http://{self.bind}"


@pytest.fixture
def served() -> Iterator[Served]:
    server = Served()
    server.start()
    yield server
    server.stop()


def run(*arguments: str) -> Result:
    app = typer.Typer()
    register(app)
    return CliRunner().invoke(app, arguments)


def test_one_frame_in_a_pipe(served: Served) -> None:
    result = run("--admin", served.url, "--once", "--sort", "name")
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[0].startswith(f"lorapick top  {served.url}  weighted")
    assert [line[:6] for line in lines if line.startswith("pod-")] == ["pod-02", "pod-05", "pod-07"]
    assert "1-3 of 3 by name" in result.stdout
    assert "q quit" not in result.stdout
    assert max(map(len, lines)) <= 80
    assert "\x1b" not in result.stdout


def test_alerts_alone(served: Served) -> None:
    result = run("--admin", served.url, "--once", "--alerts")
    assert (result.exit_code, result.stdout.splitlines()[-1]) == (0, "no alert stands")
    assert "pod-02" not in result.stdout


def test_nobody_there_and_no_such_order() -> None:
    result = run("--once", "--admin", "http://127.0.0.1:1")
    assert (result.exit_code, "connection refused" in result.stderr) == (2, True)
    result = run("--sort", "luck")
    assert result.exit_code == 2
    assert "'luck' is none of trouble, name" in " ".join(result.stderr.replace("│", " ").split())


def test_too_many_watchers_are_told(served: Served) -> None:
    watching = [frames(served.url) for _ in range(16)]
    assert [next(each).whole for each in watching] == [True] * 16
    result = run("--once", "--admin", served.url)
    assert (result.exit_code, "16 watchers are served" in result.stderr) == (1, True)
    for each in watching:
        each.close()


def test_the_follower_goes_on_when_the_picker_comes_back(served: Served) -> None:
    follower = Follower(served.url, again=0.05)
    follower.start()
    assert isinstance(follower.queue.get(timeout=10), Frame)
    served.stop()
    news = [follower.queue.get(timeout=10)]
    while isinstance(news[-1], Frame):
        news.append(follower.queue.get(timeout=10))
    served.start()
    while not isinstance(news[-1], Frame):
        news.append(follower.queue.get(timeout=10))
    follower.stop()
    assert news[-1].whole


class Terminal:
    """The command on a terminal of 100 by 30."""

    def __init__(self, *arguments: str) -> None:
        self._master, slave = pty.openpty()
        code = "import sys; from lorapick.cli.main import program; program(sys.argv[1:])()"
        environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100", "LINES": "30"}
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, "top", *arguments], stdin=slave, stdout=slave, stderr=slave, env=environment
        )
        os.close(slave)
        self.text = ""

    def until(self, words: str) -> None:
        """Read until the words were drawn since the last call."""
        deadline = time.monotonic() + 30
        while words not in self.text:
            ready, _, _ = select.select([self._master], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"{words!r} never came: {self.text[-2000:]!r}"
            self.text += os.read(self._master, 65536).decode("utf-8", "replace")
        self.text = ""

    def press(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(10)
        os.close(self._master)


def test_keys_and_a_restart_of_the_picker(served: Served) -> None:
    terminal = Terminal("--admin", served.url)
    try:
        terminal.until("by trouble")
        terminal.press("a")
        terminal.until("no alert stands")
        terminal.press("a")
        terminal.until("by trouble")
        terminal.press("s")
        terminal.until("by name")
        terminal.press("p")
        terminal.until("PAUSED")
        terminal.press("p")
        served.stop()
        terminal.until("NO NEWS, what follows is old")
        served.start()
        terminal.until("2/3 pods ready")
        terminal.press("q")
        assert terminal.process.wait(10) == 0
    finally:
        terminal.close()


def test_lines_of_what_breaks_off_are_no_answer(served: Served) -> None:
    with pytest.raises(admin_client.AdminError, match="nothing at /v1/nowhere"):
        next(admin_client.lines(served.url, "/v1/nowhere"))
