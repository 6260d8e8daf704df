"""Claims: one question at a time, nobody forgotten."""

import pytest

from lorapick.core.peers.claims import Claims, Standing
from lorapick.model.placement import Side
from lorapick.model.settings import PeersSettings

RED, BLUE = ("red", Side.DECODE), ("blue", Side.DECODE)


def test_a_question_is_open_until_something_stands():
    claims = Claims(PeersSettings(redis="redis://x", claim_timeout=0.1))
    claims.ask(RED, 0, pod="a", now=1.0)
    assert claims.open(RED) and claims.next_due == 1.1
    assert not claims.wait("r1", (RED,)) and claims.wait("r1", (RED,))
    claims.check()
    assert claims.waiting_for(RED) == ["r1"] and claims.waiting_for(BLUE) == []
    claims.stop("r1")
    claims.stop("r1")
    claims.stands(RED, Standing.OURS, until=5.0)
    assert claims.ours == {RED: None} and not claims.open(RED)
    claims.check()
    claims.drop(RED)
    assert not claims.ours and not claims.by_key
    claims.look_again()
    assert claims.due(99.0) == [] and claims.next_due == float("inf")


def test_a_request_may_wait_for_two():
    claims = Claims(PeersSettings(redis="redis://x"))
    for key in (RED, BLUE):
        claims.ask(key, 0, pod="a", now=0.0)
    claims.wait("r1", (RED, BLUE))
    assert "r1" in claims and len(claims) == 1
    with pytest.raises(AssertionError, match="wait for a claim"):
        claims.drop(RED)
