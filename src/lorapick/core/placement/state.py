"""What placement remembers of one fleet. Only `core.placement` changes it, and only within `Fleet.apply`.

Not here: behaviour (see `core.placement.controller`, `core.placement.guard`).
"""

from collections import OrderedDict
from collections.abc import Callable, Collection
from math import inf
from typing import Any, NamedTuple

from lorapick.core.forecast.blend import Blend
from lorapick.core.forecast.choose import Choice, Turnover
from lorapick.core.forecast.history import History
from lorapick.core.forecast.models import Forecast, LastHour, Seasonal
from lorapick.core.forecast.scoring import Scorer
from lorapick.core.placement.burstiness import Burstiness
from lorapick.core.placement.calendar import is_weekend, week_minute
from lorapick.core.placement.commands import Commands
from lorapick.core.placement.groups import Groups
from lorapick.core.placement.keeping import Keeps
from lorapick.core.placement.pins import Pinned
from lorapick.core.placement.prompts import Prompts, tokens_of
from lorapick.core.placement.replicas import PREFILL_RULES, Replicas
from lorapick.core.placement.schedules import Schedules
from lorapick.core.placement.triggers import Triggers
from lorapick.core.placement.wants import Want
from lorapick.model.disaggregation import Decide
from lorapick.model.placement import AdapterFacts, Side, Why
from lorapick.model.requests import Request
from lorapick.model.settings import Settings
from lorapick.model.units import AdapterName, PodName, Seconds

MOST_REFUSALS = 512
TOGETHER: Seconds = 0.1
"""Between two ticks that come because a pod has done what it was told."""
MOST_CALLED = 1000
"""Followers wanted at once."""
FOLLOWS_WITHIN: Seconds = 60.0
"""For how long a follower is wanted after its leader was called."""


class Order(NamedTuple):
    """One thing that an operator asked for, until it is done."""

    want: Want
    once: bool
    """Done when it is loaded; else kept until `want.until`."""
    asked: Seconds
    leaves: PodName | None = None
    """Pod that is to lose it once it is loaded (a move)."""


class Refusal(NamedTuple):
    """What the guard said last of a pair."""

    reason: str
    why: Why
    since: Seconds


class Called(NamedTuple):
    """A follower that is wanted because its leader was called."""

    want: Want
    leader: AdapterName


class Ahead(NamedTuple):
    """Whom the forecast wants held in one bin."""

    number: int
    choice: Choice
    brought: dict[AdapterName, None]
    """Those of them that were in a slot since: only firm ones are brought back."""
    touching: dict[AdapterName, None]
    """Those that are still to be touched, in that order."""


_FORECASTS: dict[str, Callable[[History], Forecast]] = {"last_hour": LastHour, "seasonal": Seasonal, "blend": Blend}


