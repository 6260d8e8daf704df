"""One kind of objects, followed: listed once, then watched from there; the last known stay whatever happens.

In: a path and selectors. Out: `objects` by name, a call after each change, and `problem` while they may be old.
Not here: what the objects mean (see `wire.kubernetes`), what is done about them (see `following`).

A watch that ends goes on from its last resource version, bookmarks included; one that is told that its version is too
old (410) lists anew. Failures are tried again later and later, with jitter. A kind that the server does not have (404:
its CRD is not installed) is looked for now and then; that is no problem.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from lorapick.live.kubernetes.client import GONE, ApiError, Client
from lorapick.live.kubernetes.counts import KubernetesCounts
from lorapick.model.units import Seconds
from lorapick.wire.kubernetes.objects import look

log = logging.getLogger(__name__)

FIRST_WAIT: Seconds = 0.25
LONGEST_WAIT: Seconds = 30.0
BELIEVED_ABSENT: Seconds = 60.0
"""A kind of which objects were known is gone when the server has said so for so long."""
LOOK_AGAIN: Seconds = 60.0
"""For a kind that the server does not have."""
LONG_ENOUGH: Seconds = 5.0
"""A watch that stood for so long was no failure to connect: the next one begins at once."""


class Kind(NamedTuple):
    """Which objects."""

    name: str
    """What messages and metrics call them."""
    path: str
    """Of the namespace's list."""
    params: Mapping[str, str] = {}
    """Selectors."""
    slim: Callable[[dict[str, Any]], dict[str, Any]] = lambda item: item
    """What is kept of each: ten thousand whole pods are 100 MB."""


class Watching:
    """Follows one kind of objects of one namespace."""

    def __init__(self, client: Client, kind: Kind, *, counts: KubernetesCounts, changed: Callable[[], None]) -> None:
        """Ask for nothing yet.

        Args:
            client: the API server.
            kind: which objects.
            counts: where failures are counted.
            changed: told after each change of `objects`, and of `problem`.
        """
        self.kind = kind.name
        self.objects: dict[str, dict[str, Any]] = {}
        """By name, as the server last said."""
        self.changes = 0
        """Counts changes of `objects`."""
        self.synced = False
        """Whether it was listed once, or the server said that it has no such kind."""
        self.installed = True
        """False: the server does not have this kind."""
        self.problem: str | None = None
        """Why `objects` may be old; None: they are not."""
        self._client = client
        self._path, self._params, self._slim = kind.path, kind.params, kind.slim
        self._counts = counts
        self._changed = changed
        self._version = ""
        self._absent_since: Seconds | None = None
        self._random = random.Random()
        self._failures = 0

    async def run(self) -> None:
        """Follow until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            try:
                if not self._version:
                    await self._list()
                await self._watch()
                wait = self._ended(after=loop.time() - began)
            except ApiError as error:
                wait = self._failed(error)
            except Exception as error:
                log.exception("%s: following them failed; they are listed anew", self.kind)
                self._version = ""
                wait = self._failed(ApiError(None, f"{type(error).__name__}: {error}"))
            await asyncio.sleep(wait)

    def _ended(self, *, after: Seconds) -> Seconds:
        if after < LONG_ENOUGH:
            return self._wait()
        self._failures = 0
        return 0.0

    def _wait(self) -> Seconds:
        """Twice as long each time, and between half of that and all: replicas must not come at the same moment."""
        longest = min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** min(self._failures, 10))
        self._failures += 1
        return longest * (0.5 + self._random.random() / 2)

    def _failed(self, error: ApiError) -> Seconds:
        if error.status == GONE:
            log.info("%s: the watch is too old to go on, so they are listed anew", self.kind)
            self._counts.relists[self.kind] += 1
            self._version = ""
            return self._wait() if self._failures else 0.0
        if error.status == 404:
            return self._absent()
        self._counts.failures[self.kind] += 1
        what = str(error)
        if error.status == 403:
            what += " (the service account's Role must allow get, list and watch; see docs/kubernetes.md)"
        if self.problem is None:
            log.error("%s: the last %d known stay: %s", self.kind, len(self.objects), what)
        self._say(what)
        return self._wait()

    def _absent(self) -> Seconds:
        """A server that begins answers 404 for kinds that it has not looked up yet: what was known stays a while."""
        self._version = ""
        now = asyncio.get_running_loop().time()
        self._absent_since = now if self._absent_since is None else self._absent_since
        if self.objects and now - self._absent_since < BELIEVED_ABSENT:
            self._counts.failures[self.kind] += 1
            self._say("404: the API server has no such kind now")
            return self._wait()
        if self.installed:
            log.info("the API server has no %s; they are looked for every %.0f s", self.kind, LOOK_AGAIN)
        self.installed, self.synced = False, True
        if self.objects:
            self.objects = {}
            self.changes += 1
        self._well()
        self._changed()
        return LOOK_AGAIN

    def _say(self, problem: str) -> None:
        before, self.problem = self.problem, problem
        if before is None:
            self._changed()

    def _well(self) -> None:
        if self.problem is not None:
            log.info("%s: the API server answers again", self.kind)
            self.problem = None
            self._changed()

    async def _list(self) -> None:
        items, version = await self._client.list(self._path, params=self._params)
        self._counts.lists[self.kind] += 1
        self.installed = True
        self.objects = {name: self._slim(each) for each in items if isinstance(each, dict) and (name := _name(each))}
        self.changes += 1
        nameless = len(items) - len(self.objects)
        if nameless:
            self._counts.malformed[self.kind] += nameless
            log.error("%s: %d listed objects have no name of their own and are left out", self.kind, nameless)
        self._version = version
        self._absent_since = None
        self.synced = True
        self._well()
        self._changed()

    async def _watch(self) -> None:
        async with self._client.watch(self._path, params=self._params, since=self._version) as events:
            self._well()
            async for event in events:
                self._failures = 0
                self._take(event)

    def _take(self, event: Mapping[str, Any]) -> None:
        what, item = event.get("type"), event.get("object")
        if what == "ERROR":
            code = look(item, "code")
            message = look(item, "message") or look(item, "reason") or "the watch failed"
            raise ApiError(code if isinstance(code, int) else None, str(message))
        version = look(item, "metadata", "resourceVersion")
        if isinstance(version, str) and version:
            self._version = version
        if what == "BOOKMARK":
            return
        name = _name(item)
        if name is None or not isinstance(item, dict) or what not in ("ADDED", "MODIFIED", "DELETED"):
            self._counts.malformed[self.kind] += 1
            log.error("%s: an event %r that cannot be understood is left out", self.kind, what)
            return
        self._counts.events[self.kind] += 1
        if what == "DELETED":
            self.objects.pop(name, None)
        else:
            self.objects[name] = self._slim(item)
        self.changes += 1
        self._changed()


def _name(item: object) -> str | None:
    name = look(item, "metadata", "name")
    return name if isinstance(name, str) and name else None
