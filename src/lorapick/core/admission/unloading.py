"""Which adapter leaves a pod whose memory is short, and which unloads are under way [R3.8].

In: uses of adapters on pods whose engine unloads on request; what came of each unload. Out: whom such a pod misses
least; whether it may be asked now. One unload per pod at a time, and the next one only when a report that was asked for
after the last one is in: what that one freed must show first. Not here: who may leave at all, and when
(see `core.relief`).
"""

from collections.abc import Iterable, Sequence

from lorapick.core.retention.policies import make_retention
from lorapick.model.retention import FactsOf, Retention, RetentionFacts
from lorapick.model.settings import RetentionSettings
from lorapick.model.tiers import Tier
from lorapick.model.units import AdapterName, Seconds

LONGEST: Seconds = 60.0
"""An unload of which nobody has said for so long what came of it counts as failed."""
PAUSE: Seconds = 30.0
"""A pod that failed to unload is not asked again for so long."""

_SAME = RetentionFacts()
"""In slots every adapter takes the same room, and what loads cost is known for the fleet, not by adapter."""
_FACTS: FactsOf = lambda _: _SAME  # noqa: E731 - a function by its type, in one line


class _Pod:
    """One pod whose engine unloads on request."""

    __slots__ = ("asked", "next", "retention", "until")

    def __init__(self, retention: Retention) -> None:
        self.retention = retention
        self.asked: AdapterName | None = None
        """Being unloaded."""
        self.until: Seconds = 0.0
        """While `asked`: when it counts as failed."""
        self.next: Seconds = float("-inf")
        """Reports asked for before say nothing of the next unload."""


class Unloading:
    """Unloads of all pods, by row; pods whose engines unload nothing are not among them."""

    __slots__ = ("_pods", "_settings", "under_way")

    def __init__(self, settings: RetentionSettings) -> None:
        """Know no pod.

        Raises:
            ValueError: no retention policy has that name.
        """
        self._settings = settings
        self._pods: dict[int, _Pod] = {}
        self.under_way = 0
        """Unloads that were asked for and of which nothing has been heard."""
        make_retention(settings, _FACTS)

    def __len__(self) -> int:
        return len(self._pods)

    def configure(self, settings: RetentionSettings) -> None:
        """Take over settings; with others than before everybody's history begins anew.

        Raises:
            ValueError: no retention policy has that name; nothing has changed then.
        """
        if settings != self._settings:
            make_retention(settings, _FACTS)
            self._settings = settings
            for pod in self._pods.values():
                pod.retention = make_retention(settings, _FACTS)

    def appear(self, row: int) -> None:
        """A pod whose engine unloads on request."""
        self._pods[row] = _Pod(make_retention(self._settings, _FACTS))

    def gone(self, row: int) -> None:
        """The pod is gone."""
        self._over(row)
        self._pods.pop(row, None)

    def restarted(self, row: int) -> None:
        """Its process is another one: an unload that it was asked for is none of its business. Uses still count."""
        self._over(row)

    # -- uses

    def used(self, row: int, name: AdapterName, *, now: Seconds) -> None:
        """A request for an adapter goes there."""
        pod = self._pods.get(row)
        if pod is not None:
            pod.retention.used(name, now)

    def touched(self, row: int, name: AdapterName, *, now: Seconds) -> None:
        """A request for it has ended there."""
        pod = self._pods.get(row)
        if pod is not None:
            pod.retention.touched(name, now)

    # -- unloads

    def may_ask(self, row: int, *, since: Seconds, now: Seconds) -> bool:
        """Whether a report asked for at `since` may lead to an unload."""
        pod = self._pods.get(row)
        if pod is None or since < pod.next:
            return False
        return pod.asked is None or now >= pod.until

    def least(self, row: int, names: Sequence[AdapterName], *, now: Seconds) -> tuple[AdapterName, float]:
        """Whom the pod would miss least, and what it is worth by the retention policy; `names` has at least one."""
        retention = self._pods[row].retention
        name = retention.least(names, now=now, leaves_for=Tier.DISK)
        return name, retention.worth(name, now=now, leaves_for=Tier.DISK)

    def ask(self, row: int, name: AdapterName, *, now: Seconds) -> None:
        """The pod is told to unload it."""
        self._over(row)
        pod = self._pods[row]
        pod.asked, pod.until = name, now + LONGEST
        self.under_way += 1

    def rows(self, name: AdapterName, *, now: Seconds) -> list[int]:
        """Where it is being unloaded: nobody may be sent there for it."""
        return [row for row, pod in self._pods.items() if pod.asked == name and now < pod.until]

    def ended(self, row: int, name: AdapterName, *, now: Seconds, failed: bool = False) -> bool:
        """What came of an unload; whether it was one of ours."""
        pod = self._pods.get(row)
        if pod is None or pod.asked != name:
            return False
        self._over(row)
        pod.next = now + PAUSE if failed else now
        if not failed:
            pod.retention.removed(name, now)
        return True

    def check(self, rows: Iterable[int]) -> None:
        """Pods exist, and those with an unload under way are as many as are counted."""
        there = dict.fromkeys(rows)
        gone = [row for row in self._pods if row not in there]
        assert not gone, f"rows {gone}: their pods unload, and there are none"
        asked = sum(pod.asked is not None for pod in self._pods.values())
        assert asked == self.under_way, f"counts {self.under_way} unloads, pods say {asked}"

    def _over(self, row: int) -> None:
        pod = self._pods.get(row)
        if pod is not None and pod.asked is not None:
            pod.asked = None
            self.under_way -= 1
