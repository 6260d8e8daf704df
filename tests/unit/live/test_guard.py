"""The door: what is no HTTP is not answered (who is let in over HTTP: test_admin)."""

import pytest

from lorapick.live.guard import Guard


@pytest.mark.parametrize("kind", ["websocket", "lifespan"])
async def test_nothing_but_http_is_answered(kind: str) -> None:
    async def fail(*_: object) -> None:
        raise AssertionError(kind)

    await Guard(fail, bind_host="127.0.0.1")({"type": kind}, fail, fail)
