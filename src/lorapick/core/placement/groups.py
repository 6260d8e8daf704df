"""Adapters that are called one after another [R3.7]: who should be loaded when the first of them is called.

In: the groups of the configuration, and calls when groups are to be learnt. Out: the followers of an adapter, with
their evidence; for each follower, the one that it should share a pod with. Not here: counting (see
`core.placement.transitions`), and which pods are taken.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from lorapick.core.placement.transitions import Transition, Transitions
from lorapick.core.placement.wants import Want
from lorapick.model.adapters import AffinityGroup
from lorapick.model.placement import Why
from lorapick.model.units import AdapterName, Ratio, Seconds

_REFRESH: Seconds = 10.0
"""Learnt followers of an adapter are looked up anew after so long."""
_MOST_ANSWERS = 10_000
"""Adapters whose followers are remembered in between."""


class GroupSource(StrEnum):
    """Who says that one adapter follows another."""

    DECLARED = "declared"
    LEARNED = "learned"


class Follower(NamedTuple):
    """An adapter that is called after another one."""

    adapter: AdapterName
    source: GroupSource
    group: str
    """Name of the declared group, or `first -> adapter`."""
    support: float | None = None
    """Times that it was seen to follow, the old ones fading; None: nobody counts, or none seen."""
    confidence: Ratio | None = None
    """Share of the times that the first was called; likewise."""

    def want(self, *, until: Seconds | None) -> Want:
        """The want of it when the first one is called."""
        return Want(self.adapter, Why.GROUP, self.group, until=until)


class Groups:
    """Declared groups, and learnt ones beside them."""

    __slots__ = ("_answers", "_declared", "transitions")

    def __init__(self, declared: Sequence[AffinityGroup], *, learn: Transitions | bool = False) -> None:
        """With `learn`, calls are counted; what another one has counted so far may be handed on."""
        self._declared: dict[AdapterName, dict[AdapterName, str]] = {}
        """By first adapter: its followers in order, and the group that says so."""
        for group in declared:
            followers = self._declared.setdefault(group.first, {})
            for adapter in group.then:
                if adapter != group.first:
                    followers.setdefault(adapter, group.name)
        self.transitions = Transitions() if learn is True else learn or None
        """None: nothing is learnt."""
        self._answers: dict[AdapterName, tuple[Seconds, tuple[Follower, ...]]] = {}
        """Followers, and until when they may be said again."""

    @property
    def any(self) -> bool:
        """Whether anybody may follow anybody."""
        return bool(self._declared) or self.transitions is not None

    def called(self, adapter: AdapterName, key: str, *, now: Seconds) -> None:
        """One request for an adapter by one session, tenant or client; nothing without learning."""
        if self.transitions is not None:
            self.transitions.called(adapter, key, now=now)

    def followers_of(self, adapter: AdapterName, *, now: Seconds) -> tuple[Follower, ...]:
        """Who is called after `adapter`: declared ones in their order, then learnt ones, most confident first."""
        until, followers = self._answers.get(adapter, (-1.0, ()))
        if now < until:
            return followers
        followers = self._look_up(adapter)
        if len(self._answers) >= _MOST_ANSWERS:
            self._answers.clear()
        # What was declared does not change, nor does the evidence beside it when nobody counts.
        self._answers[adapter] = (float("inf") if self.transitions is None else now + _REFRESH, followers)
        return followers

    def leaders(self) -> dict[AdapterName, AdapterName]:
        """For each follower the adapter that it is called after: the first group that says so, else the surest.

        Two adapters may follow one another.
        """
        found: dict[AdapterName, AdapterName] = {}
        for first, followers in self._declared.items():
            for adapter in followers:
                found.setdefault(adapter, first)
        learnt = self.transitions.all() if self.transitions is not None else ()
        for each in learnt:
            found.setdefault(each.then, each.first)
        return found

    def everyone(self) -> dict[AdapterName, tuple[Follower, ...]]:
        """All groups as they are now, by first adapter, for who shows them; looks at every adapter."""
        firsts = dict.fromkeys(self._declared)
        if self.transitions is not None:
            firsts.update(dict.fromkeys(each.first for each in self.transitions.all()))
        return {first: self._look_up(first) for first in firsts}

    def _look_up(self, adapter: AdapterName) -> tuple[Follower, ...]:
        declared = self._declared.get(adapter, {})
        if self.transitions is None:
            return tuple(Follower(each, GroupSource.DECLARED, group) for each, group in declared.items())
        followers = []
        for each, group in declared.items():
            seen = self.transitions.measured(adapter, each)
            support, confidence = (seen.support, seen.confidence) if seen is not None else (None, None)
            followers.append(Follower(each, GroupSource.DECLARED, group, support, confidence))
        learnt = [_learnt(each) for each in self.transitions.followers(adapter) if each.then not in declared]
        return (*followers, *learnt)


def _learnt(seen: Transition) -> Follower:
    return Follower(seen.then, GroupSource.LEARNED, f"{seen.first} -> {seen.then}", seen.support, seen.confidence)
