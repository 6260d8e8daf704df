"""Tests of the decision core as conversations: one verb is one event, and its answer is what the core says.

book = Playbook(pods=["a", "b"], adapters=["legal"])
assert book.arrive("legal") == ["r1 -> a (disk) else b"]
assert book.wait(0.7) == []
assert book.serve("r1") == []

In: verbs. Out: effects, each told in one line (`tell`); whole answers are compared, and invariants are checked
after each event. `wait` moves the clock as a driver would, with a Ticked whenever the core asked for one.
Not here: sockets, or any other clock.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from lorapick.core.columns import TIER_BITS
from lorapick.core.fleet import Fleet
from lorapick.model import events
from lorapick.model.adapters import Adapter
from lorapick.model.effects import Clear, Dispatch, Effect, Hold, Note, Raise, Reject
from lorapick.model.picks import Explanation, PodVerdict
from lorapick.model.pods import Pod, PodLimits, PodReport, SilentWhy
from lorapick.model.reasons import Reason
from lorapick.model.requests import Outcome, Request
from lorapick.model.settings import Settings
from lorapick.model.tiers import Tier
from lorapick.model.units import AdapterName, PodName, RequestId, Seconds


class Playbook:
    """A fleet, its clock and everything that was said."""

    def __init__(
        self,
        *,
        pods: Iterable[PodName | Pod] = (),
        adapters: Iterable[AdapterName | Adapter] = (),
        settings: Settings | None = None,
        seed: int = 0,
    ) -> None:
        settings = settings if settings is not None else Settings()
        declared = tuple(a if isinstance(a, Adapter) else Adapter(name=a, declared=True) for a in adapters)
        self.settings = Settings(
            **{name: getattr(settings, name) for name in settings.__struct_fields__ if name != "adapters"},
            adapters=(*settings.adapters, *declared),
        )
        self.fleet = Fleet(self.settings, seed=seed)
        self.now: Seconds = 0.0
        self.events: list[events.Event] = []
        self.answers: list[list[Effect]] = []
        """Answer to each event, in full."""
        self._requests = 0
        self._uses = 0
        for pod in pods:
            self.appear(pod)

    # -- pods

    def appear(self, pod: PodName | Pod) -> list[str]:
        """Discovery finds a pod; a name stands for a plain one (`plain_pod`)."""
        return self.apply(events.PodAppeared, pod=pod if isinstance(pod, Pod) else plain_pod(pod))

    def change(self, pod: Pod) -> list[str]:
        """Discovery says something new of a pod."""
        return self.apply(events.PodChanged, pod=pod)

    def drain(self, pod: PodName) -> list[str]:
        """A pod takes no new requests."""
        return self.apply(events.PodDraining, pod=pod)

    def gone(self, pod: PodName) -> list[str]:
        """A pod is no longer listed."""
        return self.apply(events.PodGone, pod=pod)

    def report(
        self, pod: PodName, *, since: Seconds | None = None, every: Seconds | None = None, **fields: Any
    ) -> list[str]:
        """One scrape succeeded: that of an idle pod but for the `PodReport` fields given."""
        report = PodReport(**{"waiting": 0, "running": 0, **fields})
        return self.apply(events.PodReported, pod=pod, report=report, since=since, every=every)

    def silent(self, pod: PodName, why: SilentWhy = SilentWhy.TIMEOUT) -> list[str]:
        """One scrape failed."""
        return self.apply(events.PodSilent, pod=pod, why=why)

    # -- requests

    def arrive(self, model: str, **fields: Any) -> list[str]:
        """A request comes, with the `Request` fields given; without an id the next of r1, r2, ..."""
        if "id" not in fields:
            self._requests += 1
            fields["id"] = f"r{self._requests}"
        return self.apply(events.RequestArrived, request=Request(model=model, **fields))

    def fallback(self, request_id: RequestId, pod: PodName) -> list[str]:
        """Another pod than the picked one serves."""
        return self.apply(events.RequestDispatched, request_id=request_id, pod=pod)

    def start(self, request_id: RequestId, status: int = 200) -> list[str]:
        """Response headers come."""
        return self.apply(events.ResponseStarted, request_id=request_id, status=status)

    def body(self, request_id: RequestId) -> list[str]:
        """The first bytes of its answer come."""
        return self.apply(events.BodyStarted, request_id=request_id)

    def prefilled(self, request_id: RequestId, *, ok: bool = True, why: str | None = None) -> list[str]:
        """The pod that prefills is done with it."""
        return self.apply(events.PrefillEnded, request_id=request_id, ok=ok, why=why)

    def end(self, request_id: RequestId, outcome: Outcome = Outcome.SERVED, *, status: int | None = None) -> list[str]:
        """The request leaves."""
        return self.apply(events.RequestEnded, request_id=request_id, outcome=outcome, status=status)

    def use(self, model: str, pod: PodName) -> None:
        """One whole request on a pod, served at once."""
        self._uses += 1
        request_id = f"use{self._uses}"
        self.arrive(model, id=request_id, subset=(self._address(pod),))
        self.start(request_id)
        self.end(request_id)

    def _address(self, pod: PodName) -> str:
        columns = self.fleet.state.columns
        return columns.targets[columns.row_of[pod]].address

    # -- time and the rest

    def wait(self, seconds: Seconds) -> list[str]:
        """Let time pass; a Ticked comes whenever the core wants to be woken, and at the end."""
        end, told = self.now + seconds, list[str]()
        while (due := self.fleet.next_wakeup()) is not None and due <= end:
            self.now = max(self.now, due)
            told += self.apply(events.Ticked)
        self.now = end
        return told + self.apply(events.Ticked)

    def apply(self, kind: type[events.Event], **fields: Any) -> list[str]:
        """Apply any event now and tell the answer."""
        event = kind(t=self.now, id=len(self.events) + 1, **fields)
        answer = self.fleet.apply(event, self.now)
        self.events.append(event)
        self.answers.append(answer)
        self.fleet.check()
        return [tell(effect) for effect in self.effects]

    @property
    def effects(self) -> list[Effect]:
        """Answer to the last event, in full."""
        return self.answers[-1]

    # -- looking

    def tier(self, pod: PodName, adapter: AdapterName) -> str:
        """Word of the tier that picking sees."""
        columns = self.fleet.state.columns
        return Tier(columns.adapter_row(adapter)[columns.row_of[pod]] & TIER_BITS).word

    def queue(self, pod: PodName) -> float:
        """Queue depth that picking sees."""
        columns = self.fleet.state.columns
        return columns.queue[columns.row_of[pod]]

    def free(self, pod: PodName) -> float:
        """Free slots that picking sees."""
        columns = self.fleet.state.columns
        return columns.free_slots[columns.row_of[pod]]

    def in_flight(self, pod: PodName) -> int:
        """Requests counted at a pod."""
        state = self.fleet.state
        return state.loads[state.columns.row_of[pod]].in_flight

    def explain(self, request_id: RequestId) -> Explanation:
        """Explanation of a decision that the journal keeps."""
        explanation = self.fleet.state.journal.explain(request_id)
        assert explanation is not None, f"{request_id} is not in the journal"
        return explanation

    def verdict(self, request_id: RequestId, pod: PodName) -> PodVerdict:
        """One pod's part in a decision."""
        return next(verdict for verdict in self.explain(request_id).verdicts if verdict.pod == pod)


