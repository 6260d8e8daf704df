"""Pods from a file that is read again when it changes, or from the configuration itself.

In: the path of a pods file, the settings. Out: `PodAppeared`, `PodChanged`, `PodDraining` and `PodGone`, through
`submit`.
Not here: what a pods file may say (see `wire.podsfile`).

The file is looked at twice a second: notification services do not work on every file system, and an editor that renames
a new file over the old one breaks many watches. A change counts once it has stood for one look, so that a file that is
being written is not taken for a shorter fleet. A file that became broken or vanished changes nothing: the last good
pods stay, and the problem is logged once and kept in `problem`.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from lorapick.model.events import Event, PodAppeared, PodChanged, PodDraining, PodGone
from lorapick.model.pods import Pod
from lorapick.model.settings import Settings
from lorapick.model.units import PodName, Seconds
from lorapick.wire.config import ConfigError, unreadable
from lorapick.wire.podsfile import parse_pods

log = logging.getLogger(__name__)

MakeEvent: TypeAlias = Callable[[Seconds, int], Event]
Submit: TypeAlias = Callable[[MakeEvent], object]
"""The driver's door: takes a function from (time, id) to the event."""

PERIOD: Seconds = 0.5


class PodSet:
    """The pods that discovery last told of; says what a new list changes."""

    def __init__(self, submit: Submit) -> None:
        self._submit = submit
        self._pods: dict[PodName, Pod] = {}

    @property
    def pods(self) -> tuple[Pod, ...]:
        """In the order of the last list."""
        return tuple(self._pods.values())

    def replace(self, pods: Sequence[Pod]) -> None:
        """Submit what differs. Pods that left go first: another may have their address now."""
        old, self._pods = self._pods, {pod.name: pod for pod in pods}
        for name in old:
            if name not in self._pods:
                self._submit(_gone(name))
        for name, pod in self._pods.items():
            before = old.get(name)
            if before == pod:
                continue
            stays = before is not None and (pod.draining or not before.draining)
            # One that was to leave and stays after all appears anew: the core knows it, and forgets nothing.
            self._submit(_changed(pod) if stays else _appeared(pod))
            if pod.draining and (before is None or not before.draining):
                self._submit(_draining(name))


class FileDiscovery:
    """Follows one pods file."""

    def __init__(self, path: Path, settings: Settings, *, submit: Submit) -> None:
        """Read nothing yet; `settings` say what pods are that do not say."""
        self._path = path
        self._settings = settings
        self._set = PodSet(submit)
        self._seen: tuple[int, ...] | None = None
        self._read: tuple[int, ...] | None = None
        self.problem: str | None = None
        """What is wrong with the file now; None: nothing."""

    @property
    def pods(self) -> tuple[Pod, ...]:
        """The pods of the last good file."""
        return self._set.pods

    def load(self) -> None:
        """Read the file for the first time, at start-up, where a broken file is an error.

        Raises:
            ConfigError: it cannot be read, or what it says is wrong.
        """
        self._seen = self._mark()
        self._set.replace(self._parse())

    async def run(self) -> None:
        """Follow the file until cancelled."""
        while True:
            await asyncio.sleep(PERIOD)
            await self.look()

    async def look(self) -> None:
        """Look once. Reading and parsing happen in a thread: ten thousand pods take a second."""
        try:
            found = await asyncio.to_thread(self._parse_if_changed)
        except ConfigError as error:
            if self.problem is None or str(error) != self.problem:
                log.error("pods file: the last good pods stay: %s", error)
            self.problem = str(error)
        else:
            if found is None:
                return
            if self.problem is not None:
                log.info("pods file %s is good again", self._path)
            self.problem = None
            self._set.replace(found)

    def _parse_if_changed(self) -> tuple[Pod, ...] | None:
        mark = self._mark()
        stands = mark == self._seen
        self._seen = mark
        return self._parse() if stands and mark != self._read else None

    def _parse(self) -> tuple[Pod, ...]:
        self._read = self._seen
        try:
            content = self._path.read_bytes()
        except OSError as error:
            raise self._unreadable(error) from error
        return parse_pods(content, file=str(self._path), settings=self._settings)

    def _mark(self) -> tuple[int, ...]:
        """What changes when the file does."""
        try:
            stat = self._path.stat()
        except OSError as error:
            # When it comes back it is read, even if it is the same file as before.
            self._seen = self._read = None
            raise self._unreadable(error) from error
        return (stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size, stat.st_ino)

    def _unreadable(self, error: OSError) -> ConfigError:
        self._read = None
        return unreadable(str(self._path), error)


def _appeared(pod: Pod) -> MakeEvent:
    return lambda t, i: PodAppeared(t=t, id=i, pod=pod)


def _changed(pod: Pod) -> MakeEvent:
    return lambda t, i: PodChanged(t=t, id=i, pod=pod)


def _draining(name: PodName) -> MakeEvent:
    return lambda t, i: PodDraining(t=t, id=i, pod=name)


def _gone(name: PodName) -> MakeEvent:
    return lambda t, i: PodGone(t=t, id=i, pod=name)
