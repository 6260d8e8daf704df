"""Peers as a part of the state: off unless the settings say so."""

from math import inf

from lorapick.core.peers.state import Peers
from lorapick.model.settings import PeersSettings


def test_off_it_wants_no_wakeup():
    peers = Peers(None)
    assert not peers.on and peers.next_due == inf
    peers.configure(PeersSettings(redis="redis://x", stale_after=3.0, claim_ttl=4.0))
    assert peers.on and (peers.marks.stale_after, peers.claims.lasts) == (3.0, 4.0)
    peers.marks.hear("two", now=1.0)
    assert peers.next_due == 4.0
