"""What a session asks of its transport. Performed in the order of the list; performing one never fails the session."""

import msgspec
from envoy.service.ext_proc.v3.external_processor_pb2 import ProcessingResponse

from lorapick.model.answers import Usage
from lorapick.model.reasons import Reason
from lorapick.model.requests import Outcome, Request
from lorapick.model.units import RequestId


class Command(msgspec.Struct, frozen=True):
    """Base of all commands."""


class Send(Command, frozen=True):
    """Write one message to the gateway. The message may be shared between sessions: never change it."""

    message: ProcessingResponse


class Decide(Command, frozen=True):
    """Ask the picker; its answer comes back through `Session.decided`, its failure through `Session.undecided`."""

    request: Request


class Withdraw(Command, frozen=True):
    """The request no longer wants the decision that is under way: cancel it."""

    request_id: RequestId


class Dispatched(Command, frozen=True):
    """Tell the picker which address serves the request."""

    request_id: RequestId
    address: str


class Prefilled(Command, frozen=True):
    """Tell the picker that the prefill on another pod is over; not `ok`: the pod that decodes does it."""

    request_id: RequestId
    ok: bool
    why: str | None = None
    """What the pod says of a failure, cut short and printable."""


class Started(Command, frozen=True):
    """Tell the picker that response headers came, with this HTTP status."""

    request_id: RequestId
    status: int


class BodyStarted(Command, frozen=True):
    """Tell the picker that the first bytes of a good answer's body came; once at most, and only where bodies come."""

    request_id: RequestId


class Ended(Command, frozen=True):
    """Tell the picker that a dispatched request left. Exactly one for each Dispatch handed to the session."""

    request_id: RequestId
    outcome: Outcome
    status: int | None = None
    usage: Usage | None = None


class Refused(Command, frozen=True):
    """The session refused the request without asking the picker: count it as an arrival that was rejected."""

    status: int
    reason: Reason
    message: str


class Passed(Command, frozen=True):
    """The session sent the request to any ready pod without asking the picker: count it apart."""

    why: str
    """`no_body`, `no_model`, `undecided` or `body_mode`."""


class Finish(Command, frozen=True):
    """End the stream gracefully: no more messages go either way."""

    error: str | None = None
    """What the gateway did wrong; None: nothing."""


AnyCommand = (
    Send | Decide | Withdraw | Dispatched | Prefilled | Started | BodyStarted | Ended | Refused | Passed | Finish
)
