"""The ext_proc session under any split of bodies and any order of messages."""

import json
from typing import Any

from envoy.service.ext_proc.v3.external_processor_pb2 import ProcessingRequest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from lorapick.model.reasons import Reason
from lorapick.testing import extproc as gateway
from lorapick.wire.extproc.chunking import MAX_CHUNK
from lorapick.wire.extproc.commands import Decide, Ended, Finish, Send, Withdraw
from lorapick.wire.extproc.session import Session, SessionOptions

NAMES = st.text(min_size=1, max_size=12)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.just("model") | st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=8,
)
MODES = st.sampled_from([gateway.BUFFERED, gateway.FULL_DUPLEX, gateway.STREAMED, gateway.NO_BODY])


def new_session(**options: Any) -> Session:
    return Session(
        gateway.ScriptedPicker(), SessionOptions(**options), now=0.0, identify=lambda given: given or "made-up"
    )


def split(body: bytes, cuts: list[int]) -> list[bytes]:
    """The body cut at the given places (taken modulo its length)."""
    places = sorted({cut % (len(body) + 1) for cut in cuts})
    return [body[start:end] for start, end in zip([0, *places], [*places, len(body)], strict=True)]


def streamed(commands: list[Any], kind: str) -> bytes:
    """Joined bytes of streamed bodies among commands, each within bounds."""
    out = b""
    for command in commands:
        if isinstance(command, Send) and command.message.WhichOneof("response") == kind:
            piece = getattr(command.message, kind).response.body_mutation.streamed_response.body
            assert len(piece) <= MAX_CHUNK
            out += piece
    return out


@st.composite
def bodies(draw: st.DrawFn) -> tuple[bytes, str]:
    """A JSON body with a model somewhere among other keys, written in some style, and the model."""
    model = draw(NAMES)
    fields = draw(st.dictionaries(st.text(max_size=8).filter(lambda key: key != "model"), JSON, max_size=4))
    position = draw(st.integers(0, len(fields)))
    items = [*fields.items()]
    items.insert(position, ("model", model))
    indent = draw(st.none() | st.integers(0, 3))
    text = json.dumps(dict(items), ensure_ascii=draw(st.booleans()), indent=indent)
    return text.encode(), model


@given(bodies(), NAMES | st.none(), st.lists(st.integers(0, 2**16), max_size=6), st.booleans(), st.integers(0, 130_000))
def test_the_forwarded_body_is_the_clients(
    made: tuple[bytes, str], target: str | None, cuts: list[int], trailers: bool, padding: int
) -> None:
    body, model = made
    body += b" " * padding
    talk = new_session()
    assert talk.receive(gateway.request_headers(modes=(gateway.FULL_DUPLEX, gateway.NO_BODY))) == []
    *early, last = split(body, cuts)
    for piece in early:
        assert talk.receive(gateway.request_body(piece, last=False)) == []
    if trailers:
        assert talk.receive(gateway.request_body(last, last=False)) == []
        (decide,) = talk.receive(gateway.request_trailers())
    else:
        (decide,) = talk.receive(gateway.request_body(last))
    assert decide.request.model == model
    out = streamed(talk.decided(gateway.dispatch("10.0.0.1:1", model=target)), "request_body")
    if target is None or target == model:
        assert out == body
    else:
        assert json.loads(out) == {**json.loads(body), "model": target}
        # Nothing but the one value moved: both ends of the body are the client's bytes.
        assert len(out) - len(body) == len(written(target, out)) - len(written(model, body))


def written(name: str, text: bytes) -> bytes:
    """How the name stands in the text: escaped, or as UTF-8."""
    forms = (json.dumps(name, ensure_ascii=False).encode(), json.dumps(name).encode())
    return next(form for form in forms if form in text)


@given(NAMES, NAMES, st.lists(st.integers(0, 400), max_size=8), JSON)
def test_the_response_is_the_pods_with_the_clients_name(asked: str, served: str, cuts: list[int], rest: Any) -> None:
    text = json.dumps({"id": 1, "model": served, "rest": rest, "again": {"model": served}}, ensure_ascii=False)
    talk = new_session()
    talk.receive(gateway.request_headers(modes=(gateway.FULL_DUPLEX, gateway.FULL_DUPLEX)))
    talk.receive(gateway.request_body(json.dumps({"model": asked}).encode()))
    talk.decided(gateway.dispatch("10.0.0.1:1", model=served))
    talk.receive(gateway.response_headers(200, [("content-type", "application/json")]))
    commands: list[Any] = []
    pieces = split(text.encode(), cuts)
    for index, piece in enumerate(pieces):
        commands += talk.receive(gateway.response_body(piece, last=index == len(pieces) - 1))
    out = json.loads(streamed(commands, "response_body"))
    assert out["model"] == out["again"]["model"] == asked
    assert sum(isinstance(command, Ended) for command in commands) == 1


