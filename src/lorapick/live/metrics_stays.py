"""How long adapters stay in GPU slots, counted for the metrics page [R5.3].

In: changes of tiers, as believed, and requests that are sent to pods. Out: the families of evictions and residencies.
Not here: rates and quantiles of the last minutes (see `core.signals`), what is where now (`core.residency`).

A residency begins when a load begins, since that takes the slot, and ends when the adapter leaves it, for whatever
reason. So of each pod, all that have ended and the ages of those that have not add up to slots in use x time.
"""

from collections import Counter
from collections.abc import Callable

from lorapick.live.families import Families
from lorapick.model.events import By, Event, Evicted, Unloaded
from lorapick.model.signals import Change
from lorapick.model.tiers import Tier
from lorapick.model.units import AdapterName, PodName, Seconds

CAPACITY, UNLOAD, RESTART, LOAD_FAILED = "capacity", "unload", "restart", "load_failed"
"""What ended a residency: another adapter's load, a command, the end of the pod's process, or its own load failed."""
# Looking a member up in its enum costs more than the rest.
_LOADING = Tier.LOADING


class _Stay:
    """One adapter in a slot of one pod."""

    __slots__ = ("begun", "loading", "used")

    def __init__(self, begun: Seconds) -> None:
        self.begun = begun
        self.loading = False
        """Whether it is on its way into the slot."""
        self.used: Seconds | None = None
        """When the last request for it was sent there, or its answer ended; None: none was."""


class Stays:
    """Residencies that have not ended, and the families that those feed that have."""

    def __init__(self, families: Families, *, label: Callable[[AdapterName], str]) -> None:
        """`label` gives an adapter's label and counts nothing."""
        self._families = families
        self._label = label
        self._open: dict[tuple[PodName, AdapterName], _Stay] = {}

    def take(self, change: Change, event: Event) -> bool:
        """Follow one change, which `event` made; whether the adapter came into a slot or left it."""
        key = change.pod, change.adapter
        if change.after >= _LOADING:
            known = self._open.get(key)
            stay = known or self._open.setdefault(key, _Stay(change.t))
            stay.loading = change.after is _LOADING
            return known is None
        left = self._open.pop(key, None)
        if left is None:
            return False
        self._left(change, event, stay=left)
        return True

    def _left(self, change: Change, event: Event, *, stay: _Stay) -> None:
        families, pod, label = self._families, change.pod, self._label(change.adapter)
        stayed = change.t - stay.begun
        families.evictions.add(pod, _cause(change, event))
        families.residency.add(stayed, pod)
        families.adapter_evictions.add(label)
        families.adapter_residency.add(stayed, label)
        if stay.used is not None:
            families.unused.add(change.t - stay.used, pod)
            families.adapter_unused.add(change.t - stay.used, label)

    def used(self, pod: PodName, adapter: AdapterName, *, now: Seconds) -> None:
        """A request for the adapter was sent there, or its answer ended."""
        stay = self._open.get((pod, adapter))
        if stay is not None:
            stay.used = now

    def slots(self) -> Counter[str]:
        """Slots in use by the label of the adapter that has them."""
        return Counter(self._label(adapter) for _, adapter in self._open)

    def loads(self) -> Counter[str]:
        """Loads under way by the label of their adapter."""
        return Counter(self._label(adapter) for (_, adapter), stay in self._open.items() if stay.loading)

    def ages(self, pod: PodName, now: Seconds) -> list[Seconds]:
        """For how long each adapter in a slot of the pod has been there."""
        return [now - stay.begun for (where, _), stay in self._open.items() if where == pod]


def _cause(change: Change, event: Event) -> str:
    if change.restart:
        return RESTART
    if isinstance(event, Unloaded) or (isinstance(event, Evicted) and event.by is By.CONTROLLER):
        return UNLOAD
    return LOAD_FAILED if change.before is _LOADING else CAPACITY
