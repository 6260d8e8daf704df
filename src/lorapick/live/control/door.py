"""One pod's HTTP API, as commands use it: a question, an answer of bounded size, no redirects.

In: paths and JSON bodies. Out: status and bytes. Not here: time limits (the caller's), what answers mean.

Every command has a connection of its own: commands are rare, and one that finds a kept connection just closed would
look like a pod that refused it.
"""

from collections.abc import Mapping
from typing import NamedTuple

import aiohttp
import msgspec

from lorapick.live.control.problems import ProblemError
from lorapick.model.pods import Pod
from lorapick.model.units import AdapterName, Bytes
from lorapick.wire import models_list

MAX_BODY: Bytes = 4 * 1024 * 1024
MODELS = "/v1/models"
_TOLD = 200
"""Characters of an answer that are passed on."""
_PLAIN = {"accept-encoding": "identity"}
"""Bodies are counted as they come; a compressed one could be of any size."""
_PASSING = (408, 425, 429)
"""Statuses from 400 to 499 that may be another one next time."""
_CREDENTIALS = (401, 403)


def open_session() -> aiohttp.ClientSession:
    """A session for all pods: any number of them at once, no connection kept, no cookies, no limit of time."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, force_close=True),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None),
        auto_decompress=False,
    )


class Answer(NamedTuple):
    """What a pod said."""

    status: int
    body: bytes

    def told(self) -> str:
        """As words of a message."""
        return f"status {self.status}: {self.body[:_TOLD].decode(errors='replace')}"

    def problem(self) -> ProblemError:
        """It is no agreement; what it is."""
        if 300 <= self.status < 400:
            return ProblemError(f"status {self.status}: a redirect, which is not followed", lasting=True)
        why = self.told()
        if self.status in _CREDENTIALS:
            why += " (the picker has no credentials for pods: let it reach the pod without)"
        return ProblemError(why, lasting=400 <= self.status < 500 and self.status not in _PASSING)


class Door:
    """One pod, at its address of now."""

    def __init__(self, session: aiohttp.ClientSession, pod: Pod) -> None:
        self.pod = pod
        self._session = session
        self._url = f"http://{pod.address}"

    async def get(self, path: str) -> Answer:
        """Ask; raises ProblemError for too long an answer, and what aiohttp raises."""
        async with self._session.get(self._url + path, headers=_PLAIN, allow_redirects=False) as response:
            return await _whole(response)

    async def post(self, path: str, body: object, *, headers: Mapping[str, str] = {}) -> Answer:
        """Tell; raises as `get`."""
        asking = self._session.post(
            self._url + path,
            data=msgspec.json.encode(body),
            headers={"content-type": "application/json", **_PLAIN, **headers},
            allow_redirects=False,
        )
        async with asking as response:
            return await _whole(response)

    async def listed(self) -> dict[AdapterName, str | None]:
        """From where the pod has loaded each adapter that it lists; None: it does not say.

        Raises:
            ProblemError: it does not list its models.
            ModelsListError: what it answers is no list of models.
        """
        answer = await self.get(MODELS)
        if answer.status != 200:
            raise ProblemError(f"{MODELS}: {answer.told()}")
        return models_list.paths(answer.body)


async def _whole(response: aiohttp.ClientResponse) -> Answer:
    text = bytearray()
    async for chunk in response.content.iter_any():
        text += chunk
        if len(text) > MAX_BODY:
            raise ProblemError(f"an answer of more than {MAX_BODY} bytes")
    return Answer(response.status, bytes(text))
