"""What the picker believed at each decision, against what vLLM's worker wrote down.

In: decisions of the picker's event log, records of the workers (`recorder/`); both carry the system's monotonic clock.
Out: one `Verdict` per decision, tables of them. Not here: anything that asks the picker's own shadow.

Classes: `gpu` (in a slot), `loading` (in none, and a request for it that was sent there before has not run yet),
`cpu` (in host memory), `disk`.
"""

import bisect
import itertools
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

CLASSES = ("gpu", "loading", "cpu", "disk")
_RECENT = 32
"""Requests for one adapter on one pod that may be under way."""
_ID = re.compile(r"[a-z]+-\d{5}")


def request_id(text: str) -> str:
    """Our part of an engine's request id: `cmpl-belief-00012-0-1f3c` to `belief-00012`."""
    found = _ID.search(text)
    return text if found is None else found.group()


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """One decision."""

    t: float
    pod: str
    adapter: str
    believed: str
    decided: str
    """What was true at that moment."""
    met: str | None
    """Where the adapter's next request to run there found it, this one or one that overtook it; None: none ran."""
    changed: bool
    """Whether the adapter had changed tier there since the last decision on it there."""


@dataclass
class Held:
    """What one worker held over time, and what ran there."""

    times: list[float] = field(default_factory=list)
    levels: list[tuple[frozenset[str], frozenset[str]]] = field(default_factory=list)
    runs: dict[str, tuple[float, str]] = field(default_factory=dict)
    """Request to the time of its first step and the tier that it met."""
    by_adapter: dict[str, list[tuple[float, str]]] = field(default_factory=lambda: defaultdict(list))
    """The same by adapter, in order of time."""

    @classmethod
    def of(cls, record: list[dict[str, Any]]) -> "Held":
        held = cls()
        for row in record:
            if row["kind"] == "holds":
                held.times.append(row["t"])
                held.levels.append((frozenset(row["gpu"]), frozenset(row["host"])))
            elif row["tier"] is not None:
                held.runs[request_id(row["request"])] = (row["t"], row["tier"])
                held.by_adapter[row["adapter"]].append((row["t"], row["tier"]))
        return held

    def tier(self, adapter: str, at: float) -> str:
        """Where the adapter was."""
        index = bisect.bisect_right(self.times, at) - 1
        return self._tier(adapter, index)

    def _tier(self, adapter: str, index: int) -> str:
        if index < 0:
            return "disk"
        gpu, host = self.levels[index]
        return "gpu" if adapter in gpu else "cpu" if adapter in host else "disk"

    def under_way(self, request: str, adapter: str, now: float) -> bool:
        """Whether a request that was sent before has not come to its first step, or the load in it is not over."""
        if request not in self.runs:
            return False
        began = self.runs[request][0]
        if began > now:
            return True
        after = bisect.bisect_right(self.times, began)
        return after < len(self.times) and self.times[after] > now and adapter in self.levels[after][0]

    def next_met(self, adapter: str, now: float) -> str | None:
        """The tier that the first of its requests to run after `now` met."""
        there = self.by_adapter[adapter]
        index = bisect.bisect_right(there, (now, ""))
        return there[index][1] if index < len(there) else None

    def moves(self, adapter: str, since: float, until: float) -> int:
        """How often it changed tier."""
        first, last = (bisect.bisect_right(self.times, t) - 1 for t in (since, until))
        tiers = [self._tier(adapter, index) for index in range(first, last + 1)]
        return sum(one != other for one, other in itertools.pairwise(tiers))

    def loads(self, since: float, until: float) -> int:
        """Adapters that came into a slot."""
        first, last = (bisect.bisect_right(self.times, t) - 1 for t in (since, until))
        pairs = zip(self.levels[max(first, 0) : last + 1], self.levels[max(first, 0) + 1 : last + 1], strict=False)
        return sum(len(after[0] - before[0]) for before, after in pairs)


def coarse(tier: str) -> str:
    """The picker's tiers as classes."""
    return "gpu" if tier.startswith("gpu") else tier


def judge(decisions: list[dict[str, Any]], held: dict[str, Held]) -> list[Verdict]:
    """Each decision on an adapter, in order."""
    sent: dict[tuple[str, str], list[str]] = defaultdict(list)
    last: dict[tuple[str, str], float] = {}
    verdicts = []
    for row in decisions:
        if row["tier"] is None:
            continue  # the base model
        key, now = (row["pod"], row["adapter"]), row["t"]
        there = held[row["pod"]]
        before = last.get(key)
        verdicts.append(
            Verdict(
                t=now,
                pod=row["pod"],
                adapter=row["adapter"],
                believed=coarse(row["tier"]),
                decided=_decided(there, row["adapter"], sent[key], now),
                met=there.next_met(row["adapter"], now),
                changed=before is None or there.moves(row["adapter"], before, now) > 0,
            )
        )
        last[key] = now
        sent[key].append(row["request_id"])
    return verdicts


def _decided(there: Held, adapter: str, sent: list[str], now: float) -> str:
    tier = there.tier(adapter, now)
    if tier == "gpu":
        return tier
    return "loading" if any(there.under_way(other, adapter, now) for other in sent[-_RECENT:]) else tier


def right_when_run(verdict: Verdict) -> bool:
    """Whether the adapter was loaded just when the decision said so, and from there; a load that a request before it
    had caused is not this one's."""
    if verdict.believed in ("gpu", "loading"):
        return verdict.met == "gpu" or verdict.decided == "loading"
    return verdict.believed == verdict.met


@dataclass(frozen=True)
class Share:
    """So many of so many."""

    right: int
    of: int

    def __str__(self) -> str:
        return f"{self.right} of {self.of} ({self.right / self.of:.1%})" if self.of else "none"

    @property
    def value(self) -> float:
        return self.right / self.of if self.of else 1.0


def shares(verdicts: list[Verdict]) -> tuple[Share, Share]:
    """Right when decided, right when run."""
    ran = [verdict for verdict in verdicts if verdict.met is not None]
    return (
        Share(sum(verdict.believed == verdict.decided for verdict in verdicts), len(verdicts)),
        Share(sum(right_when_run(verdict) for verdict in ran), len(ran)),
    )


def table(verdicts: list[Verdict]) -> list[str]:
    """Rows of a Markdown table: by what was believed."""
    rows = ["| believed | decisions | right when decided | right when run |", "|---|---|---|---|"]
    for name in CLASSES:
        decided, run = shares([verdict for verdict in verdicts if verdict.believed == name])
        rows.append(f"| {name} | {decided.of} | {decided} | {run} |")
    for label, some in (("all", verdicts), ("of these, changed", [v for v in verdicts if v.changed])):
        decided, run = shares(some)
        rows.append(f"| **{label}** | {decided.of} | {decided} | {run} |")
    return rows


def mistakes(verdicts: list[Verdict]) -> list[str]:
    """The wrong ones, as believed -> true, as lines of a list."""
    decided = Counter(f"{v.believed} → {v.decided}" for v in verdicts if v.believed != v.decided)
    run = Counter(f"{v.believed} → {v.met}" for v in verdicts if v.met is not None and not right_when_run(v))
    return [f"- wrong when decided: {_listed(decided)}", f"- wrong when run: {_listed(run)}"]


def _listed(wrong: Counter[str]) -> str:
    return ", ".join(f"{what}: {count}" for what, count in wrong.most_common()) or "none"
