"""What the parts of the live picker ask of each other, so that each side is tested without the other."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from lorapick.model.answers import ModelCard, Usage
from lorapick.model.effects import Answer
from lorapick.model.pods import Pod
from lorapick.model.reasons import Reason
from lorapick.model.requests import Outcome, Request
from lorapick.model.units import AdapterName, RequestId, Seconds

__all__ = ["ModelCard", "NoSourceError", "Picker", "SourceError", "Sources", "Usage"]

Sources = Callable[[AdapterName, Pod], Awaitable[str]]
"""Given an adapter and a pod, the path or reference that the pod is told to load from; raises `SourceError`."""


class SourceError(Exception):
    """A pod cannot be told where to load an adapter from; the message says why, and what to do."""

    def __init__(self, why: str, *, lasting: bool = True, reason: str | None = None) -> None:
        """Asking again is of no use while nothing changes, if `lasting`; `reason` is the why as one word."""
        super().__init__(why)
        self.lasting = lasting
        self.reason = reason


class NoSourceError(SourceError):
    """Nobody ever said where its weights are. A pod that serves it already needs not be told."""


class Picker(Protocol):
    """The picker as its transports see it. All methods return at once; none but `ask` may raise."""

    def ask(self, request: Request) -> "Answer | asyncio.Future[Answer]":
        """Choose a pod: the answer, or its future while the request is held.

        The answer's `request_id` counts from then on. Cancelling the future abandons the request (counted).
        Almost every answer comes at once, and a task or future for each would cost more than the pick.
        """
        ...

    def dispatched(self, request_id: RequestId, address: str) -> None:
        """Say which endpoint really serves a request (a fallback may have)."""
        ...

    def prefill_ended(self, request_id: RequestId, *, ok: bool, why: str | None = None) -> None:
        """Say that the prefill on another pod is over, well or not; told before `response_started`, if at all.

        `why` it failed is the pod's own word, cut short and printable (`wire.kv_transfer.read_reason`).
        """
        ...

    def response_started(self, request_id: RequestId, status: int) -> None:
        """Say that response headers came."""
        ...

    def body_started(self, request_id: RequestId) -> None:
        """Say that the first bytes of a good answer's body came; never told where bodies do not come."""
        ...

    def ended(self, request_id: RequestId, outcome: Outcome, status: int | None, usage: Usage | None) -> None:
        """Say that a dispatched request left; exactly once for each Dispatch that `ask` gave."""
        ...

    def refused(self, reason: Reason, status: int) -> None:
        """Say that the transport refused a request by itself, without asking for a pod."""
        ...

    def models(self) -> Sequence[ModelCard]:
        """Models and adapters that some ready pod serves."""
        ...

    def near_names(self, name: str) -> Sequence[str]:
        """At most three of the models' names that look like this one, best first; none when it costs too much now."""
        ...

    def any_endpoint(self) -> str | None:
        """Address of some ready pod, for requests that name no model (`GET` pass-through); None: none is ready."""
        ...

    def now(self) -> Seconds:
        """The driver's clock."""
        ...
