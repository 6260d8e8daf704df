"""A request that is only observed goes on without a pod's name, in every mode of the conversation."""

from extproc_talk import BODY, BUFFERED, DUPLEX, POD, asked, session

from lorapick.model.effects import PassOn
from lorapick.model.picks import Pick
from lorapick.model.requests import Outcome
from lorapick.testing import extproc as gateway
from lorapick.wire.extproc.commands import Dispatched, Ended, Send, Started
from lorapick.wire.extproc.headers import DESTINATION


def pass_on(model: str | None = None) -> PassOn:
    would = Pick(request_id="made-up", adapter="ad0", pod="p1", score=1.0, tier=None)
    return PassOn(cause=1, request_id="made-up", pick=would, model=model)


def test_no_pod_is_named_in_either_mode() -> None:
    for modes in (BUFFERED, DUPLEX):
        talk = session()
        asked(talk, modes=modes)
        sent = [command.message for command in talk.decided(pass_on()) if isinstance(command, Send)]
        assert sent
        for message in sent:
            assert not message.HasField("dynamic_metadata")
            assert DESTINATION not in str(message)


def test_an_alias_is_resolved_all_the_same() -> None:
    talk = session()
    asked(talk)
    (command,) = talk.decided(pass_on("ad7"))
    assert command.message.request_body.response.body_mutation.body == BODY.replace(b"ad0", b"ad7")


def test_the_gateway_says_who_serves_and_how_it_ends() -> None:
    talk = session()
    asked(talk)
    talk.decided(pass_on())
    commands = talk.receive(gateway.with_served(gateway.response_headers(), POD))
    assert Dispatched("made-up", POD) in commands
    assert Started("made-up", 200) in commands
    (ended,) = [command for command in talk.closed() if isinstance(command, Ended)]
    assert (ended.outcome, ended.status) == (Outcome.SERVED, 200)


def test_a_gateway_that_names_no_pod_is_not_guessed_for() -> None:
    talk = session()
    asked(talk)
    talk.decided(pass_on())
    commands = talk.receive(gateway.response_headers())
    assert [command for command in commands if isinstance(command, Dispatched)] == []
    assert Started("made-up", 200) in commands


def test_a_client_that_left_meanwhile_has_left() -> None:
    talk = session()
    asked(talk)
    talk.closed()
    # The picker counts it as sent although nobody waits for it any more.
    assert talk.decided(pass_on()) == [Ended("made-up", Outcome.ABANDONED)]
