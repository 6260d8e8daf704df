"""Objects that are watched, read with care: what cannot be read is told, counted, and stands as it was.

In: objects as `watching` keeps them, a reader. Out: values; the last good one of an object that cannot be read now.
Not here: the readers (see `wire.kubernetes`).
"""

import logging
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from lorapick.live.kubernetes.counts import KubernetesCounts
from lorapick.wire.kubernetes.objects import ObjectError

log = logging.getLogger(__name__)

T = TypeVar("T")
MOST_LOGGED = 20
"""Problems of one kind that a pass logs one by one."""


class Problems:
    """What is wrong with objects of one kind; each is told once."""

    def __init__(self, kind: str, counts: KubernetesCounts) -> None:
        """Know of none."""
        self._kind = kind
        self._counts = counts
        self.by_name: dict[str, tuple[str, ...]] = {}

    def now(self, found: Mapping[str, tuple[str, ...]]) -> None:
        """These are all problems that there are; what is new is logged and counted."""
        fresh = [
            (name, text) for name, texts in found.items() for text in texts if text not in self.by_name.get(name, ())
        ]
        for name, text in fresh[:MOST_LOGGED]:
            log.error("%s %s: %s", self._kind, name, text)
        if len(fresh) > MOST_LOGGED:
            log.error("%s: %d more problems", self._kind, len(fresh) - MOST_LOGGED)
        self._counts.malformed[self._kind] += len(fresh)
        for name in self.by_name:
            if name not in found:
                log.info("%s %s: is good again, or gone", self._kind, name)
        self.by_name = {name: texts for name, texts in found.items() if texts}


class Readings(Generic[T]):
    """Values of all objects of one kind. Each object is read once, however often it is looked at."""

    def __init__(self, read: Callable[[dict[str, Any]], T]) -> None:
        """`read` raises ObjectError."""
        self._read = read
        self._of: dict[str, dict[str, Any]] = {}
        self.good: dict[str, T] = {}
        """By object name: as it is, or as it was when it could be read last."""
        self.problems: dict[str, tuple[str, ...]] = {}

    def look(self, objects: Mapping[str, dict[str, Any]]) -> bool:
        """Read what is new; whether anything changed."""
        changed = False
        for name in [name for name in self._of if name not in objects]:
            changed = True
            del self._of[name]
            self.good.pop(name, None)
            self.problems.pop(name, None)
        for name, item in objects.items():
            if self._of.get(name) is item:
                continue
            changed = True
            self._of[name] = item
            try:
                self.good[name] = self._read(item)
            except ObjectError as error:
                kept = "; what it said before stays" if name in self.good else ""
                self.problems[name] = (f"{error}{kept}",)
            else:
                self.problems.pop(name, None)
        return changed