@settings(max_examples=300)
@given(st.binary(max_size=200), MODES)
def test_any_bytes_are_answered(body: bytes, mode: int) -> None:
    talk = new_session()
    talk.receive(gateway.request_headers(modes=(mode, mode)))
    talk.receive(gateway.request_body(body))
    talk.closed()
    assert talk.closed() == []


class AnyOrder(RuleBasedStateMachine):
    """Every message and every answer of the picker, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.talk = new_session(max_body=200)
        self.deciding = False
        self.dispatched = 0
        self.ended = 0
        self.finished = False
        self.over = False
        self.withdrawn = False

    def take(self, commands: list[Any]) -> None:
        for command in commands:
            assert not self.finished or isinstance(command, Ended)
            if isinstance(command, Decide):
                assert not self.deciding and self.dispatched == 0
                self.deciding = True
            elif isinstance(command, Withdraw):
                assert self.deciding
                self.withdrawn = True
            elif isinstance(command, Ended):
                self.ended += 1
            elif isinstance(command, Finish):
                self.finished = True
            answered = isinstance(command, Send) and command.message.WhichOneof("response").startswith("response")
            # Nobody waits for a decision any more: the picker must hear of it.
            assert self.withdrawn or not self.deciding or not (answered or self.finished)

    @initialize(stage=st.integers(0, 4), mode=st.sampled_from([gateway.BUFFERED, gateway.FULL_DUPLEX]), back=MODES)
    def begin(self, stage: int, mode: int, back: int) -> None:
        """Chance alone would seldom come as far as a dispatched request."""
        steps = [
            lambda: self.request_headers("/v1/completions", "POST", False, (mode, back)),
            lambda: self.request_body(b'{"model":"a"}', True),
            lambda: self.decided("yes"),
            lambda: self.response_headers(200, "text/event-stream", False),
        ]
        for step in steps[:stage]:
            step()

    @rule(
        path=st.sampled_from(["/v1/completions", "/v1/models", "/health", ""]),
        method=st.sampled_from(["POST", "GET"]),
        last=st.booleans(),
        modes=st.none() | st.tuples(MODES, MODES),
    )
    def request_headers(self, path: str, method: str, last: bool, modes: tuple[int, int] | None) -> None:
        self.take(self.talk.receive(gateway.request_headers(path, method=method, last=last, modes=modes)))

    @rule(body=st.sampled_from([b'{"model":"a"}', b'{"mod', b'el":"a"}', b"", b"{}", b"x" * 150]), last=st.booleans())
    def request_body(self, body: bytes, last: bool) -> None:
        self.take(self.talk.receive(gateway.request_body(body, last=last)))

    @rule()
    def request_trailers(self) -> None:
        self.take(self.talk.receive(gateway.request_trailers()))

    @rule(
        status=st.sampled_from([0, 200, 404, 503, 1000]),
        kind=st.sampled_from(["application/json", "text/event-stream", ""]),
        last=st.booleans(),
    )
    def response_headers(self, status: int, kind: str, last: bool) -> None:
        self.take(self.talk.receive(gateway.response_headers(status, [("content-type", kind)], last=last)))

    @rule(body=st.sampled_from([b'{"model":"b"}', b'data: {"usage":{"prompt', b"\n", b""]), last=st.booleans())
    def response_body(self, body: bytes, last: bool) -> None:
        self.take(self.talk.receive(gateway.response_body(body, last=last)))

    @rule()
    def response_trailers(self) -> None:
        self.take(self.talk.receive(gateway.response_trailers()))

    @rule()
    def unknown(self) -> None:
        self.take(self.talk.receive(ProcessingRequest()))

    @precondition(lambda self: self.deciding)
    @rule(answer=st.sampled_from(["yes", "other model", "no", "failed"]))
    def decided(self, answer: str) -> None:
        self.deciding = False
        if answer == "failed":
            self.take(self.talk.undecided())
        elif answer == "no":
            self.take(self.talk.decided(gateway.reject(Reason.QUEUE_FULL)))
        else:
            self.dispatched += 1
            model = "b" if answer == "other model" else None
            self.take(self.talk.decided(gateway.dispatch("10.0.0.1:1", model=model)))

    @rule(how=st.sampled_from(["closed", "cancelled"]))
    def leave(self, how: str) -> None:
        self.take(self.talk.closed() if how == "closed" else self.talk.cancelled())
        self.over = True

    @invariant()
    def one_end_for_each_dispatch(self) -> None:
        assert self.ended <= self.dispatched <= 1
        if self.over and not self.deciding:
            assert self.ended == self.dispatched

    def teardown(self) -> None:
        self.leave("closed")
        if self.deciding:
            self.decided("yes")
        self.one_end_for_each_dispatch()


AnyOrder.TestCase.settings = settings(max_examples=150, stateful_step_count=8)
TestAnyOrder = AnyOrder.TestCase
