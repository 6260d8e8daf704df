"""One picker of several, as a conversation."""

from lorapick.model import events
from lorapick.model.effects import ClaimLoad, ReleaseClaim
from lorapick.model.placement import Side
from lorapick.model.settings import PeersSettings, Settings
from lorapick.testing.playbook import Playbook

PEERS = PeersSettings(redis="redis://store")


def picker(pods=("a", "b"), adapters=("legal", "code"), up=True, **settings):
    book = Playbook(pods=pods, adapters=adapters, settings=Settings(peers=PEERS, **settings))
    if up:
        book.apply(events.PeersReached, up=True)
    return book


def answer(book, claim, *, adapter="legal", side=Side.DECODE, **fields):
    fields = {"granted": True, "owner": "me", "pod": "a"} | fields
    return book.apply(events.LoadClaimed, claim=claim, adapter=adapter, side=side, **fields)


def claims(book):
    """Claims and releases that the last event led to."""
    return [effect for effect in book.effects if isinstance(effect, ClaimLoad | ReleaseClaim)]
