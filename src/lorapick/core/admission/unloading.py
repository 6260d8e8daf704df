"""Which adapter leaves a pod whose memory is short, and which of those it has not got back [R3.8].

In: uses of adapters on pods whose engine unloads on request; what came of each unload, and of each load that gives a
name back; what such a pod lists. Out: whom it misses least; which names it was told to unload and lacks since; whether
it may be asked now. One command per pod at a time, and the next one only when a report that was asked for after the
last one is in: what that one changed must show first. Not here: who may leave or come back at all, and when (see
`core.relief`, `core.restoring`).
"""

from collections.abc import Iterable, Sequence

from lorapick.core.retention.policies import make_retention
from lorapick.model.retention import Retention, RetentionFacts
from lorapick.model.settings import RetentionSettings
from lorapick.model.tiers import Tier
from lorapick.model.units import AdapterName, Seconds

LONGEST: Seconds = 60.0
"""A command of which nobody has said for so long what came of it counts as failed."""
PAUSE: Seconds = 30.0
"""A pod that failed to do what it was told is not asked again for so long."""

_SAME = RetentionFacts()
"""In slots every adapter takes the same room, and what loads cost is known for the fleet, not by adapter."""


def _facts(name: AdapterName) -> RetentionFacts:
    del name
    return _SAME


class _Pod:
    """One pod whose engine unloads on request."""

    __slots__ = ("asked", "heard", "loads", "next", "owed", "retention", "until")

    def __init__(self, retention: Retention) -> None:
        self.retention = retention
        self.asked: AdapterName | None = None
        """Being unloaded, or loaded again."""
        self.loads = False
        """While `asked`: whether it is loaded again."""
        self.until: Seconds = 0.0
        """While `asked`: when it counts as failed."""
        self.next: Seconds = float("-inf")
        """Reports asked for before say nothing of the next command."""
        self.heard: Seconds = float("-inf")
        """When the last command ended; reports asked for before do not show what came of it."""
        self.owed: dict[AdapterName, bool] = {}
        """Names that it was told to unload and has not got back. False: it is not certain that it did unload them."""


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
        """Commands that were given and of which nothing has been heard."""
        make_retention(settings, _facts)

    def __len__(self) -> int:
        return len(self._pods)

    def configure(self, settings: RetentionSettings) -> None:
        """Take over settings; with others than before everybody's history begins anew.

        Raises:
            ValueError: no retention policy has that name; nothing has changed then.
        """
        if settings != self._settings:
            make_retention(settings, _facts)
            self._settings = settings
            for pod in self._pods.values():
                pod.retention = make_retention(settings, _facts)

    def appear(self, row: int) -> None:
        """A pod whose engine unloads on request."""
        self._pods[row] = _Pod(make_retention(self._settings, _facts))

    def gone(self, row: int) -> None:
        """The pod is gone."""
        self._over(row)
        self._pods.pop(row, None)

    def restarted(self, row: int) -> None:
        """Its process is another one: what was asked before is none of its business, and it lists what it lists.

        Uses still count.
        """
        self._over(row)
        pod = self._pods.get(row)
        if pod is not None:
            pod.owed.clear()

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

    # -- commands

    def may_ask(self, row: int, *, since: Seconds, now: Seconds) -> bool:
        """Whether a report asked for at `since` may lead to a command."""
        pod = self._pods.get(row)
        if pod is None or since < pod.next:
            return False
        return pod.asked is None or now >= pod.until

    def busy(self, row: int, *, now: Seconds) -> bool:
        """Whether a command to the pod is under way."""
        pod = self._pods.get(row)
        return pod is not None and pod.asked is not None and now < pod.until

    def least(self, row: int, names: Sequence[AdapterName], *, now: Seconds) -> tuple[AdapterName, float]:
        """Whom the pod would miss least, and what it is worth by the retention policy; `names` has at least one."""
        retention = self._pods[row].retention
        name = retention.least(names, now=now, leaves_for=Tier.DISK)
        return name, retention.worth(name, now=now, leaves_for=Tier.DISK)

    def ask(self, row: int, name: AdapterName, *, now: Seconds, loads: bool = False) -> None:
        """The pod is told to unload it, or to load it again."""
        pod = self._pods[row]
        if pod.asked is not None and not pod.loads:
            pod.owed.setdefault(pod.asked, False)  # it may have done so, without a word
        self._over(row)
        pod.asked, pod.loads, pod.until = name, loads, now + LONGEST
        self.under_way += 1

    def rows(self, name: AdapterName, *, now: Seconds, loads: bool = False) -> list[int]:
        """Where it is being unloaded, so that nobody may be sent there for it; or loaded again."""
        return [row for row, pod in self._pods.items() if pod.asked == name and pod.loads == loads and now < pod.until]

    def ended(self, row: int, name: AdapterName, *, now: Seconds, failed: bool = False) -> bool:
        """What came of an unload; whether it was one of ours."""
        pod = self._end(row, name, now=now, failed=failed, loads=False)
        if pod is None:
            return False
        if not failed:
            pod.retention.removed(name, now)
        # One that did not answer in time may have done it later; its list will tell.
        pod.owed[name] = not failed
        return True

    # -- what is given back

    def rows_owed(self) -> list[int]:
        """Pods that have not got everything back."""
        return [row for row, pod in self._pods.items() if pod.owed]

    def owed(self, row: int) -> list[AdapterName]:
        """Names that the pod was told to unload and has not got back, as far as we know; oldest first."""
        pod = self._pods.get(row)
        return [*pod.owed] if pod is not None else []

    def given(self, row: int, name: AdapterName, *, now: Seconds, failed: bool = False) -> bool:
        """What came of a load that gives a name back; whether it was one of ours. A name comes back however it does."""
        pod = self._end(row, name, now=now, failed=failed, loads=True)
        there = self._pods.get(row)
        if there is not None and (not failed or (pod is not None and not there.owed.get(name))):
            there.owed.pop(name, None)
        return pod is not None

    def listed(self, row: int, names: Iterable[AdapterName], *, since: Seconds) -> None:
        """The pod says, asked at `since`, that it has these: nobody has to give them back."""
        pod = self._pods.get(row)
        if pod is not None and pod.owed and since >= pod.heard:
            for name in names:
                pod.owed.pop(name, None)

    def forget(self, name: AdapterName) -> None:
        """The operator withdraws an adapter: nobody gives it back."""
        for pod in self._pods.values():
            pod.owed.pop(name, None)

    def check(self, rows: Iterable[int]) -> None:
        """Pods exist, and those with a command under way are as many as are counted."""
        there = dict.fromkeys(rows)
        gone = [row for row in self._pods if row not in there]
        assert not gone, f"rows {gone}: their pods unload, and there are none"
        asked = sum(pod.asked is not None for pod in self._pods.values())
        assert asked == self.under_way, f"counts {self.under_way} commands, pods say {asked}"

    def _end(self, row: int, name: AdapterName, *, now: Seconds, failed: bool, loads: bool) -> _Pod | None:
        """The pod's command has ended; None: that was none of ours."""
        pod = self._pods.get(row)
        if pod is None or pod.asked != name or pod.loads != loads:
            return None
        self._over(row)
        pod.heard = now
        pod.next = now + PAUSE if failed else now
        return pod

    def _over(self, row: int) -> None:
        pod = self._pods.get(row)
        if pod is not None and pod.asked is not None:
            pod.asked = None
            self.under_way -= 1
