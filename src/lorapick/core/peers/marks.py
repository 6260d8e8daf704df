"""What other pickers of the fleet said of late: their requests in flight, their loads, their pins.

In: reports of peers with their time, scrapes. Out: how many requests of peers pods have, and had not yet when they were
scraped; pins of all; who has not been heard of for too long. All of it is bounded.
Not here: beliefs about adapters (see `core.residency.peers`), what follows for requests (see `core.peers.listening`).
"""

from collections import deque
from collections.abc import Mapping
from itertools import islice
from math import inf

import msgspec

from lorapick.model.adapters import PinSpec
from lorapick.model.units import AdapterName, PodName, Seconds

MOST_PEERS = 64
"""Peers that are listened to at a time; further ones are not."""
MOST_PODS = 10_000
"""Pods of one peer's report that are read."""
MOST_PINS = 1_000
MOST_CHANGES = 256
"""Changes of one count remembered between two scrapes; older ones are taken as seen by the last scrape."""

Mark = tuple[PodName, AdapterName]


class InFlight:
    """Requests of one peer on one pod, and how their number changed of late."""

    __slots__ = ("_recent", "count", "since_scrape")

    def __init__(self, count: int) -> None:
        """Requests that were there when the peer was first heard of: the last scrape may have seen them."""
        self.count = count
        self.since_scrape = 0
        """Of these, how many more than when the last scrape was sent; below 0: fewer."""
        self._recent: deque[tuple[Seconds, int]] = deque(maxlen=MOST_CHANGES)

    def told(self, count: int, *, now: Seconds) -> None:
        """The peer has so many there now."""
        if count != self.count:
            self._recent.append((now, count - self.count))
            self.since_scrape = sum(change for _, change in self._recent)
            self.count = count

    def scraped(self, since: Seconds) -> None:
        """A scrape that was sent at `since` counts what was there then."""
        recent = self._recent
        while recent and recent[0][0] <= since:
            recent.popleft()
        self.since_scrape = sum(change for _, change in recent)


class Peer:
    """One other picker."""

    __slots__ = ("heard", "in_flight", "loads", "pins")

    def __init__(self, heard: Seconds) -> None:
        self.heard = heard
        """When it last said anything."""
        self.in_flight: dict[PodName, InFlight] = {}
        self.loads: dict[Mark, None] = {}
        self.pins: Mapping[AdapterName, PinSpec] = {}


class Marks:
    """Of all peers, in the order in which they were first heard of."""

    __slots__ = ("next_due", "peers", "pinned_by", "pins", "reports", "stale_after", "unheard")

    def __init__(self, stale_after: Seconds) -> None:
        self.stale_after = stale_after
        self.peers: dict[str, Peer] = {}
        self.pins: dict[AdapterName, PinSpec] = {}
        """Of all peers together."""
        self.pinned_by: dict[AdapterName, str] = {}
        """The peer whose word counts, by adapter."""
        self.next_due: Seconds = inf
        """When to look for peers that have fallen silent; infinity: there are none."""
        self.reports = 0
        self.unheard = 0
        """Reports of more peers than are listened to."""

    def hear(self, name: str, *, now: Seconds) -> Peer | None:
        """Take note that a peer speaks; None: too many do."""
        peer = self.peers.get(name)
        if peer is None:
            if len(self.peers) >= MOST_PEERS:
                self.unheard += 1
                return None
            peer = self.peers[name] = Peer(now)
        self.reports += 1
        peer.heard = now
        self.next_due = min(self.next_due, now + self.stale_after)
        return peer

    def count(self, peer: Peer, in_flight: Mapping[PodName, int], *, now: Seconds, first: bool) -> list[PodName]:
        """Take over a peer's counts; return the pods whose count changed. With `first` nothing was known before."""
        said = {pod: count for pod, count in islice(in_flight.items(), MOST_PODS) if count > 0}
        changed = []
        for pod in dict.fromkeys([*peer.in_flight, *said]):
            there, count = peer.in_flight.get(pod), said.get(pod, 0)
            if there is None:
                there = peer.in_flight[pod] = InFlight(count if first else 0)
            elif there.count == count:
                continue
            there.told(count, now=now)
            changed.append(pod)
        return changed

    def scraped(self, pod: PodName, *, since: Seconds) -> None:
        """A pod was scraped; the scrape was sent at `since`."""
        for peer in self.peers.values():
            there = peer.in_flight.get(pod)
            if there is not None:
                there.scraped(since)
                if not there.count and not there.since_scrape:
                    del peer.in_flight[pod]

    def on(self, pod: PodName) -> tuple[int, int]:
        """Requests of all peers that a pod has, and how many more than its last scrape saw."""
        there = [each for peer in self.peers.values() if (each := peer.in_flight.get(pod)) is not None]
        return sum(each.count for each in there), sum(each.since_scrape for each in there)

    def stale(self, now: Seconds) -> list[str]:
        """Peers that have been silent for too long."""
        return [name for name, peer in self.peers.items() if now >= peer.heard + self.stale_after]

    def forget(self, name: str) -> Peer:
        """A peer counts for nothing any more."""
        peer = self.peers.pop(name)
        self.look_again()
        return peer

    def look_again(self) -> None:
        """Set `next_due` anew."""
        self.next_due = min([peer.heard for peer in self.peers.values()], default=inf) + self.stale_after

    def loads(self, mark: Mark) -> bool:
        """Whether some peer says that a pod brings an adapter in."""
        return any(mark in peer.loads for peer in self.peers.values())

    def pin(self) -> bool:
        """Put the pins of all peers together; whether that changed anything."""
        pins: dict[AdapterName, PinSpec] = {}
        pinned_by: dict[AdapterName, str] = {}
        for name, peer in self.peers.items():
            for adapter, pin in islice(peer.pins.items(), MOST_PINS):
                before = pins.get(adapter)
                both = pin if before is None else higher(before, pin)
                if both != before:
                    pins[adapter], pinned_by[adapter] = both, name
        changed = pins != self.pins
        self.pins, self.pinned_by = pins, pinned_by
        return changed

    def with_own(self, own: dict[AdapterName, PinSpec]) -> dict[AdapterName, PinSpec]:
        """Pins of all pickers: where several speak of an adapter, the higher counts."""
        if not self.pins:
            return own
        found = dict(own)
        for adapter, pin in self.pins.items():
            found[adapter] = higher(found[adapter], pin) if adapter in found else pin
        return found


def higher(one: PinSpec, other: PinSpec) -> PinSpec:
    """What satisfies both pins, where both count or both name pods; else the first of them, which then counts alone."""
    if one.selector or other.selector or bool(one.pods) != bool(other.pods):
        return one
    return msgspec.structs.replace(
        one,
        replicas=_most(one.replicas, other.replicas),
        prefill_replicas=_most(one.prefill_replicas, other.prefill_replicas),
        pods=tuple(dict.fromkeys((*one.pods, *other.pods))),
        reserve=one.reserve or other.reserve,
    )


def _most(one: int | None, other: int | None) -> int | None:
    known = [each for each in (one, other) if each is not None]
    return max(known, default=None)
