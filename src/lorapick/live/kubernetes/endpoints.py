"""The fleet's pods, out of watched Pods and the pool.

In: Pods as `watching` keeps them, the pool, the time. Out: the model's pods, for `PodSet`.
Not here: what a Pod says (see `wire.kubernetes.pods`), watching.

A Pod is read anew only when it changed, or while it is being deleted, which time ends: thousands of pods cost a look.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from lorapick.live.kubernetes.counts import KubernetesCounts
from lorapick.live.kubernetes.objects import Problems
from lorapick.live.kubernetes.watching import Watching
from lorapick.model.pods import Pod
from lorapick.model.units import Seconds
from lorapick.wire.kubernetes.objects import ObjectError
from lorapick.wire.kubernetes.pods import Defaults, Endpoints, endpoints, is_leaving
from lorapick.wire.kubernetes.pool import Pool


class _Read(NamedTuple):
    item: Mapping[str, Any]
    pool: Pool
    found: Endpoints


class EndpointList:
    """Reads all pods of one pool."""

    def __init__(self, defaults: Defaults, counts: KubernetesCounts) -> None:
        """Know of none; `defaults` are of pods that do not say."""
        self._defaults = defaults
        self._read: dict[str, _Read] = {}
        self._problems = Problems("pods", counts)
        self._seen: tuple[Watching, int, Pool] | None = None
        self._any_leaving = False
        """Whether time alone changes the list."""

    def forget(self) -> None:
        """The next look tells all, whatever was told before."""
        self._seen = None

    def pods(self, watching: Watching, pool: Pool, *, now: Seconds) -> list[Pod] | None:
        """All endpoints; of two with one address, the one that stays. None: nothing changed since the last look."""
        seen = (watching, watching.changes, pool)
        if seen == self._seen and not self._any_leaving:
            return None
        self._seen = seen
        before, self._read, self._any_leaving = self._read, {}, False
        for name, item in watching.objects.items():
            last = before.get(name)
            leaving = is_leaving(item)
            self._any_leaving |= leaving
            if last is not None and last.item is item and last.pool is pool and not leaving:
                self._read[name] = last
            else:
                self._read[name] = _Read(item, pool, self._one(item, pool, last=last, now=now))
        self._problems.now({name: each.found.problems for name, each in self._read.items() if each.found.problems})
        by_address: dict[str, Pod] = {}
        for each in self._read.values():
            for pod in each.found.pods:
                other = by_address.get(pod.address)
                if other is None or other.draining:
                    by_address[pod.address] = pod
        return [*by_address.values()]

    def _one(self, item: Mapping[str, Any], pool: Pool, *, last: _Read | None, now: Seconds) -> Endpoints:
        known = {pod.name: pod for pod in last.found.pods} if last is not None else {}
        try:
            return endpoints(item, pool, defaults=self._defaults, now=now, before=known)
        except ObjectError as error:
            return Endpoints(pods=tuple(known.values()), problems=(str(error),))