def plain_pod(name: PodName, **fields: Any) -> Pod:
    """A pod with defaults but for the fields of `Pod` and `PodLimits` given; its host is its name."""
    limits = PodLimits(**{key: fields.pop(key) for key in PodLimits.__struct_fields__ if key in fields})
    return Pod(**{"name": name, "address": f"{name}:8000", "limits": limits, **fields})


def tell(effect: Effect) -> str:
    """An effect in one line."""
    match effect:
        case Dispatch():
            tier = effect.pick.tier.word if effect.pick.tier is not None else "base"
            line = f"{effect.request_id} -> {effect.target.pod} ({tier})"
            if effect.prefill is not None:
                line += f" after {effect.prefill.pod}"
            if effect.fallbacks:
                line += f" else {', '.join(target.pod for target in effect.fallbacks)}"
            return line + (f" as {effect.model}" if effect.model is not None else "")
        case Hold():
            what = effect.pick.follows if effect.reason is Reason.HELD_FOR_LOAD else "a place"
            return f"{effect.request_id} waits for {what} until {effect.until:g}"
        case Reject():
            return f"{effect.request_id} refused: {effect.status} {effect.reason.value}"
        case Note():
            return _line(f"note {effect.kind}", effect.facts)
        case Raise():
            return _line(f"alert {effect.alert}", effect.facts)
        case Clear():
            return _line(f"alert {effect.alert} is over", effect.facts)
        case _:
            return type(effect).__name__


def _line(what: str, facts: Mapping[str, str | float]) -> str:
    return " ".join([what, *(f"{key}={_plain(value)}" for key, value in facts.items())])


def _plain(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:g}"
