"""What the tests of the session share: a session brought to where a conversation begins."""

import json

from lorapick.testing import extproc as gateway
from lorapick.wire.extproc import messages
from lorapick.wire.extproc.commands import (
    Decide,
    Send,
)
from lorapick.wire.extproc.session import Session, SessionOptions

POD, SPARE, ANY = "10.0.0.1:8000", "10.0.0.2:8000", "10.0.0.9:8000"
BODY = b'{"model":"ad0","prompt":"Hello"}'
BUFFERED = (gateway.BUFFERED, gateway.NO_BODY)
DUPLEX = (gateway.FULL_DUPLEX, gateway.FULL_DUPLEX)
CONTINUE = [Send(messages.REQUEST_HEADERS_CONTINUE)]


def session(picker: gateway.ScriptedPicker | None = None, **options: object) -> Session:
    """A session that invents the id `made-up`."""
    return Session(
        picker or gateway.ScriptedPicker(),
        SessionOptions(**options),
        now=1000.0,
        identify=lambda given: given or "made-up",
    )


def asked(talk: Session, *, body: bytes = BODY, modes: tuple[int, int] = BUFFERED, **headers: object) -> Decide:
    """Bring a session to the point where it waits for the picker."""
    talk.receive(gateway.request_headers(modes=modes, **headers))
    (decide,) = talk.receive(gateway.request_body(body))
    assert isinstance(decide, Decide)
    return decide


def immediate(commands: list[object]) -> tuple[int, dict[str, str], dict[str, object]]:
    """Status, headers and parsed body of the one immediate response among commands."""
    (answer,) = [c.message.immediate_response for c in commands if isinstance(c, Send)]
    headers = {h.header.key: h.header.raw_value.decode() for h in answer.headers.set_headers}
    return answer.status.code, headers, json.loads(answer.body)


def session_decided(answer: object) -> list[Send]:
    talk = session()
    asked(talk)
    return talk.decided(answer)
