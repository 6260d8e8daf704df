"""A site with its admin API, asked over HTTP without a socket."""

from typing import Any

import httpx2 as httpx
import msgspec

from lorapick.live.admin import admin_app
from lorapick.live.driver_operations import DriverOperations
from lorapick.live.published import PublishedViews
from lorapick.live.tls.door import PLAIN, Door
from lorapick.testing import site
from lorapick.wire.admin_answers import Done, PlacementAnswer
from lorapick.wire.api import Problem


class Site(site.Site):
    """A site that answers."""

    def client(self, *, token: str | None = None, door: Door = PLAIN, **parts: Any) -> httpx.AsyncClient:
        if token is not None:
            parts["door"] = door._replace(token=lambda: token)
        elif door is not PLAIN:
            parts["door"] = door
        app = admin_app(PublishedViews(self.driver), operations=DriverOperations(self.driver), **parts)
        return httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://127.0.0.1:9091")

    async def ask(self, method: str, path: str, body: Any = None) -> httpx.Response:
        """One call; `body` as JSON."""
        async with self.client() as client:
            return await client.request(method, path, json=body)

    async def post(self, name: str, verb: str, **body: Any) -> httpx.Response:
        """One change of one adapter; `from_` stands for `from`, `for_` for `for`."""
        written = {key.rstrip("_"): value for key, value in body.items()}
        return await self.ask("POST", f"/v1/adapters/{name}/{verb}", written)

    async def placement(self) -> PlacementAnswer:
        answer = await self.ask("GET", "/v1/placement")
        assert answer.status_code == 200
        return msgspec.json.decode(answer.content, type=PlacementAnswer)


def done(answer: httpx.Response, status: int = 202) -> Done:
    """The answer to a change that was made."""
    assert answer.status_code == status, answer.text
    found = msgspec.json.decode(answer.content, type=Done)
    assert found.changed is (status == 202)
    return found


def refused(answer: httpx.Response, status: int, reason: str) -> Problem:
    """The answer to one that was not."""
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    found = msgspec.json.decode(answer.content, type=Problem)
    assert (answer.status_code, found.status, found.reason) == (status, status, reason), answer.text
    return found
