"""What becomes of the wish to split requests: how many were, why the others were not, and whether anything came of it.

In: dispatches with where they are prefilled, scrapes of pods that prefill. Out: counts of the last minutes; how often a
pod was named as the one that prefills while its own counters stood still. It changes no decision. Not here: whether
a request is split (see `core.splitting`), what is made of the counts (see `core.signals.both_sides`).

The picker only names a pod to prefill; a sidecar beside the pod that decodes must act on it. Where none listens at the
address that the list of pods has, the header goes to an engine that does not know it, and everything seems well.
"""

from lorapick.core.signals.windows import Sliding
from lorapick.model.pods import PodReport
from lorapick.model.units import AdapterName, PodName, Seconds, Tokens

WINDOW: Seconds = 600.0
"""Of the counts."""
FEW = 5
"""Times that a pod must have been named before its silence says anything."""
LOOKS = 3
"""Scrapes that must have seen it silent and idle since."""
GRACE: Seconds = 2.0
"""Between the first time that it was named and the first scrape that counts: requests go by another pod."""
CAME = 0.1
"""Of the tokens that it was named for, the share from which on it counts as asked: touches are prompts too."""
MOST_ADAPTERS = 100
"""That are remembered of one pod."""


class Reach:
    """Whether what one pod is named for comes to it."""

    __slots__ = ("_adapters", "_base", "_first", "_last", "_looks", "_times", "_tokens")

    def __init__(self) -> None:
        self._base: Tokens | None = None
        """The pod's own count of prompt tokens when it last moved, or was first read; None: it has not said."""
        self._clear()

    def _clear(self) -> None:
        self._times = self._looks = 0
        self._tokens: Tokens = 0
        self._first: Seconds | None = None
        self._last: Seconds = 0.0
        self._adapters: dict[AdapterName, None] = {}

    def named(self, name: AdapterName | None, *, tokens: Tokens, now: Seconds) -> None:
        """A request is to be prefilled there; `tokens`: all of its prompt."""
        self._times += 1
        self._tokens += max(1, tokens)
        self._last = now
        if self._first is None:
            self._first = now
        if name is not None and len(self._adapters) < MOST_ADAPTERS:
            self._adapters[name] = None

    def scraped(self, report: PodReport, *, since: Seconds) -> None:
        """What the pod says of itself, asked at `since`."""
        if self._came(report):
            self._clear()
        elif self._first is not None and since > self._first + GRACE and not (report.running or report.waiting):
            self._looks += 1

    def _came(self, report: PodReport) -> bool:
        """Whether something came since it was first named; what a page does not tell counts as that."""
        tokens, base = report.prompt_tokens, self._base
        if tokens is not None:
            moved = base is None or tokens < base or tokens - base >= max(1.0, CAME * self._tokens)
            if moved or self._first is None:
                self._base = tokens
            return moved
        if report.loaded is None or not self._adapters:
            return True
        return any(each.name in self._adapters for each in report.loaded)

    def unreached(self, now: Seconds) -> int:
        """How often it was named and nothing came of it; 0: something did, or that cannot be told."""
        silent = self._times >= FEW and self._looks >= LOOKS and now - self._last <= WINDOW
        return self._times if silent else 0


class Handovers:
    """Of all pods."""

    def __init__(self) -> None:
        self._decided: dict[str, Sliding] = {}
        self._adapters: dict[AdapterName, Seconds] = {}
        """When each was last to be prefilled elsewhere, the longest ago first."""
        self._pods: dict[PodName, Reach] = {}

    def decided(self, word: str, *, now: Seconds) -> None:
        """A request was dispatched: `split`, or why it was not."""
        counted = self._decided.get(word)
        if counted is None:
            counted = self._decided[word] = Sliding(WINDOW)
        counted.add(now)

    def named(self, pod: PodName, name: AdapterName | None, *, tokens: Tokens, now: Seconds) -> None:
        """A pod is to prefill a request; None: for the base model."""
        reach = self._pods.get(pod)
        if reach is None:
            reach = self._pods[pod] = Reach()
        reach.named(name, tokens=tokens, now=now)
        if name is not None:
            self._adapters.pop(name, None)
            self._adapters[name] = now

    def scraped(self, pod: PodName, report: PodReport, *, since: Seconds) -> None:
        """A pod's page was read; of no matter unless it was named once."""
        reach = self._pods.get(pod)
        if reach is not None:
            reach.scraped(report, since=since)

    def gone(self, pod: PodName) -> None:
        """A pod is gone."""
        self._pods.pop(pod, None)

    def lately(self, now: Seconds) -> dict[str, int]:
        """Dispatches of the last ten minutes by word; those of which there were none are left out."""
        counts = {word: counted.total(now) for word, counted in self._decided.items()}
        return {word: count for word, count in counts.items() if count}

    def active(self, now: Seconds) -> int:
        """Adapters that were to be prefilled elsewhere in that time."""
        old = [name for name, at in self._adapters.items() if at < now - WINDOW]
        for name in old:
            del self._adapters[name]
        return len(self._adapters)

    def unreached(self, pod: PodName, *, now: Seconds) -> int:
        """How often a pod was named in a row while nothing came to it; 0: none, few, or nobody can tell."""
        reach = self._pods.get(pod)
        return 0 if reach is None else reach.unreached(now)
