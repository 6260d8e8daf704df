"""Loads of peers in the table: marks that beat inference and lose to reports."""

from lorapick.model.tiers import Source, Tier
from lorapick.testing.playbook import Playbook


def test_a_mark_begins_ends_and_is_taken_back():
    book = Playbook(pods=["a"], adapters=["legal", "code"])
    table = book.fleet.state.residency
    assert table.peer_loads(0, "legal", now=0.0) and table.by_peer(0, "legal")
    assert not table.peer_loads(0, "legal", now=0.0)  # it is on its way
    load = table.peer_loaded(0, "legal", now=0.1)
    assert load is not None and load.tier is Tier.DISK
    assert table.home(0).cells["legal"].source is Source.PEER and not table.by_peer(0, "legal")
    assert table.peer_loads(0, "code", now=0.2)
    assert table.peer_vanished(0, "code", now=0.3) and not table.peer_vanished(0, "code", now=0.3)
    assert table.home(0).cells["code"].tier is Tier.DISK
    assert table.peer_loaded(0, "code", now=0.4) is None


def test_a_name_that_the_pod_does_not_accept_is_not_marked():
    book = Playbook(pods=["a"])
    book.report("a", registered=("other",))
    assert not book.fleet.state.residency.peer_loads(0, "legal", now=0.0)
