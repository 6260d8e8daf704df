"""Claims: who of several pickers loads an adapter that no pod of a side has, and who waits to hear it.

In: questions, answers, time. Out: how each claim stands; requests that wait for it. One question at a time is open per
adapter and side, whoever wants to know: a crowd waits for one answer. Every question ends, by an answer or at its
`until`, and then there is a standing that holds for a while, so that nobody asks twice.
Not here: the store (see `live.peers`), what an answer means for requests (see `core.peers.listening`).
"""

from collections import Counter, OrderedDict
from enum import Enum
from math import inf

from lorapick.model.placement import Side
from lorapick.model.settings import PeersSettings
from lorapick.model.units import AdapterName, PodName, RequestId, Seconds

Key = tuple[AdapterName, Side]
SETTLED: Seconds = 1.0
"""For so long nobody asks again after no answer came."""
MOST_WAITING = 10_000
"""Requests that wait for claims at a time; further ones go on alone."""


class Standing(Enum):
    """What is known of a claim."""

    ASKED = "asked"
    OURS = "ours"
    THEIRS = "theirs"
    ALONE = "alone"
    """No answer came: we load without one."""


class Claim:
    """One adapter on one side."""

    __slots__ = ("began", "by_command", "kept_for", "number", "owner", "pod", "row", "standing", "until", "waiting")

    def __init__(self, number: int, row: int, *, pod: PodName, until: Seconds, by_command: bool) -> None:
        self.number = number
        self.row = row
        self.pod = pod
        """Where we would load it."""
        self.standing = Standing.ASKED
        self.until = until
        """When this standing ends."""
        self.by_command = by_command
        """Whether the controller asked."""
        self.began = False
        """Whether our load has begun."""
        self.owner: str | None = None
        """Picker whose it is, if it is another one's."""
        self.waiting: OrderedDict[RequestId, None] = OrderedDict()
        self.kept_for: list[RequestId] = []
        """Who needs it and waits for another one still, that of the other side."""


class Claims:
    """Of all adapters. Off unless there are `peers` in the settings; then no one asks."""

    __slots__ = ("_numbers", "by_key", "counts", "lasts", "next_due", "on", "ours", "reachable", "timeout", "waits")

    def __init__(self, settings: PeersSettings | None) -> None:
        self.by_key: dict[Key, Claim] = {}
        self.ours: dict[Key, None] = {}
        """Keys of those that are ours."""
        self.waits: dict[RequestId, tuple[Key, ...]] = {}
        """What each request that waits wants to know."""
        self.counts: Counter[str] = Counter()
        """`asked`; `granted`, `denied`; and loads without an answer: `timeout`, `unreachable`, `crowded`. `late`
        answers."""
        self.reachable = False
        """Whether the store is; nobody knows before it says so."""
        self.next_due: Seconds = inf
        self._numbers = 0
        self.configure(settings)

    def configure(self, settings: PeersSettings | None) -> None:
        """Take over settings."""
        self.on = settings is not None
        settings = settings if settings is not None else PeersSettings(redis="")
        self.timeout = settings.claim_timeout
        self.lasts = settings.claim_ttl

    def __len__(self) -> int:
        return len(self.waits)

    def __contains__(self, request_id: RequestId) -> bool:
        return request_id in self.waits

    def ask(self, key: Key, row: int, *, pod: PodName, now: Seconds, by_command: bool = False) -> Claim:
        """A question is put."""
        self._numbers += 1
        self.counts["asked"] += 1
        until = now + self.timeout
        claim = self.by_key[key] = Claim(self._numbers, row, pod=pod, until=until, by_command=by_command)
        self.next_due = min(self.next_due, until)
        return claim

    def open(self, key: Key) -> bool:
        """Whether an answer is awaited."""
        claim = self.by_key.get(key)
        return claim is not None and claim.standing is Standing.ASKED

    def stands(self, key: Key, standing: Standing, *, until: Seconds) -> None:
        """A question has an answer, or gets none."""
        claim = self.by_key[key]
        claim.standing, claim.until = standing, until
        self.next_due = min(self.next_due, until)
        if standing is Standing.OURS:
            self.ours[key] = None

    def drop(self, key: Key) -> None:
        """Nothing is known of an adapter any more; nobody may wait for it."""
        claim = self.by_key.pop(key)
        assert not claim.waiting, f"{len(claim.waiting)} requests wait for a claim of {key} that is dropped"
        self.ours.pop(key, None)

    # -- who waits

    def wait(self, request_id: RequestId, keys: tuple[Key, ...]) -> bool:
        """Let a request wait for answers; whether it waits already."""
        before = self.waits.get(request_id)
        if before is not None:
            self.stop(request_id)
        self.waits[request_id] = keys
        for key in keys:
            self.by_key[key].waiting[request_id] = None
        return before is not None

    def stop(self, request_id: RequestId) -> None:
        """A request waits no longer; no-op when it does not."""
        for key in self.waits.pop(request_id, ()):
            claim = self.by_key.get(key)
            if claim is not None:
                claim.waiting.pop(request_id, None)

    def waiting_for(self, key: Key) -> list[RequestId]:
        """Who waits for an answer, oldest first."""
        claim = self.by_key.get(key)
        return [*claim.waiting] if claim is not None else []

    # -- time

    def due(self, now: Seconds) -> list[Key]:
        """Claims whose standing is over."""
        return [key for key, claim in self.by_key.items() if claim.until <= now]

    def look_again(self) -> None:
        """Set `next_due` anew."""
        self.next_due = min([claim.until for claim in self.by_key.values()], default=inf)

    def check(self) -> None:
        """Who waits does so for open questions, and these end in time."""
        for request_id, keys in self.waits.items():
            assert keys, f"{request_id} waits for no claim"
            for key in keys:
                assert self.open(key), f"{request_id} waits for a claim of {key}, which nobody was asked about"
                assert request_id in self.by_key[key].waiting, f"{request_id} waits for {key}, which does not know it"
        for key, claim in self.by_key.items():
            assert not claim.waiting or claim.standing is Standing.ASKED, f"{key}: {claim.standing}, and some wait"
            assert all(key in self.waits[each] for each in claim.waiting), f"{key}: some wait who do not know"
            assert self.next_due <= claim.until, f"{key} ends at {claim.until}, nobody looks before {self.next_due}"
            assert (key in self.ours) == (claim.standing is Standing.OURS), f"{key}: {claim.standing}"
        assert all(key in self.by_key for key in self.ours), "a claim is ours that nobody knows"
