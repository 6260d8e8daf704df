"""One HTTP request's side of the ext_proc conversation.

In: `ProcessingRequest` messages, the picker's answer, the end of the stream.
Out: lists of commands (see `commands.py`).
Not here: gRPC, clocks (the time of arrival is an argument), tasks, or any choice of a pod.
"""

from collections.abc import Callable, Sequence
from typing import Protocol, Self

from envoy.service.ext_proc.v3.external_processor_pb2 import ProcessingRequest
import msgspec

from lorapick.model.answers import ModelCard
from lorapick.model.effects import Dispatch, Reject
from lorapick.model.settings import Settings
from lorapick.model.units import Bytes, RequestId, Seconds
from lorapick.wire.extproc.commands import AnyCommand


class Directory(Protocol):
    """What a session may ask of the picker without deciding anything; `live.ports.Picker` has both."""

    def models(self) -> Sequence[ModelCard]:
        """Models and adapters that some ready pod serves."""
        ...

    def any_endpoint(self) -> str | None:
        """Address of some ready pod; None: none is ready."""
        ...


class SessionOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What sessions need of the configuration."""

    full_duplex: bool = False
    """Request body mode when the gateway does not say: FULL_DUPLEX_STREAMED, else BUFFERED."""
    max_body: Bytes = 10 * 1024 * 1024
    priorities: dict[str, int] = {}
    """Objective name to priority; absent names have 0."""

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """The part of the configuration that sessions need."""
        return cls(
            full_duplex=settings.server.body == "full_duplex_streamed",
            max_body=settings.server.max_body,
            priorities={objective.name: objective.priority for objective in settings.objectives},
        )


class Session:
    """One HTTP request. Calls after the end are harmless and return no commands."""

    def __init__(
        self,
        directory: Directory,
        options: SessionOptions,
        *,
        now: Seconds,
        identify: Callable[[str | None], RequestId],
    ) -> None:
        """Begin.

        Args:
            directory: asked for models and for any ready pod.
            options: limits and names from the configuration.
            now: time of arrival on the driver's clock; deadlines count from here.
            identify: makes the request's id from the client's `x-request-id` (None: it sent none).
        """
        self.request_id: RequestId | None = None

    def receive(self, message: ProcessingRequest) -> list[AnyCommand]:
        """Take one message of the gateway. Never raises on what a gateway may send."""
        raise NotImplementedError

    def decided(self, answer: Dispatch | Reject) -> list[AnyCommand]:
        """Take the picker's answer to the `Decide` command."""
        raise NotImplementedError

    def undecided(self) -> list[AnyCommand]:
        """The picker failed to answer: the request goes to any ready pod [R7.5]."""
        raise NotImplementedError

    def closed(self) -> list[AnyCommand]:
        """The gateway ended the stream: the HTTP request is over (or its client left)."""
        raise NotImplementedError

    def cancelled(self) -> list[AnyCommand]:
        """The stream was torn down; nothing can be sent any more."""
        raise NotImplementedError