class Placement:
    """State of the controller."""

    __slots__ = (
        "_weekend",
        "acts",
        "ahead",
        "asked_version",
        "assigned",
        "burstiness",
        "by_load",
        "called",
        "claims",
        "commands",
        "commands_pods",
        "deprioritised",
        "drift",
        "facts",
        "fits",
        "fits_at",
        "forecast",
        "groups",
        "guarded",
        "history",
        "keeps",
        "keeps_history",
        "last_tick",
        "leaders",
        "leads",
        "leaving",
        "longest_missing",
        "looks",
        "missing_since",
        "moving",
        "next_tick",
        "orders",
        "pinned",
        "pinned_at",
        "plan",
        "plan_version",
        "prefill_replicas",
        "problems",
        "prompts",
        "refusals",
        "replicas",
        "retiring",
        "said_of_pins",
        "said_unknown",
        "schedules",
        "scorer",
        "solve_at",
        "triggers",
        "turnover",
        "unknown",
        "unloads",
        "unwanted",
        "wall_offset",
        "wanted",
        "warming",
    )  # fmt: skip

    def __init__(self, settings: Settings, *, acts: bool = True) -> None:
        self.acts = acts
        """Whether the mode lets pods be told anything."""
        self.commands = Commands()
        self.leads = True
        """Whether this picker is the one of several that tells pods what to load."""
        self.keeps: dict[int, Keeps] = {}
        """By row; only of pods where something is pinned or that are reserved."""
        self.claims: dict[int, None] = {}
        """Pods on which a pin waits for a load to end."""
        self.pinned = Pinned({}, {})
        self.said_unknown: dict[AdapterName, None] = {}
        """Adapters that somebody wants and nobody knows, of which a note told."""
        self.drift: dict[int, dict[str, None]] = {}
        """Where a pod says otherwise than the configuration, of which notes told."""
        self.said_of_pins: dict[AdapterName, str] = {}
        """Problems of pins that a note told of."""
        self.orders: list[Order] = []
        self.unloads: dict[tuple[int, AdapterName], Why] = {}
        """Unloads that are wanted and not done."""
        self.unwanted: dict[tuple[int, AdapterName], None] = {}
        """Names that the operator took from a pod: they are not told to it again until the operator loads them."""
        self.looks = 0
        """Counts what changed of what is wanted, of pods, and of whether these fit adapters."""
        self.fits: dict[tuple[int, AdapterName], str | None] = {}
        """Why pods cannot serve adapters; None: they can."""
        self.fits_at = -1
        """`looks` when these were found."""
        self.pinned_at = -1
        """`looks` when pins were last placed."""
        self.unknown: dict[int, tuple[tuple[int, int], list[AdapterName], object]] = {}
        """Names that a pod should know and does not, as of its last list."""
        self.assigned: dict[tuple[Why, str, AdapterName, Side], tuple[int, ...]] = {}
        """Rows of each side that each want was given, so that it keeps them."""
        self.wanted: dict[int, dict[AdapterName, Why]] = {}
        """What each pod should hold, as of the last tick."""
        self.warming: dict[int, Seconds] = {}
        """Pods that take no traffic yet, and since when."""
        self.leaving: dict[int, Seconds] = {}
        """Pods that drain and still serve what nobody else has, and until when at most."""
        self.retiring: dict[AdapterName, None] = {}
        self.problems: dict[AdapterName, str] = {}
        """What is wrong with an adapter's files, or that they have changed under its name."""
        self.facts: dict[AdapterName, AdapterFacts] = {}
        self.refusals: OrderedDict[tuple[int, AdapterName], Refusal] = OrderedDict()
        self.missing_since: dict[tuple[int, AdapterName], Seconds] = {}
        """Pins that are not where they should be."""
        self.longest_missing: Seconds = 0.0
        """For how long a pin that came back was away, at most."""
        self.wall_offset: Seconds | None = None
        """Unix time minus the driver's; None: nobody has told the time of day."""
        self.next_tick: Seconds = inf
        self.last_tick: Seconds = -inf
        self.groups = Groups(())
        self.triggers = Triggers(())
        self._know_no_demand()
        self.configure(settings)

    def _know_no_demand(self) -> None:
        """What follows from who asks for what."""
        self.plan: dict[AdapterName, tuple[PodName, ...]] = {}
        """The solver's last answer."""
        self.plan_version = 0
        self.asked_version = 0
        self.solve_at: Seconds = -inf
        """When to ask it again."""
        self.moving: dict[tuple[int, AdapterName], Seconds] = {}
        """Copies that would pay, and until when they are tried."""
        self.by_load = False
        self.burstiness = Burstiness()
        self.replicas = Replicas()
        self.prefill_replicas = Replicas(PREFILL_RULES)
        """Of the side that prefills."""
        self.prompts = Prompts()
        self.history = History()
        self.forecast: Forecast | None = None
        self.scorer: Scorer | None = None
        self.turnover = Turnover()
        self.ahead: Ahead | None = None
        self.called: dict[AdapterName, Called] = {}
        """Followers of who was called, until their time is up."""
        self.guarded: dict[int, None] = {}
        """Pods with something that is wanted for a time: who goes next there is looked at after each load."""
        self.deprioritised: dict[AdapterName, None] = {}
        """Who counts for less at weekends, while it is one."""
        self._weekend: tuple[AdapterName, ...] = ()

    @property
    def may_tell(self) -> bool:
        """Whether pods may be told anything by this picker."""
        return self.leads and self.acts

    def configure(self, settings: Settings) -> None:
        """Take over settings; what is remembered stays."""
        wanted = settings.placement
        self.commands_pods = wanted.enabled and self.may_tell
        """Whether anything of what is wanted leads to commands."""
        counted = self.groups.transitions
        self.groups = Groups(settings.groups, learn=(counted or True) if wanted.learn_groups else False)
        self.leaders = self.groups.leaders()
        self.schedules = Schedules(settings.schedules)
        self.triggers = self.triggers.changed_to(settings.triggers)
        make = _FORECASTS.get(wanted.forecast)
        if make is None:
            self.forecast = self.scorer = None
        elif self.forecast is None or self.forecast.name != wanted.forecast:
            self.forecast = make(self.history)
            others: list[Forecast] = [LastHour(self.history), Seasonal(self.history), Blend(self.history)]
            models = [self.forecast if each.name == self.forecast.name else each for each in others]
            self.scorer = Scorer(models, self.history)
        self.keeps_history = wanted.forecast != "off" or wanted.history is not None
        self.by_load = wanted.replicas == "auto"
        splits = settings.disaggregation
        self.prompts.least = splits.uncached_tokens if splits.decide is Decide.TOKENS else 0
        self._weekend = tuple(adapter.name for adapter in settings.adapters if adapter.weekend is not None)

    def wall(self, now: Seconds) -> Seconds | None:
        """Unix time; None: nobody has told."""
        return None if self.wall_offset is None else self.wall_offset + now

    def look_at_calendar(self, settings: Settings, *, now: Seconds) -> None:
        """Whether it is a weekend."""
        wall, weekend = self.wall(now), settings.placement.weekend
        if self._weekend and wall is not None:
            begins, ends = week_minute(weekend.begins), week_minute(weekend.ends)
            there = is_weekend(wall, timezone=weekend.timezone, start=begins, end=ends)
            self.deprioritised = dict.fromkeys(self._weekend) if there else {}
        else:
            self.deprioritised = {}

    def is_deprioritised(self, name: AdapterName) -> bool:
        """Whether nobody is to bring it anywhere unless somebody insists."""
        return name in self.deprioritised

    def arrived(self, name: AdapterName, request: Request, *, now: Seconds) -> None:
        """Somebody asks for an adapter."""
        if self.by_load:
            self.burstiness.happened(name, now)
            self.prompts.came(name, tokens_of(request))
        if self.wall_offset is not None and self.keeps_history:
            self.history.count(name, self.wall_offset + now)
        if self.groups.any:
            self._called(name, request, now=now)

    def _called(self, name: AdapterName, request: Request, *, now: Seconds) -> None:
        key = request.session or request.tenant or request.fairness_id
        if key is not None:
            self.groups.called(name, key, now=now)
        for follower in self.groups.followers_of(name, now=now):
            if len(self.called) >= MOST_CALLED and follower.adapter not in self.called:
                break
            if follower.adapter not in self.called:
                self.hurry(now)
            self.called[follower.adapter] = Called(follower.want(until=now + FOLLOWS_WITHIN), name)

    def load_began(self, row: int, *, now: Seconds) -> None:
        """A request makes a pod load; where something is pinned, who goes next is looked at before anybody else."""
        self.commands.load_began(row, now=now)
        if self.forecast is not None:
            self.turnover.loaded()
        if row in self.keeps or row in self.guarded:
            self.hurry(now)

    def hurry_a_little(self, now: Seconds) -> None:
        """Something is done that others may have waited for; when much is done at a time, one tick is for all of it."""
        self.next_tick = min(self.next_tick, max(now, self.last_tick + TOGETHER))

    def load_ended(self, *, now: Seconds) -> None:
        """A load is over, well or badly: a pin may have waited for that."""
        if self.claims:
            self.hurry_a_little(now)

    def hurry(self, now: Seconds) -> None:
        """Something happened that the next tick should not wait for."""
        self.next_tick = min(self.next_tick, now)

    def forget_refusals(self, *, unknown: Callable[[int], Collection[AdapterName]]) -> None:
        """Of what is wanted no more; `unknown`: names that a pod should know and does not."""
        for (row, name), refusal in [*self.refusals.items()]:
            wanted = unknown(row) if refusal.why is Why.REGISTER else self.wanted.get(row, {})
            if name not in wanted:
                del self.refusals[row, name]

    def refused(self, row: int, adapter: AdapterName, *, refusal: Refusal) -> bool:
        """Remember what the guard said; whether that is news."""
        before = self.refusals.pop((row, adapter), None)
        same = before is not None and before.reason == refusal.reason and before.why is refusal.why
        self.refusals[row, adapter] = before if same and before is not None else refusal
        if len(self.refusals) > MOST_REFUSALS:
            self.refusals.popitem(last=False)
        return not same

    def forget_pod(self, row: int) -> None:
        """The pod is gone."""
        self.commands.forget_pod(row)
        self.keeps.pop(row, None)
        self.claims.pop(row, None)
        self.wanted.pop(row, None)
        self.warming.pop(row, None)
        self.leaving.pop(row, None)
        self.guarded.pop(row, None)
        self.drift.pop(row, None)
        self.unknown.pop(row, None)
        tables: tuple[dict[tuple[int, AdapterName], Any], ...]
        tables = (self.refusals, self.missing_since, self.unloads, self.unwanted, self.moving)
        for table in tables:
            for pair in [pair for pair in table if pair[0] == row]:
                del table[pair]

    def restarted(self, row: int) -> None:
        """The pod's process is new."""
        self.commands.forget_pod(row)
