"""`lorapick up --config` keeps Envoy's endpoints as the pods file has them."""

import asyncio
import contextlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lorapick.cli import up
from lorapick.live.processes import becomes_true
from lorapick.model.settings import Settings


class Endpoints:
    """A stack as far as it is needed here; its disk may be full."""

    def __init__(self) -> None:
        self.pods = (SimpleNamespace(address="127.0.0.1:9"),)
        self.full = False
        self.tried = 0
        self.written: list[tuple[str, ...]] = []

    def set_endpoints(self, addresses: tuple[str, ...]) -> None:
        self.tried += 1
        if self.full:
            raise OSError(28, "No space left on device")
        self.written.append(addresses)


async def test_what_could_not_be_written_is_tried_again_and_no_pods_are_told_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(up, "_LOOK_AT_PODS_EVERY", 0.01)
    file = tmp_path / "pods.yaml"
    file.write_text("[{name: a, address: '127.0.0.1:1'}]")
    stack: Any = Endpoints()
    stack.full = True
    plan: Any = SimpleNamespace(settings=Settings())
    following = asyncio.create_task(up._follow(plan, file, stack))

    async def seen(check: Any) -> bool:
        return bool(check())

    async def until(check: Any) -> None:
        assert await becomes_true(lambda: seen(check), within=10.0, every=0.01)

    await until(lambda: stack.tried > 1)
    stack.full = False
    await until(lambda: stack.written == [("127.0.0.1:1",)])
    file.write_text("[{name: a}]")  # wrong: nothing changes
    await asyncio.sleep(0.05)
    file.write_text("[]")
    await until(lambda: stack.written == [("127.0.0.1:1",), ()])
    following.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await following
