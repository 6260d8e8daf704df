"""Which adapters the requests of an event log needed, in the order in which they came or were sent to pods.

In: the steps of a log. Out: names, None for the base model. Not here: reading lines (see `wire.eventlog`), bounds.

A log says nothing of when a pod began with a request; the order of dispatch, with what was held where it was let go,
is as near to that as a picker can see.
"""

from collections.abc import Iterator
from enum import StrEnum

from lorapick.model.adapters import Alias
from lorapick.model.events import ConfigChanged, PodAppeared, PodChanged, RequestArrived, RequestEnded
from lorapick.model.requests import Request
from lorapick.model.settings import Settings
from lorapick.model.units import AdapterName, RequestId
from lorapick.wire.eventlog import AnyAnswer, Decided, Dispatched, Held, LogError, LogReader, Rejected, Step


class Order(StrEnum):
    """Which order of requests a bound is asked for."""

    ARRIVAL = "arrival"
    """As requests came; those rejected at once are left out."""
    DISPATCH = "dispatch"
    """As they were sent to pods."""


def logged_adapters(reader: LogReader, order: Order) -> Iterator[AdapterName | None]:
    """The adapter of each request; None: the base model.

    Raises:
        LogError: a line is not one of an event log; or, in the order of arrival, a request asks for an alias of
            several adapters.
    """
    names = _Names(reader.header.settings)
    read = names.arrived if order is Order.ARRIVAL else names.dispatched
    for step in reader:
        try:
            yield from read(step)
        except ValueError as error:
            raise LogError(f"{reader.name}:{step.line}: {error}") from None


class _Names:
    """What model names mean, as far as the log has been read."""

    def __init__(self, settings: Settings) -> None:
        self._bases = {settings.base_model: None}
        self._aliases = _by_name(settings)
        self._asked: dict[RequestId, str] = {}
        """Model of each request that waits for a pod."""

    def arrived(self, step: Step) -> list[AdapterName | None]:
        """What a request needs that the step brings, if it brings one."""
        self._learn(step)
        event = step.event
        if not isinstance(event, RequestArrived) or any(isinstance(each, Rejected) for each in _answers(step)):
            return []
        return [self._meant(event.request)]

    def dispatched(self, step: Step) -> list[AdapterName | None]:
        """What the requests need that the step sends to pods."""
        self._learn(step)
        event = step.event
        if isinstance(event, RequestArrived):
            self._asked[event.request.id] = event.request.model
        elif isinstance(event, RequestEnded):
            self._asked.pop(event.request_id, None)
        return [adapter for answer in _answers(step) for adapter in self._sent(answer)]

    def _sent(self, answer: AnyAnswer) -> list[AdapterName | None]:
        if isinstance(answer, Held):
            return []
        asked = self._asked.pop(answer.request_id, None)
        if asked is None or not isinstance(answer, Dispatched):
            return []
        model = answer.model if answer.model is not None else asked
        return [None if model in self._bases else model]

    def _learn(self, step: Step) -> None:
        event = step.event
        if isinstance(event, PodAppeared | PodChanged):
            self._bases[event.pod.base_model] = None
        elif isinstance(event, ConfigChanged):
            self._bases[event.settings.base_model] = None
            self._aliases = _by_name(event.settings)

    def _meant(self, request: Request) -> AdapterName | None:
        if request.model in self._bases:
            return None
        alias = self._aliases.get(request.model)
        if alias is None or not alias.to:
            return request.model
        if len(alias.to) > 1:
            raise ValueError(
                f"request {request.id} asks for {alias.name}, an alias of {len(alias.to)} adapters; "
                "which of them it got is known in the order of dispatch only"
            )
        return alias.to[0].adapter


def _by_name(settings: Settings) -> dict[str, Alias]:
    return {alias.name: alias for alias in settings.aliases}


def _answers(step: Step) -> tuple[AnyAnswer, ...]:
    return step.result.answers if isinstance(step.result, Decided) else ()
